"""From the counts of one table to the scores of every coarser grid over the same attributes.

An entry of a fine table lies in one cell of each coarser grid. So all grids are counted from the entries alone: the cell of
every entry in every grid is a handful of whole-array operations (half of the attributes have few combinations of levels,
and so has the other half; a grid is one of each), one weighted count adds up the cells of many grids side by side, and one
sum per grid makes its score. Where a part of the grids needs far fewer cells than the table has, entries that fall
together are added up first. What is done follows from the grids; the numbers of the entries only say how long it takes.

All sums are sums of whole numbers below 2**53, in float64 or in 64 bits: exact, in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.search.cells import Cells, Codes
from sfumato.grids.search.quality import SCALE, Quality, top_two
from sfumato.privacy.integers import narrow
from sfumato.records.levels import Levels

_LONGEST_VALUES = 1 << 20
_AT_ONCE = 1 << 16  # entries, or cells, that are looked at in one go: they stay in the cache
_FEW_GRIDS = 4  # for fewer, adding up entries that fall together does not pay
_SHRINKS = 4  # nor does it unless the table gets this many times smaller
_LOOSE = 64  # grids are cut into parts until the table they need is at most this many times as large as the largest
Units = NDArray[np.int64]
Grids = NDArray[np.int64]


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
    maps: dict[tuple[object, ...], NDArray[np.integer[Any]]] = field(default_factory=dict)

    def scores(self, cells: Cells, attributes: tuple[int, ...], grids: Grids) -> Units:
        """Score of every grid (a row per attribute and a column per grid), a row of scores for each table.

        The tables may be of different attributes, if their taxonomies are alike.

        >>> rolling = Rolling((Levels.numeric("age", [0, 20, 40, 60, 80]),), Quality.of(10**9), 1, 60)
        >>> rolling.scores(Cells.of(np.array([[-10, 20, 20, -10]]), (2,)), (0,), np.array([[1, 2]])) // SCALE
        array([[ 9, 29]])
        """
        units = np.empty((cells.tables, grids.shape[1]), dtype=np.int64)
        each = [np.array(self.taxonomies[j].sizes)[row] for j, row in zip(attributes, grids, strict=True)]
        sizes = np.array(each, dtype=np.int64).reshape(grids.shape)
        self._cut(cells, attributes, grids, sizes, np.arange(grids.shape[1]), units)
        return units

    def coarsened(self, cells: Cells, attributes: tuple[int, ...], levels: Sequence[int]) -> NDArray[np.float64]:
        """The table of the same counts at coarser levels: numbers of a cell (and tables) first."""
        code, shape = cells.lead, [cells.tables * self.numbers]
        for j, nodes, now, level in zip(attributes, cells.nodes, cells.levels, levels, strict=True):
            shape.append(self.taxonomies[j].sizes[level])
            code = code * shape[-1] + (
                nodes if now == level else self._maps(j, now, level, level + 1, np.intp)[0].take(nodes)
            )
        return np.bincount(code, cells.sums, prod(shape)).astype(np.float64, copy=False).reshape(shape)

    def _cut(
        self, cells: Cells, attributes: tuple[int, ...], grids: Grids, sizes: Grids, index: Codes, units: Units
    ) -> None:
        """Scores of the grids with these places, from a table that is fine enough."""
        top, size = grids.max(axis=1, initial=0).tolist(), sizes.max(axis=1, initial=1)
        needed, largest = prod(size.tolist()), int(sizes.prod(axis=0).max())
        has = prod(self.taxonomies[j].sizes[level] for j, level in zip(attributes, cells.levels, strict=True))
        if index.size >= _FEW_GRIDS and needed * _SHRINKS <= has:
            cells = Cells.of(self.coarsened(cells, attributes, top), top, tables=cells.tables)
        if index.size < 2 * _FEW_GRIDS or needed <= _LOOSE * largest:
            self._score(cells, attributes, grids, sizes, index, units)
            return
        axis = int(np.argmax(size / sizes.min(axis=1)))
        below = grids[axis] <= (top[axis] + int(grids[axis].min()) - 1) // 2
        for part in (below, ~below):
            self._cut(cells, attributes, grids[:, part], sizes[:, part], index[part], units)

    def _score(
        self, cells: Cells, attributes: tuple[int, ...], grids: Grids, sizes: Grids, index: Codes, units: Units
    ) -> None:
        """Scores of grids side by side, so many at a time as stay in the cache."""
        half = (len(attributes) + 1) // 2
        kind = narrow(int(sizes.prod(axis=0).max()))
        first, of_first = self._combined(cells, attributes, grids, slice(0, half), kind)
        second, of_second = self._combined(cells, attributes, grids, slice(half, None), kind)
        own, inner = sizes.prod(axis=0), sizes[half:].prod(axis=0).astype(first.dtype)
        step = max(1, _AT_ONCE // max(1, cells.sums.size, int(own.max()) * self.numbers * cells.tables))
        sums = np.tile(cells.sums, min(step, index.size))
        for start in range(0, index.size, step):
            part = slice(start, start + step)
            ends = np.cumsum(own[part])
            begins, width = ends - own[part], int(ends[-1])
            within = first.take(of_first[part], axis=0)
            within *= inner[part, None]
            within += second.take(of_second[part], axis=0)
            code = within.astype(np.intp)
            code += begins[:, None]
            if cells.tables * self.numbers > 1:
                code += cells.lead * width
            table = np.bincount(code.reshape(-1), sums[: code.size], cells.tables * self.numbers * width)
            found = self._of_cells(table.astype(np.int64).reshape(cells.tables, self.numbers, width))
            units[:, index[part]] = np.add.reduceat(found, begins, axis=1)

    def _combined(
        self, cells: Cells, attributes: tuple[int, ...], grids: Grids, half: slice, kind: type[np.integer[Any]]
    ) -> tuple[NDArray[np.integer[Any]], Codes]:
        """Cells of the entries in some of the attributes, for every combination of their levels; that of each grid."""
        lowest: list[int] = grids[half].min(axis=1, initial=64).tolist()
        heights: list[int] = (grids[half].max(axis=1, initial=0) + 1).tolist()
        key = np.zeros(grids.shape[1], dtype=np.intp)
        for row, low, height in zip(grids[half], lowest, heights, strict=True):
            key = key * (height - low) + (row - low)
        there = np.zeros(prod(h - low for low, h in zip(lowest, heights, strict=True)), dtype=bool)
        there[key] = True
        which, left = (np.cumsum(there) - 1)[key], np.flatnonzero(there)
        places = []
        for low, height in zip(reversed(lowest), reversed(heights), strict=True):
            above = left // (height - low)
            places.append(left - above * (height - low))
            left = above
        code = np.zeros((len(left), cells.sums.size), dtype=kind)
        axes = zip(attributes[half], cells.nodes[half], cells.levels[half], lowest, heights, reversed(places), strict=True)
        for i, (j, nodes, now, low, height, place) in enumerate(axes):
            if i:
                code *= np.array(self.taxonomies[j].sizes[low:height], dtype=kind)[place][:, None]
            code += self._maps(j, now, low, height, kind).take(nodes, axis=1).take(place, axis=0)
        return code, which

    def _of_cells(self, table: NDArray[np.int64]) -> Units:
        """Scores of cells; axes: tables, numbers of a cell, cells."""
        if self.numbers > 1:
            return self.quality.units(*top_two(np.moveaxis(table, 1, 0)))
        gap = np.abs(table[:, 0])
        if self.values is not None:
            return np.asarray(self.values.take(gap, mode="wrap"))
        return np.asarray(gap * (SCALE // 2) - self.quality.lost.take(gap, mode="clip"))

    @cached_property
    def values(self) -> Units | None:
        """The score of a cell by its class difference, as far as any difference can reach; None if that is too far."""
        if self.total >= _LONGEST_VALUES:
            return None
        gap = np.arange(self.total + 1)
        return np.asarray(gap * (SCALE // 2) - self.quality.lost.take(gap, mode="clip"))

    def _maps(self, j: int, fine: int, low: int, high: int, kind: type[np.integer[Any]]) -> NDArray[np.integer[Any]]:
        """The node at each coarse level from `low` up to below `high`, of each node at a fine one."""
        key = (j, fine, low, high, kind)
        if key not in self.maps:
            t = self.taxonomies[j]
            self.maps[key] = np.stack([t.maps[v][t.starts[fine]] for v in range(low, high)]).astype(kind)
        return self.maps[key]
