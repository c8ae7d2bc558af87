"""The pool of candidate grids: at most Θ grids with at most τ cells, chosen without looking at the data.

Enumeration follows Algorithm 2 of Su et al. 2018: grids with one attribute below the root, then with two, and so on; a
grid is kept if it has at most τ cells. What to do when Θ cuts a layer short differs:

- ``order="paper"`` stops at the Θ-th grid, so the last layer knows only the first columns, and what is published
  depends on the order in which the columns stand;
- ``order="balanced"`` takes a layer in whole if it fits, and of the first that does not fit the grids with the most
  cells, all grids of one number of cells or none (`layers`). A table with its columns in another order has the same pool.

The root grid (one cell: publish class counts only) is always a candidate. Nothing here depends on private data, so it
is free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.search.layers import Family, balanced
from sfumato.records.levels import Levels
from sfumato.records.records import Grid

Order = Literal["balanced", "paper"]

_CHUNK = 1 << 21


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
    if order == "balanced":
        return _pool(balanced(taxonomies, most, cells, widest))
    families = [Family((), np.zeros((1, 0), dtype=np.int64), np.zeros(1, dtype=np.int64))]
    size = 1
    for grids in _paper(taxonomies, most, cells, widest):
        families.extend(_group(grids, size))
        size += len(grids)
    return Pool(tuple(families), size)


def crossed_grids(
    taxonomies: Sequence[Levels],
    attribute: int,
    *,
    most: int,
    cells: int,
    order: Order = "balanced",
    widest: int | None = None,
) -> Pool:
    """Grids over the other columns, at most `widest` of them, each crossed with a level of one attribute.

    >>> taxonomies = [Levels.flat("sex", ["F", "M"]), Levels.numeric("score", [0, 1, 2, 3, 4])]
    >>> pool = crossed_grids(taxonomies, 1, most=9, cells=4)
    >>> [pool.grid(i) for i in range(pool.size)]
    [((1, 1),), ((1, 2),), ((0, 1), (1, 1))]
    """
    if order == "balanced":
        return _pool(balanced(taxonomies, most, cells, widest, attribute))
    others = [t if j != attribute else Levels.flat(t.name, ["all"]) for j, t in enumerate(taxonomies)]
    levels = taxonomies[attribute].height - 1
    plain = enumerate_grids(others, most=max(1, most // levels), cells=cells, order=order, widest=widest)
    return crossed(plain, taxonomies, attribute, cells=cells)


def _pool(families: Iterator[Family]) -> Pool:
    found = tuple(families)
    return Pool(found, sum(family.index.size for family in found))


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
