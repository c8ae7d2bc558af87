"""From the counts of one table to the scores of every coarser grid over the same attributes.

The counts of a coarse level are sums of those of the next finer one. Small tables hold all levels of an attribute side by
side (16 nodes, then 8, 4, 2), so that a handful of array operations scores all grids at once; a table for which that would
be too much is cut level by level along its first attribute. Either way the work is the cells of the grids, whatever the
number of records that were counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.search.quality import SCALE, Quality, top_two
from sfumato.records.levels import Levels
from sfumato.records.records import Table

_SIDE_BY_SIDE = 1 << 16  # numbers held side by side in one go: they stay in the cache
_LONGEST_VALUES = 1 << 20
_SHORT = 150  # below this many numbers per node, one call for all nodes is faster than one call per node
Units = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rolling:
    """Scores in units of 2**-16 record.

    Attributes
    ----------
    taxonomies, quality
    numbers : int
        Numbers per cell: one count per class, or (1) the difference of two classes. Scores of differences lack half of the
        total weight, the same for every grid.
    total : int
        No count or difference is larger.
    """

    taxonomies: tuple[Levels, ...]
    quality: Quality
    numbers: int
    total: int
    steps: dict[tuple[int, int], _Step] = field(default_factory=dict)
    ladders: dict[tuple[int, int, int], tuple[list[int], list[tuple[_Step, slice, slice]]]] = field(default_factory=dict)

    def scores(self, tables: Table, attributes: tuple[int, ...], levels: NDArray[np.int64]) -> Units:
        """Score of every grid from a table of the largest level of each attribute, for several tables at once.

        `tables` has the tables on its first axis and the numbers of a cell on its second; `levels` a row per attribute and
        a column per grid, in lexicographic order. The tables may be of different attributes, if their taxonomies are alike.

        >>> taxonomies = (Levels.numeric("age", [0, 20, 40, 60, 80]),)
        >>> rolling = Rolling(taxonomies, Quality.of(10**9), 1, 60)
        >>> rolling.scores(np.array([[[-10, 20, 20, -10]]]), (0,), np.array([[1, 2]])) // SCALE
        array([[ 9, 29]])
        """
        units = np.empty((len(tables), levels.shape[1]), dtype=np.int64)
        top: list[int] = levels.max(axis=1).tolist()
        self._cut(tables.reshape(len(tables) * self.numbers, 1, -1), attributes, top, levels, units)
        return units

    def coarsen(self, table: Table, axis: int, j: int, level: int, target: int) -> Table:
        """The same counts with one axis rolled up from one level of its attribute to a coarser one."""
        shape = table.shape
        flat = table.reshape(prod(shape[:axis]), shape[axis], -1)
        for finer in range(level, target, -1):
            step = self._step(j, finer)
            out = np.empty((flat.shape[0], step.nodes, flat.shape[2]), dtype=table.dtype)
            step.sum(flat, out)
            flat = out
        return flat.reshape(*shape[:axis], -1, *shape[axis + 1 :])

    def _cut(
        self, table: Table, attributes: tuple[int, ...], top: list[int], levels: NDArray[np.int64], units: Units
    ) -> None:
        """Scores of the grids that agree in the attributes before these.

        Axes of the table: tables and their numbers per cell, cells of the attributes before, cells of these.
        """
        sizes = [self.taxonomies[j].sizes for j in attributes]
        lowest, highest = levels.min(axis=1).tolist(), levels.max(axis=1).tolist()
        shape = [s[level] for s, level in zip(sizes, top, strict=True)]
        for i, j in enumerate(attributes):
            if highest[i] < top[i]:
                table = self.coarsen(table.reshape(len(table), -1, *shape), i + 2, j, top[i], highest[i])
                shape[i] = sizes[i][highest[i]]
        if units.shape[1] == 1:
            units[:, 0] = self._cells(table.reshape(len(table), -1))
            return
        outer = table.size // (len(table) * prod(shape))
        wide = prod(self._ladder(j, low, high)[0][-1] for j, low, high in zip(attributes, lowest, highest, strict=True))
        if len(attributes) < 2 or len(table) * outer * wide <= _SIDE_BY_SIDE:
            found = self._side_by_side(table.reshape(len(table), outer, *shape), attributes, lowest, highest)
            units[:] = found[tuple(row - low for row, low in zip(levels, lowest, strict=True))].T
        else:
            self._by_level(table, attributes, lowest, highest, levels, units)

    def _by_level(
        self,
        table: Table,
        attributes: tuple[int, ...],
        lowest: list[int],
        highest: list[int],
        levels: NDArray[np.int64],
        units: Units,
    ) -> None:
        """Cut along the first attribute: its levels one after the other, finest first."""
        ends = np.searchsorted(levels[0], np.arange(lowest[0], highest[0] + 2)).tolist()
        sizes = self.taxonomies[attributes[0]].sizes
        inner = prod(self.taxonomies[j].sizes[level] for j, level in zip(attributes[1:], highest[1:], strict=True))
        outer = table.size // (len(table) * sizes[highest[0]] * inner)
        for level in range(highest[0], lowest[0] - 1, -1):
            first, last = ends[level - lowest[0]], ends[level - lowest[0] + 1]
            if first < last:
                flat = table.reshape(len(table), -1, inner)
                self._cut(flat, attributes[1:], highest[1:], levels[1:, first:last], units[:, first:last])
            if level > lowest[0]:
                axes = table.reshape(len(table), outer, sizes[level], inner)
                table = self.coarsen(axes, 2, attributes[0], level, level - 1)

    def _side_by_side(self, table: Table, attributes: tuple[int, ...], lowest: list[int], highest: list[int]) -> Units:
        """Scores of all combinations of levels from the lowest to the highest: one axis per attribute, tables last."""
        numbers, outer = table.shape[:2]
        ladders = [self._ladder(j, low, high) for j, low, high in zip(attributes, lowest, highest, strict=True)]
        for starts, steps in reversed(ladders):
            # The attribute moves from the last axis to the first: its nodes are then long rows, which add up fast.
            columns = table.reshape(-1, starts[-1] - starts[-2]).T
            table = np.empty((1, starts[-1], columns.shape[1]), dtype=columns.dtype)
            table[0, starts[-2] :] = columns
            for step, fine, coarse in steps:
                step.sum(table[:, fine], table[:, coarse])
        units = self._cells(table.reshape(*(starts[-1] for starts, _ in ladders), numbers, outer))
        for axis, (starts, _) in enumerate(ladders):
            units = _sums(units, axis, starts)
        return units

    def _cells(self, table: Table) -> Units:
        """Scores of cells, summed over the last axis; tables and their numbers per cell are on the one before it."""
        if self.numbers > 1:
            apart = table.reshape(*table.shape[:-2], -1, self.numbers, table.shape[-1])
            first, second = top_two(np.moveaxis(apart, -2, 0))
            return _sum_last(self.quality.units(first.astype(np.int64), second.astype(np.int64)))
        gap = np.abs(table).astype(np.int64)
        if self.values is not None:
            return _sum_last(self.values.take(gap, mode="wrap"))
        return _sum_last(gap) * (SCALE // 2) - _sum_last(self.quality.lost.take(gap, mode="clip"))

    @property
    def number(self) -> type[np.signedinteger[Any]]:
        """The type of counts: 32 bits where no sum can pass them, which add up faster. Scores have 64."""
        return np.int32 if self.total < 1 << 31 else np.int64

    @cached_property
    def values(self) -> Units | None:
        """The score of a cell by its class difference, as far as any difference can reach; None if that is too far."""
        if self.total >= _LONGEST_VALUES:
            return None
        gap = np.arange(self.total + 1)
        return np.asarray(gap * (SCALE // 2) - self.quality.lost.take(gap, mode="clip"))

    def _ladder(self, j: int, low: int, high: int) -> tuple[list[int], list[tuple[_Step, slice, slice]]]:
        """Where the levels from `low` to `high` lie side by side, and the sums that fill them, finest first."""
        if (j, low, high) not in self.ladders:
            starts = [0, *accumulate(self.taxonomies[j].sizes[low : high + 1])]
            places = [slice(a, b) for a, b in pairwise(starts)]
            steps = [(self._step(j, v), places[v - low], places[v - low - 1]) for v in range(high, low, -1)]
            self.ladders[j, low, high] = (starts, steps)
        return self.ladders[j, low, high]

    def _step(self, j: int, level: int) -> _Step:
        if (j, level) not in self.steps:
            self.steps[j, level] = _Step.of(self.taxonomies[j], level)
        return self.steps[j, level]


@dataclass(frozen=True, eq=False)
class _Step:
    """Sums that lead from one level to the next coarser one."""

    starts: NDArray[np.int64]
    slices: list[slice]
    pairs: int | None  # neighbours are added in pairs (an odd one at the end stays alone); None for any other tree
    odd: bool
    nodes: int

    @classmethod
    def of(cls, taxonomy: Levels, level: int) -> _Step:
        starts = taxonomy.within(level - 1, level)
        size = taxonomy.sizes[level]
        ends = [*starts[1:].tolist(), size]
        in_pairs = np.array_equal(starts, np.arange(0, size, 2))
        slices = [slice(a, b) for a, b in zip(starts.tolist(), ends, strict=True)]
        return cls(starts, slices, size // 2 if in_pairs else None, bool(size % 2), starts.size)

    def sum(self, fine: Table, coarse: Table) -> None:
        """Fill `coarse` from `fine`; both have the nodes on their middle axis."""
        width = fine.shape[2]
        if self.pairs is not None:
            end = 2 * self.pairs
            if 1 < width < 8 and fine.size > 2000:  # inner loops this short are slow: one call per number in them is not
                for i in range(width):
                    np.add(fine[:, 0:end:2, i], fine[:, 1:end:2, i], out=coarse[:, : self.pairs, i])
            else:
                np.add(fine[:, 0:end:2], fine[:, 1:end:2], out=coarse[:, : self.pairs])
            if self.odd:
                coarse[:, -1] = fine[:, -1]
        elif fine.shape[0] * width < _SHORT:
            np.add.reduceat(fine, self.starts, axis=1, out=coarse)
        elif width < 64:
            for node, part in enumerate(self.slices):
                own = coarse[:, node]
                np.copyto(own, fine[:, part.start])
                for child in range(part.start + 1, part.stop):
                    np.add(own, fine[:, child], out=own)
        else:
            for node, part in enumerate(self.slices):
                np.add.reduce(fine[:, part], axis=1, out=coarse[:, node])


def _sum_last(units: Units) -> Units:
    """Sums over the last axis: a short one is faster term by term."""
    if units.shape[-1] >= 16:
        return np.asarray(np.add.reduce(units, axis=-1))
    found = units[..., 0].copy()
    for i in range(1, units.shape[-1]):
        found += units[..., i]
    return found


def _sums(units: Units, axis: int, starts: list[int]) -> Units:
    """One axis summed level by level."""
    if len(starts) == 2:
        return np.asarray(np.add.reduce(units, axis=axis, keepdims=True))
    shape = units.shape
    if units.size // shape[axis] < _SHORT:
        return np.asarray(np.add.reduceat(units, starts[:-1], axis=axis))
    flat = units.reshape(prod(shape[:axis]), shape[axis], -1)
    out = np.empty((flat.shape[0], len(starts) - 1, flat.shape[2]), dtype=np.int64)
    for level, (a, b) in enumerate(pairwise(starts)):
        np.add.reduce(flat[:, a:b], axis=1, out=out[:, level])
    return out.reshape(*shape[:axis], -1, *shape[axis + 1 :])
