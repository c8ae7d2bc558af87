"""Layers of grids (with one attribute, with two, ...) that treat every column alike, wherever it stands.

A layer that fits is taken in whole. Of one that does not, grids are taken by their number of cells, which is public and
says nothing of the column that they come from: all grids of so many cells or none, the finest first. A grid with fewer
cells than another over the same columns can be told from it by summing, so its score is hardly ever higher, and the
limit on cells has already kept out those that are too fine.

Columns are put in the order of their names before anything is listed. So the pool, and the place of each grid in it,
are the same for every order of the columns; their names decide about places, which do not matter, and about nothing
else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.records.levels import Levels


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


def balanced(
    taxonomies: Sequence[Levels], most: int, cells: int, widest: int | None, always: int | None = None
) -> Iterator[Family]:
    """Families of at most `most` grids in all, of at most `cells` cells and `widest` attributes.

    An attribute that is `always` there comes last in every grid and counts neither as a column nor as one of the widest;
    without one the root grid comes first, and is not counted among the most.

    >>> taxonomies = [Levels.flat(name, ["a", "b"]) for name in ("y", "x", "z")]
    >>> [family.attributes for family in balanced(taxonomies, 6, 8, None)]
    [(), (1,), (0,), (2,), (1, 0), (1, 2), (0, 2)]
    >>> [family.attributes for family in balanced(taxonomies, 6, 8, 1, always=0)]
    [(0,), (1, 0), (2, 0)]
    """
    by_name = sorted((j for j, t in enumerate(taxonomies) if t.height > 1 and j != always), key=lambda j: taxonomies[j].name)
    last = () if always is None else (always,)
    fixed = tuple(taxonomies[j].sizes for j in last)
    place, left = 0, most + (always is None)
    for width in range(min(len(by_name), len(by_name) if widest is None else widest) + 1):
        sizes, ways = _sizes([taxonomies[j].sizes for j in by_name], fixed, width, cells)
        whole = bool(ways.sum() <= left)
        taken = sizes if whole else _finest(sizes, ways, left)
        if not taken.size:
            return
        inside = np.zeros(int(taken[-1]) + 1, dtype=bool)
        inside[taken] = True
        kept: dict[tuple[tuple[int, ...], ...], NDArray[np.int64]] = {}
        for subset in _subsets(taxonomies, by_name, width, int(taken[0]), int(taken[-1]), fixed):
            # Sets of columns that are cut alike share their levels, in whatever order the columns stand.
            order = sorted(range(width), key=lambda i: taxonomies[subset[i]].sizes)
            shape = (*(taxonomies[subset[i]].sizes for i in order), *fixed)
            if shape not in kept:
                kept[shape] = _combinations(shape, inside)
            count = len(kept[shape])
            if count:
                levels = np.empty_like(kept[shape])
                levels[:, [*order, *range(width, len(shape))]] = kept[shape]
                yield Family((*subset, *last), levels, np.arange(place, place + count))
                place, left = place + count, left - count
        if not whole:
            return


def _sizes(
    columns: Sequence[tuple[int, ...]], fixed: tuple[tuple[int, ...], ...], width: int, cells: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The numbers of cells, up to a limit, that grids of `width` columns can have, and how many grids have each.

    >>> [found.tolist() for found in _sizes([(1, 2), (1, 2), (1, 3)], (), 2, 8)]
    [[4, 6], [1.0, 2.0]]
    """
    nothing = (np.zeros(0, dtype=np.int64), np.zeros(0))
    found = [(np.ones(1, dtype=np.int64), np.ones(1)), *([nothing] * width)]
    for nodes in fixed:
        found[0] = _grown(nothing, found[0], nodes, cells)
    for nodes in columns:
        for w in range(width, 0, -1):
            found[w] = _grown(found[w], found[w - 1], nodes, cells)
    return found[width]


def _grown(
    found: tuple[NDArray[np.int64], NDArray[np.float64]],
    narrower: tuple[NDArray[np.int64], NDArray[np.float64]],
    nodes: tuple[int, ...],
    cells: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """What was found, and the narrower grids with one more column at each of its levels below the root."""
    grown = (narrower[0][:, None] * np.array(nodes[1:], dtype=np.int64)).reshape(-1)
    fits = grown <= cells
    sizes, which = np.unique(np.concatenate([found[0], grown[fits]]), return_inverse=True)
    ways = np.zeros(sizes.size)
    np.add.at(ways, which.reshape(-1), np.concatenate([found[1], np.repeat(narrower[1], len(nodes) - 1)[fits]]))
    return sizes, ways


def _finest(sizes: NDArray[np.int64], ways: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """The numbers of cells of which all grids are taken, the largest first, as far as `most` grids go.

    >>> _finest(np.array([4, 8, 16, 32]), np.array([10.0, 40.0, 90.0, 30.0]), 100).tolist()
    [4, 8, 32]
    """
    left, taken = float(most), []
    for size, count in zip(sizes[::-1].tolist(), ways[::-1].tolist(), strict=True):
        if count <= left:
            taken.append(size)
            left -= count
    return np.array(taken[::-1], dtype=np.int64)


def _subsets(
    taxonomies: Sequence[Levels],
    by_name: list[int],
    width: int,
    fewest: int,
    most: int,
    fixed: tuple[tuple[int, ...], ...],
) -> Iterator[tuple[int, ...]]:
    """Sets of `width` columns that can have a grid of `fewest` to `most` cells; others are passed over in bulk."""
    coarse = [taxonomies[j].sizes[1] for j in by_name]
    fine = [taxonomies[j].sizes[-1] for j in by_name]
    after_coarse, after_fine = coarse[:], fine[:]  # the smallest and the largest from each place on
    for i in range(len(by_name) - 2, -1, -1):
        after_coarse[i] = min(coarse[i], after_coarse[i + 1])
        after_fine[i] = max(fine[i], after_fine[i + 1])

    def longer(start: int, low: int, high: int, left: int) -> Iterator[tuple[int, ...]]:
        if left == 0:
            if low <= most and high >= fewest:
                yield ()
            return
        for i in range(start, len(by_name) - left + 1):
            if low * after_coarse[i] ** left > most or high * after_fine[i] ** left < fewest:
                return
            for rest in longer(i + 1, low * coarse[i], high * fine[i], left - 1):
                yield (by_name[i], *rest)

    return longer(0, prod(s[1] for s in fixed), prod(s[-1] for s in fixed), width)


def _combinations(shape: tuple[tuple[int, ...], ...], inside: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Levels of columns of this shape (nodes per level) with a number of cells that is `inside`."""
    grid = np.zeros((1, 0), dtype=np.int64)
    size = np.ones(1, dtype=np.int64)
    for levels in shape:
        grown = size[:, None] * np.array(levels[1:], dtype=np.int64)
        row, level = np.nonzero(grown < inside.size)
        grid = np.column_stack([grid[row], level + 1])
        size = grown[row, level]
    return grid[inside[size]]
