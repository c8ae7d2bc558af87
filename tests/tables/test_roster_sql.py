"""A roster counted by plain SQL says what the expressions say that every engine runs."""

from __future__ import annotations

import decimal
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.tables import Roster
from sfumato.tables.roster_findings import _counted
from sfumato.tables.roster_sql import counted

HARD = [0.0, -0.0, -1.0, float("nan"), float("inf"), -float("inf"), 0.1, 0.3, 0.2999999999, 1e-9, 9.99e-10, 1e6, 1e300, None]
TIERS = {"open": 1.0, "o'brien": 0.5, 'the "strict"': 0.1, "": 0.01}


def both(roster):
    engine = roster.connect()
    plain = counted(roster, engine)
    assert plain is not None
    other = _counted(roster, engine)
    assert plain.nameless == other.nameless
    assert plain.differing == other.differing
    assert dict(plain.tiers) == dict(other.tiers)
    mine, theirs = (sorted(zip(c.keys.tolist(), c.heads.tolist(), strict=True)) for c in (plain, other))
    assert mine == theirs
    return plain


persons = st.lists(st.one_of(st.none(), st.integers(0, 6)), min_size=1, max_size=25)


@settings(max_examples=9)
@given(persons, st.data())
def test_budgets_in_epsilon(tmp_path_factory, who, data):
    budgets = data.draw(st.lists(st.sampled_from(HARD), min_size=len(who), max_size=len(who)))
    path = tmp_path_factory.getbasetemp() / "roster_epsilon.parquet"
    table = pa.table({"who": pa.array(who, pa.int64()), "e": pa.array(budgets, pa.float64(), from_pandas=False)})
    pq.write_table(table, path)
    assert both(Roster.table(str(path), person="who", epsilon="e")).nameless == who.count(None)


@settings(max_examples=9)
@given(persons, st.data())
def test_tiers(tmp_path_factory, who, data):
    word = st.sampled_from([*TIERS, "Open", "open ", "other", None])
    tiers = data.draw(st.lists(word, min_size=len(who), max_size=len(who)))
    path = tmp_path_factory.getbasetemp() / "roster_tiers.parquet"
    pq.write_table(pa.table({'the "who"': pa.array(who, pa.int32()), "tier": pa.array(tiers, pa.string())}), path)
    assert both(Roster.table(str(path), person='the "who"', tier="tier", tiers=TIERS)).nameless == who.count(None)


@pytest.mark.parametrize(
    "budgets",
    [
        pa.array([1, 0, None, -3], pa.int8()),
        pa.array([1, 0, None, 2**63], pa.uint64()),
        pa.array([0.1, float("nan"), None, 2.5], pa.float32()),
        pa.array([decimal.Decimal("0.100"), decimal.Decimal(-1), None, decimal.Decimal("123456.789")], pa.decimal128(20, 3)),
    ],
)
def test_numbers_of_every_width(tmp_path, budgets):
    pq.write_table(pa.table({"who": ["a", "b", "c", "d"], "e": budgets}), tmp_path / "roster.parquet")
    assert int(both(Roster.table(str(tmp_path / "roster.parquet"), person="who", epsilon="e")).heads.sum()) == 4


def test_a_text_file(tmp_path):
    (tmp_path / "roster.csv").write_text("who,e\n1,0.1\n07,abc\n2,\n2,0.5\n,1\n3,inf\n4,nan\n5, 0.25\n6,1e-3\n")
    found = both(Roster.table(str(tmp_path / "roster.csv"), person="who", epsilon="e"))
    assert found.nameless == 1
    assert found.differing == 1


def test_a_million_budgets_are_counted_in_arrays(tmp_path):
    levels = np.arange(1, 20_001) / 1e4
    pq.write_table(pa.table({"who": np.arange(20_000), "e": levels}), tmp_path / "roster.parquet")
    people = Roster.table(str(tmp_path / "roster.parquet"), person="who", epsilon="e").head_counts()
    assert people.groups == 20_000
    assert people.people == 20_000


def test_what_it_does_not_know_is_left_to_the_expressions(tmp_path):
    pq.write_table(pa.table({"who": [1, 2], "e": [True, False]}), tmp_path / "roster.parquet")
    roster = Roster.table(str(tmp_path / "roster.parquet"), person="who", epsilon="e")
    assert counted(roster, roster.connect()) is None
    assert roster.head_counts().counts.tolist() == [1]
    assert "ibis" in sys.modules
