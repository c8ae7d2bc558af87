"""Rows from a junction tree, clique by clique, rounded so that their numbers hardly scatter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.graphical.marginal import Floats
from sfumato.grids.graphical.tree import Tree
from sfumato.privacy.source import Generator

Ints = NDArray[np.int64]


def draw(tree: Tree, beliefs: Sequence[Floats], rows: int, rng: Generator) -> Ints:
    """So many rows: the first clique's cells, then the new columns of each clique given what it shares with its parent.

    >>> from sfumato.grids.graphical.tree import junction_tree
    >>> from sfumato.privacy import Seeded
    >>> tree = junction_tree([2, 2, 2], [(0, 1), (1, 2)])
    >>> both = np.array([[0.5, 0.0], [0.0, 0.5]])
    >>> drawn = draw(tree, [both, both], 10, Seeded(3).generator())
    >>> drawn.sum(axis=0).tolist(), bool((drawn[:, 0] == drawn[:, 2]).all())
    ([5, 5, 5], True)
    """
    out = np.zeros((rows, len(tree.sizes)), dtype=np.int64)
    for clique, above, belief in zip(tree.cliques, tree.separators, beliefs, strict=True):
        new = tuple(c for c in clique if c not in above)
        sizes = [tree.sizes[c] for c in above]
        table = belief.transpose([clique.index(c) for c in above + new]).reshape(int(np.prod(sizes, dtype=np.int64)), -1)
        group = np.ravel_multi_index([out[:, c] for c in above], sizes) if above else np.zeros(rows, dtype=np.int64)
        drawn = given_groups(table, np.asarray(group), rng)
        for c, digits in zip(new, np.unravel_index(drawn, [tree.sizes[c] for c in new]), strict=True):
            out[:, c] = digits
    return out


def given_groups(table: Floats, group: Ints, rng: Generator) -> Ints:
    """For every row a column of `table`, by the shares in the line of its group; rounded per group, in random order.

    >>> from sfumato.privacy import Seeded
    >>> found = given_groups(np.array([[0.2, 0.2], [0.6, 0.0]]), np.array([0, 1, 0, 1]), Seeded(1).generator())
    >>> sorted(found[[0, 2]].tolist()), found[[1, 3]].tolist()
    ([0, 1], [0, 0])
    """
    members = np.bincount(group, minlength=len(table))
    used = np.flatnonzero(members)
    counts = rounded_lines(table[used], members[used], rng)
    order = rng.permutation(group.size)
    order = order[np.argsort(group[order], kind="stable")]
    out = np.empty(group.size, dtype=np.int64)
    out[order] = np.repeat(np.tile(np.arange(table.shape[1]), used.size), counts.reshape(-1))
    return out


def rounded_lines(table: Floats, rows: Ints, rng: Generator) -> Ints:
    """Whole numbers in proportion to each line of `table`, which add up to `rows` there: each rounded up or down at random.

    Systematic sampling: the expected numbers are laid end to end and every unit step, from a random start per line, picks
    the cell it falls in. So every number is right on average and within one of what is expected.

    >>> from sfumato.privacy import Seeded
    >>> rounded_lines(np.array([[1.0, 3.0], [0.0, 0.0]]), np.array([8, 2]), Seeded(1).generator()).tolist()
    [[2, 6], [1, 1]]
    """
    whole = table.sum(axis=1, keepdims=True)
    table = np.where(whole > 0, table, 1.0)  # no line of a fitted table is empty, but its sums can underflow
    upper = np.cumsum(table, axis=1)
    upper *= (rows / upper[:, -1])[:, None]
    upper = np.rint(upper * 2.0**20) / 2.0**20  # away from sums that miss a whole number by rounding
    upper += rng.random((len(table), 1))
    steps = np.minimum(np.floor(upper, out=upper), rows[:, None]).astype(np.int64)
    steps[:, -1] = rows
    return np.diff(steps, axis=1, prepend=0)
