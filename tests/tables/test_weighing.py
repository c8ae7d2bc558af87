"""Rows are weighed where they are: the same integers as one by one, whatever budgets are there, and only cells come back."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from sfumato.privacy import PersonBudgets
from sfumato.tables import Categorical, Numeric, PersonalTable, PrivacyUnit, Roster, Schema, engines, open, weighing
from sfumato.testing import reveal

SCHEMA = Schema({"x": Numeric(0, 4, bins=5, integer=True), "s": Categorical(["a", "b"], other=True)})
RNG = np.random.default_rng(11)
LISTED = np.unique(RNG.integers(10**7, 10**9, 400))
HOSTILE = [None, math.nan, math.inf, -math.inf, 0.0, -0.5, 1e-12, 1e9, 1e300, 0.001]
BETWEEN = RNG.uniform(0.005, 1.2, 60).tolist()  # below the first, between two, above the last
BUDGETS = [*HOSTILE, *(RNG.choice(LISTED, 60) / 1e9).tolist(), *BETWEEN]
N = len(BUDGETS)
TABLE = pa.table(
    {
        "x": pa.array([None if i % 17 == 0 else int(v) for i, v in enumerate(RNG.integers(0, 5, N))], pa.int64()),
        "s": pa.array([None if i % 19 == 0 else str(v) for i, v in enumerate(RNG.choice(["a", "b", "c"], N))], pa.string()),
        "epsilon": pa.array(BUDGETS, pa.float64()),
    }
)
ROWS = TABLE.to_pylist()
PEOPLE = PersonBudgets(LISTED, np.ones_like(LISTED))
LINES = {
    "few steps": np.minimum(LISTED // 10**8, 5),
    "capped": np.minimum(LISTED, 3 * 10**8) // 2,
    "beyond": np.clip(LISTED - 10**8, 0, 4 * 10**8),
    "any": RNG.integers(0, 1000, LISTED.size),
    "huge": LISTED * 9 * 10**9,
    "nothing": np.zeros_like(LISTED),
}


def nano(budget):
    if budget is None or math.isnan(budget) or budget <= 0:
        return 0
    return int(min(budget, 1e9) * 1e9 + 1e-6)


def place(row):
    """The group by the plain rule: a search in the list, -1 below it."""
    return int(np.searchsorted(LISTED, nano(row["epsilon"]), side="right")) - 1


def weight(row, line):
    return int(line[place(row)]) if place(row) >= 0 else 0


def code(row):
    return None if row["x"] is None else (row["x"], {"a": 0, "b": 1}.get(row["s"], 2))


def table_by_hand(line):
    found = np.zeros((5, 3), dtype=object)
    for row in ROWS:
        if code(row) is not None:
            found[code(row)] += weight(row, line)
    return found


@pytest.fixture
def clinic(put):
    return open(**put(TABLE), schema=SCHEMA, budgets="epsilon")


def test_sums_are_the_same_integers_as_one_by_one(clinic):
    table = PersonalTable(clinic, PEOPLE)
    by_hand = [sum(weight(r, line) for r in ROWS) for line in LINES.values()]
    assert list(reveal(table.weighted_sums(list(LINES.values())))) == by_hand
    measured = [sum(weight(r, line) * (r["x"] or 0) for r in ROWS if (r["x"] or 0) >= 1) for line in LINES.values()]
    assert list(reveal(table.weighted_sums(list(LINES.values()), measure="x", where="x >= 1"))) == measured
    assert reveal(table.weighted_sum(LINES["any"])) == by_hand[3] > 0


def test_cells_are_the_same_integers_as_one_by_one(clinic):
    table = PersonalTable(clinic, PEOPLE)
    some = {name: line for name, line in LINES.items() if name != "huge"}
    for name, found in zip(some, reveal(table.weighted_tables(list(some.values()), ["x", "s"])), strict=True):
        assert found.tolist() == table_by_hand(some[name]).tolist(), name
    codes, totals = reveal(table.weighted_rows(LINES["any"], ["x", "s"]))
    expected = table_by_hand(LINES["any"])
    assert codes.tolist() == np.argwhere(expected > 0).tolist()
    assert totals.tolist() == [expected[tuple(c)] for c in codes]
    both = reveal(clinic.weighted_sums((LISTED, LINES["any"]), by=["s"]))
    kinds = ({"a"}, {"b"}, {"c", None})
    assert both.tolist() == [sum(weight(r, LINES["any"]) for r in ROWS if r["s"] in kind) for kind in kinds]


def test_budgets_that_are_joined_on_the_person_are_weighed_too():
    people = pa.table({"who": pa.array(range(N), pa.int64()), "granted": TABLE["epsilon"]})
    rows = TABLE.append_column("id", pa.array(range(N), pa.int64())).drop_columns(["epsilon"])
    schema = Schema(SCHEMA.columns, unit=PrivacyUnit("id", 1))
    roster = Roster.table(people, person="who", epsilon="granted")
    table = PersonalTable(open(rows, schema=schema, budgets=roster), PEOPLE)
    assert reveal(table.weighted_cells(LINES["any"], ["x", "s"])).tolist() == table_by_hand(LINES["any"]).tolist()


def test_half_of_a_list_weighs_nobody_more(clinic):
    """Whoever is not listed weighs as the next lower budget that is, never as the next higher."""
    half = LISTED[::2]
    weights = half // 7
    expected = sum(
        int(weights[i]) for r in ROWS if (i := int(np.searchsorted(half, nano(r["epsilon"]), side="right")) - 1) >= 0
    )
    assert reveal(PersonalTable(clinic, PersonBudgets(half, np.ones_like(half))).weighted_sum(weights)) == expected


GRIDS = {
    "thousandths": np.arange(10, 1001) * 10**6,
    "binary parts": np.arange(20, 1024) * 10**9 // 1024,
    "thirds of hundredths": np.arange(3, 300) * 10**9 // 300,
    "one is missing": np.delete(np.arange(10, 1001) * 10**6, 400),
}


@pytest.mark.parametrize("name", GRIDS)
def test_budgets_on_a_grid_are_rounded_down_to_it(name, put):
    levels = GRIDS[name]
    assert (weighing.regular(levels) is None) == (name == "one is missing")
    lines = [np.minimum(levels, 3 * 10**8), np.clip(levels - 10**8, 0, 5 * 10**8), levels]
    near = (levels[[0, 5, 100, 200, -1]] / 1e9).tolist()
    around = [e + d for e in near for d in (-1.5e-9, -1e-9, 0.0, 1e-9, 1e-4)]
    budgets = [*HOSTILE, *near, *around, 0.4103, 0.4101, *BETWEEN]
    table = pa.table({"x": pa.array([1] * len(budgets), pa.int64()), "epsilon": pa.array(budgets, pa.float64())})
    schema = Schema({"x": SCHEMA["x"]})
    found = reveal(
        PersonalTable(
            open(**put(table), schema=schema, budgets="epsilon"), PersonBudgets(levels, np.ones_like(levels))
        ).weighted_sums(lines)
    )
    places = [int(np.searchsorted(levels, nano(b), side="right")) - 1 for b in budgets]
    assert list(found) == [sum(int(line[i]) for i in places if i >= 0) for line in lines]


@pytest.mark.parametrize("name", LINES)
def test_a_line_per_cell_comes_back(name, monkeypatch):
    fetched = []
    fetch = engines.Engine.fetch
    monkeypatch.setattr(engines.Engine, "fetch", lambda self, expr: fetched.append(fetch(self, expr)) or fetched[-1])
    table = PersonalTable(open(TABLE, schema=SCHEMA, budgets="epsilon"), PEOPLE)
    reveal(table.weighted_sum(LINES[name]))
    reveal(table.weighted_tables([LINES[name], LINES["any"]], ["s"]))
    assert sum(t.num_rows for t in fetched) <= 1 + 4  # one sum; three cells and those without one


def test_few_steps_and_many_agree(monkeypatch):
    table = PersonalTable(open(TABLE, schema=SCHEMA, budgets="epsilon"), PEOPLE)
    for line in LINES.values():
        found = []
        for few in (0, 10**6):
            monkeypatch.setattr(weighing, "FEW", few)
            found.append(reveal(table.weighted_cells(line, ["x"])).tolist())
        assert found[0] == found[1]
