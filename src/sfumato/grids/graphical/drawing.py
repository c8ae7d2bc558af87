"""Rows from a junction tree, clique by clique, so that the numbers of drawn rows hardly scatter.

Three things keep them close to what the distribution expects, beyond what independent draws would give. The rows of each
cell are the expected number, rounded up or down. Inside a group of rows that agree in what a clique shares with its parent,
the new values are dealt out evenly: rows are put in the order of columns drawn before, and each value goes to every so
manieth of them. And each group starts dealing at a random row, so that every row gets every value with the right chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.graphical.marginal import Columns, Floats
from sfumato.grids.graphical.tree import Tree
from sfumato.privacy.source import Generator

Ints = NDArray[np.int64]
_MOST_CODES = 2**62


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
    out = np.zeros((len(tree.sizes), rows), dtype=np.int64)  # columns are written and read one at a time
    drawn: list[int] = []
    for clique, above, belief in zip(tree.cliques, tree.separators, beliefs, strict=True):
        new = tuple(c for c in clique if c not in above)
        groups = math.prod(tree.sizes[c] for c in above)
        table = belief.transpose([clique.index(c) for c in above + new]).reshape(groups, -1)
        group = _coded(out, above, tree.sizes)
        others = [c for c in drawn if c not in above]
        order = _ordered(group, groups, out, [others[i] for i in rng.permutation(len(others))], tree.sizes, rng)
        values = dealt(table, group[order], rng)
        cell = np.empty(rows, dtype=np.int64)
        cell[order] = values
        for c, digits in zip(new, np.unravel_index(cell, [tree.sizes[c] for c in new]), strict=True):
            out[c] = digits
        drawn.extend(new)
    return np.ascontiguousarray(out.T)


def _coded(out: Ints, columns: Columns, sizes: Sequence[int]) -> Ints:
    """One number for the values of these columns."""
    code = np.zeros(out.shape[1], dtype=np.int64)
    for c in columns:
        code *= sizes[c]
        code += out[c]
    return code


def _ordered(group: Ints, groups: int, out: Ints, others: Sequence[int], sizes: Sequence[int], rng: Generator) -> Ints:
    """The rows group by group, in each by the other columns as far as one number holds them, ties in random order."""
    code, codes = group.copy(), groups
    for c in others:
        if codes > _MOST_CODES // sizes[c] or codes > 64 * group.size:  # rows are apart already
            break
        code *= sizes[c]
        code += out[c]
        codes *= sizes[c]
    shuffled = rng.permutation(group.size)
    return shuffled[np.argsort(code[shuffled], kind="stable")]


def dealt(table: Floats, group: Ints, rng: Generator) -> Ints:
    """For every row a column of `table`, by the shares in the line of its group, evenly along the rows of the group.

    Parameters
    ----------
    table : float array
        Groups by values: in proportion to the shares.
    group : int array
        The line of each row, ascending.
    rng : Generator
        For post-processing.

    Returns
    -------
    int array

    Examples
    --------
    >>> from sfumato.privacy import Seeded
    >>> found = dealt(np.array([[0.2, 0.2], [0.6, 0.0]]), np.array([0] * 6 + [1] * 2), Seeded(1).generator())
    >>> found[:2].sum(), found[2:4].sum(), found[4:6].sum(), found[6:].tolist()
    (np.int64(1), np.int64(1), np.int64(1), [0, 0])
    """
    members = np.bincount(group, minlength=len(table))
    used = np.flatnonzero(members)
    members = members[used]
    counts = rounded_lines(table[used], members, rng).reshape(-1)
    some = np.flatnonzero(counts)  # cells with rows
    many = counts[some]
    line, value = np.divmod(some, table.shape[1])
    # The k-th of n rows with a value stands at (k + u) / n of its group, u the same for all of them.
    each = np.arange(group.size) - np.repeat(np.cumsum(many) - many, many)
    place = (each + np.repeat(rng.random(some.size), many)) / np.repeat(many, many)
    order = np.argsort(np.repeat(line, many) + np.minimum(place, 1.0) * (1.0 - 1e-9), kind="stable")
    found = np.repeat(value, many)[order]
    first = np.repeat(np.cumsum(members) - members, members)
    turned = np.arange(group.size) - first + np.repeat((rng.random(used.size) * members).astype(np.int64), members)
    return np.asarray(found[first + turned % np.repeat(members, members)])


def rounded_lines(table: Floats, rows: Ints, rng: Generator) -> Ints:
    """Whole numbers in proportion to each line of `table`, which add up to `rows` there: each rounded up or down at random.

    Systematic sampling: the expected numbers are laid end to end and every unit step, from a random start per line, picks
    the cell it falls in. So every number is right on average and within one of what is expected.

    >>> from sfumato.privacy import Seeded
    >>> rounded_lines(np.array([[1.0, 3.0], [0.0, 0.0]]), np.array([8, 2]), Seeded(1).generator()).tolist()
    [[2, 6], [1, 1]]
    """
    whole = table.sum(axis=1, keepdims=True)
    upper = np.cumsum(np.where(whole > 0, table, 1.0), axis=1)  # sums can underflow, though no line is empty
    upper *= (rows / upper[:, -1])[:, None]
    upper = np.rint(upper * 2.0**20) / 2.0**20  # away from sums that miss a whole number by rounding
    upper += rng.random((len(table), 1))
    steps = np.minimum(np.floor(upper, out=upper), rows[:, None]).astype(np.int64)
    steps[:, -1] = rows
    return np.diff(steps, axis=1, prepend=0)
