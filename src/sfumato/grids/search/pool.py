"""The pool of candidate grids: at most Θ grids with at most τ cells, chosen without looking at the data.

Enumeration follows Algorithm 2 of Su et al. 2018: grids with one attribute below the root, then with two, and so on; a
grid is kept if it has at most τ cells. What to do when Θ cuts a layer short differs:

- ``order="paper"`` stops at the Θ-th grid, so the last layer knows only the first columns;
- ``order="balanced"`` gives every set of attributes of that layer the same share of what is left, takes its grids
  evenly from few cells to many, and keeps a share for the layers above, so that no column is favoured for where it
  stands.

The root grid (one cell: publish class counts only) is always a candidate. Nothing here depends on private data, so it
is free.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.records.levels import Levels
from sfumato.records.records import Grid

Order = Literal["balanced", "paper"]

_CHUNK = 1 << 21
_SCATTER = 0x9E3779B1  # a large prime
_FEWEST = 4  # grids per set of attributes, below which fewer sets are looked at


@dataclass(frozen=True, eq=False)
class Family:
    """The candidate grids over one set of attributes.

    Attributes
    ----------
    attributes : tuple of int
    levels : int array, grids by attributes
    index : int array
        Place of each grid in the pool.
    """

    attributes: tuple[int, ...]
    levels: NDArray[np.int64]
    index: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidate grids, grouped by the attributes they use.

    Examples
    --------
    >>> taxonomies = [Levels.numeric("age", [0, 20, 40, 60, 80]), Levels.flat("sex", ["F", "M"])]
    >>> pool = enumerate_grids(taxonomies, most=100, cells=8)
    >>> pool.size, [pool.grid(i) for i in range(pool.size)]
    (6, [(), ((0, 1),), ((0, 2),), ((1, 1),), ((0, 1), (1, 1)), ((0, 2), (1, 1))])
    """

    families: tuple[Family, ...]
    size: int

    def grid(self, i: int) -> Grid:
        """The i-th grid as (attribute, level) pairs."""
        for family in self.families:
            row = np.flatnonzero(family.index == i)
            if row.size:
                return tuple(zip(family.attributes, family.levels[row[0]].tolist(), strict=True))
        raise InputError(f"the pool has {self.size} grids, not {i + 1}")


def enumerate_grids(
    taxonomies: Sequence[Levels],
    *,
    most: int,
    cells: int,
    order: Order = "balanced",
    widest: int | None = None,
) -> Pool:
    """At most `most` grids (the root grid aside) of at most `cells` cells and at most `widest` attributes."""
    if most < 1:
        raise InputError(f"a pool needs at least one grid, got {most}")
    if order not in ("balanced", "paper"):
        raise InputError(f"order must be 'balanced' or 'paper', got {order!r}")
    layers = _paper(taxonomies, most, cells, widest) if order == "paper" else _balanced(taxonomies, most, cells, widest)
    families = [Family((), np.zeros((1, 0), dtype=np.int64), np.zeros(1, dtype=np.int64))]
    size = 1
    for grids in layers:
        families.extend(_group(grids, size))
        size += len(grids)
    return Pool(tuple(families), size)


def _group(grids: NDArray[np.int64], first: int) -> Iterator[Family]:
    """Grids (rows of levels over all attributes, 0 = not used) grouped by the attributes they use."""
    used = grids > 0
    keys = np.packbits(used, axis=1)
    _, which = np.unique(keys, axis=0, return_inverse=True)
    by = np.argsort(which.reshape(-1), kind="stable")
    for rows in np.split(by, np.flatnonzero(np.diff(which.reshape(-1)[by])) + 1):
        attributes = np.flatnonzero(used[rows[0]])
        yield Family(tuple(attributes.tolist()), grids[np.ix_(rows, attributes)].astype(np.int64), first + rows)


def _paper(taxonomies: Sequence[Levels], most: int, cells: int, widest: int | None) -> Iterator[NDArray[np.int64]]:
    """Layers in the order of Algorithm 2. A grid is made once, from its attributes in order of columns."""
    d = len(taxonomies)
    choices = [(j, level) for j, t in enumerate(taxonomies) for level in range(1, t.height)]
    attribute = np.array([j for j, _ in choices], dtype=np.int64)
    level = np.array([v for _, v in choices], dtype=np.int64)
    nodes = np.array([taxonomies[j].sizes[v] for j, v in choices], dtype=np.int64)
    after = np.searchsorted(attribute, np.arange(d + 1), side="left")  # first choice of attribute j
    layer = np.zeros((1, d), dtype=np.int8)
    size = np.ones(1, dtype=np.int64)
    last = np.full(1, -1)
    left = most
    for _ in range(min(d, widest or d)):
        made: list[NDArray[np.int8]] = []
        sizes: list[NDArray[np.int64]] = []
        lasts: list[NDArray[np.int64]] = []
        step = max(1, _CHUNK // max(1, len(choices)))
        for start in range(0, len(layer), step):
            stop = start + step
            fan = len(choices) - after[last[start:stop] + 1]
            parent = np.repeat(np.arange(start, min(stop, len(layer))), fan)
            within = np.arange(fan.sum()) - np.repeat(np.cumsum(fan) - fan, fan)
            choice = after[last[parent] + 1] + within
            keep = np.flatnonzero(size[parent] * nodes[choice] <= cells)[: left - sum(map(len, made))]
            new = layer[parent[keep]]
            new[np.arange(len(new)), attribute[choice[keep]]] = level[choice[keep]]
            made.append(new)
            sizes.append((size[parent] * nodes[choice])[keep])
            lasts.append(attribute[choice[keep]])
            if sum(map(len, made)) >= left:
                break
        layer, size, last = np.concatenate(made), np.concatenate(sizes), np.concatenate(lasts)
        if not len(layer):
            return
        left -= len(layer)
        yield layer.astype(np.int64)
        if left <= 0:
            return


def _balanced(taxonomies: Sequence[Levels], most: int, cells: int, widest: int | None) -> Iterator[NDArray[np.int64]]:
    """Whole layers while they fit in what is left; then every set of attributes gets the same share."""
    d = len(taxonomies)
    left = most
    for width in range(1, min(d, widest or d) + 1):
        smallest = sorted(t.sizes[1] for t in taxonomies if t.height > 1)[:width]
        if left <= 0 or len(smallest) < width or np.prod(smallest, dtype=np.float64) > cells:
            return
        # A layer that does not fit leaves half of the room to those above it, unless there are none.
        last = width == min(d, widest or d)
        fits = _count(taxonomies, width, cells) <= left
        grids = _layer(taxonomies, width, cells, left if fits or last else left // 2, whole=fits)
        if not len(grids):
            return
        left -= len(grids)
        yield grids


def _layer(taxonomies: Sequence[Levels], width: int, cells: int, budget: int, *, whole: bool) -> NDArray[np.int64]:
    """At most `budget` grids of `width` attributes, every set of attributes with the same share."""
    d = len(taxonomies)
    total = comb(d, width)
    most_sets = max(1, budget // _FEWEST)
    stride = 1 if whole else -(-total // most_sets)
    subsets = list(combinations(range(d), width)) if stride == 1 else _scattered(d, width, stride)
    found = [_combinations(taxonomies, subset, cells) for subset in subsets]
    share = _level(np.array([len(f) for f in found]), budget)
    rows = []
    for subset, levels in zip(subsets, found, strict=True):
        kept = levels if len(levels) <= share else levels[(np.arange(share) * len(levels)) // max(share, 1)]
        full = np.zeros((len(kept), d), dtype=np.int64)
        full[:, subset] = kept
        rows.append(full)
    return np.concatenate(rows) if rows else np.zeros((0, d), dtype=np.int64)


def _scattered(d: int, width: int, stride: int) -> list[tuple[int, ...]]:
    """One in `stride` of the sets of `width` out of `d` columns, in order, scattered over the columns.

    Set number i is taken if ``i * prime % total`` is a multiple of the stride: without looking at all of them, of which
    there may be too many to count.

    >>> _scattered(5, 2, 4), len(_scattered(1000, 4, 10**7))
    ([(0, 1), (1, 2), (2, 4)], 4142)
    """
    total = comb(d, width)
    inverse = pow(_SCATTER, -1, total) if total % _SCATTER else 1
    numbers = sorted(multiple * inverse % total for multiple in range(0, total, stride))
    return [_subset(number, d, width) for number in numbers]


def _subset(number: int, d: int, width: int) -> tuple[int, ...]:
    """The set of that number, in the order of `itertools.combinations`.

    >>> [_subset(i, 4, 2) for i in range(6)]
    [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    """
    found: list[int] = []
    start = 0
    for left in range(width, 0, -1):
        before = partial(_beginning_before, start, d, left)
        start += bisect_right(range(start, d), number, key=before)
        found.append(start - 1)
        number -= before(start - 1)
    return tuple(found)


def _beginning_before(start: int, d: int, width: int, column: int) -> int:
    """How many sets of `width` columns from `start` on begin before a column."""
    return comb(d - start, width) - comb(d - column, width)


def _level(sizes: NDArray[np.int64], budget: int) -> int:
    """The largest share s with Σ min(size, s) <= budget: what small sets leave over goes to the large ones.

    >>> _level(np.array([1, 5, 9]), 11)
    5
    """
    low, high = 0, int(sizes.max(initial=0))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if int(np.minimum(sizes, middle).sum()) <= budget else (low, middle - 1)
    return low


def _combinations(taxonomies: Sequence[Levels], subset: tuple[int, ...], cells: int) -> NDArray[np.int64]:
    """Levels of one set of attributes with at most `cells` cells, few cells first."""
    grid = np.zeros((1, 0), dtype=np.int64)
    size = np.ones(1, dtype=np.int64)
    for j in subset:
        nodes = np.array(taxonomies[j].sizes[1:], dtype=np.int64)
        grown = (size[:, None] * nodes).reshape(-1)
        keep = np.flatnonzero(grown <= cells)
        levels = np.tile(np.arange(1, nodes.size + 1), len(grid))[keep]
        grid = np.column_stack([np.repeat(grid, nodes.size, axis=0)[keep], levels])
        size = grown[keep]
    return grid[np.argsort(size, kind="stable")]


def _count(taxonomies: Sequence[Levels], width: int, cells: int) -> int:
    """How many grids of `width` attributes have at most `cells` cells."""
    # counts[w] maps a number of cells to how many ways reach it with w attributes.
    counts: list[dict[int, int]] = [{1: 1}] + [{} for _ in range(width)]
    for t in taxonomies:
        for w in range(width, 0, -1):
            for size, ways in counts[w - 1].items():
                for nodes in t.sizes[1:]:
                    if size * nodes <= cells:
                        counts[w][size * nodes] = counts[w].get(size * nodes, 0) + ways
    return sum(counts[width].values())


def crossed(pool: Pool, taxonomies: Sequence[Levels], attribute: int, *, cells: int) -> Pool:
    """Every grid of a pool crossed with every level of one more attribute, as far as `cells` allows.

    >>> taxonomies = [Levels.flat("sex", ["F", "M"]), Levels.numeric("score", [0, 1, 2, 3, 4])]
    >>> pool = crossed(enumerate_grids(taxonomies[:1], most=9, cells=4), taxonomies, 1, cells=4)
    >>> [pool.grid(i) for i in range(pool.size)]
    [((1, 1),), ((1, 2),), ((0, 1), (1, 1))]
    """
    nodes = np.array(taxonomies[attribute].sizes[1:], dtype=np.int64)
    families, size = [], 0
    for family in pool.families:
        sizes = np.ones(len(family.levels), dtype=np.int64)
        for j, levels in zip(family.attributes, family.levels.T, strict=True):
            sizes = sizes * np.array(taxonomies[j].sizes)[levels]
        row, level = np.nonzero(sizes[:, None] * nodes <= cells)
        if row.size:
            levels = np.column_stack([family.levels[row], level + 1])
            families.append(Family((*family.attributes, attribute), levels, np.arange(size, size + row.size)))
            size += row.size
    return Pool(tuple(families), size)
