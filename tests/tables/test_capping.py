"""A cap on the rows of a person: the smallest budget of all rows, then the rows that can count, then at most so many."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato.tables import Categorical, Numeric, PersonalTable, PrivacyUnit, Roster, Schema, open
from sfumato.tables.rows import rows_in_use
from sfumato.testing import reveal

COLUMNS = {"x": Numeric(0, 3, bins=4, integer=True), "s": Categorical(["a", "b"])}
LEVELS = [100_000_000, 500_000_000, 1_000_000_000]
# who, x, s, ε: ann has many rows of every kind, bob few that count, cleo one, and the last two belong to nobody.
ROWS = [
    *[("ann", x, s, e) for x, s, e in product((0, 1, 3), "ab", (1.0, 0.5))],
    ("ann", None, "a", 0.5),
    ("bob", 0, "a", 1.0),
    ("bob", 3, "b", 1.0),
    ("bob", 3, None, 0.1),
    ("bob", 3, "b", 1.0),
    ("cleo", 2, "b", 0.5),
    (None, 3, "b", 1.0),
    (None, 0, "a", 1.0),
]
CONDITIONS = {
    "x >= 3": lambda x, s: x is not None and x >= 3,
    "x < 2 and s = 'a'": lambda x, s: x is not None and x < 2 and s == "a",
    "s = 'b' or x is missing": lambda x, s: s == "b" or x is None,
}


def arrow(rows):
    who, x, s, e = zip(*rows, strict=True) if rows else ((), (), (), ())
    kinds = (pa.string(), pa.int64(), pa.string(), pa.float64())
    named = zip(("who", "x", "s", "epsilon"), (who, x, s, e), kinds, strict=True)
    return pa.table({name: pa.array(values, kind) for name, values, kind in named})


def schema(most):
    return Schema(COLUMNS, PrivacyUnit(person="who", rows_per_person=most))


def expected(rows, most, holds):
    """Rows that count, for each smallest budget: the plain way."""
    found = dict.fromkeys(LEVELS, 0)
    for person in {who for who, *_ in rows if who is not None}:
        own = [row[1:] for row in rows if row[0] == person]
        found[round(10**9 * min(e for *_, e in own))] += min(most, sum(holds(x, s) for x, s, _ in own))
    return list(found.values())


@pytest.mark.parametrize("most", [1, 2, 3])
def test_counts_of_every_neighbour_move_by_no_more_than_the_cap(most):
    people = PersonalTable(open(arrow(ROWS), schema=schema(most), budgets="epsilon")).dataset.person_budgets()
    assert (people.levels.tolist(), people.counts.tolist()) == (LEVELS[:2], [1, 2])
    tables = [ROWS, *([row for row in ROWS if row[0] != person] for person in ("ann", "bob", "cleo"))]
    for where, holds in CONDITIONS.items():
        counts, weighed = [], []
        for rows in tables:
            data = open(arrow(rows), schema=schema(most), budgets="epsilon")
            counts.append(reveal(data.count(where)))
            weighed.append(reveal(PersonalTable(data, people).group_sums(where=where)))
            assert weighed[-1].tolist() == expected(rows, most, holds)[:2]
            assert counts[-1] == sum(expected(rows, most, holds))
        for count, groups in zip(counts[1:], weighed[1:], strict=True):
            assert abs(counts[0] - count) <= most
            assert np.abs((weighed[0] - groups) * [1, 5]).sum() <= most * 5


def test_what_cannot_count_takes_no_place(put):
    data = open(**put(arrow(ROWS)), schema=schema(3), budgets="epsilon")
    ann, bob, both = 3, 3, 2  # of bob's rows two have a cell in s as well
    assert reveal(data.count("x >= 3")) == ann + bob
    assert reveal(data.counts(["x", "s"], "x >= 3")).sum() == ann + both
    found = reveal(PersonalTable(data, data.person_budgets()).moments(["s"], "x >= 3", measure="x", powers=1))
    assert [found[2][found[0] == g].sum(axis=0).tolist() for g in (0, 1)] == [[both, 3 * both], [ann, 3 * ann]]


def test_nor_in_any_other_aggregate():
    data, where = open(arrow(ROWS), schema=schema(3), budgets="epsilon"), "x >= 3"
    table = PersonalTable(data, data.person_budgets())
    ann, bob, both = 3, 3, 2
    assert reveal(data.counts("x", where)).tolist() == [0, 0, 0, ann + bob]
    assert reveal(data.sum("x", where=where)) == 3 * (ann + bob)
    assert reveal(table.group_sums(where=where)).tolist() == [bob, ann]
    assert reveal(table.group_sums(measure="x", where=where)).tolist() == [3 * bob, 3 * ann]
    weights = ([1, 500_000_000], [1, 10])
    assert reveal(data.weighted_sums(weights, by=["s"], where=where)).sum() == both + 10 * ann
    assert reveal(data.weighted_sums(10**9, where=where)) == 100_000_000 * bob + 500_000_000 * ann
    points = reveal(data.points("x", by=["s"], budgets=data.person_budgets(), where=where))
    assert [points.counts[points.groups == g].sum() for g in (0, 1)] == [both, ann]
    first, second = reveal(data.marginals([["x"], ["s"]], where))
    assert first.sum() == ann + bob
    assert second.sum() <= first.sum()


@pytest.mark.parametrize("extra", [{}, {"missing": "blank"}, {"other": "else"}, {"other": "else", "missing": "blank"}])
def test_no_row_that_has_a_cell_is_left_out_before_the_cap(extra):
    values = [None, math.nan, math.inf, -math.inf, -1.0, 0.0, 0.3, 1.0, 7.0]
    table = pa.table(
        {"who": range(9), "y": pa.array(values, pa.float64()), "s": [None, "", "a", "b", "A", "a", "x", "b", " "]}
    )
    columns = {"y": Numeric(0, 1, bins=3, **extra), "s": Categorical(["a", "b"], **{"other": False, **extra})}
    capped, plain = Schema(columns, PrivacyUnit("who", 1)), Schema(columns)
    for names in (["y"], ["s"], ["y", "s"]):
        found, all_rows = (reveal(open(table, schema=s).counts(names)) for s in (capped, plain))
        assert found.tolist() == all_rows.tolist()


def test_cells_of_a_long_list_that_rows_do_not_have_take_no_place_either():
    listed = [f"c{i:04}" for i in range(3000)]
    table = pa.table({"who": ["a"] * 5 + ["b"], "code": ["c0007", "x", "y", "z", None, "c2999"]})
    data = open(table, schema=Schema({"code": Categorical(listed, other=False)}, PrivacyUnit("who", 1)))
    codes, counts = reveal(data.sparse_counts("code"))
    assert (codes.tolist(), counts.tolist()) == ([[7], [2999]], [1, 1])


def test_a_budget_is_the_smallest_of_all_rows_also_of_those_that_cannot_count(put):
    rows = [(f"p{i}", 0, "a", 0.1) for i in range(8)]
    rows += [(f"p{i}", 3, "b", 1.0) for i in range(8) for _ in range(9)]
    data = open(**put(arrow(rows)), schema=schema(2), budgets="epsilon")
    where = "x >= 1"
    assert reveal(data.weighted_sums(10**9, where=where)) == 16 * 100_000_000
    assert reveal(data.weighted_sums(10**9, by=["s"], where=where)).tolist() == [0, 16 * 100_000_000]
    assert reveal(data.weighted_sums(10**9, measure="x", where=where)) == 3 * 16 * 100_000_000
    people = data.person_budgets()
    assert (people.levels.tolist(), people.counts.tolist()) == ([100_000_000], [8])
    assert reveal(PersonalTable(data, people).group_sums(where=where)).tolist() == [16]


def test_people_without_a_budget_are_left_out_of_plain_counts_too(put):
    from dataclasses import replace

    rows = [("ann", 3, "a", 0.5), ("ann", 3, "a", 0.5), ("bob", 3, "a", None), ("bob", 3, "b", 1.0)]
    data = replace(open(**put(arrow(rows)), schema=schema(1), budgets="epsilon"), roster_only=True)
    assert reveal(data.count("x >= 3")) == 1  # bob declares no budget in one of his rows
    assert reveal(data.counts("s", "x >= 3")).tolist() == [1, 0]
    named = Roster.table(pd.DataFrame({"who": ["bob", "cleo"], "e": [1.0, 1.0]}), person="who", epsilon="e")
    data = replace(open(**put(arrow(rows)), schema=schema(1), budgets=named), roster_only=True)
    assert reveal(data.count("x >= 3")) == 1
    assert reveal(data.counts("s", "x >= 3 and s = 'b'")).tolist() == [0, 1]


def test_of_those_who_own_too_many_every_row_is_as_likely():
    people, most = 400, 2
    rows = [(f"p{i}", x, "a", 1.0) for i in range(people) for x in range(4)] + [("few", 3, "b", 1.0)]
    found = reveal(open(arrow(rows), schema=schema(most)).counts(["x", "s"]))
    assert found.sum() == people * most + 1
    assert found[3, 1] == 1
    # Each row is kept with probability one half: 6 standard deviations are passed with probability below 1e-8.
    assert (np.abs(found[:, 0] - people / 2) < 6 * math.sqrt(people) / 2).all()


def test_persons_that_an_engine_takes_for_equal_are_one():
    who = [0.0, -0.0, 0.0, -0.0, math.nan, math.nan, math.nan, 1.5]
    table = pa.table({"who": pa.array(who, pa.float64()), "x": pa.array(range(8), pa.int64())})
    data = open(table, schema=Schema({"x": Numeric(0, 7, bins=8, integer=True)}, PrivacyUnit("who", 1)))
    rows, _ = rows_in_use(data, ["x"], None)
    drawn = data.engine.fetch(rows.select("person"))["person"].to_pylist()
    assert sorted(map(str, {abs(p) for p in drawn})) == sorted(str(abs(p)) for p in drawn)
    assert reveal(data.count()) == len(drawn) == 3


def test_a_table_that_is_drawn_anew_whenever_it_is_read_is_capped_too():
    import ibis

    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE TABLE t AS SELECT i % 200 AS who, (i % 4)::INT AS x, 'a' AS s FROM range(2000) r(i)")
    connection.raw_sql("CREATE VIEW half AS SELECT * FROM t WHERE random() < 0.5")
    rows, _ = rows_in_use(open(connection.table("half"), schema=schema(3)), ["x"], "x >= 1")
    each = rows.group_by("person").agg(n=rows.count())
    assert connection.to_pyarrow(each.aggregate(most=each["n"].max()))["most"].to_pylist() == [3]
