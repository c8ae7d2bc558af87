"""Who weighs what in a release: exactly what they are charged for, and nothing for whoever granted nothing."""

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InputError
from sfumato.privacy import PersonBudgets
from sfumato.tables import PersonalTable
from sfumato.testing import reveal

SCHEMA = sf.Schema({"age": sf.Numeric(0, 99, bins=2, integer=True)})
BY_PERSON = sf.Schema({"age": sf.Numeric(0, 99, bins=2, integer=True)}, unit=sf.PrivacyUnit("who", 1))
PRECISE = 10**5  # noise that rounds away: seeded runs show what was counted


def roster_of(kind, folder):
    """Three of five people granted a budget, in each of the ways to say so."""
    frame = pd.DataFrame({"who": [1, 2, 3, 4, 5], "age": [10, 20, 60, 70, 80]})
    if kind == "table":
        pd.DataFrame({"who": [1, 2, 3], "epsilon": [float(PRECISE)] * 3}).to_csv(folder / "roster.csv", index=False)
        return frame, BY_PERSON, sf.Roster.table(folder / "roster.csv", person="who", epsilon="epsilon")
    if kind == "tiers":
        frame["consent"] = ["yes", "yes", "yes", "no", None]
        return frame, SCHEMA, sf.Roster.tiers({"yes": PRECISE}, column="consent", counts={"yes": 3})
    frame["epsilon"] = [PRECISE, PRECISE, PRECISE, 0.5, np.nan]  # 0.5 lies below the first stated level
    return frame, SCHEMA, sf.Roster.column("epsilon", people=PersonBudgets.of([PRECISE] * 3))


@pytest.mark.parametrize("kind", ["table", "tiers", "column"])
def test_one_epsilon_for_all_leaves_out_whoever_granted_nothing(kind, tmp_path):
    frame, schema, roster = roster_of(kind, tmp_path)
    table = sf.open(frame, schema=schema, budgets=roster, noise=sf.Seeded(1))
    each = PRECISE // 5
    assert table.count(epsilon=each).value == pytest.approx(3, abs=0.01)
    assert table.sum("age", epsilon=each).value == pytest.approx(90, abs=0.1)
    assert table.histogram("age", epsilon=each, mechanism="identity").to_frame()["count"].tolist() == [2, 1]


def test_budgets_between_the_stated_levels_weigh_as_the_level_they_are_charged_as():
    frame = pd.DataFrame({"age": [10] * 3 + [60], "epsilon": [0.5, 0.001, 1.0, 0.1]})
    roster = sf.Roster.column("epsilon", people=PersonBudgets.of([0.1, 1.0]))
    table = sf.open(frame, schema=SCHEMA, budgets=roster, ledger=":memory:")
    weights = np.array([100_000_000, 1_000_000_000])
    found = reveal(PersonalTable(table.dataset, table.budgets).weighted_cells(weights, ["age"]))
    assert found.tolist() == [100_000_000 + 0 + 1_000_000_000, 100_000_000]


def test_sums_beyond_64_bits_are_held_and_do_not_fail():
    frame = pd.DataFrame({"age": [10] * 30})
    frame["consent"] = "yes"
    roster = sf.Roster.tiers({"yes": 10**6}, column="consent", counts={"yes": 2})  # the table holds more people than stated
    table = sf.open(frame, schema=SCHEMA, budgets=roster, ledger=":memory:")
    weights = np.array([2**62])
    assert reveal(PersonalTable(table.dataset, table.budgets).weighted_cells(weights, ["age"])).tolist() == [2**63 - 1, 0]


def test_two_spellings_of_one_person_in_a_text_roster_do_not_double_them(tmp_path):
    (tmp_path / "roster.csv").write_text("who,epsilon\n7,1.0\n07,0.5\n8,1.0\nnobody,1.0\n")
    frame = pd.DataFrame({"who": [7, 8], "age": [10, 60]})
    roster = sf.Roster.table(tmp_path / "roster.csv", person="who", epsilon="epsilon")
    dataset = sf.open(frame, schema=BY_PERSON, budgets=roster, ledger=":memory:").dataset
    assert reveal(dataset.weighted_sums(10**9, by=["age"])).tolist() == [500_000_000, 1_000_000_000]


def test_one_epsilon_for_all_promises_without_a_roster_and_by_the_name_of_the_preview():
    table = sf.open(pd.DataFrame({"age": [10] * 30}), schema=SCHEMA, epsilon=1, rows=30, ledger=":memory:")
    made = table.count(epsilon=0.5)
    assert made.mechanism == table.preview("count", epsilon=0.5)[0].mechanism == "laplace"
    assert made.guarantee.people is None
    assert made.guarantee.assumptions == ()
    assert made.guarantee.nano == 500_000_000
    assert (
        sf.open(pd.DataFrame({"age": [10] * 30}), schema=SCHEMA, epsilon=1, rows=30, ledger=":memory:")
        .mean("age", epsilon=0.5)
        .mechanism
    )


@pytest.mark.parametrize(
    ("kind", "request_", "words"),
    [
        ("count", {"selectivity": "x"}, "selectivity"),
        ("histogram", {"columns": ["age"], "total": "x"}, "total"),
        ("histogram", {"columns": ["age"], "nonnegative": "x"}, "nonnegative"),
        ("synthesize", {"target": "age", "attributes": 3}, "attributes"),
        ("count", {"share": "x"}, "share"),
        ("count", {"epsilon": True}, "finite number"),
        ("count", {"recipient": 3}, "recipient"),
        ("count", {"mechanism": 3}, "mechanism"),
    ],
)
def test_what_is_used_after_the_charge_is_checked_before_it(kind, request_, words):
    table = sf.open(pd.DataFrame({"age": [1]}), schema=SCHEMA, epsilon=1, rows=1, ledger=":memory:")
    given = request_ if "epsilon" in request_ or "share" in request_ else {"epsilon": 0.5, **request_}
    with pytest.raises(InputError, match=words):
        table.release(kind, **given)
    assert table.balance().total.spent == 0
