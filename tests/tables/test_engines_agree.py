"""One suite, every engine: the same hard rows give the same answers, equal to the plain reference."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from sfumato.tables import Numeric, PersonalTable, PrivacyUnit, Roster, Schema, open, parse_where
from sfumato.testing import reveal
from sfumato.testing.hard_rows import COLUMNS, PREDICATES, ROSTER, SCHEMA, WEIRD, as_arrow
from support import plain_reference as plain
from support.engines import ENGINES, MORE_ENGINES

TABLE = as_arrow(COLUMNS)
ROWS = TABLE.to_pylist()
pytestmark = pytest.mark.parametrize("put", [*ENGINES, *MORE_ENGINES], indirect=True)


@pytest.fixture
def clinic(put):
    return open(**put(TABLE), schema=SCHEMA, budgets="epsilon")


def test_counts_of_each_column_and_some_pairs(clinic):
    for name in SCHEMA.names:
        assert reveal(clinic.counts(name)).tolist() == plain.counts(ROWS, [name], SCHEMA).tolist(), name
    for pair in (["age", "sex"], ["place", "income", "smoker"], ["ward", WEIRD], ["stay", "sex"]):
        assert reveal(clinic.counts(pair)).tolist() == plain.counts(ROWS, pair, SCHEMA).tolist(), pair


def test_predicates(clinic):
    for text in PREDICATES:
        predicate = parse_where(text, SCHEMA)
        expected = sum(plain.holds(predicate, row, SCHEMA) for row in ROWS)
        assert reveal(clinic.count(text)) == expected, text
    assert reveal(clinic.count()) == len(ROWS)
    assert reveal(clinic.counts("sex", where="age >= 65")).tolist() == (
        plain.counts(ROWS, ["sex"], SCHEMA, parse_where("age >= 65", SCHEMA)).tolist()
    )


def test_marginals_rolled_up_in_memory_and_in_the_engine(clinic, monkeypatch):
    wanted = [["age", "sex"], ["sex"], ["income", "place"], ["smoker", "ward"]]
    expected = [plain.counts(ROWS, m, SCHEMA).tolist() for m in wanted]
    assert [m.tolist() for m in reveal(clinic.marginals(wanted))] == expected
    monkeypatch.setattr("sfumato.tables.counting.ROLL_UP_CELLS", 0)
    assert [m.tolist() for m in reveal(clinic.marginals(wanted))] == expected


def test_margins_are_sums_of_one_table(clinic):
    names = ["age", "sex", "smoker"]
    whole = plain.counts(ROWS, names, SCHEMA)  # rows that have a cell in every column, whatever is asked
    read = PersonalTable(clinic).margins(names)
    one = np.array([1])
    assert reveal(read(one, (0, 1, 2))).tolist() == whole.tolist()
    assert reveal(read(one, (2, 0))).tolist() == whole.sum(axis=1).T.tolist()
    assert int(reveal(read(one, ()))) == whole.sum()


def test_sparse_counts(clinic):
    codes, counts = reveal(clinic.sparse_counts(["age", "sex"], where="age >= 10"))
    dense = plain.counts(ROWS, ["age", "sex"], SCHEMA, parse_where("age >= 10", SCHEMA))
    assert (counts > 0).all()
    assert np.array_equal(np.argwhere(dense), codes)
    assert np.array_equal(dense[dense > 0], counts)


def test_weighted_sums(clinic):
    predicate = parse_where("age >= 10", SCHEMA)
    kept = [r for r in ROWS if plain.holds(predicate, r, SCHEMA)]
    cap = 200_000_000
    expected = sum(min(plain.nano(r["epsilon"]), cap) for r in kept)
    assert reveal(clinic.weighted_sums(cap, where="age >= 10")) == expected > 0

    domain = SCHEMA["income"]
    expected = sum(min(plain.nano(r["epsilon"]), cap) * plain.lattice(r["income"], domain, 1000) for r in kept)
    assert reveal(clinic.weighted_sums(cap, measure="income", steps=1000, where="age >= 10")) == expected > 0

    by_sex = np.zeros(3, dtype=np.int64)
    for r in ROWS:
        by_sex[plain.code(r["sex"], SCHEMA["sex"])] += min(plain.nano(r["epsilon"]), cap)
    assert reveal(clinic.weighted_sums(cap, by=["sex"])).tolist() == by_sex.tolist()


def test_sums_beyond_64_bits(clinic):
    cap, steps = 10**15, 9000
    expected = sum(plain.nano(r["epsilon"]) * plain.lattice(r["income"], SCHEMA["income"], steps) for r in ROWS)
    assert reveal(clinic.weighted_sums(cap, measure="income", steps=steps)) == expected
    assert expected > 2**63


def test_person_groups(clinic):
    people = clinic.person_budgets()
    assert people.levels.tolist() == [100_000_000, 300_000_000, 1_000_000_000, 10**15]
    assert people.counts.tolist() == [8, 4, 4, 4]
    expected = [sum(plain.nano(r["epsilon"]) == level and r["sex"] == "F" for r in ROWS) for level in people.levels]
    assert reveal(clinic.group_sums(people, where="sex = 'F'")).tolist() == expected
    weights = ([100_000_000, 500_000_000], [3, 11])
    expected_sum = sum(
        11 if plain.nano(r["epsilon"]) >= 500_000_000 else 3 if plain.nano(r["epsilon"]) else 0
        for r in ROWS
        if r["sex"] == "F"
    )
    assert reveal(clinic.weighted_sums(weights, where="sex = 'F'")) == expected_sum
    assert reveal(clinic.weighted_sums(weights, by=["sex"]))[0] == expected_sum


def test_tiers(put):
    roster = Roster.tiers({"strict": 0.01, "open": 1.0, "same": 1.0}, column="consent")
    clinic = open(**put(TABLE), schema=SCHEMA, budgets=roster)
    assert reveal(clinic.weighted_sums(500_000_000)) == 9 * 500_000_000 + 9 * 10_000_000
    people = clinic.person_budgets()
    assert people.names == ("strict", "open", "same")
    assert people.counts.tolist() == reveal(clinic.group_sums(people)).tolist() == [9, 9, 0]


def test_rows_per_person_and_a_roster_table(put):
    where = put(as_arrow(ROSTER))
    roster = Roster.table(where["source"], table=where.get("table"), person="patient", epsilon="budget")
    people = roster.head_counts()
    assert people.levels.tolist() == [100_000_000, 300_000_000, 500_000_000, 1_000_000_000]
    assert people.counts.tolist() == [1, 1, 1, 1]
    for rows in (1, 2):
        schema = Schema(SCHEMA.columns, PrivacyUnit(person="patient", rows_per_person=rows))
        clinic = open(**put(TABLE), schema=schema, budgets=roster)
        per_person = {p: min(rows, sum(r["patient"] == p for r in ROWS)) for p in range(12)}
        assert reveal(clinic.count()) == sum(per_person.values())
        both = reveal(clinic.marginals([["age", "sex"], ["sex", "income"]]))
        assert both[0].sum(axis=0)[0] <= both[1].sum(axis=1)[0]  # one choice of rows serves both
        budget = {0: 500_000_000, 1: 100_000_000, 3: 300_000_000}
        assert reveal(clinic.weighted_sums(10**9)) == sum(budget[p] * per_person[p] for p in budget)
        assert reveal(clinic.group_sums(people)).tolist() == [per_person[1], per_person[3], per_person[0], 0]


def test_the_smallest_budget_of_a_person_counts(put):
    table = pa.table({"x": [1.0, 1.0, 1.0], "who": ["a", "a", "b"], "epsilon": [0.5, 0.2, 0.1]})
    schema = Schema({"x": Numeric(0, 1, bins=2)}, PrivacyUnit(person="who", rows_per_person=2))
    data = open(**put(table), schema=schema, budgets="epsilon")
    assert reveal(data.weighted_sums(10**9)) == 2 * 200_000_000 + 100_000_000
    people = data.person_budgets()
    assert (people.levels.tolist(), people.counts.tolist()) == ([100_000_000, 200_000_000], [1, 1])


def test_empty_table(put):
    clinic = open(**put(TABLE.slice(0, 0)), schema=SCHEMA, budgets="epsilon")
    assert reveal(clinic.count()) == 0
    assert reveal(clinic.count("age >= 65")) == 0
    assert reveal(clinic.counts(["age", "sex"])).sum() == 0
    assert [m.sum() for m in reveal(clinic.marginals([["age"], ["sex", "stay"]]))] == [0, 0]
    assert reveal(clinic.weighted_sums(10**9, measure="income", steps=10)) == 0
    assert reveal(clinic.weighted_sums(10**9, by=["sex"])).tolist() == [0, 0, 0]


def test_which_rows_of_a_person_are_kept_is_random(put):
    n = 60
    table = pa.table(
        {"x": pa.array([0.0, 1.0] * n, pa.float64()), "who": pa.array([i // 2 for i in range(2 * n)], pa.int64())}
    )
    schema = Schema({"x": Numeric(edges=[0, 0.5, 1])}, PrivacyUnit(person="who", rows_per_person=1))
    first, second = reveal(open(**put(table), schema=schema).counts("x"))
    assert first + second == n
    # Each of 60 fair coins: beyond 6 standard deviations with probability below 1e-8.
    assert abs(first - n / 2) < 6 * math.sqrt(n) / 2
