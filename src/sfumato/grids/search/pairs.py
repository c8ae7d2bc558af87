"""Pairs of columns: counted once, scored against a published model by what it misses.

The score of a pair at some groups is ``Σ (n - m)⁺`` over its cells, for the exact counts n and the model's counts m, whole
numbers: half the distance between the two if they have the same total. A public penalty for the noise is taken off.

**Spread.** The model is published, so m is public. One more record of weight w adds w to one cell of n, whatever the pair
and its groups, and ``(n - m)⁺`` grows by an amount in [0, w]. So every score moves within [0, w]: the spread is w, exactly.
A triple of columns is scored alike, and by the same argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.search.groups import Groups
from sfumato.records.records import Records, weighted_bincount

Ints = NDArray[np.int64]
Columns = tuple[int, ...]
Tables = dict[Columns, Ints]


@dataclass(frozen=True)
class Candidate:
    """Columns (ascending; the last of all is the target), each at a step of its groups."""

    columns: Columns
    steps: tuple[int, ...]

    def cells(self, groups: Sequence[Groups]) -> int:
        """How many cells it has."""
        return prod(groups[j].sizes[s] for j, s in zip(self.columns, self.steps, strict=True))


def candidates(sets: Sequence[Columns], groups: Sequence[Groups], *, most: int) -> list[Candidate]:
    """Every set of columns at every combination of steps with at most `most` cells; columns of one group say nothing."""
    found = []
    for columns in sets:
        if min(groups[j].count for j in columns) < 2:
            continue
        every = product(*(range(len(groups[j].steps)) for j in columns))
        found += [c for c in (Candidate(columns, steps) for steps in every) if c.cells(groups) <= most]
    return found


def all_pairs(count: int) -> list[Columns]:
    """All pairs of so many columns."""
    return list(combinations(range(count), 2))


def counted(records: Records, sets: Sequence[Columns], groups: Sequence[Groups]) -> Tables:
    """Counts of each set of columns at its finest groups: one pass over the records each."""
    codes = [_column(records, j, g) for j, g in enumerate(groups)]
    out = {}
    for columns in sets:
        shape = [groups[j].count for j in columns]
        code = codes[columns[0]]
        for j, size in zip(columns[1:], shape[1:], strict=True):
            code = code * size + codes[j]
        out[columns] = weighted_bincount(code, records.weights, prod(shape)).reshape(shape)
    return out


def _column(records: Records, j: int, groups: Groups) -> Ints:
    values = records.classes if j == len(records.taxonomies) else records.leaves[:, j]
    return np.asarray(groups.finest[values])


def rolled(table: NDArray[np.int64], candidate: Candidate, groups: Sequence[Groups]) -> Ints:
    """A table at its finest groups, rolled up to the steps of a candidate."""
    for axis, (j, s) in enumerate(zip(candidate.columns, candidate.steps, strict=True)):
        if s:
            step = groups[j].steps[s]
            out = np.zeros((*table.shape[:axis], groups[j].sizes[s], *table.shape[axis + 1 :]), dtype=table.dtype)
            np.add.at(out, (*(slice(None),) * axis, step), table)
            table = out
    return table


def missed(counts: Tables, model: Tables, found: Sequence[Candidate], groups: Sequence[Groups]) -> Ints:
    """The score of every candidate, before its penalty: ``Σ (n - m)⁺`` in units of weight.

    >>> two = Groups(np.array([0, 1]), (np.array([0, 1]),))
    >>> n, m = {(0, 1): np.array([[5, 0], [1, 4]])}, {(0, 1): np.array([[3, 2], [3, 2]])}
    >>> missed(n, m, [Candidate((0, 1), (0, 0))], [two, two]).tolist()
    [4]
    """
    return np.array(
        [np.maximum(rolled(counts[c.columns], c, groups) - rolled(model[c.columns], c, groups), 0).sum() for c in found],
        dtype=np.int64,
    )


Scored = Callable[[Tables], Ints]
