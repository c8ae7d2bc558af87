"""Quantiles, medians, minima and maxima through `sf.open` and plans: answers, words, artefacts and refusals."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import BudgetError, InputError, SchemaError
from sfumato.privacy import Seeded
from sfumato.results import load_result
from sfumato.statistics import Quantiles

DRAW = np.random.default_rng(4)
N = 6000
FRAME = pd.DataFrame(
    {
        "who": np.arange(N) // 2,
        "age": np.clip(DRAW.normal(40, 12, N), 0, 99).astype(int),
        "weight": np.clip(DRAW.normal(70, 10, N), 30, 150),
        "ward": np.array(["A", "B", "C"], dtype=object)[np.arange(N) % 3],
        "consent": np.array(["strict", "open"], dtype=object)[np.arange(N) % 2],
    }
)
COLUMNS = {
    "age": sf.Numeric(0, 99, bins=10, integer=True),
    "weight": sf.Numeric(30, 150, bins=10),
    "ward": sf.Categorical(["A", "B", "C", "D"]),
}
ROSTER = sf.Roster.tiers({"strict": 0.2, "open": 2.0}, column="consent", counts={"strict": N // 2, "open": N // 2})


def opened(**more):
    given = {"schema": sf.Schema(COLUMNS), "epsilon": 100, "rows": N, "noise": Seeded(2), "ledger": ":memory:"} | more
    return sf.open(FRAME, **given)


def by_tiers():
    return opened(budgets=ROSTER, epsilon=None, rows=None)


def test_a_median_with_its_interval():
    table = opened()
    made = table.median("age", epsilon=1)
    assert isinstance(made, Quantiles)
    assert abs(made.value - FRAME["age"].median()) <= 1
    low, high = made.interval()
    assert low <= FRAME["age"].median() <= high
    assert float(made.guarantee.epsilon) <= 1
    assert made.words(41.0) == "41"
    assert table.median("age", epsilon=1).repeated


def test_real_numbers_are_rounded_to_the_lattice_and_the_interval_says_so():
    made = opened().quantile("weight", [0.75, 0.25], epsilon=2)
    assert made.quantiles == (0.25, 0.75)
    truth = FRAME["weight"].quantile([0.25, 0.75]).to_numpy()
    assert np.abs(made.values - truth).max() < 0.5
    assert made.parameters["rounded_to"] == pytest.approx(120 / 2**16)
    coarse = opened().median("weight", epsilon=2, parameters={"steps": 12})
    assert coarse.interval()[1] - coarse.interval()[0] >= 10


def test_groups_are_all_cells_of_the_schema():
    made = opened().quantile("age", [0.25, 0.5, 0.75], by=["ward"], epsilon=3)
    frame = made.to_frame()
    assert frame["ward"].tolist() == np.repeat(["A", "B", "C", "D"], 3).tolist()
    truth = FRAME.groupby("ward")["age"].quantile([0.25, 0.5, 0.75]).to_numpy()
    assert np.abs(frame["value"].to_numpy()[:9] - truth).max() <= 3
    assert (np.diff(made.values, axis=-1) >= 0).all()
    assert made.at(0.5).shape == (4,)
    assert float(made.guarantee.epsilon) <= 3  # disjoint: not twelve times
    assert made.low[3].min() == 0  # nobody is in ward D: nothing is known
    assert made.high[3].max() == 99
    with pytest.raises(InputError, match="own interval"):
        made.interval()


def test_minimum_and_maximum_state_their_risk():
    table = opened()
    low, high = table.min("age", epsilon=1), table.max("age", epsilon=1)
    assert FRAME["age"].lt(low.value).mean() <= low.outside <= 0.05
    assert FRAME["age"].gt(high.value).mean() <= high.outside <= 0.05
    assert "% of the records lie below it, with 95% confidence" in low.told
    assert "above" in high.told
    wide = table.max("age", risk=0.2, epsilon=1)
    assert wide.quantiles == (0.8,)
    assert wide.value == pytest.approx(FRAME["age"].quantile(0.8), abs=2)
    note = table.preview("max", column="age", epsilon=1)[0].note
    assert "above the maximum" in note


def test_a_result_is_the_same_after_a_round_trip_and_can_be_drawn(tmp_path):
    for number, made in enumerate(
        (opened().median("age", epsilon=1), opened().quantile("age", [0.1, 0.5, 0.9], by=["ward"], epsilon=1))
    ):
        again = load_result(json.loads(json.dumps(made.to_dict())))
        assert again.to_dict() == made.to_dict()
        assert repr(again) == repr(made)
        folder = made.save(tmp_path / str(number))
        assert "How to read it" in (folder / "report.html").read_text(encoding="utf-8")
        assert made.plot().get_xlabel() == "age"


def test_personal_budgets():
    table = by_tiers()
    offers = {o.mechanism: o for o in table.preview("median", column="age", share=0.5)}
    assert list(offers) == ["choice", "weighted"]
    assert not offers["choice"].errors.assumes
    assert offers["weighted"].errors.assumes
    assert table.preview("median", column="age", share=0.5, independent=True)[0].mechanism == "weighted"
    made = table.median("age", share=0.5)
    assert made.mechanism == "choice"
    assert made.interval()[0] <= FRAME["age"].median() <= made.interval()[1]
    assert all(p["used"] <= p["share"] for p in made.guarantee.to_dict()["people"])
    grouped = table.quantile("age", [0.5, 0.9], by=["ward"], share=0.2, independent=True)
    assert grouped.mechanism == "weighted"
    assert any("nothing to do with their values" in w for w in grouped.warnings)


def test_rows_of_one_person_are_priced_together():
    schema = sf.Schema(COLUMNS, unit=sf.PrivacyUnit("who", 2))
    once, twice = opened(), opened(schema=schema)
    errors = [t.preview("median", column="age", epsilon=1)[0].expected_rmse for t in (once, twice)]
    assert errors[1] == pytest.approx(2 * errors[0], rel=1e-3)
    assert float(twice.median("age", epsilon=1).guarantee.epsilon) <= 1


@pytest.mark.parametrize(
    ("kind", "asked", "said"),
    [
        ("quantile", {"column": "age"}, "needs `quantiles`"),
        ("quantile", {"column": "age", "quantiles": []}, "`quantiles`"),
        ("quantile", {"column": "age", "quantiles": [0.5, 1]}, "strictly between 0 and 1"),
        ("quantile", {"column": "age", "quantiles": [50]}, "from 0 to 1"),
        ("quantile", {"column": "age", "quantiles": [0.5, 0.5]}, "twice"),
        ("quantile", {"column": "age", "quantiles": 0.5}, "a list of numbers"),
        ("median", {"column": "age", "by": ["ward", "ward"]}, "names a column twice"),
        ("median", {"column": "age", "by": ["age"]}, "names a column twice, or 'age' itself"),
        ("median", {"column": "age", "quantiles": [0.5]}, "unknown key 'quantiles'"),
        ("min", {"column": "age", "risk": 0.5}, "from 0 to 0.25"),
        ("min", {"column": "age", "risk": 0}, "above 0"),
        ("max", {"column": "age", "by": ["ward"]}, "unknown key 'by'"),
        ("median", {"column": "age", "interval": 1}, "from 0 to 0.9"),
        ("median", {"column": "age", "mechanism": "weighted"}, "applicable here"),
    ],
)
def test_a_mistake_is_told_and_costs_nothing(kind, asked, said):
    table = opened()
    with pytest.raises(InputError, match=said):
        table.release(kind, epsilon=1, **asked)
    assert table.balance().to_dict()["total"]["spent"] == "0"


def test_what_is_not_numeric_or_too_cheap_is_refused():
    with pytest.raises(SchemaError, match="numeric"):
        opened().median("ward", epsilon=1)
    with pytest.raises(BudgetError, match="too small"):
        opened().median("age", epsilon=0.00001)


def test_no_interval_is_the_whole_range_and_says_so():
    made = opened().median("age", epsilon=1, parameters={"interval": 0})
    assert made.interval() == (0, 99)
    assert any("public bounds" in w for w in made.warnings)


def test_a_private_roster_is_counted_first():
    """Head counts read the roster's column alone, whatever column the release behind them was charged for."""
    roster = sf.Roster.tiers({"strict": 0.5, "open": 2.0}, column="consent", counts={"strict": 1, "open": 1}, private=True)
    made = opened(budgets=roster, epsilon=None, rows=None).median("age", share=0.5)
    assert abs(made.value - FRAME["age"].median()) <= 3
    assert all(p["used"] <= p["granted"] for p in made.guarantee.to_dict()["people"])
