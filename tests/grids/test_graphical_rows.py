"""Rows drawn from a fitted distribution: how near their counts are to what is expected, and that nothing else is tied."""

import time

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.grids.graphical import Fitted
from sfumato.grids.graphical.drawing import dealt, rounded_lines


def random_fitted(sizes, sets, seed):
    rng = np.random.default_rng(seed)
    base = tuple(np.log(rng.dirichlet(np.ones(size))) for size in sizes)
    return Fitted(tuple(sizes), 1000.0, base, {s: rng.normal(0, 1.5, [sizes[c] for c in s]) for s in sets})


def counted(rows, columns, sizes):
    found = np.zeros([sizes[c] for c in columns])
    np.add.at(found, tuple(rows[:, c] for c in columns), 1)
    return found


@pytest.mark.parametrize("rows", [0, 1, 37, 5000])
def test_cells_are_within_a_row_of_what_is_expected_given_what_was_drawn(rows):
    sizes, sets = (3, 4, 5, 2, 6), [(0, 1), (1, 2), (2, 3), (2, 4)]
    model = random_fitted(sizes, sets, 1)
    drawn = model.sample(rows, np.random.default_rng(2))
    assert drawn.shape == (rows, 5)
    assert drawn.dtype == np.int64
    for i, (clique, above) in enumerate(zip(model.tree.cliques, model.tree.separators, strict=True)):
        expected = model.marginal(clique) / model.total
        if i:
            axes = tuple(k for k, c in enumerate(clique) if c not in above)
            shared = tuple(c for c in clique if c in above)
            shape = [sizes[c] if c in above else 1 for c in clique]
            expected = expected / expected.sum(axis=axes, keepdims=True) * counted(drawn, shared, sizes).reshape(shape)
        else:
            expected = expected * rows
        assert np.abs(counted(drawn, clique, sizes) - expected).max() < 1 + 1e-6


def test_marginals_scatter_less_than_independent_draws():
    sizes, sets = (6, 5, 4, 5, 3), [(0, 1), (1, 2), (2, 3), (3, 4)]
    model = random_fitted(sizes, sets, 3)
    rng = np.random.default_rng(4)
    triples = [(0, 1, 2), (0, 2, 4), (1, 3, 4)]
    expected = [4000 * model.marginal(t) / model.total for t in triples]
    ours = np.mean(
        [
            sum(np.abs(counted(drawn, t, sizes) - e).sum() for t, e in zip(triples, expected, strict=True))
            for drawn in (model.sample(4000, rng) for _ in range(5))
        ]
    )
    alone = np.mean(
        [
            sum(np.abs(rng.multinomial(4000, (e / e.sum()).reshape(-1)) - e.reshape(-1)).sum() for e in expected)
            for _ in range(5)
        ]
    )
    assert ours < 0.75 * alone


def test_every_row_gets_every_value_with_its_share_whatever_came_before():
    # 0 and 2 are independent given 1: dealing evenly must not tie them, and each count must be right on average.
    sizes, sets = (2, 2, 3), [(0, 1), (1, 2)]
    model = random_fitted(sizes, sets, 5)
    rng = np.random.default_rng(6)
    many, rows = 1500, 7
    total = sum(counted(model.sample(rows, rng), (0, 1, 2), sizes) for _ in range(many))
    expected = many * rows * model.marginal((0, 1, 2)) / model.total
    spread = np.sqrt(expected * (1 - expected / expected.sum()))
    assert np.abs((total - expected) / spread).max() < 4


def test_rounding_is_right_on_average_and_adds_up():
    rng = np.random.default_rng(7)
    table = rng.dirichlet(np.full(6, 0.4), size=5)
    table[2] = 0.0
    rows = np.array([0, 1, 3, 10, 1000])
    drawn = np.stack([rounded_lines(table, rows, rng) for _ in range(2000)])
    assert (drawn.sum(axis=2) == rows).all()
    shares = table.copy()
    shares[2] = 1 / 6
    expected = shares * rows[:, None]
    assert np.abs(drawn - expected).max() < 1 + 1e-5
    assert np.abs(drawn.mean(axis=0) - expected).max() < 5 * 0.5 / np.sqrt(2000)


def test_a_value_without_a_share_is_never_dealt():
    table = np.array([[0.0, 1.0, 0.0, 2.0], [3.0, 0.0, 0.0, 1e-300]])
    found = dealt(table, np.repeat([0, 1], [500, 400]), np.random.default_rng(1))
    assert set(found[:500]) == {1, 3}
    assert set(found[500:]) == {0}


def test_columns_of_one_value_and_a_negative_number_of_rows():
    model = random_fitted((1, 3, 1), [(0, 1)], 1)
    drawn = model.sample(9, np.random.default_rng(1))
    assert (drawn[:, [0, 2]] == 0).all()
    with pytest.raises(InputError, match="cannot draw -1 rows"):
        model.sample(-1, np.random.default_rng(1))


def test_time_grows_with_the_rows():
    sizes = (8,) * 10
    model = random_fitted(sizes, [(j, j + 1) for j in range(9)], 1)
    rng = np.random.default_rng(0)

    def seconds(rows):
        best = np.inf
        for _ in range(2):
            start = time.process_time()
            model.sample(rows, rng)
            best = min(best, time.process_time() - start)
        return best

    seconds(100)
    assert seconds(80_000) < 8 * 3 * seconds(10_000)
