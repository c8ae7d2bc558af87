"""One way to read a table in which people weigh differently, and one rule for budgets between those of the groups."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InputError, SchemaError
from sfumato.grids import PrivPfC
from sfumato.people import DatasetReader
from sfumato.privacy import PersonBudgets, Seeded
from sfumato.tables import Categorical, Numeric, PersonalTable, PrivacyUnit, Roster, Schema, open
from sfumato.testing import reveal

SCHEMA = Schema({"x": Numeric(0, 4, bins=5, integer=True), "s": Categorical(["a", "b"], other=True)})
N = 60
RNG = np.random.default_rng(3)
TABLE = pa.table(
    {
        "id": pa.array(range(N), pa.int64()),
        "x": pa.array(RNG.integers(0, 5, N), pa.int64()),
        "s": pa.array(RNG.choice(["a", "b", "c"], N), pa.string()),
        "epsilon": pa.array(RNG.choice([0.05, 0.1, 0.2, 0.5, 1.0], N), pa.float64()),
        "tier": pa.array(RNG.choice(["low", "high", "twin", "none"], N), pa.string()),
    }
)
ROWS = TABLE.to_pylist()
GROUPS = PersonBudgets(np.array([10**8, 4 * 10**8]), np.array([30, 20]))  # 0.05 is below, 0.2 and 1.0 lie between and above
WEIGHTS = np.array([3, 7])


def weight(row):
    return 0 if row["epsilon"] < 0.1 else 3 if row["epsilon"] < 0.4 else 7


def dense(weigh):
    found = np.zeros((5, 3), dtype=int)
    for row in ROWS:
        found[row["x"], {"a": 0, "b": 1}.get(row["s"], 2)] += weigh(row)
    return found.tolist()


def test_every_reading_uses_the_same_weights(put):
    table = PersonalTable(open(**put(TABLE), schema=SCHEMA, budgets="epsilon"), GROUPS)
    assert reveal(table.group_sums()).tolist() == [sum(weight(r) == 3 for r in ROWS), sum(weight(r) == 7 for r in ROWS)]
    assert reveal(table.weighted_sum(WEIGHTS)) == sum(weight(r) for r in ROWS)
    assert reveal(table.weighted_sum(WEIGHTS, measure="x", where="s = 'a'")) == sum(
        weight(r) * r["x"] for r in ROWS if r["s"] == "a"
    )
    assert reveal(table.weighted_cells(WEIGHTS, ["x", "s"])).tolist() == dense(weight)
    codes, totals = reveal(table.weighted_rows(WEIGHTS, ["x", "s"]))
    assert len(np.unique(codes, axis=0)) == len(codes)
    again = np.zeros((5, 3), dtype=int)
    again[tuple(codes.T)] = totals
    assert again.tolist() == dense(weight)
    assert (totals > 0).all()


def test_without_budgets_everybody_is_in_one_group(put):
    table = PersonalTable(open(**put(TABLE), schema=SCHEMA))
    assert reveal(table.group_sums()).tolist() == [N]
    assert reveal(table.group_sums(measure="x", base=-2, steps=4)).tolist() == [sum(r["x"] - 2 for r in ROWS)]
    assert reveal(table.weighted_cells(np.array([5]), ["x", "s"])).tolist() == dense(lambda _: 5)


@pytest.mark.parametrize("kind", ["column", "tiers", "table"])
def test_the_rule_is_the_same_for_every_roster(kind):
    """Nobody weighs more than the group they are charged as, also where the roster's own budgets are finer."""
    unit = PrivacyUnit(person="id", rows_per_person=1)
    if kind == "column":
        roster, granted = Roster.column("epsilon"), {r["id"]: r["epsilon"] for r in ROWS}
    elif kind == "tiers":
        roster = Roster.tiers({"low": 0.05, "high": 0.5, "twin": 0.2}, column="tier")
        granted = {r["id"]: {"low": 0.05, "high": 0.5, "twin": 0.2}.get(r["tier"], 0) for r in ROWS}
    else:
        granted = {i: 0.05 + 0.01 * i for i in range(N)}
        frame = pd.DataFrame({"who": list(granted), "e": list(granted.values())})
        roster = Roster.table(frame, person="who", epsilon="e")
    data = open(TABLE, schema=Schema(SCHEMA.columns, unit), budgets=roster)
    levels = GROUPS.levels
    expected = [
        sum(int(levels[j]) <= round(e * 1e9) < [int(levels[1]), 10**18][j] for e in granted.values()) for j in (0, 1)
    ]
    table = PersonalTable(data, GROUPS)
    assert reveal(table.group_sums()).tolist() == expected
    assert (
        reveal(table.weighted_cells(levels, ["x"])).sum()
        == reveal(table.weighted_sum(levels))
        == int(np.dot(expected, levels))
    )


def test_tiers_of_equal_budget_keep_their_own_weight_and_can_be_published():
    roster = Roster.tiers({"low": 0.5, "high": 1.0, "twin": 1.0}, column="tier", counts={"low": 15, "high": 15, "twin": 15})
    data = open(TABLE, schema=SCHEMA, budgets=roster)
    budgets = roster.head_counts()
    assert budgets.names == ("low", "high", "twin")
    table = PersonalTable(data, budgets)
    each = [sum(r["tier"] == name for r in ROWS) for name in budgets.names]
    assert reveal(table.group_sums()).tolist() == each
    assert reveal(table.weighted_cells(np.array([1, 10, 100]), ["x"])).sum() == each[0] + 10 * each[1] + 100 * each[2]
    made = PrivPfC(budgets=budgets, target="s").fit(data, source=Seeded(1))
    assert made.synopsis.guarantee.people is not None


def test_sums_beyond_64_bits_are_held_and_weights_are_checked():
    table = PersonalTable(open(TABLE, schema=SCHEMA, budgets="epsilon"), GROUPS)
    assert reveal(table.weighted_cells(np.array([2**62, 2**62]), ["x"])).max() == 2**63 - 1
    for bad in ([1], [1, -1], [1, 2, 3]):
        with pytest.raises(InputError, match="a weight"):
            table.weighted_cells(np.array(bad), ["x"])


def test_nothing_there_is_nothing_read():
    empty = open(TABLE.slice(0, 0), schema=SCHEMA, budgets="epsilon")
    table = PersonalTable(empty, GROUPS)
    codes, totals = reveal(table.weighted_rows(WEIGHTS, ["x", "s"]))
    assert codes.shape == (0, 2)
    assert totals.size == 0
    assert reveal(table.weighted_cells(WEIGHTS, ["x", "s"])).sum() == 0


def test_lattices():
    wide = Numeric(0, 2_000_000, bins=10, integer=True)
    assert wide.lattice().steps == 2_000_000
    assert wide.lattice().exact
    assert wide.lattice(4_000_000).exact
    assert not wide.lattice(3).exact
    assert wide.lattice(3).rounding == pytest.approx(2_000_000 / 6)
    assert Numeric(0, 1, bins=2).lattice(2**30).unit == 2.0**-30
    for bad in (0, -1, 2**30 + 1, True, 1.5, "x"):
        with pytest.raises(InputError, match=r"from 1 to 2\^30"):
            wide.lattice(bad)
    with pytest.raises(InputError, match="'far' spans 1099511627776 whole numbers, more than the 2\\^30 steps"):
        Schema({"far": Numeric(0, 2**40, bins=10, integer=True)}).lattice("far")
    with pytest.raises(SchemaError, match="column 's' is categorical; a measure must be numeric"):
        SCHEMA.lattice("s")


def test_a_column_of_two_million_whole_numbers_is_added_up(put):
    schema = Schema({"pay": Numeric(0, 2_000_000, bins=10, integer=True)})
    data = open(**put(pa.table({"pay": pa.array([7, 1_999_999, 2_000_000, None], pa.int64())})), schema=schema)
    assert reveal(data.sum("pay")) == 7 + 1_999_999 + 2_000_000
    finest = Schema({"part": Numeric(0, 1, bins=2)})
    there = open(**put(pa.table({"part": pa.array([0.25, 1.0], pa.float64())})), schema=finest)
    assert reveal(there.sum("part", steps=2**30)) == 2**28 + 2**30


def test_and_released():
    frame = pd.DataFrame({"pay": [1_500_000] * 50 + [30_000] * 50})
    schema = Schema({"pay": Numeric(0, 2_000_000, bins=10, integer=True)})
    table = sf.open(frame, schema=schema, epsilon=10**6, rows=100, noise=Seeded(1))
    assert table.sum("pay", epsilon=10**5).value == pytest.approx(frame["pay"].sum(), abs=1000)
    assert table.mean("pay", epsilon=10**5).value == pytest.approx(frame["pay"].mean(), abs=1000)


def test_a_reader_of_the_people_family_reads_the_same():
    data = open(TABLE, schema=SCHEMA, budgets="epsilon")
    reader = DatasetReader(data, GROUPS, where="x >= 2")
    table = PersonalTable(data, GROUPS)
    assert reveal(reader.group_sums()).tolist() == reveal(table.group_sums(where="x >= 2")).tolist()
    assert reveal(reader.weighted_sum(WEIGHTS)) == reveal(table.weighted_sum(WEIGHTS, where="x >= 2"))
    assert reveal(DatasetReader(data, None).group_sums()).tolist() == [N]
