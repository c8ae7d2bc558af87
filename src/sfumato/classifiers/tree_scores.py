"""Candidate splits of a tree, their scores, and how much one record can change a score.

For a group j of a split with class counts n_jc and total n_j:

- *max*: ``Σ_j max_c n_jc``. One more record changes it by 0 or 1: spread 1, exactly (integers).
- *gini*: ``-Σ_j n_j (1 - Σ_c (n_jc / n_j)²)``. One more record of class k in a group of n changes it by
  ``-1 + (2 n_k + 1 - S)/(n + 1)`` with ``S = Σ n_c²/n``; because ``S >= n_k²/n`` and ``(n - n_k)² >= 0`` that is at most 0,
  and because ``S <= n`` it is more than -2: spread 2 (Friedman & Schuster pay twice the sensitivity, 4).
- *information*: ``Σ_j (Σ_c φ(n_jc) - φ(n_j))`` with ``φ(x) = x log₂ x``. φ is convex, so the change
  ``[φ(n_k + 1) - φ(n_k)] - [φ(n + 1) - φ(n)]`` is at most 0 and at least minus the largest step of φ. Beyond a public number
  M of records φ goes on as a straight line, which keeps it convex and its steps at most ``log₂ M + 1/ln 2`` for any table.

The last two are computed in float64 and rounded to multiples of 2**-16; the spread is widened by 2**-14, which covers that
rounding and the (far smaller) errors of the sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.counting import Records
from sfumato.grids.levels import Levels

CRITERIA = ("max", "gini", "information")
_LATTICE = 1 << 16
_WIDER = 2.0**-14


@dataclass(frozen=True)
class Spread:
    """A criterion with the largest minus the smallest change that one record makes to its scores."""

    criterion: str
    bound: float
    rows: int  # M of the information score


def spread_of(criterion: str, rows: int) -> Spread:
    """The spread of a criterion; `rows` is a public number of records (any number is sound).

    >>> [round(spread_of(c, 1000).bound, 2) for c in CRITERIA]
    [1.0, 2.0, 11.41]
    """
    if criterion not in CRITERIA:
        raise InputError(f"criterion must be auto or one of {', '.join(CRITERIA)}, got {criterion!r}")
    top = max(2, int(rows))
    bounds = {"max": 1.0, "gini": 2.0 + _WIDER, "information": float(np.log2(top) + 1 / np.log(2) + _WIDER)}
    return Spread(criterion, bounds[criterion], top)


@dataclass(frozen=True)
class Split:
    """A column cut into groups: at a level of its taxonomy, or in two at a leaf (`cut`)."""

    column: int
    level: int
    cut: int | None
    size: int
    maps: Any  # node of each leaf

    def groups(self, leaves: NDArray[np.integer]) -> NDArray[np.integer]:
        """The group of each row; an unknown value goes to the first."""
        return np.asarray(self.maps[np.maximum(leaves[:, self.column], 0)])

    def words(self, group: int, taxonomies: tuple[Levels, ...]) -> str:
        """One group in words."""
        taxonomy = taxonomies[self.column]
        if self.cut is None:
            return f"{taxonomy.name} is {taxonomy.labels[self.level][group]}"
        first = taxonomy.labels[-1][self.cut]
        return f"{taxonomy.name} below {first}" if group == 0 else f"{taxonomy.name} from {first} on"


def all_splits(taxonomies: tuple[Levels, ...], columns: tuple[int, ...] | None = None) -> list[Split]:
    """Every public split: cut points of numbers, levels of categories.

    >>> [(s.level, s.cut) for s in all_splits((Levels.numeric("age", [0, 1, 2, 3]), Levels.flat("sex", ["F", "M"])))]
    [(-1, 1), (-1, 2), (1, None)]
    """
    found = []
    for j in range(len(taxonomies)) if columns is None else columns:
        taxonomy = taxonomies[j]
        if taxonomy.edges is not None:
            place = np.arange(taxonomy.leaves)
            found += [Split(j, -1, cut, 2, (place >= cut).astype(np.int64)) for cut in range(1, taxonomy.leaves)]
        else:
            found += [Split(j, lv, None, taxonomy.sizes[lv], taxonomy.maps[lv]) for lv in range(1, taxonomy.height)]
    if not found:
        raise InputError("no column can be split: every domain of the schema has a single cell")
    return found


class Splitter:
    """Scores of all candidate splits for some rows."""

    def __init__(self, records: Records, spread: Spread, columns: tuple[int, ...] | None = None) -> None:
        self.records = records
        self.classes = len(records.class_labels)
        self.spread = spread
        self.candidates = all_splits(records.taxonomies, columns)

    def class_counts(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        return np.bincount(self.records.classes[rows], minlength=self.classes)

    def scores(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """One score per candidate: a pass over the rows per column, the rest from its table."""
        classes = self.records.classes[rows]
        out = np.empty(len(self.candidates))
        tables: dict[int, NDArray[np.int64]] = {}
        for i, split in enumerate(self.candidates):
            if split.column not in tables:
                leaves = self.records.taxonomies[split.column].leaves
                code = self.records.leaves[rows, split.column].astype(np.int64) * self.classes + classes
                tables = {split.column: np.bincount(code, minlength=leaves * self.classes).reshape(leaves, self.classes)}
            out[i] = self.score(np.add.reduceat(tables[split.column], _starts(split), axis=0))
        return out

    def score(self, table: NDArray[np.int64]) -> float:
        """The score of one split from its counts, groups by classes."""
        if self.spread.criterion == "max":
            return float(table.max(axis=1).sum())
        total = table.sum(axis=1)
        if self.spread.criterion == "gini":
            exact = (table.astype(np.float64) ** 2).sum(axis=1) / np.maximum(total, 1) - total
        else:
            exact = _phi(table, self.spread.rows).sum(axis=1) - _phi(total, self.spread.rows)
        return float(np.rint(exact.sum() * _LATTICE) / _LATTICE)


def _starts(split: Split) -> NDArray[np.intp]:
    # Leaves stand in tree order, so every group is a run of leaves.
    return np.concatenate([[0], np.flatnonzero(np.diff(split.maps)) + 1])


def _phi(counts: NDArray[np.int64], top: int) -> NDArray[np.float64]:
    held = np.clip(counts, 1, top).astype(np.float64)
    slope = np.log2(top) + 1 / np.log(2)
    return np.asarray(held * np.log2(held) + np.maximum(counts - top, 0) * slope)
