"""Synthetic rows from a published grid. Post-processing: it sees noisy counts and public domains only."""

from __future__ import annotations

from collections.abc import Sequence
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
) -> Leaves:
    """For rows in given cells: a leaf of every attribute that the grid (or the grid below its score) divides."""
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
    return {j: _leaf(attributes[j], low[j], high[j], random) for j in low}


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
    inner_shape = tuple(c.size for c in cut.inner)
    inner = np.unravel_index(np.arange(cut.bucket.size), inner_shape)
    weights = np.maximum(cut.noisy.reshape(len(cut.noisy), -1), 0) + 1e-9
    drawn = np.zeros(cells.size, dtype=np.int64)
    key = cells * len(cut.noisy) + classes
    order = np.argsort(key, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        if not rows.size:
            continue
        first = rows[0]
        fits = cut.node_of_cell == digit[first]
        for c, node in zip(cut.inner, inner, strict=True):
            if c.attribute in low:
                fits &= (c.starts[node] < high[c.attribute][first]) & (c.ends[node] > low[c.attribute][first])
        possible = np.flatnonzero(fits)
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
    shape = tuple(c.size for c in cuts)
    # A first grid of one cell has one score: all others are impossible.
    inner = np.unravel_index(np.arange(score.bucket.size), tuple(c.size for c in score.inner)) if score.inner else ()
    behind = {c.attribute: (c.starts[node], c.ends[node]) for c, node in zip(score.inner, inner, strict=True)}
    fits = np.ones((int(np.prod(shape)), score.bucket.size), dtype=bool)
    for cut, digit in zip(cuts, np.unravel_index(np.arange(len(fits)), shape), strict=True):
        if isinstance(cut, ScoreCut):
            fits &= digit[:, None] == cut.node_of_cell
        elif cut.attribute in behind:
            start, end = behind[cut.attribute]
            fits &= (start < cut.ends[digit][:, None]) & (end > cut.starts[digit][:, None])
    return np.asarray(fits.any(axis=1))


def _leaf(attribute: Attribute, low: NDArray[np.int64], high: NDArray[np.int64], random: Generator) -> NDArray[np.int64]:
    """A leaf inside [low, high): by width for numbers, all alike for categories."""
    uniform = random.random(low.size)
    edges = attribute.levels.edges
    if edges is None:
        return np.minimum(low + (uniform * (high - low)).astype(np.int64), high - 1)
    value = edges[low] + uniform * (edges[high] - edges[low])
    return np.clip(np.searchsorted(edges, value, side="right") - 1, low, high - 1)


def values_of(attribute: Attribute, leaves: NDArray[np.int64], random: Generator) -> Any:
    """Values inside leaves, as a column with the original type."""
    cell_of_leaf = np.argsort(attribute.leaf_of_cell)
    return attribute.domain.draw(cell_of_leaf[leaves], random)
