"""Synthetic rows from a published grid. Post-processing: it sees noisy counts and public domains only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.published.cuts import Cut, ScoreCut
from sfumato.privacy.source import Generator
from sfumato.records.attributes import Attribute

Leaves = dict[int, NDArray[np.int64]]


def rounded_shares(share: NDArray[np.float64], rows: int, random: Generator) -> NDArray[np.int64]:
    """Rows per cell: the expected number, rounded up or down at random, so that drawing adds less than a row of error.

    Systematic sampling over the cells in random order: unbiased, and the numbers add up to `rows`.

    >>> from sfumato.privacy import Seeded
    >>> rounded_shares(np.array([0.5, 0.3, 0.2]), 10, Seeded(1).generator()).tolist()
    [5, 3, 2]
    """
    order = random.permutation(share.size)
    upper = np.cumsum(share[order]) * rows
    upper = np.minimum(np.rint(upper * 2.0**20) / 2.0**20, rows)  # away from sums that miss a whole number by rounding
    upper[-1] = rows
    whole = np.floor(upper + random.random()).astype(np.int64)
    out = np.empty(share.size, dtype=np.int64)
    out[order] = np.diff(np.minimum(whole, rows), prepend=0)
    return out


def draw_leaves(
    cuts: Sequence[Cut | ScoreCut],
    cells: NDArray[np.int64],
    classes: NDArray[np.int64],
    attributes: Sequence[Attribute],
    random: Generator,
    shares: Mapping[int, NDArray[np.float64]] | None = None,
) -> Leaves:
    """For rows in given cells: a leaf of every attribute that the grid (or the grid below its score) divides.

    Inside a run of leaves by the attribute's `shares` (one row per class) where they are known, else by what is public.
    """
    shape = tuple(c.size for c in cuts)
    digits = np.unravel_index(cells, shape) if shape else ()
    low: Leaves = {}
    high: Leaves = {}
    for cut, digit in zip(cuts, digits, strict=True):
        if isinstance(cut, Cut):
            low[cut.attribute], high[cut.attribute] = cut.starts[digit], cut.ends[digit]
    for cut, digit in zip(cuts, digits, strict=True):
        if isinstance(cut, ScoreCut):
            _inside_score(cut, digit, cells, classes, low, high, random)
    known = shares or {}
    return {
        j: _leaf(attributes[j], low[j], high[j], random)
        if j not in known
        else _leaf_by(known[j], classes, low[j], high[j], random)
        for j in low
    }


def draw_given_class(shares: NDArray[np.float64], classes: NDArray[np.int64], random: Generator) -> NDArray[np.int64]:
    """A leaf for every row by the `shares` of its class (a row per class, or one for all), in numbers that hardly scatter.

    >>> from sfumato.privacy import Seeded
    >>> drawn = draw_given_class(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([0, 1, 1, 0]), Seeded(1).generator())
    >>> drawn[[0, 3]].tolist(), sorted(drawn[[1, 2]].tolist())
    ([0, 0], [0, 1])
    """
    out = np.empty(classes.size, dtype=np.int64)
    for share, mine in zip(shares, _rows_of(classes, len(shares)), strict=True):
        drawn = np.repeat(np.arange(share.size), rounded_shares(share, mine.size, random))
        random.shuffle(drawn)
        out[mine] = drawn
    return out


def _inside_score(
    cut: ScoreCut,
    digit: NDArray[np.int64],
    cells: NDArray[np.int64],
    classes: NDArray[np.int64],
    low: Leaves,
    high: Leaves,
    random: Generator,
) -> None:
    """Draw the cell of the first grid, by its noisy counts, among those that agree with the second; narrow the runs."""
    if not cut.inner:  # the first grid was one cell: there is nothing behind its score
        return
    every = np.arange(cut.bucket.size).reshape([c.size for c in cut.inner])
    inner = np.unravel_index(every.reshape(-1), every.shape)
    weights = np.maximum(cut.noisy.reshape(len(cut.noisy), -1), 0) + 1e-9
    drawn = np.zeros(cells.size, dtype=np.int64)
    key = cells * len(cut.noisy) + classes
    order = np.argsort(key, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        if not rows.size:
            continue
        first = rows[0]
        box = tuple(
            slice(*_overlapping(c, low[c.attribute][first], high[c.attribute][first])) if c.attribute in low else slice(None)
            for c in cut.inner
        )
        inside = every[box].reshape(-1)
        possible = inside[cut.node_of_cell[inside] == digit[first]]
        w = weights[classes[first], possible]
        drawn[rows] = possible[np.minimum(np.searchsorted(np.cumsum(w) / w.sum(), random.random(rows.size)), w.size - 1)]
    for c, node in zip(cut.inner, inner, strict=True):
        start, end = c.starts[node[drawn]], c.ends[node[drawn]]
        low[c.attribute] = np.maximum(start, low[c.attribute]) if c.attribute in low else start
        high[c.attribute] = np.minimum(end, high[c.attribute]) if c.attribute in high else end


def possible_cells(cuts: Sequence[Cut | ScoreCut]) -> NDArray[np.bool_] | None:
    """Which cells can hold a record at all: a score and the columns behind it may contradict each other.

    Known from public facts, so counts in impossible cells are noise and are set to 0. None if every cell is possible.
    """
    score = next((c for c in cuts if isinstance(c, ScoreCut)), None)
    if score is None:
        return None
    shape = [c.size for c in cuts]
    # A first grid of one cell has one score: all others are impossible.
    inner = np.unravel_index(np.arange(score.bucket.size), [c.size for c in score.inner]) if score.inner else ()
    behind = {c.attribute: (c.starts[node], c.ends[node]) for c, node in zip(score.inner, inner, strict=True)}
    # The cells that agree with one cell of the first grid are a box. Boxes are marked by their corners and summed up, which
    # takes the cells of both grids, not all pairs of them.
    ends = []
    for cut in cuts:
        if isinstance(cut, ScoreCut):
            ends.append((cut.node_of_cell, cut.node_of_cell + 1))
        elif cut.attribute in behind:
            ends.append(_overlapping(cut, *behind[cut.attribute]))
        else:
            ends.append((np.zeros(score.bucket.size, dtype=np.int64), np.full(score.bucket.size, cut.size)))
    marks = np.zeros([size + 1 for size in shape], dtype=np.int64)
    for corner in product((0, 1), repeat=len(cuts)):
        np.add.at(marks, tuple(end[side] for end, side in zip(ends, corner, strict=True)), (-1) ** sum(corner))
    for axis in range(marks.ndim):
        np.cumsum(marks, axis=axis, out=marks)
    return np.asarray(marks[tuple(slice(size) for size in shape)].reshape(-1) > 0)


def _overlapping(cut: Cut, low: Any, high: Any) -> tuple[Any, Any]:
    """The runs of a cut that have leaves in [low, high): the first, and the first after them."""
    return np.searchsorted(cut.ends, low, side="right"), np.searchsorted(cut.starts, high, side="left")


def _leaf(attribute: Attribute, low: NDArray[np.int64], high: NDArray[np.int64], random: Generator) -> NDArray[np.int64]:
    """A leaf inside [low, high): by width for numbers, all alike for categories."""
    uniform = random.random(low.size)
    edges = attribute.levels.edges
    if edges is None:
        return np.minimum(low + (uniform * (high - low)).astype(np.int64), high - 1)
    value = edges[low] + uniform * (edges[high] - edges[low])
    return np.clip(np.searchsorted(edges, value, side="right") - 1, low, high - 1)


def _leaf_by(
    shares: NDArray[np.float64],
    classes: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    random: Generator,
) -> NDArray[np.int64]:
    """A leaf inside [low, high) by the shares of the row's class; all alike where those are 0."""
    upper = np.concatenate([np.zeros((len(shares), 1)), np.cumsum(shares + 1e-12, axis=1)], axis=1)
    uniform = random.random(low.size)
    out = np.empty(low.size, dtype=np.int64)
    for row, mine in zip(upper, _rows_of(classes, len(shares)), strict=True):
        place = row[low[mine]] + uniform[mine] * (row[high[mine]] - row[low[mine]])
        out[mine] = np.clip(np.searchsorted(row, place, side="right") - 1, low[mine], high[mine] - 1)
    return out


def _rows_of(classes: NDArray[np.int64], groups: int) -> list[NDArray[np.intp]]:
    """Which rows each group of shares is for: a class each, or all."""
    return [np.arange(classes.size)] if groups == 1 else [np.flatnonzero(classes == c) for c in range(groups)]


def values_of(attribute: Attribute, leaves: NDArray[np.int64], random: Generator) -> Any:
    """Values inside leaves, as a column with the original type."""
    cell_of_leaf = np.argsort(attribute.leaf_of_cell)
    return attribute.domain.draw(cell_of_leaf[leaves], random)
