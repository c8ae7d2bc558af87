"""Scores of many grids at once: few passes over the records, the rest rolled up.

The paper passes over the records once per grid, O(N Θ). But the counts of a coarse grid are sums of those of a finer
one. So the records are first merged to the cells of the finest levels that a set of attributes needs (if that makes
them fewer), then counted once per combination of levels of all but its two tallest attributes, and those two are rolled
up from that table: the work per grid is its number of cells, not of records.
"""

from __future__ import annotations

import time
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
_LONGEST_TABLE = 1 << 22
_FEW_GRIDS, _FEW_ROWS = 12, 1 << 17  # up to here merging costs more than the passes it saves
_WORKING_SET = 1 << 15  # cells scored in one go: they stay in the cache
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
    scorer = _Scorer(records.taxonomies, quality, rows.binary, units, _cell_values(quality, total))
    for family in pool.families:
        scorer.family(scorer.counted(rows, family), family)
        if progress is not None:
            progress(len(family.index))
    if rows.binary:
        units += total * (SCALE // 2)
    return units / SCALE


def score_seconds(records: Records, pool: Pool, quality: Quality) -> tuple[float, float]:
    """Processor seconds for counting (passes over the records) and for rolling up and scoring: for the bench."""
    rows = _Rows.of(records)
    units = np.empty(pool.size, dtype=np.int64)
    scorer = _Scorer(records.taxonomies, quality, rows.binary, units, _cell_values(quality, records.total))
    counting = rolling = 0.0
    for family in pool.families:
        start = time.process_time()
        counted = scorer.counted(rows, family)
        middle = time.process_time()
        scorer.family(counted, family)
        counting += middle - start
        rolling += time.process_time() - middle
    return counting, rolling


def _cell_values(quality: Quality, total: int) -> NDArray[np.int64] | None:
    """The score of a cell by its class difference, tabulated as far as any difference can reach; None if that is too far."""
    if total >= _LONGEST_TABLE:
        return None
    gap = np.arange(max(total + 1, 1))
    return gap * (SCALE // 2) - quality.lost[np.minimum(gap, quality.lost.size - 1)]


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

    @property
    def size(self) -> int:
        return len(next(iter(self.leaves.values())))

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
        size = self.size
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
    value: NDArray[np.int64] | None
    runs: dict[tuple[int, int, bytes], _Runs] = field(default_factory=dict)

    def counted(self, rows: _Rows, family: Family) -> _Rows:
        """The rows merged to the finest cells that the family needs, if that saves passes over them."""
        passes = len(family.index) if len(family.attributes) > 2 else 1
        if passes < 2 or (passes <= _FEW_GRIDS and rows.size <= _FEW_ROWS):
            return rows
        return rows.merged(family.attributes, family.levels.max(axis=0).tolist())

    def family(self, rows: _Rows, family: Family) -> None:
        """Scores of all grids over one set of attributes."""
        if not family.attributes:
            self.units[family.index] = self._sums(rows.table(np.zeros(rows.size, dtype=np.int32), 1))
            return
        tall = np.argsort([len(np.unique(column)) for column in family.levels.T], kind="stable")
        attributes = [family.attributes[i] for i in tall]
        levels = family.levels[:, tall]
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
        wanted = [np.unique(column) for column in levels.T]
        runs = [self._runs(j, t, w) for j, t, w in zip(attributes, top, wanted, strict=True)]
        table = _all_levels(table, runs[-1])
        if len(attributes) == 1:
            sums = np.add.reduceat(self._sums(table), runs[0].first)
            self.units[index] = sums[np.searchsorted(wanted[0], levels[:, 0])]
            return
        flipped = np.ascontiguousarray(np.swapaxes(table, 2, 3))
        for rows, run in runs[0].parts(limit=_WORKING_SET // max(1, flipped.size // flipped.shape[-1])):
            cells = self._sums(_all_levels(flipped, run))
            sums = np.add.reduceat(np.add.reduceat(cells, runs[1].first, axis=0), run.first, axis=1)
            here = wanted[0][rows]
            inside = slice(None) if here.size == wanted[0].size else levels[:, 0] == here[0]
            place = np.searchsorted(here, levels[inside, 0])
            self.units[index[inside]] = sums[np.searchsorted(wanted[1], levels[inside, 1]), place]

    def _runs(self, j: int, top: int, wanted: NDArray[np.int64]) -> _Runs:
        key = (j, top, wanted.tobytes())
        if key not in self.runs:
            self.runs[key] = _Runs.of(self.taxonomies[j], top, wanted.tolist())
        return self.runs[key]

    def _sums(self, table: Table) -> NDArray[np.int64]:
        """Scores summed over the cells of the outer attributes (the second axis)."""
        if not self.binary:
            return np.asarray(self.quality.units(*top_two(table)).sum(axis=0))
        gap = np.abs(table[0])
        if self.value is not None:
            return np.asarray(self.value.take(gap, mode="clip").sum(axis=0))
        lost = self.quality.lost
        return np.asarray(gap.sum(axis=0) * (SCALE // 2) - lost[np.minimum(gap, lost.size - 1)].sum(axis=0))


@dataclass(frozen=True, eq=False)
class _Runs:
    """The nodes of several levels of one attribute, side by side, as runs of nodes of the finest."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, taxonomy: Levels, top: int, wanted: list[int]) -> _Runs:
        starts = [taxonomy.within(level, top) for level in wanted]
        ends = [np.append(s[1:], taxonomy.sizes[top]) for s in starts]
        first = np.cumsum([0, *(s.size for s in starts[:-1])])
        return cls(np.concatenate(starts), np.concatenate(ends), first)

    def parts(self, *, limit: int) -> Iterator[tuple[slice, _Runs]]:
        """All levels at once if that stays small, else one level after another."""
        if self.starts.size <= limit or self.first.size == 1:
            yield slice(None), self
            return
        for level, (a, b) in enumerate(zip(self.first, [*self.first[1:], self.starts.size], strict=True)):
            yield slice(level, level + 1), _Runs(self.starts[a:b], self.ends[a:b], np.zeros(1, dtype=np.int64))


def _all_levels(table: Table, runs: _Runs) -> Table:
    """The last axis at several levels side by side: differences of its running sum."""
    running = np.zeros((*table.shape[:-1], table.shape[-1] + 1), dtype=np.int64)
    np.cumsum(table, axis=-1, out=running[..., 1:])
    return np.asarray(running.take(runs.ends, axis=-1, mode="clip") - running.take(runs.starts, axis=-1, mode="clip"))
