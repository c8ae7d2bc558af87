"""Dates, decimals, booleans and labels from a frame to an answer, a report and a stored release."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InputError
from sfumato.privacy import Seeded
from sfumato.results import load_result
from sfumato.tables import Schema

TEXT = """
[table]
title = "Clinic of the valley"
description = "Everyone admitted in 2024."

[columns.admitted]
type = "date"
first = "2024-01-01"
last = "2024-12-31"
by = "month"
title = "Day of admission"

[columns.arrived]
type = "timestamp"
first = "2024-01-01"
last = "2024-12-31"
by = "hour of day"
zone = "Europe/Oslo"

[columns.paid]
type = "decimal"
low = 0
high = "99.99"
places = 2
bins = 10
unit = "€"
description = "With tax."

[columns.own]
values = [0, 1]
labels = { 0 = "owned", 1 = "rented" }
missing = "not asked"

[columns.ill]
type = "boolean"
true = "yes"
false = "no"
"""
ROWS = 400


def frame() -> pd.DataFrame:
    place = np.arange(ROWS)
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=int(d)) for d in place % 366]
    return pd.DataFrame(
        {
            "admitted": [d.isoformat() for d in days],
            "arrived": pd.to_datetime(days) + pd.to_timedelta(place % 24, unit="h"),
            "paid": np.round((place % 100) * 0.99, 2),
            "own": [None if i % 10 == 0 else i % 2 for i in place.tolist()],
            "ill": np.where(place % 2 == 1, "yes", "no"),
        }
    )


def opened(text: str = TEXT, **more):
    given = {"noise": Seeded(1), **more}
    return sf.open(frame(), schema=Schema.from_toml(text), epsilon=10**6, rows=ROWS, **given)


def test_histograms_show_names_and_titles():
    table = opened()
    made = table.histogram("admitted", epsilon=10**4, mechanism="identity")
    assert made.to_frame()["admitted"].tolist() == [f"2024-{m:02}" for m in range(1, 13)]
    truth = pd.to_datetime(frame()["admitted"]).dt.month.value_counts().sort_index()
    assert made.to_frame()["count"].tolist() == truth.tolist()
    assert made.plot().get_xlabel() == "Day of admission"
    assert load_result(made.to_dict()).bins == made.bins
    hours = table.histogram("arrived", epsilon=10**4, mechanism="identity", where="arrived >= '08:00' and arrived < '10:00'")
    assert dict(zip(hours.bins.axes[0].labels, hours.flat, strict=True))["09:00"] == sum(np.arange(ROWS) % 24 == 9)
    own = table.histogram("own", "ill", epsilon=10**4, mechanism="identity")
    assert own.bins.axes[0].labels == ("owned", "rented", "not asked")
    assert own.counts.sum() == ROWS


def test_a_mean_of_dates_is_a_date_and_that_of_decimals_has_its_unit():
    table, rows = opened(), frame()
    made = table.mean("admitted", epsilon=10**4)
    days = (pd.to_datetime(rows["admitted"]) - pd.Timestamp("2024-01-01")).dt.days.mean()
    assert made.value == pytest.approx(days, abs=0.01)
    assert made.words(made.value) == str((pd.Timestamp("2024-01-01") + pd.Timedelta(days=round(days))).date())
    assert "2024-06" in repr(made)
    assert load_result(made.to_dict()).words(0) == "2024-01-01"
    paid = table.mean("paid", epsilon=10**4)
    assert paid.value == pytest.approx(rows["paid"].mean(), abs=1e-2)
    assert paid.rounding == 0
    assert paid.words(12.5) == "12.5 €"
    assert paid.plot().get_xlabel() == "mean of paid (€)"
    assert table.sum("paid", epsilon=10**4).value == pytest.approx(rows["paid"].sum(), abs=0.1)
    with pytest.raises(InputError, match="adds up 'admitted', whose values are dates; ask for their mean"):
        table.sum("admitted", epsilon=1)
    assert made.plot().get_xticklabels()[0].get_text().startswith("2024-")


def test_a_synthetic_table_has_dates_and_can_be_coded_again():
    table = opened()
    made = table.synthesize(target="ill", epsilon=100)
    drawn = made.sample(50)
    assert set(drawn["ill"]) <= {True, False}
    assert set(drawn["own"]) <= {0, 1, None}
    assert all(dt.date(2024, 1, 1) <= d <= dt.date(2024, 12, 31) for d in drawn["admitted"])
    assert pd.to_datetime(drawn["arrived"]).dt.year.eq(2024).all()
    assert load_result(made.to_dict()).to_frame().shape == made.to_frame().shape


def test_an_edited_title_is_no_other_request(tmp_path):
    ledger = str(tmp_path / "ledger.db")
    first = opened(ledger=ledger, name="clinic").histogram("admitted", epsilon=1)
    folder = first.save(tmp_path / "first")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Clinic of the valley" in page
    assert "Everyone admitted in 2024." in page
    assert "Day of admission; by month from 2024-01-01 to 2024-12-31" in page
    edited = (
        TEXT.replace("Clinic of the valley", "Clinic").replace("Day of admission", "Admission").replace("With tax.", "?")
    )
    again = opened(edited, ledger=ledger, name="clinic").histogram("admitted", epsilon=1)
    assert again.repeated
    assert again.flat.tolist() == first.flat.tolist()
    other = opened(TEXT.replace('by = "month"', 'by = "week"'), ledger=ledger, name="clinic").histogram(
        "admitted", epsilon=1
    )
    assert not other.repeated
    shown = opened(ledger=":memory:")._repr_html_()
    assert "Clinic of the valley" in shown
    assert "paid (€)" in shown
    assert "With tax." in shown
