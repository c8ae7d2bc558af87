"""What is odd about a roster is said from public facts, before anything is spent; nobody is named."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import SchemaError
from sfumato.tables import Numeric, PrivacyUnit, Roster, Schema, open
from sfumato.testing import reveal

SCHEMA = Schema({"x": Numeric(0, 1, bins=2)}, PrivacyUnit(person="id", rows_per_person=1))
TABLE = pa.table({"x": [0.1, 0.9, 0.9], "id": pa.array([1, 2, 3], pa.int64())})
TIERS = {"open": 1, "strict": 0.1}


def tier_roster(tiers, put=None, known=None):
    table = pa.table({"who": pa.array(range(len(tiers)), pa.int64()), "tier": pa.array(tiers, pa.string())})
    where = {"source": table} if put is None else put(table)
    return Roster.table(where["source"], table=where.get("table"), person="who", tier="tier", tiers=known or TIERS)


def test_tiers_without_a_budget(put):
    roster = tier_roster(["open", "opne", "opne", "strict", None, None, None, "Strict"], put)
    assert roster.findings() == (
        "people of the roster without a tier, who take no part: 3",
        "tier 'opne' of the roster has no budget (people in it, who take no part: 2); did you mean 'open'? "
        "Known: strict, open",
        "tier 'Strict' of the roster has no budget (people in it, who take no part: 1); did you mean 'strict'? "
        "Known: strict, open",
    )
    assert roster.head_counts().people == 2


def test_a_tier_that_nobody_has_and_many_that_nobody_stated():
    roster = tier_roster([f"t{i:02d}" for i in range(15)] + ["open"])
    found = roster.findings()
    assert sum(f.startswith("tier 't") for f in found) == 10
    assert "5 more tiers without a budget (people in them, who take no part: 5)" in found
    assert found[-1] == "nobody in the roster has tier 'strict'"


def test_nothing_is_odd_about_a_tidy_roster(put):
    assert tier_roster(["open", "strict", "open"], put).findings() == ()
    table = pd.DataFrame({"who": [1, 2], "epsilon": [0.5, 1.0]})
    assert Roster.table(table, person="who", epsilon="epsilon").findings() == ()


def test_budgets_that_are_none_and_people_listed_twice(put):
    table = pa.table(
        {
            "who": pa.array([1, 2, 3, 4, 5, 5, 6, 6, None, None], pa.int64()),
            "epsilon": pa.array([0.5, None, 0.0, -1.0, 0.3, 0.1, 0.2, 0.2, 1.0, 1.0], pa.float64()),
        }
    )
    where = put(table)
    roster = Roster.table(where["source"], table=where.get("table"), person="who", epsilon="epsilon")
    assert roster.findings() == (
        "rows of the roster that name no person and are left out: 2",
        "people listed more than once with different budgets, of which the smallest holds: 1",
        "people of the roster without a budget above 0 (empty, no number, zero, negative), who take no part: 3",
    )


def test_text_that_is_no_budget(tmp_path):
    (tmp_path / "roster.csv").write_text("who,epsilon\n1,0.5\n2,a lot\n3,\n")
    (found,) = Roster.table(tmp_path / "roster.csv", person="who", epsilon="epsilon").findings()
    assert found.endswith("who take no part: 2")


def test_text_ids_for_a_table_of_whole_numbers(tmp_path):
    (tmp_path / "roster.csv").write_text("who,epsilon\n1,0.5\nP2,0.5\nP3,0.5\n")
    roster = Roster.table(tmp_path / "roster.csv", person="who", epsilon="epsilon")
    assert roster.findings() == ()  # nothing is odd about the roster by itself
    data = open(TABLE, schema=SCHEMA, budgets=roster)
    assert data.findings() == (
        "people of the roster who are not named by a whole number, as the table's are, and match nobody: 2",
    )
    data.check()
    (tmp_path / "none.csv").write_text("who,epsilon\nP1,0.5\nP2,0.5\n")
    nobody = Roster.table(tmp_path / "none.csv", person="who", epsilon="epsilon")
    with pytest.raises(SchemaError, match="column 'who' of the roster holds none: nobody would match"):
        open(TABLE, schema=SCHEMA, budgets=nobody).check()


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (pa.array(["1", "2"], pa.string()), "by text, the table by whole numbers"),
        (pa.array([1.0, None], pa.float64()), "by float64, the table by whole numbers"),
    ],
)
def test_ids_of_another_type_are_refused_before_any_charge(ids, words):
    roster = Roster.table(pa.table({"who": ids, "epsilon": [0.5, 0.5]}), person="who", epsilon="epsilon")
    with pytest.raises(SchemaError, match=words):
        open(TABLE, schema=SCHEMA, budgets=roster).check()
    table = sf.open(TABLE, schema=SCHEMA, budgets=roster, ledger=":memory:")
    with pytest.raises(SchemaError, match="nobody would match; give them one type"):
        table.count(share=0.5)
    assert int(table.balance().people.spent.max()) == 0


def test_whole_numbers_of_any_width_are_alike():
    table = pa.table({"who": pa.array([1, 2], pa.int8()), "epsilon": [0.5, 0.5]})
    data = open(TABLE, schema=SCHEMA, budgets=Roster.table(table, person="who", epsilon="epsilon"))
    data.check()
    assert reveal(data.weighted_sums(10**9)) == 10**9


def test_budgets_in_the_private_table_are_not_read():
    stated = Roster.tiers({"open": 1.0, "strict": 0.01}, column="consent", counts={"open": 90})
    assert stated.findings() == ("tier 'strict' has no stated head count: previews expect nobody in it",)
    assert Roster.tiers({"open": 1.0}, column="consent").findings() == ()
    assert Roster.column("epsilon").findings() == ()
    missing = open("nowhere.parquet", schema=Schema({"x": Numeric(0, 1, bins=2)}), budgets=stated)
    assert missing.findings() == stated.findings()
    assert open("nowhere.parquet", schema=Schema({"x": Numeric(0, 1, bins=2)})).findings() == ()
