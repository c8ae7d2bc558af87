"""PrivBayes on wide columns: bits and back, the spread of F on bits, parents that usefulness alone limits."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import InputError
from sfumato.grids import PrivBayes
from sfumato.grids.published.bits import Bits
from sfumato.grids.search.dependence import F_SPREAD, R_SPREAD, dependence, fixed_by_parents
from sfumato.grids.search.parents import general_degree, joint, useful_options
from sfumato.privacy import Seeded
from sfumato.records.levels import Levels
from sfumato.records.records import Records
from sfumato.tables import Categorical, Numeric, Schema

WIDE = (Levels.numeric("x", np.arange(7.0)), Levels.flat("y", ["a", "b", "c"]), Levels.flat("one", ["only"]))
TARGET = Levels.flat("t", ["p", "q", "r"])


@pytest.mark.parametrize("gray", [False, True])
def test_bits_and_back(gray):
    code = Bits((*WIDE, TARGET), gray)
    every = np.array(list(product(*(range(c.leaves) for c in (*WIDE, TARGET)))))
    bits = code.encode(every)
    assert bits.shape[1] == len(code.columns) == 3 + 2 + 0 + 2
    assert (code.decode(bits) == every).all()
    anything = np.array(list(product((0, 1), repeat=bits.shape[1])))
    assert (code.decode(anything) <= [c.leaves - 1 for c in (*WIDE, TARGET)]).all()
    if gray:  # numbers next to each other differ in one bit
        steps = code.encode(np.stack([np.arange(6), *[np.zeros(6, int)] * 3], axis=1))
        assert (np.abs(np.diff(steps, axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("gray", [False, True])
def test_one_record_moves_the_scores_of_bits_and_of_columns_within_their_spreads(gray):
    """Every record added to many tiny tables, every bit with every set of up to two other bits."""
    rng, code = np.random.default_rng(5), Bits((WIDE[0], WIDE[1], TARGET), gray)
    plain_columns, seen = (WIDE[0], WIDE[1], TARGET), []
    for size in (0, 1, 2, 5, 9):
        leaves = np.stack([rng.integers(6, size=size + 1), rng.integers(3, size=size + 1)], axis=1)
        full = Records(plain_columns[:2], leaves, rng.integers(3, size=size + 1), ("p", "q", "r"))
        less = Records(plain_columns[:2], leaves[:-1], full.classes[:-1], ("p", "q", "r"))
        a, b = code.records(full), code.records(less)
        assert a.total == b.total + 1
        last = len(code.columns)
        sets = [
            (x, tuple((j, 1) for j in s)) for x in range(last) for s in [((x + 1) % last,), ((x + 1) % last, (x + 2) % last)]
        ]
        moved = [
            fixed_by_parents(joint(a, code.columns, x, s)) - fixed_by_parents(joint(b, code.columns, x, s)) for x, s in sets
        ]
        assert min(moved) >= -2
        assert max(moved) <= 1
        seen.append(max(moved) - min(moved))
        options = [o for x in ([0], [1], [2], [0, 2]) for o in useful_options(plain_columns, x, 200.0, 3)]
        general = [
            dependence(joint(full, plain_columns, x, s)) - dependence(joint(less, plain_columns, x, s)) for x, s in options
        ]
        assert max(general) - min(general) <= R_SPREAD
    assert max(seen) <= F_SPREAD
    assert max(seen) >= 2, "these tables hardly move the scores"


def frame(n=8000, seed=0):
    rng = np.random.default_rng(seed)
    grade = rng.integers(0, 6, n)
    place = np.array(["a", "b", "c"], dtype=object)[np.where(rng.random(n) < 0.9, grade // 2, rng.integers(0, 3, n))]
    passed = np.where(grade + rng.normal(0, 0.3, n) > 2.5, "yes", "no")
    return pd.DataFrame({"grade": grade, "place": place, "passed": passed})


SCHEMA = Schema(
    {
        "grade": Numeric(0, 5, bins=6, integer=True),
        "place": Categorical(["a", "b", "c"]),
        "passed": Categorical(["no", "yes"]),
    }
)


@pytest.mark.parametrize("encoding", ["taxonomy", "vanilla", "binary", "gray"])
def test_every_encoding_keeps_its_price_and_what_the_columns_have_in_common(encoding):
    real = frame()
    model = PrivBayes(epsilon=4, target="passed", rows=8000, encoding=encoding).fit(real, schema=SCHEMA, source=Seeded(1))
    network = model.synopsis
    assert 3.9 < float(network.guarantee.epsilon) <= 4
    assert network.parameters["encoding"] == encoding
    assert network.parameters["score"] == ("F" if encoding in ("binary", "gray") else "R")
    table = model.sample(8000)
    assert list(table.columns) == ["grade", "place", "passed"]
    assert set(table["grade"]) <= set(range(6))
    assert set(table["place"]) <= {"a", "b", "c"}
    for name, values in (("passed", ["no", "yes"]), ("place", ["a", "b", "c"])):
        for value in values:
            shown = [t.loc[t[name] == value, "grade"].mean() for t in (real, table)]
            assert shown[1] == pytest.approx(shown[0], abs=0.35)


def test_more_than_two_parents_where_they_are_useful():
    """The last column is the parity of three others: no two parents tell anything about it."""
    rng = np.random.default_rng(2)
    a, b, c = (rng.integers(0, 2, 20_000) for _ in range(3))
    words = np.array(["u", "v"], dtype=object)
    parity = np.array(["even", "odd", "never"], dtype=object)[(a + b + c) % 2]
    table = pd.DataFrame({"a": words[a], "b": words[b], "c": words[c], "y": parity})
    two = Categorical(["u", "v"])
    schema = Schema({"a": two, "b": two, "c": two, "y": Categorical(["even", "odd", "never"])})
    model = PrivBayes(epsilon=5, target="a", rows=20_000).fit(table, schema=schema, source=Seeded(3))
    assert max(len(parents) for _, parents in model.synopsis.links) == 3
    drawn = model.sample(5000)
    odd = (drawn[["a", "b", "c"]] == "v").sum(axis=1) % 2 == 1
    assert (odd == (drawn["y"] == "odd")).mean() > 0.95


def test_candidates_are_maximal_and_bounded():
    columns = (WIDE[0], WIDE[1], Levels.flat("z", ["u", "v"]), TARGET)
    options = useful_options(columns, [1, 2, 3], 40.0, 3)
    cells = [6 * np.prod([columns[j].sizes[v] for j, v in parents]) for _, parents in options]
    assert max(cells) <= 40
    sets = [dict(parents) for _, parents in options]
    for s in sets:
        assert not any(s != t and s.items() <= t.items() for t in sets)
    assert general_degree(2) == 1
    assert useful_options(columns, [1], 4.0, 3) == [(0, ()), (2, ()), (3, ())]


@pytest.mark.parametrize("n", [(1 << 30) - 2, (1 << 30) - 1, 1 << 40])
def test_dependence_of_a_huge_table_moves_within_its_spread(n):
    for cell in product(range(2), repeat=2):
        tables = [np.array([[n - 20, 4], [9, 7]]) for _ in range(2)]
        tables[1][cell] += 1
        assert abs(dependence(tables[0]) - dependence(tables[1])) <= R_SPREAD / 2
    assert dependence(np.array([[n, 0], [0, n]])) == n


def test_wrong_encodings_are_refused():
    with pytest.raises(InputError, match="encoding"):
        PrivBayes(epsilon=1, target="y", encoding="unary")
    with pytest.raises(InputError, match="scored by F"):
        PrivBayes(epsilon=1, target="y", encoding="gray", score="R")
