"""Answers name their column, their bounds and their unit, and come back as they were."""

import json
import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.people import ArrayReader, PairReader, Question, answer, mean
from sfumato.people.bias import Heterogeneity, bias_warnings
from sfumato.privacy import PersonBudgets, Seeded, Terms
from sfumato.results import load_result

mpl.use("Agg")
N = 6000
SCHEMA = sf.Schema(
    {"income": sf.Numeric(1000, 500_000, bins=5), "age": sf.Numeric(0, 99, bins=5, integer=True)},
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "income": np.exp(rng.normal(10.2, 0.6, N)).clip(1000, 500_000),
            "age": rng.integers(0, 100, N),
            "consent": np.array(["strict", "standard", "open"])[np.arange(N) % 3],
        }
    )
    roster = sf.Roster.tiers(
        {"strict": 0.1, "standard": 0.5, "open": 2.0},
        column="consent",
        counts={"strict": N // 3, "standard": N // 3, "open": N // 3},
    )
    return sf.open(frame, schema=SCHEMA, budgets=roster, noise=Seeded(1))


def _largest(text):
    return max(float(n.replace(",", "")) for n in re.findall(r"\d[\d,.]*\d|\d", text))


def test_a_mean_warns_in_the_unit_of_the_mean_and_names_its_column(table):
    """It warned in the unit of the sum behind it: "off by up to 2.248e+09"."""
    found = table.mean("income", share=0.1, mechanism="affine")
    assert "the mean of income can be off by up to" in found.warnings[0]
    assert _largest(found.warnings[0]) <= 500_000
    assert found.bias_bound <= 499_000
    robust = table.mean("income", share=0.1, mechanism="robust")
    assert "the bias of the mean of income is at most" in robust.warnings[0]
    assert _largest(robust.warnings[0]) <= 500_000
    whole = table.sum("age", share=0.1, mechanism="affine")
    assert "the sum of age can be off by up to" in whole.warnings[0]
    assert "e+" not in whole.warnings[0]
    count = table.count(where="age >= 40", share=0.1, mechanism="affine")
    assert re.search(
        r"the count can be off by up to [\d,]+ people \(expected error otherwise [\d,]+ people\)", count.warnings[0]
    )


def test_the_bias_of_a_mean_is_that_of_the_rows_that_were_selected(table):
    everybody = table.mean("income", share=0.05, mechanism="robust")
    few = table.mean("income", where="age < 30", share=0.05, mechanism="robust")
    assert few.bias_bound > 2 * everybody.bias_bound


def test_answers_name_column_and_bounds_and_come_back(table):
    for found in (table.mean("income", share=0.05), table.sum("income", share=0.05), table.sum("age", share=0.05)):
        column = "age" if found.clamped == (0, 99) else "income"
        assert found.column == column
        assert found.subject == f"{found.kind} of {column}"
        assert f"{found.kind} of {column}" in repr(found)
        assert found.to_frame().loc[0, "column"] == column
        assert found.plot().get_xlabel() == f"{found.kind} of {column}"
        assert found.rounding == found.parameters["rounding_at_most"]
        again = load_result(json.loads(json.dumps(found.to_dict())))
        assert (again.column, again.clamped, again.rounding) == (found.column, found.clamped, found.rounding)
        assert again.interval(0.8) == found.interval(0.8)
    count = table.count(share=0.05)
    assert count.column is None
    assert count.clamped is None
    assert "column" not in count.to_frame()
    assert count.plot().get_xlabel() == "count"


def test_people_come_in_whole_numbers():
    budgets = PersonBudgets.from_tiers({"strict": (0.1, 500), "open": (1.0, 500)})
    reader = ArrayReader.of(np.repeat([0, 1], 500), np.arange(1000) % 2)
    found = answer(reader, Question(budgets), mechanism="affine", source=Seeded(3))
    intervals = r"95% [\d,]+ to [\d,]+ for any data, [\d,]+ to [\d,]+ if independent"
    assert re.fullmatch(rf"Estimate\(count [\d,]+, {intervals}, affine, NOT PRIVATE\)", repr(found))
    text = bias_warnings(0.4, 0.3, Question(budgets), found=Heterogeneity(0.01, 12.04, 3.3, (), ()))
    assert "up to 1 people" in text[0]
    assert "the count is 13 people ± 4 people" in text[1]
    rows = bias_warnings(7.5, 1.0, Question(Terms(rows_per_person=3, budgets=budgets)))
    assert "8 rows" in rows[0]


def test_where_nobody_may_be_selected_the_interval_is_the_whole_range():
    budgets = PersonBudgets.from_tiers({"all": (0.1, 20)})
    empty = ArrayReader.of([0] * 20, [0] * 20, low=-4, high=4)
    found = mean(PairReader(empty, ArrayReader.of([0] * 20, [0] * 20)), budgets, low=0, high=8, steps=4, source=Seeded(2))
    assert found.interval() == (0, 8)
    assert "may select nobody" in found.warnings[-1]
    assert load_result(json.loads(json.dumps(found.to_dict(), allow_nan=False))).interval() == (0, 8)


def test_the_bounds_of_a_shifted_sum_know_of_several_rows():
    budgets = PersonBudgets.from_tiers({"all": (5.0, 10)})
    rows = [0] * 30
    pair = PairReader(ArrayReader.of(rows, [4] * 30, low=-4, high=4), ArrayReader.of(rows, [1] * 30))
    found = mean(pair, budgets, low=10, high=20, steps=4, rows_per_person=3, kind="sum", source=Seeded(2))
    assert found.bounds == (0.0, 20 * 30)
    low, high = found.interval(0.999)
    assert low <= 20 * 30 <= high
