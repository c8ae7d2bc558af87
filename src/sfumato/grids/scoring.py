"""Scores of many grids at once: few passes over the records, the rest rolled up.

The paper passes over the records once per grid, O(N Θ). But the counts of a coarse grid are sums of those of a finer
one. So the records are first merged to the cells of the finest levels that a set of attributes needs (if that makes
them fewer), then counted once per combination of levels of all but its two tallest attributes, and those two are rolled
up from that table: the work per grid is its number of cells, not of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.counting import Records, Table
from sfumato.grids.levels import Levels
from sfumato.grids.pool import Family, Pool
from sfumato.grids.quality import SCALE, Quality, top_two

_Column = NDArray[np.integer]
Scorer = Callable[[Records, Pool, Quality], NDArray[np.float64]]


def score_pool(
    records: Records, pool: Pool, quality: Quality, *, progress: Callable[[int], None] | None = None
) -> NDArray[np.float64]:
    """Score of every grid of the pool, in records; exact multiples of 2**-16.

    >>> from sfumato.grids.pool import enumerate_grids
    >>> taxonomies = (Levels.numeric("age", [0, 20, 40, 60, 80]), Levels.flat("sex", ["F", "M"]))
    >>> rows = Records(taxonomies, np.array([[0, 0], [1, 1], [3, 1]]), np.array([0, 1, 1]), ("no", "yes"))
    >>> pool, quality = enumerate_grids(taxonomies, most=100, cells=8), Quality.of(10**9)
    >>> score_pool(rows, pool, quality).tolist() == [float(quality.score(rows.table(pool.grid(i)))) for i in range(6)]
    True
    """
    total = records.total
    if total * SCALE >= 1 << 53:
        raise InputError("too many records (or too heavy weights) for exact scores; lower the weights")
    rows = _Rows.of(records)
    units = np.empty(pool.size, dtype=np.int64)
    for family in pool.families:
        _Scorer(records.taxonomies, quality, rows.binary, units).family(rows, family)
        if progress is not None:
            progress(len(family.index))
    if rows.binary:
        units += total * (SCALE // 2)
    return units / SCALE


@dataclass(frozen=True, eq=False)
class _Rows:
    """Records sorted by class, so that a table is one unweighted count per class; or merged cells with weights per class.

    With two classes only the difference (second class minus first) is kept: in a cell with n records and difference d
    the score is ``(n + |d|)/2 - h(|d|)``, and the n/2 add up to the same for every grid.
    """

    taxonomies: tuple[Levels, ...]
    leaves: dict[int, _Column]
    level: dict[int, int]
    bounds: tuple[int, ...]
    weights: NDArray[np.float64] | None
    binary: bool
    cache: dict[tuple[int, int], _Column] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Records) -> _Rows:
        order = np.argsort(records.classes, kind="stable")
        k = len(records.class_labels)
        bounds = np.searchsorted(records.classes[order], np.arange(k + 1))
        taxonomies = records.taxonomies
        leaves = {j: records.leaves[order, j].astype(_narrow(t.leaves)) for j, t in enumerate(taxonomies)}
        weights = None if records.weights is None else records.weights[order].astype(np.float64)
        finest = {j: t.height - 1 for j, t in enumerate(taxonomies)}
        return cls(taxonomies, leaves, finest, tuple(bounds.tolist()), weights, k == 2)

    def column(self, j: int, level: int) -> _Column:
        """The node of every row at one level."""
        if level == self.level[j]:
            return self.leaves[j]
        if (j, level) not in self.cache:
            t = self.taxonomies[j]
            nodes = t.maps[level][t.starts[self.level[j]]]
            self.cache[j, level] = nodes.astype(_narrow(t.sizes[level]))[self.leaves[j]]
        return self.cache[j, level]

    def table(self, code: NDArray[np.int32], cells: int) -> Table:
        """Counts per class, or their difference, from one code per row."""
        if self.weights is not None and self.weights.ndim == 2:
            return np.stack([np.bincount(code, w, cells) for w in self.weights]).astype(np.int64)
        parts = []
        for start, stop in zip(self.bounds[:-1], self.bounds[1:], strict=True):
            w = None if self.weights is None else self.weights[start:stop]
            parts.append(np.bincount(code[start:stop], w, cells).astype(np.int64, copy=False))
        return (parts[1] - parts[0])[None] if self.binary else np.stack(parts)

    def merged(self, attributes: Sequence[int], levels: Sequence[int]) -> _Rows:
        """The same records as cells of the finest levels needed, if those are much fewer than the rows."""
        shape = [self.taxonomies[j].sizes[level] for j, level in zip(attributes, levels, strict=True)]
        size = len(next(iter(self.leaves.values())))
        if prod(shape) * 4 > size:
            return self
        code = np.zeros(size, dtype=np.int32)
        for j, level, n in zip(attributes, levels, shape, strict=True):
            code *= n
            code += self.column(j, level)
        table = self.table(code, prod(shape))
        present = np.flatnonzero(table.any(axis=0))
        digits = np.unravel_index(present, shape)
        leaves = {j: digit.astype(_narrow(n)) for j, digit, n in zip(attributes, digits, shape, strict=True)}
        finest = dict(zip(attributes, levels, strict=True))
        return _Rows(self.taxonomies, leaves, finest, (), table[:, present].astype(np.float64), self.binary)


def _narrow(size: int) -> type[np.integer]:
    return np.uint8 if size <= 256 else np.uint16 if size <= 65536 else np.int32


@dataclass(frozen=True, eq=False)
class _Scorer:
    taxonomies: tuple[Levels, ...]
    quality: Quality
    binary: bool
    units: NDArray[np.int64]

    def family(self, rows: _Rows, family: Family) -> None:
        """Scores of all grids over one set of attributes."""
        if not family.attributes:
            size = len(next(iter(rows.leaves.values())))
            self.units[family.index] = self._sum(rows.table(np.zeros(size, dtype=np.int32), 1))
            return
        tall = np.argsort([len(np.unique(column)) for column in family.levels.T], kind="stable")
        attributes = [family.attributes[i] for i in tall]
        levels = family.levels[:, tall]
        if len(levels) > 1:
            rows = rows.merged(attributes, levels.max(axis=0).tolist())
        outer = max(0, len(attributes) - 2)
        for code, cells, inside in self._prefixes(rows, attributes[:outer], levels, None, 1, np.arange(len(levels))):
            top = levels[inside, outer:].max(axis=0).tolist()
            sizes = [self.taxonomies[j].sizes[level] for j, level in zip(attributes[outer:], top, strict=True)]
            for j, level, n in zip(attributes[outer:], top, sizes, strict=True):
                code = rows.column(j, level).astype(np.int32) if code is None else code * np.int32(n) + rows.column(j, level)
            assert code is not None
            table = rows.table(code, cells * prod(sizes))
            table = table.reshape(len(table), cells, *sizes)
            self._roll_up(table, attributes[outer:], top, levels[inside, outer:], family.index[inside])

    def _prefixes(
        self,
        rows: _Rows,
        attributes: Sequence[int],
        levels: NDArray[np.int64],
        code: NDArray[np.int32] | None,
        cells: int,
        inside: NDArray[np.intp],
        depth: int = 0,
    ) -> Iterator[tuple[NDArray[np.int32] | None, int, NDArray[np.intp]]]:
        """Every combination of levels of the outer attributes: row codes, number of cells, the grids that have it."""
        if depth == len(attributes):
            yield code, cells, inside
            return
        j = attributes[depth]
        here = levels[inside, depth]
        for level in np.unique(here).tolist():
            n = self.taxonomies[j].sizes[level]
            column = rows.column(j, level)
            finer = column.astype(np.int32) if code is None else code * np.int32(n) + column
            yield from self._prefixes(rows, attributes, levels, finer, cells * n, inside[here == level], depth + 1)

    def _roll_up(
        self, table: Table, attributes: list[int], top: list[int], levels: NDArray[np.int64], index: NDArray[np.int64]
    ) -> None:
        """Scores of the grids that differ in their last one or two attributes, from one table."""
        if len(attributes) == 1:
            self._last(table, self.taxonomies[attributes[0]], top[0], levels[:, 0], index)
            return
        for level in np.unique(levels[:, 0]).tolist():
            inside = levels[:, 0] == level
            coarse = table
            if level < top[0]:
                coarse = np.add.reduceat(table, self.taxonomies[attributes[0]].within(level, top[0]), axis=2)
            self._last(coarse, self.taxonomies[attributes[1]], top[1], levels[inside, 1], index[inside])

    def _last(self, table: Table, taxonomy: Levels, fine: int, levels: NDArray[np.int64], index: NDArray[np.int64]) -> None:
        flat = table.reshape(table.shape[0], -1, table.shape[-1])
        for i in np.argsort(-levels, kind="stable").tolist():  # finest first: each level is rolled up from the one before
            level = int(levels[i])
            if level < fine:
                flat, fine = np.add.reduceat(flat, taxonomy.within(level, fine), axis=2), level
            self.units[index[i]] = self._sum(flat)

    def _sum(self, table: Table) -> int:
        lost = self.quality.lost
        if not self.binary:
            return int(self.quality.units(*top_two(table)).sum())
        gap = np.abs(table.reshape(-1))
        return int(gap.sum()) * (SCALE // 2) - int(lost[np.minimum(gap, lost.size - 1)].sum())
