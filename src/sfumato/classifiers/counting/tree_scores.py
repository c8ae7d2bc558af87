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
rounding and the (far smaller) errors of the sums. A record of weight w makes w such steps, so its spread is w times that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.records.levels import Levels
from sfumato.records.records import Records, weighted_bincount

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
    # A multiple of 2**-14, so that its product with a weight is exact.
    steepest = float(np.ceil((np.log2(top) + 1 / np.log(2)) / _WIDER) * _WIDER)
    bounds = {"max": 1.0, "gini": 2.0 + _WIDER, "information": steepest + _WIDER}
    return Spread(criterion, bounds[criterion], top)


@dataclass(frozen=True)
class Split:
    """A column cut in two: the leaves from `start` up to `stop` against all others."""

    column: int
    level: int  # of the node's taxonomy, -1 for a cut of an ordered column
    node: int
    start: int
    stop: int

    def groups(self, column: NDArray[np.integer]) -> NDArray[np.int64]:
        """The group of each leaf of the column, 1 inside the range; an unknown value goes to the group of the first leaf."""
        place = np.maximum(column, 0)
        return np.asarray((place >= self.start) & (place < self.stop)).astype(np.int64)

    def words(self, group: int, taxonomies: tuple[Levels, ...]) -> str:
        """One group in words."""
        taxonomy = taxonomies[self.column]
        if self.level >= 0:
            return f"{taxonomy.name} {'is' if group else 'is not'} {taxonomy.labels[self.level][self.node]}"
        first = taxonomy.labels[-1][self.start]
        return f"{taxonomy.name} below {first}" if group == 0 else f"{taxonomy.name} from {first} on"


def all_splits(taxonomies: tuple[Levels, ...], columns: tuple[int, ...] | None = None) -> list[Split]:
    """Every public split in two: the cut points of numbers, and each node of a category's taxonomy against the rest.

    >>> taxonomies = Levels.numeric("age", [0, 1, 2, 3]), Levels.flat("job", ["a", "b", "c"]), Levels.flat("sex", ["F", "M"])
    >>> [(s.column, s.start, s.stop) for s in all_splits(taxonomies)]
    [(0, 1, 3), (0, 2, 3), (1, 0, 1), (1, 1, 2), (1, 2, 3), (2, 0, 1)]
    """
    found = []
    for j in range(len(taxonomies)) if columns is None else columns:
        taxonomy = taxonomies[j]
        if taxonomy.edges is not None:
            found += [Split(j, -1, 0, cut, taxonomy.leaves) for cut in range(1, taxonomy.leaves)]
        else:
            seen: set[tuple[int, int]] = {(0, taxonomy.leaves)}
            for level in range(1, taxonomy.height):
                for node in range(taxonomy.sizes[level]):
                    # Leaves stand in tree order, so every node is a run of leaves.
                    start, stop = (int(v) for v in np.searchsorted(taxonomy.maps[level], [node, node + 1]))
                    if (start, stop) not in seen:
                        found.append(Split(j, level, node, start, stop))
                        # A run at one end says the same as the run of all other leaves.
                        other = (stop, taxonomy.leaves) if start == 0 else (0, start) if stop == taxonomy.leaves else ()
                        seen |= {(start, stop), *([other] if other else [])}
    if not found:
        raise InputError("no column can be split: every domain of the schema has a single cell")
    return found


@dataclass(frozen=True, eq=False)
class Part:
    """The records in a node of the tree: all records, and which of them are here. Private."""

    records: Records
    rows: NDArray[np.intp]

    @classmethod
    def whole(cls, records: Records) -> Part:
        return cls(records, np.arange(len(records.classes)))

    def side(self, split: Split, group: int) -> Part:
        """Those in one group of a split."""
        return Part(self.records, self.rows[split.groups(self.records.leaves[self.rows, split.column]) == group])

    def class_counts(self) -> NDArray[np.int64]:
        """The weight of the records of each class."""
        return weighted_bincount(self.records.classes[self.rows], self.weights, len(self.records.class_labels))

    @property
    def weights(self) -> NDArray[np.int64] | None:
        """What each of them weighs; None if one."""
        return None if self.records.weights is None else self.records.weights[self.rows]

    @property
    def total(self) -> int:
        """What they weigh together."""
        return self.rows.size if self.weights is None else int(self.weights.sum())


@dataclass(frozen=True, eq=False)
class Splitter:
    """All candidate splits, and how good they are for the records of a node."""

    spread: Spread
    candidates: tuple[Split, ...]

    def scores(self, part: Part) -> NDArray[np.float64]:
        """One score per candidate: a pass over the rows per column, the rest from its table."""
        records, rows, count = part.records, part.rows, len(part.records.class_labels)
        classes = records.classes[rows]
        out = np.empty(len(self.candidates))
        tables: dict[int, NDArray[np.int64]] = {}
        for i, split in enumerate(self.candidates):
            if split.column not in tables:
                leaves = records.taxonomies[split.column].leaves
                code = records.leaves[rows, split.column].astype(np.int64) * count + classes
                table = weighted_bincount(code, part.weights, leaves * count).reshape(leaves, count)
                tables = {split.column: np.vstack([np.zeros_like(table[:1]), table.cumsum(axis=0)])}
            sums = tables[split.column]
            inside = sums[split.stop] - sums[split.start]
            out[i] = self.score(np.stack([sums[-1] - inside, inside]))
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


def _phi(counts: NDArray[np.int64], top: int) -> NDArray[np.float64]:
    held = np.clip(counts, 1, top).astype(np.float64)
    slope = np.log2(top) + 1 / np.log(2)
    return np.asarray(held * np.log2(held) + np.maximum(counts - top, 0) * slope)
