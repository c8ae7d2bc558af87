"""PrivBayes on binary columns: the score F by brute force, its spread, usefulness, and what is published."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import InputError
from sfumato.grids import PrivBayes
from sfumato.grids.search.dependence import F_SPREAD, fixed_by_parents
from sfumato.privacy import Seeded
from sfumato.tables.domains import Categorical
from sfumato.tables.schema import Schema


def literal(joint):
    """F from its definition, over all assignments of parent cells."""
    n, cells = joint.sum(), joint.shape[1]
    found = []
    for a in product((0, 1), repeat=cells):
        kept = [sum(joint[v, c] for c in range(cells) if a[c] == v) for v in (0, 1)]
        found.append(max(n - 2 * kept[0], 0) + max(n - 2 * kept[1], 0))
    return -min(found)


def distance_to_ideal(joint):
    """The paper's own words: minus half the L1 distance to the nearest table whose parents fix a fair x."""
    from scipy.optimize import linprog

    p = joint.reshape(-1) / joint.sum()
    cells, best = joint.shape[1], np.inf
    for a in product((0, 1), repeat=cells):
        free = np.array([[a[c] == v for c in range(cells)] for v in (0, 1)])
        if not free.any(axis=1).all():
            continue
        m = p.size
        # variables q, t with |p - q| <= t; rows of q sum to one half; q is 0 where the assignment forbids it
        above = np.hstack([np.eye(m), -np.eye(m)]), np.hstack([-np.eye(m), -np.eye(m)])
        halves = np.zeros((2, 2 * m))
        halves[0, :cells], halves[1, cells:m] = 1, 1
        bounds = [(0, None if ok else 0) for ok in free.reshape(-1)] + [(0, None)] * m
        found = linprog(np.r_[np.zeros(m), np.ones(m)], np.vstack(above), np.r_[p, -p], halves, [0.5, 0.5], bounds=bounds)
        best = min(best, found.fun)
    return -0.5 * best


@pytest.mark.parametrize("cells", [1, 2, 4])
def test_f_equals_its_definition(cells):
    rng = np.random.default_rng(cells)
    for _ in range(150):
        joint = rng.integers(0, int(rng.integers(1, 9)) + 1, (2, cells))
        assert fixed_by_parents(joint) == literal(joint)


def test_f_is_minus_the_distance_to_the_nearest_ideal_table():
    rng = np.random.default_rng(3)
    for _ in range(15):
        joint = rng.integers(0, 7, (2, 3)) + np.eye(2, 3, dtype=int)
        assert fixed_by_parents(joint) / (2 * joint.sum()) == pytest.approx(distance_to_ideal(joint), abs=1e-9)


def test_f_moves_by_minus_two_to_one_on_every_small_table():
    changes = set()
    for entries in product(range(4), repeat=4):
        table = np.array(entries).reshape(2, 2)
        for cell in product((0, 1), (0, 1)):
            after = table.copy()
            after[cell] += 1
            changes.add(fixed_by_parents(after) - fixed_by_parents(table))
    assert (min(changes), max(changes)) == (-2, 1)
    assert max(changes) - min(changes) == F_SPREAD


@pytest.mark.parametrize("m", [1, 5, 100])
def test_one_record_moves_two_candidates_apart_by_the_whole_spread(m):
    # x by one parent and x by another, on the same 2m + 1 records with as many x = 1; the new record has x = 1.
    first, second = np.array([[m, 1], [0, m]]), np.array([[m + 1, 0], [0, m]])
    assert first.sum(axis=1).tolist() == second.sum(axis=1).tolist()
    first_after, second_after = first + np.array([[0, 0], [1, 0]]), second + np.array([[0, 0], [0, 1]])
    falls = fixed_by_parents(first_after) - fixed_by_parents(first)
    rises = fixed_by_parents(second_after) - fixed_by_parents(second)
    assert rises - falls == F_SPREAD


def binary(n=6000, columns=6, seed=0):
    rng = np.random.default_rng(seed)
    x = [rng.random(n) < 0.5]
    for _ in range(columns - 1):
        x.append(np.where(rng.random(n) < 0.9, x[-1], rng.random(n) < 0.5))
    names = [f"c{j}" for j in range(columns)]
    frame = pd.DataFrame({name: np.where(v, "yes", "no") for name, v in zip(names, x, strict=True)})
    return frame, Schema({name: Categorical(["no", "yes"]) for name in names})


@pytest.mark.parametrize("rows", [None, 6000])
def test_a_binary_table_is_published_within_its_price(rows):
    frame, schema = binary()
    model = PrivBayes(epsilon=2, target="c0", rows=rows).fit(frame, schema=schema, source=Seeded(1))
    network = model.synopsis
    k = network.parameters["degree"]
    assert network.parameters["score"] == "F"
    assert k >= 2
    assert [len(parents) for _, parents in network.links] == [min(i, k) for i in range(6)]
    assert 1.99 < float(network.guarantee.epsilon) <= 2
    assert sum("marginal" in s.label for s in network.guarantee.steps) == 6 - k
    table = model.sample(20_000)
    for a, b in [("c0", "c1"), ("c2", "c3"), ("c4", "c5"), ("c0", "c5")]:
        real, drawn = (frame[a] == frame[b]).mean(), (table[a] == table[b]).mean()
        assert drawn == pytest.approx(real, abs=0.04)


def test_without_a_useful_marginal_columns_are_independent_and_get_the_whole_budget():
    frame, schema = binary(n=50)
    network = PrivBayes(epsilon=0.1, target="c0", rows=50).fit(frame, schema=schema, source=Seeded(1)).synopsis
    assert network.parameters["degree"] == 0
    assert [s.mechanism for s in network.guarantee.steps] == ["laplace"] * 6
    assert network.rate == 100_000_000 // 6


def test_usefulness_is_the_published_one():
    model = PrivBayes(epsilon=1, target="c0")
    for n, epsilon in [(500, 0.1), (5000, 0.5), (50_000, 1.0)]:
        k = model.useful_degree(8, n, epsilon)
        assert k == 0 or n * epsilon / ((8 - k) * 2 ** (k + 2)) >= 4
        assert k == 7 or all(n * epsilon / ((8 - j) * 2 ** (j + 2)) < 4 for j in range(k + 1, 8))
    assert PrivBayes(epsilon=1, target="c0", degree=2).useful_degree(8, 10**6, 1.0) == 2


def test_f_is_refused_for_wider_columns_before_anything_is_spent():
    frame, _ = binary()
    schema = Schema({"c0": Categorical(["no", "yes"]), "c1": Categorical(["no", "yes", "unknown"])})
    with pytest.raises(InputError, match="'c1'"):
        PrivBayes(epsilon=1, target="c0", score="F").fit(frame, schema=schema, source=Seeded(1))
    with pytest.raises(InputError, match="score"):
        PrivBayes(epsilon=1, target="c0", score="I")
    general = PrivBayes(epsilon=1, target="c0").fit(frame, schema=schema, source=Seeded(1)).synopsis
    assert general.parameters["score"] == "R"
