"""Pairs and triples of columns: counted once, scored against a published model by what it misses.

The score of a set of columns at some groups is ``Σ (n - m)⁺`` over its cells, for the exact counts n and the model's counts
m, whole numbers: half the distance between the two if they have the same total. A public penalty for noise is taken off.

**Spread.** The model is published, so m is public. One more record of weight w adds w to one cell of n, whatever the columns
and their groups, and ``(n - m)⁺`` grows by an amount in [0, w]. So every score moves within [0, w]: the spread is w, exactly
(a score that is always 0, for taking nothing, too). Sums are whole numbers below 2**53, so float64 holds them exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.search.groups import Groups
from sfumato.records.records import Records, weighted_bincount

Ints = NDArray[np.int64]
Columns = tuple[int, ...]
Tables = dict[Columns, Ints]
WIDE, NARROW = 64, 16  # groups of a column at most, in a pair and in a triple


@dataclass(frozen=True)
class Candidate:
    """Columns (ascending; the last of all is the target), each at a step of its groups."""

    columns: Columns
    steps: tuple[int, ...]

    def shape(self, groups: Sequence[Groups]) -> tuple[int, ...]:
        """How many groups each column has."""
        return tuple(groups[j].sizes[s] for j, s in zip(self.columns, self.steps, strict=True))

    def cells(self, groups: Sequence[Groups]) -> int:
        """How many cells it has."""
        return prod(self.shape(groups))


def first_steps(columns: Columns, groups: Sequence[Groups]) -> tuple[int, ...]:
    """The finest steps at which these columns are counted together."""
    most = WIDE if len(columns) < 3 else NARROW
    return tuple(next((s for s, n in enumerate(groups[j].sizes) if n <= most), len(groups[j].sizes) - 1) for j in columns)


def candidates(sets: Sequence[Columns], groups: Sequence[Groups]) -> list[Candidate]:
    """Every set of columns at every combination of steps, set by set, the finest first.

    >>> three = Groups(np.arange(3), (np.arange(3), np.array([0, 1, 1])))
    >>> [c.steps for c in candidates([(0, 1)], [three, three])]
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    found = []
    for columns in sets:
        ranges = (range(f, len(groups[j].steps)) for j, f in zip(columns, first_steps(columns, groups), strict=True))
        found += [Candidate(columns, steps) for steps in product(*ranges)]
    return found


def pairs_of(groups: Sequence[Groups]) -> list[Columns]:
    """All pairs of columns with more than one group: with one, there is nothing to count."""
    return list(combinations([j for j, g in enumerate(groups) if g.count > 1], 2))


def counted(records: Records, sets: Sequence[Columns], groups: Sequence[Groups]) -> Tables:
    """Counts of each set of columns at its finest steps: one pass over the records each."""
    codes: dict[tuple[int, int], Ints] = {}

    def coded(j: int, step: int) -> Ints:
        if (j, step) not in codes:
            values = records.classes if j == len(records.taxonomies) else records.leaves[:, j]
            codes[j, step] = groups[j].at(step)[values]
        return codes[j, step]

    out = {}
    for columns in sets:
        first = Candidate(columns, first_steps(columns, groups))
        shape = first.shape(groups)
        code: Ints = np.zeros(len(records.leaves), dtype=np.int64)
        for j, step, size in zip(columns, first.steps, shape, strict=True):
            code = code * size + coded(j, step)
        out[columns] = weighted_bincount(code, records.weights, prod(shape)).reshape(shape)
    return out


def rolled(table: NDArray[Any], candidate: Candidate, groups: Sequence[Groups], first: Sequence[int]) -> NDArray[Any]:
    """A table at the steps `first`, rolled up to those of a candidate."""
    for axis, (j, step, f) in enumerate(zip(candidate.columns, candidate.steps, first, strict=True)):
        if step != f:
            summing = groups[j].summing(f, step)
            table = np.moveaxis(np.tensordot(summing, table, axes=(1, axis)), 0, axis)
    return table


def missed(counts: Tables, model: Tables, sets: Sequence[Columns], groups: Sequence[Groups]) -> Ints:
    """``Σ (n - m)⁺`` for all `candidates` of these sets, in units of weight.

    >>> two = Groups(np.array([0, 1]), (np.array([0, 1]),))
    >>> n, m = {(0, 1): np.array([[5, 0], [1, 4]])}, {(0, 1): np.array([[3, 2], [3, 2]])}
    >>> missed(n, m, [(0, 1)], [two, two]).tolist()
    [4]
    """
    found = [np.zeros(0, dtype=np.int64)]
    for columns in sets:
        first = first_steps(columns, groups)
        gap, starts = (counts[columns] - model[columns]).astype(np.float64), []
        for axis, (j, f) in enumerate(zip(columns, first, strict=True)):
            # All steps of a column one below the other, so that one product rolls up to all combinations.
            summing = np.concatenate([groups[j].summing(f, s) for s in range(f, len(groups[j].steps))])
            gap = np.moveaxis(np.tensordot(summing, gap, axes=(1, axis)), 0, axis)
            starts.append(np.cumsum([0, *groups[j].sizes[f:-1]]))
        gap = np.maximum(gap, 0.0)
        for axis, start in enumerate(starts):
            gap = np.add.reduceat(gap, start, axis=axis)
        found.append(gap.astype(np.int64).reshape(-1))
    return np.concatenate(found)
