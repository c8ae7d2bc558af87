"""Scores of many grids at once: few passes over the records, the rest rolled up.

The paper passes over the records once per grid, O(N Θ). But the counts of a coarse grid are sums of those of a finer
one. So each set of attributes is counted once, at the finest levels that its grids need, and every grid is rolled up from
the cells of that table that hold anything; a set whose table is a margin of a larger set's is not counted at all. A set
whose table would have more cells than a pass over the records is worth is cut into parts that need less.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.search.cells import Cells
from sfumato.grids.search.pool import Pool
from sfumato.grids.search.quality import SCALE, Quality
from sfumato.grids.search.rolling import Rolling
from sfumato.grids.search.rows import Rows
from sfumato.grids.search.side_by_side import SideBySide, pays
from sfumato.records.levels import Levels
from sfumato.records.records import Records, Table

_MOST_CELLS = 1 << 24  # of one table
_FEW_ROWS = 1 << 16  # with fewer, a pass costs its calls rather than its rows
_CELLS_PER_ROW = 2  # looking for what a table holds costs half as much for a cell as counting costs for a row
_TOGETHER = 1 << 18  # cells that wait before they are rolled up together
_THIN_TOGETHER = 1 << 14  # the same for tables of which only the cells that hold anything are looked at
_MOST_WAITING = 1 << 22
Scorer = Callable[[Records, Pool, Quality], NDArray[np.float64]]


def score_pool(records: Records, pool: Pool, quality: Quality) -> NDArray[np.float64]:
    """Score of every grid of the pool, in records; exact multiples of 2**-16.

    >>> from sfumato.grids.search.pool import enumerate_grids
    >>> taxonomies = (Levels.numeric("age", [0, 20, 40, 60, 80]), Levels.flat("sex", ["F", "M"]))
    >>> rows = Records(taxonomies, np.array([[0, 0], [1, 1], [3, 1]]), np.array([0, 1, 1]), ("no", "yes"))
    >>> pool, quality = enumerate_grids(taxonomies, most=100, cells=8), Quality.of(10**9)
    >>> score_pool(rows, pool, quality).tolist() == [float(quality.score(rows.table(pool.grid(i)))) for i in range(6)]
    True
    """
    return _score(records, pool, quality, lambda: 0.0)[0]


def score_seconds(records: Records, pool: Pool, quality: Quality) -> tuple[float, float]:
    """Processor seconds for counting (passes over the records) and for rolling up and scoring: for the bench."""
    return _score(records, pool, quality, time.process_time)[1:]


def _score(
    records: Records, pool: Pool, quality: Quality, clock: Callable[[], float]
) -> tuple[NDArray[np.float64], float, float]:
    began = clock()
    total = records.total
    if total * SCALE >= 1 << 62:
        raise InputError("too many records (or too heavy weights) for exact scores; lower the weights")
    rows = Rows.of(records)
    thin = Rolling(records.taxonomies, quality, rows.numbers, total)
    dense = SideBySide(records.taxonomies, quality, rows.numbers, total)
    alike = _Alike(thin, dense, np.empty(pool.size, dtype=np.int64))
    counting = clock() - began
    for job in _jobs(pool, records.taxonomies, rows.size, rows.numbers):
        start = clock()
        table = rows.sums(job.attributes, job.levels)
        counting += clock() - start
        _score_job(job, table, alike)
    alike.finish()
    units = alike.units
    if rows.binary:
        units += total * (SCALE // 2)
    return _doubles(units, total) / SCALE, counting, clock() - began - counting


def _doubles(units: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Scores that float64 holds exactly.

    Those of a huge table are all lowered by the best, which shifts them alike and changes no choice, and held at the end of
    float64's whole numbers. If one record changes scores by amounts in an interval, it does so afterwards in the interval
    less the change of the best; that contains 0, and holding shortens changes only: the spread stays.
    """
    return units if total * SCALE < 1 << 53 else np.maximum(units - units.max(), 1 - (1 << 53))


@dataclass(frozen=True, eq=False)
class _Job:
    """Grids that are rolled up from one table, and the jobs whose tables are margins of it."""

    attributes: tuple[int, ...]
    levels: tuple[int, ...]
    grids: NDArray[np.int64]
    index: NDArray[np.int64]
    cells: int
    most: bool  # whether most combinations of the levels are wanted
    margins: list[tuple[int, _Job]] = field(default_factory=list)


def _score_job(job: _Job, table: Table | NDArray[np.float64], alike: _Alike) -> None:
    """Score the grids of a job from its table (numbers of a cell first), and those of its margins."""
    if job.most:
        counts = table.astype(alike.dense.number, copy=False)
        alike.add(job, counts)
        for axis, other in job.margins:
            margin = np.add.reduce(counts, axis=axis + 1, dtype=counts.dtype)
            left = (*job.levels[:axis], *job.levels[axis + 1 :])
            for i, (j, now, target) in enumerate(zip(other.attributes, left, other.levels, strict=True), start=1):
                margin = alike.dense.coarsen(margin, i, j, now, target)
            _score_job(other, margin, alike)
        return
    cells = Cells.of(table, job.levels)
    alike.add(job, cells)
    for axis, other in job.margins:
        _score_job(other, alike.thin.coarsened(cells.without(axis), other.attributes, other.levels), alike)


@dataclass(eq=False)
class _Alike:
    """Small tables that want the same grids of the same tree shapes wait for each other, to be rolled up together."""

    thin: Rolling
    dense: SideBySide
    units: NDArray[np.int64]
    waiting: dict[tuple[object, ...], list[tuple[_Job, Any]]] = field(default_factory=dict)
    cells: int = 0

    def __post_init__(self) -> None:
        shapes = [tuple(start.tobytes() for start in t.starts) for t in self.thin.taxonomies]
        self.shape_of = [shapes.index(shape) for shape in shapes]

    def add(self, job: _Job, counted: Any) -> None:
        key = (tuple(self.shape_of[j] for j in job.attributes), job.levels, job.grids.tobytes())
        same = self.waiting.setdefault(key, [])
        same.append((job, counted))
        self.cells += job.cells
        if len(same) * job.cells >= (_TOGETHER if job.most else _THIN_TOGETHER):
            self._roll_up(self.waiting.pop(key))
        elif self.cells >= _MOST_WAITING:
            self.finish()

    def finish(self) -> None:
        for same in self.waiting.values():
            self._roll_up(same)
        self.waiting.clear()

    def _roll_up(self, same: list[tuple[_Job, Any]]) -> None:
        first, each = same[0][0], [counted for _, counted in same]
        if first.most:
            found = self.dense.scores(np.stack(each), first.attributes, first.grids)
        else:
            found = self.thin.scores(Cells.together(each, self.thin.numbers), first.attributes, first.grids)
        for (job, _), units in zip(same, found, strict=True):
            self.units[job.index] = units
            self.cells -= job.cells


def _jobs(pool: Pool, taxonomies: tuple[Levels, ...], rows: int, numbers: int) -> list[_Job]:
    """What to count: parts of the families, except those that are margins of others."""
    # Attributes with few levels first: cutting along them makes few parts.
    rank = sorted(range(len(taxonomies)), key=lambda j: taxonomies[j].height)
    place = {j: i for i, j in enumerate(rank)}
    jobs: list[_Job] = []
    for family in pool.families:
        order = sorted(range(len(family.attributes)), key=lambda i: place[family.attributes[i]])
        attributes = tuple(family.attributes[i] for i in order)
        sizes = [taxonomies[j].sizes for j in attributes]
        jobs.extend(_parts(attributes, sizes, family.levels[:, order], family.index, max(rows, _FEW_ROWS), numbers))
    by_attributes: dict[tuple[int, ...], list[_Job]] = {}
    for job in jobs:
        by_attributes.setdefault(job.attributes, []).append(job)
    found: dict[int, tuple[int, int, _Job]] = {}  # the smallest table of which a job's is a margin
    for job in jobs:
        for axis in range(len(job.attributes)):
            left = (*job.levels[:axis], *job.levels[axis + 1 :])
            for other in by_attributes.get((*job.attributes[:axis], *job.attributes[axis + 1 :]), ()):
                fits = all(a >= b for a, b in zip(left, other.levels, strict=True))
                if fits and (id(other) not in found or found[id(other)][0] > job.cells):
                    found[id(other)] = (job.cells, axis, job)
    for job in jobs:
        if id(job) in found:
            _, axis, larger = found[id(job)]
            larger.margins.append((axis, job))
    # Sets that share their first attributes follow each other and share the codes of those.
    counted = [job for job in jobs if id(job) not in found]
    return sorted(counted, key=lambda job: [(place[j], level) for j, level in zip(job.attributes, job.levels, strict=True)])


def _parts(
    attributes: tuple[int, ...],
    sizes: list[tuple[int, ...]],
    grids: NDArray[np.int64],
    index: NDArray[np.int64],
    rows: int,
    numbers: int,
) -> Iterator[_Job]:
    """Grids over one set of attributes, cut until the table that each part needs pays."""
    highest, lowest = grids.max(axis=0).tolist(), grids.min(axis=0).tolist()
    cells = prod(s[level] for s, level in zip(sizes, highest, strict=True))
    if highest == lowest or cells * numbers <= min(_MOST_CELLS, _CELLS_PER_ROW * rows):
        order = np.lexsort(grids.T[::-1]) if grids.size else np.zeros(len(grids), dtype=np.intp)
        sorted_grids = np.ascontiguousarray(grids[order].T)
        yield _Job(attributes, tuple(highest), sorted_grids, index[order], cells, pays(sizes, sorted_grids))
        return
    # Cut along the attribute that differs most, in the middle of its levels.
    axis = int(np.argmax([s[high] / s[low] for s, high, low in zip(sizes, highest, lowest, strict=True)]))
    below = grids[:, axis] <= (highest[axis] + lowest[axis] - 1) // 2
    for part in (below, ~below):
        yield from _parts(attributes, sizes, grids[part], index[part], rows, numbers)
