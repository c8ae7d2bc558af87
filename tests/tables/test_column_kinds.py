"""Dates, timestamps, decimals, booleans, long lists, extra cells: every engine and memory put a value in the same cell."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa

from sfumato.records.coding import cells_of
from sfumato.tables import Date, Numeric, Schema, Timestamp
from sfumato.tables import open as open_table
from sfumato.testing import reveal

UTC = dt.UTC
DAYS = [
    *(None, dt.date(2024, 2, 29), dt.date(2023, 12, 31), dt.date(2024, 1, 1), dt.date(2024, 12, 31), dt.date(2025, 1, 1)),
    *(dt.date(2024, 12, 30), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31), dt.date(2024, 3, 1)),
    *(dt.date(2021, 1, 3), dt.date(2021, 1, 4), dt.date(2000, 2, 29), dt.date(1900, 2, 28), dt.date(2024, 6, 30)),
]
TIMES = [
    *(None, dt.datetime(2024, 3, 31, 1, 59, 59, 999999), dt.datetime(2024, 3, 31, 2), dt.datetime(2024, 3, 31, 3)),
    *(dt.datetime(2024, 10, 27, 1, 30), dt.datetime(2024, 10, 27, 0, 30), dt.datetime(2024, 12, 31, 23, 59, 59, 999999)),
    *(dt.datetime(2025, 1, 1), dt.datetime(2023, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 1, 1)),
    *(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.datetime(1969, 12, 31, 23, 59, 59, 500000)),
    *(dt.datetime(2024, 2, 29, 12, 0, 0, 600000), dt.datetime(2024, 7, 1, 22, 30), dt.datetime(2024, 6, 30, 23, 59, 59)),
]
TEXTS = [
    *(None, "2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "2024-04-31", "2024-00-10", "2024-13-01", "2024-1-1"),
    *("2024-01-01T00:00:00Z", "2024-01-01T00:30:00+01:00", "2024-03-31 01:00:00+00:00", "2024-03-31 00:59:59Z"),
    *("2024-12-31T23:59:59.999999999", "2024-12-31 24:00:00", "2024-06-30T23:59:60", "2024-01-01T12:30", "0000-01-01"),
    *("0001-01-01", "9999-12-31T23:59:59", " 2024-01-01", "2024-01-01\n", "2024-01-01 ", "20240101", "1e300", "", "-0"),
    *(
        "٢٠٢٤-01-01",
        "2024-01-01T12:00:00+24:00",
        "2024-01-01T12:00-05:30",
        "infinity",
        "2024-02-30T00:00:00Z",
        "2024-10-27T00:59:59Z",
    ),
]
DOMAINS = {
    "day": Date("2024-01-01", "2024-12-31", by="day", missing=True),
    "week": Date("2023-12-28", "2025-01-05", by="week", outside="other", missing="unknown"),
    "month": Date("2023-11-15", "2025-01-10", by="month", other=True),
    "quarter": Date("2020", "2024", by="quarter", outside="other"),
    "year": Date("0001", "0030", by="year"),
    "all years": Date("9980", "9999", by="year", outside="other", missing=True),
    "weekday": Date("2020", "2025", by="day of week", missing=True),
}
CLOCKS = {
    "oslo day": Timestamp("2024-01-01", "2024-12-31", by="day", zone="Europe/Oslo", missing=True),
    "oslo month": Timestamp("2024", "2024", by="month", zone="Europe/Oslo", outside="other"),
    "new york hour": Timestamp("2024", "2024", by="hour of day", zone="America/New_York", missing=True),
    "weekday": Timestamp("2023", "2025", by="day of week", zone="Asia/Kolkata"),
    "half a day": Timestamp("2024-03-31 00:30:00", "2024-03-31 12:00:00", by="day", outside="other", missing=True),
    "utc year": Timestamp("9990", "9999", by="year", outside="other", missing=True),
    "first years": Timestamp("0001", "0020", by="year"),
}


def by_row(put, column, domains):
    """The cell of each row on an engine, for each of several domains of the same column."""
    rows, names = len(column), list(domains)
    schema = Schema({"row": Numeric(0, rows, bins=rows + 1, integer=True), **domains})
    table = pa.table({"row": pa.array(range(rows), pa.int64()), **dict.fromkeys(names, column)})
    found = reveal(open_table(**put(table), schema=schema).marginals([["row", name] for name in names]))
    assert all(((counts == 0) | (counts == 1)).all() and (counts.sum(axis=1) <= 1).all() for counts in found)
    cells = [np.where(counts[:rows].any(axis=1), counts[:rows].argmax(axis=1), -1).tolist() for counts in found]
    return dict(zip(names, cells, strict=True))


def agree(put, domains, values, kind):
    found = by_row(put, pa.array(values, kind), domains)
    assert found == {name: cells_of(domain, values).tolist() for name, domain in domains.items()}, kind


def test_dates(put):
    for values, kind in ((DAYS, pa.date32()), (TIMES, pa.timestamp("us")), (TEXTS, pa.string())):
        agree(put, DOMAINS, values, kind)


def test_timestamps(put):
    instants = [None if t is None else t.replace(tzinfo=UTC) for t in TIMES]
    agree(put, CLOCKS, instants, pa.timestamp("us", "UTC"))
    for values, kind in ((DAYS, pa.date32()), (TIMES, pa.timestamp("us")), (TEXTS, pa.string())):
        agree(put, CLOCKS, values, kind)
