"""Scores of many grids at once: few passes over the records, the rest rolled up.

The paper passes over the records once per grid, O(N Θ). But the counts of a coarse grid are sums of those of a finer
one. So each set of attributes is counted once, at the finest levels that its grids need, and every grid is rolled up from
that table; a set whose table is a margin of a larger set's is not counted at all. A set whose table would have too many
cells for its few grids is cut into parts that need less.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.search.pool import Pool
from sfumato.grids.search.quality import SCALE, Quality
from sfumato.grids.search.rolling import Rolling
from sfumato.grids.search.rows import Rows
from sfumato.records.levels import Levels
from sfumato.records.records import Records, Table

_MOST_CELLS = 1 << 24  # of one table
_FEW_ROWS = 1 << 14  # with fewer, a pass costs its calls rather than its rows
_ROWS_PER_CELL = 4  # rolling up one cell costs about as much as counting this many rows
_NEAR = 1 << 17  # numbers of a table that stay in a near cache; far more of them pay only beside many rows
_CELLS_PER_ROW = 2
_TOGETHER = 1 << 18  # numbers that wait before they are rolled up together
_LARGE = 1 << 16  # numbers of a table for which nothing is gained by waiting
_MOST_WAITING = 1 << 23
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
    rolling = Rolling(records.taxonomies, quality, rows.numbers, total)
    alike = _Alike(rolling, np.empty(pool.size, dtype=np.int64))
    counting = clock() - began
    for job in _jobs(pool, records.taxonomies, rows.size, rows.numbers):
        start = clock()
        table = rows.count(job.attributes, job.levels).astype(rolling.number, copy=False)
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
    margins: list[tuple[int, _Job]] = field(default_factory=list)


def _score_job(job: _Job, table: Table, alike: _Alike) -> None:
    alike.add(job, table)
    for axis, other in job.margins:
        margin = np.add.reduce(table, axis=axis + 1, dtype=table.dtype)
        left = (*job.levels[:axis], *job.levels[axis + 1 :])
        for i, (j, now, target) in enumerate(zip(other.attributes, left, other.levels, strict=True), start=1):
            margin = alike.rolling.coarsen(margin, i, j, now, target)
        _score_job(other, margin, alike)


@dataclass(eq=False)
class _Alike:
    """Small tables that want the same grids of the same tree shapes wait for each other, to be rolled up together."""

    rolling: Rolling
    units: NDArray[np.int64]
    waiting: dict[tuple[object, ...], list[tuple[_Job, Table]]] = field(default_factory=dict)
    cells: int = 0

    def __post_init__(self) -> None:
        shapes = [tuple(start.tobytes() for start in t.starts) for t in self.rolling.taxonomies]
        self.shape_of = [shapes.index(shape) for shape in shapes]

    def add(self, job: _Job, table: Table) -> None:
        key = (tuple(self.shape_of[j] for j in job.attributes), job.grids.tobytes())
        same = self.waiting.setdefault(key, [])
        same.append((job, table))
        self.cells += table.size
        if len(same) * table.size >= _TOGETHER or table.size >= _LARGE:
            self._roll_up(self.waiting.pop(key))
        elif self.cells >= _MOST_WAITING:
            self.finish()

    def finish(self) -> None:
        for same in self.waiting.values():
            self._roll_up(same)
        self.waiting.clear()

    def _roll_up(self, same: list[tuple[_Job, Table]]) -> None:
        first = same[0][0]
        tables = np.stack([table for _, table in same]) if len(same) > 1 else same[0][1][None]
        for (job, table), units in zip(same, self.rolling.scores(tables, first.attributes, first.grids), strict=True):
            self.units[job.index] = units
            self.cells -= table.size


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
        if job.cells * numbers > _ROWS_PER_CELL * rows:  # a sum over the cells would cost more than a pass
            continue
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
    most = min(_MOST_CELLS, len(grids) * rows // _ROWS_PER_CELL, max(_NEAR, _CELLS_PER_ROW * rows))
    if highest == lowest or cells * numbers <= most:
        order = np.lexsort(grids.T[::-1]) if grids.size else np.zeros(len(grids), dtype=np.intp)
        yield _Job(attributes, tuple(highest), np.ascontiguousarray(grids[order].T), index[order], cells)
        return
    # Cut along the attribute that differs most, in the middle of its levels.
    axis = int(np.argmax([s[high] / s[low] for s, high, low in zip(sizes, highest, lowest, strict=True)]))
    below = grids[:, axis] <= (highest[axis] + lowest[axis] - 1) // 2
    for part in (below, ~below):
        yield from _parts(attributes, sizes, grids[part], index[part], rows, numbers)
