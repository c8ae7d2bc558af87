"""Dates, timestamps, decimals, booleans, long lists, extra cells: every engine and memory put a value in the same cell."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from sfumato.records.coding import cells_of
from sfumato.tables import Boolean, Categorical, Date, Decimals, Numeric, Schema, Timestamp, parse_where
from sfumato.tables import open as open_table
from sfumato.tables.conditions import condition
from sfumato.tables.rows import rows_in_use
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


CODES = [f"{chr(65 + i % 26)}{i:04}" for i in range(300)]
BOOLEAN = Boolean("yes", "no", missing="unknown")
DECIMAL = Decimals("-1.00", "99.99", bins=20, decimals=2, outside="other", missing=True)
PRICES = [None, "0.290", "99.990", "99.995", "99.994", "-1.000", "-1.004", "-1.006", "0.005", "19.999", "123456789012.345"]
FLOATS = [None, 0.1 + 0.2, 99.99, 99.995, -0.0, 1e300, -1e300, float("inf"), float("nan"), 5e-324, -5e-324, 0.285, -1.0]
WORDS = [None, "true", "T", "yes", "Y", "1", "FALSE", "f", "No", "n", "0", "maybe", "", " true", "2"]
OTHERS = {
    "decimal, decimals": (DECIMAL, [None if p is None else Decimal(p) for p in PRICES], pa.decimal128(18, 3)),
    "decimal, doubles": (DECIMAL, FLOATS, pa.float64()),
    "decimal, whole": (
        Decimals(edges=[0, "0.5", 7], decimals=1, other=True),
        [None, 0, 7, 8, -1, 2**62, -(2**62)],
        pa.int64(),
    ),
    "boolean": (BOOLEAN, [True, False, None], pa.bool_()),
    "boolean, whole": (BOOLEAN, [0, 1, 2, None, -1], pa.int64()),
    "boolean, doubles": (Boolean(other=True), [0.0, 1.0, 0.5, None, float("nan"), float("inf")], pa.float64()),
    "boolean, words": (BOOLEAN, WORDS, pa.string()),
    "long": (Categorical(CODES, other=True, missing=True), [None, "A0000", "B0001", "a0000", "", "N0299"], pa.string()),
    "long, whole": (Categorical(list(range(-50, 50)), missing=True), [None, -50, 49, 50, 2**62, -(2**62), 0], pa.int64()),
    "long, doubles": (
        Categorical(list(range(80)), other=True),
        [None, 79.0, 0.5, float("nan"), float("inf"), -0.0],
        pa.float64(),
    ),
    "labelled": (Categorical({0: "owned", 1: "rented"}, other=True, missing="not asked"), [0, 1, 2, None], pa.int64()),
    "text": (Categorical(["F", "M"], other=True, missing=True), ["F", "M", "x", "", None], pa.string()),
    "numbers": (Numeric(0, 10, bins=20, outside="other", missing=True), [*FLOATS, 3.0], pa.float64()),
    "bins": (Numeric(0, 10, bins=4, missing="none"), [*FLOATS, 3.0], pa.float64()),
}


def by_row(put, columns):
    """The cell of each row on an engine, for columns that each have a domain, values and a type."""
    rows = max(len(values) for _, values, _ in columns.values())
    padded = {name: pa.array([*values, *[None] * (rows - len(values))], kind) for name, (_, values, kind) in columns.items()}
    line = Numeric(0, rows, bins=rows + 1, integer=True)
    schema = Schema({"row": line, **{name: domain for name, (domain, _, _) in columns.items()}})
    table = pa.table({"row": pa.array(range(rows), pa.int64()), **padded})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.tables.counting.ROLL_UP_CELLS", math.inf)  # one query for all
        found = reveal(open_table(**put(table), schema=schema).marginals([["row", name] for name in columns]))
    cells = {}
    for (name, (_, values, _)), counts in zip(columns.items(), found, strict=True):
        assert ((counts == 0) | (counts == 1)).all()
        assert (counts.sum(axis=1) <= 1).all()
        each = np.where(counts.any(axis=1), counts.argmax(axis=1), -1)
        cells[name] = each[: len(values)].tolist()
    return cells


def agree(put, columns):
    found = by_row(put, columns)
    assert found == {name: cells_of(domain, values).tolist() for name, (domain, values, _) in columns.items()}


def crossed(domains, kinds, every):
    """All kinds of columns for the domains in `every`, the first kind for the others: how a value is read, and its cell."""
    chosen = {name: kinds if name in every else kinds[:1] for name in domains}
    return {f"{name}, {kind}": (domains[name], values, kind) for name, some in chosen.items() for values, kind in some}


@pytest.fixture
def short(request):
    """Fewer columns where each costs a second of Java."""
    return request.node.callspec.params["put"].startswith("spark")


def test_dates(put, short):
    kinds = [(DAYS, pa.date32()), (TIMES, pa.timestamp("us")), (TEXTS, pa.string())]
    agree(put, crossed({"day": DOMAINS["day"]} if short else DOMAINS, kinds, ("day", "all years")))


def test_timestamps(put, short):
    instants = [None if t is None else t.replace(tzinfo=UTC) for t in TIMES]
    kinds = [(instants, pa.timestamp("us", "UTC")), (TIMES, pa.timestamp("us")), (TEXTS, pa.string()), (DAYS, pa.date32())]
    name = "new york hour"
    agree(put, crossed({name: CLOCKS[name]} if short else CLOCKS, kinds, (name, "utc year")))


def test_decimals_booleans_long_lists_and_extra_cells(put):
    agree(put, OTHERS)


WHERE = Schema(
    {
        "day": Date("2024-01-10", "2024-12-20", by="month", missing=True),
        "at": Timestamp("2024", "2024", by="hour of day", zone="Europe/Oslo", missing="never"),
        "price": Decimals(0, 10, bins=4, decimals=2, outside="other", missing=True),
        "own": Categorical({0: "owned", 1: "rented"}, other=True, missing="not asked"),
        "ill": Boolean("yes", "no"),
        "code": Categorical(CODES, other="elsewhere", missing=True),
    }
)
ROWS = [
    (dt.date(2024, 3, 31), dt.datetime(2024, 3, 31, 8, 0), 9.99, 0, True, "A0000"),
    (dt.date(2024, 4, 1), dt.datetime(2024, 3, 31, 8, 59, 59), 10.0, 1, False, "B0001"),
    (dt.date(2023, 1, 1), dt.datetime(2023, 12, 31, 23, 59, 59), 10.01, 7, None, "?"),
    (None, None, None, None, None, None),
    (dt.date(2025, 1, 1), dt.datetime(2024, 12, 31, 23, 59, 59), 0.0, 0, True, "C0002"),
]
CONDITIONS = {
    "day >= '2024-04-01'": [1, 4],
    "day <= '2024-03'": [0, 2],
    "day = '2024-01-10'": [2],  # clamped
    "day between '2024 Q1' and '2024-03-31'": [0, 2],
    "day in ('2024-W14', '2024-12')": [1, 4],
    "not (day < '2024-04')": [1, 4],
    "day is missing or day = 'missing'": [3],
    "at < '2024-04-01' and at >= '2024-03-31 08:00:01'": [1],
    "at = '2024-03-31 08:00'": [0],
    "at in ('08:00')": [0, 1],
    "at >= '23:00'": [4],
    "at != '08:00'": [4],
    "at = 'other'": [2],
    "at = 'never'": [3],
    "at is missing": [2, 3],
    "price >= 9.99 and price < 10": [0],
    "price = 10": [1],
    "price = 'other'": [2],
    "price is missing": [2, 3],
    "own = 0": [0, 4],
    "own = 'rented' or own = 'not asked'": [1, 3],
    "own = 'other'": [2],
    "own != 'owned'": [1],
    "ill = 'yes'": [0, 4],
    "ill = false": [1],
    "ill is missing": [2, 3],
    "code = 'A0000' or code = 'missing'": [0, 3],
    "code != 'A0000'": [1, 4],
    "code = 'elsewhere'": [2],
    "code is missing": [2, 3],
}


def test_conditions(put, short):
    kinds = (pa.date32(), pa.timestamp("us"), pa.float64(), pa.int64(), pa.bool_(), pa.string())
    columns = zip(WHERE.names, zip(*ROWS, strict=True), kinds, strict=True)
    table = pa.table({"row": pa.array(range(len(ROWS)), pa.int64()), **{n: pa.array(c, k) for n, c, k in columns}})
    schema = Schema({"row": Numeric(0, len(ROWS), bins=len(ROWS) + 1, integer=True), **WHERE.columns})
    data = open_table(**put(table), schema=schema)
    rows, found = rows_in_use(data, schema.names, None)
    conditions = dict(list(CONDITIONS.items())[:: 4 if short else 1])
    holds = [condition(parse_where(text, schema), found, schema.columns) for text in conditions]
    asked = rows.select(row=found["row"].expr, **{f"c{i}": expr for i, expr in enumerate(holds)})
    answers = sorted(data.engine.fetch(asked).to_pylist(), key=lambda row: row["row"])  # one query for all
    for i, (text, expected) in enumerate(conditions.items()):
        assert [row["row"] for row in answers if row[f"c{i}"]] == expected, text
