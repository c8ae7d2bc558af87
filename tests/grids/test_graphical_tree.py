"""The junction tree and what is computed on it, against the explicit joint distribution of small tables."""

import math
from itertools import combinations

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.grids.graphical import Fitted, cost, elimination
from sfumato.grids.graphical.beliefs import Loglinear
from sfumato.grids.graphical.fitted import in_order
from sfumato.grids.graphical.growth import growth
from sfumato.grids.graphical.marginal import spread, summed
from sfumato.grids.graphical.tree import junction_tree

SIZES = (2, 3, 1, 4, 2, 3)
GRAPHS = {
    "nothing": [],
    "one column": [(3,)],
    "chain": [(0, 1), (1, 3), (3, 4)],
    "ring": [(0, 1), (1, 3), (3, 4), (0, 4)],
    "triples": [(0, 1, 3), (3, 4, 5), (1, 5)],
    "apart": [(0, 1), (3, 5)],
    "star with a column of one value": [(2, 0), (2, 1), (2, 3), (2, 5)],
    "everything": [tuple(range(6))],
}


@pytest.mark.parametrize("sets", GRAPHS.values(), ids=GRAPHS)
def test_the_tree_holds_every_set_and_hangs_together(sets):
    tree = junction_tree(SIZES, sets)
    assert {c for clique in tree.cliques for c in clique} == set(range(6))
    assert all(tree.home(s) is not None for s in sets)
    assert all(0 <= parent < i for i, parent in enumerate(tree.parents) if i)
    for i, (clique, parent, shared) in enumerate(zip(tree.cliques, tree.parents, tree.separators, strict=True)):
        before = {c for earlier in tree.cliques[:i] for c in earlier}
        # Running intersection: what a clique has in common with all before it, it has in common with its parent.
        assert set(shared) == set(clique) & before == (set(clique) & set(tree.cliques[parent]) if i else set())
    assert tree.cells == cost(SIZES, sets) == sum(math.prod(SIZES[c] for c in clique) for clique in tree.cliques)
    assert all(not set(a) < set(b) for a in tree.cliques for b in tree.cliques)


def test_cost_of_a_ring_is_that_of_the_best_chord():
    assert cost([10, 2, 10, 10], [(0, 1), (1, 2), (2, 3), (0, 3)]) == 2 * 10 * 2 * 10
    assert cost([5] * 4, list(combinations(range(4), 2))) == 5**4
    assert cost([1, 1], [(0, 1)]) == 1


def random_model(sets, seed):
    rng = np.random.default_rng(seed)
    base = tuple(np.log(rng.dirichlet(np.ones(size))) for size in SIZES)
    potentials = {tuple(sorted(s)): rng.normal(0, 2, [SIZES[c] for c in sorted(s)]) for s in sets}
    return Fitted(SIZES, 1000.0, base, potentials)


def joint_of(model):
    every = tuple(range(len(SIZES)))
    log = sum(spread(b, (j,), every) for j, b in enumerate(model.base))
    log = log + sum(spread(table, columns, every) for columns, table in model.potentials.items())
    return np.broadcast_to(np.exp(log), SIZES)


@pytest.mark.parametrize("sets", GRAPHS.values(), ids=GRAPHS)
def test_marginals_are_those_of_the_explicit_joint(sets):
    model = random_model(sets, 3)
    joint = joint_of(model)
    whole = joint.sum()
    sets = in_order(model.potentials)
    loglinear = Loglinear(model.tree, model.base, sets)
    beliefs, log_whole = loglinear.beliefs([model.potentials[s] for s in sets])
    assert log_whole == pytest.approx(math.log(whole))
    every = tuple(range(len(SIZES)))
    for s, found in zip(sets, loglinear.marginals(beliefs), strict=True):
        np.testing.assert_allclose(found, summed(joint, every, s) / whole, rtol=1e-9)
    for width in (0, 1, 2, 3):
        for columns in combinations(every, width):
            np.testing.assert_allclose(
                model.marginal(columns), 1000 * summed(joint, every, columns) / whole, rtol=1e-9, atol=1e-12
            )
    np.testing.assert_allclose(model.marginal(every[::-1]), 1000 * joint.transpose() / whole, rtol=1e-9)


def test_far_apart_potentials_neither_overflow_nor_vanish():
    sizes = (2, 2, 2)
    base = tuple(np.zeros(2) for _ in sizes)
    far = {(0, 1): np.array([[900.0, -900.0], [-900.0, 900.0]]), (1, 2): np.array([[0.0, -2000.0], [-2000.0, 0.0]])}
    model = Fitted(sizes, 10.0, base, far)
    np.testing.assert_allclose(model.marginal((0, 2)), [[5.0, 0.0], [0.0, 5.0]], atol=1e-12)


def test_a_marginal_that_is_too_large_is_refused(monkeypatch):
    model = random_model(GRAPHS["chain"], 1)
    monkeypatch.setattr(elimination, "MOST_CELLS", 10)
    assert model.marginal((0, 1)).shape == (2, 3)
    with pytest.raises(InputError, match="24 cells on the way, at most 10"):
        model.marginal((0, 1, 3))


@pytest.mark.parametrize("columns", [(0, 0), (6,), (-1,)])
def test_columns_that_are_not_there_are_refused(columns):
    with pytest.raises(InputError, match="different columns from 0 to 5"):
        random_model([], 1).marginal(columns)


@pytest.mark.parametrize(("sizes", "sets"), [((2, 0), []), ((), []), ((2, 2), [(0, 2)]), ((2, 2), [(-1,)])])
def test_tables_that_make_no_sense_are_refused(sizes, sets):
    with pytest.raises(InputError):
        cost(sizes, sets)


def test_growth_bounds_the_cost_of_one_more_set():
    rng = np.random.default_rng(0)
    for _ in range(20):
        sizes = rng.integers(2, 6, 7).tolist()
        sets = [tuple(sorted(rng.choice(7, 2, replace=False).tolist())) for _ in range(7)]
        tree = junction_tree(sizes, sets)
        pairs = list(combinations(range(7), 2))
        for pair, more in zip(pairs, growth(tree, pairs), strict=True):
            grown = junction_tree(sizes, [*tree.cliques, pair])  # the tree as it stands, and one set more
            assert grown.cells <= tree.cells + more
