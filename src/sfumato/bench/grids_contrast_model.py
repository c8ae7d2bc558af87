"""The model behind the contrast-marginals experiment: noisy marginals joined at maximum entropy. All post-processing.

Every marginal holds the class, so attributes that no marginal ties together are independent given the class: the model
is one small table per *part* (attributes tied by overlapping marginals), and one table that joins the parts. The latter
is over the parts' *scores*: each part's cells are put into a few buckets by how much they speak for the favourite
class, so with scores s and cells x,

    p(x, class) = p(s, class) Π_i p(x_i | s_i, class).

Without it (one bucket per part) evidence that two parts share would be counted twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.published.sampling import rounded_shares
from sfumato.privacy.source import Generator
from sfumato.records.levels import Levels
from sfumato.records.records import Grid

Floats = NDArray[np.float64]
Taxonomies = tuple[Levels, ...]
_TINY = 1e-12
_SWEEPS = 30
_PULL = 0.3  # standard deviations by which a count may miss what was measured, per unit of log-probability


@dataclass(frozen=True, eq=False)
class Marginal:
    """Noisy class counts of one grid (classes by cells) and the standard deviation of their noise."""

    grid: Grid
    noisy: NDArray[np.int64]
    deviation: float


@dataclass(frozen=True, eq=False)
class Part:
    """Attributes tied together, each at the finest level measured, and p(cell | class), classes by cells."""

    attributes: tuple[int, ...]
    levels: tuple[int, ...]
    table: Floats

    def shape(self, taxonomies: Taxonomies) -> tuple[int, ...]:
        return tuple(taxonomies[j].sizes[level] for j, level in zip(self.attributes, self.levels, strict=True))

    def cells(self, taxonomies: Taxonomies, leaves: NDArray[np.integer]) -> NDArray[np.int64]:
        code = np.zeros(len(leaves), dtype=np.int64)
        for j, level in zip(self.attributes, self.levels, strict=True):
            code = code * taxonomies[j].sizes[level] + taxonomies[j].maps[level][leaves[:, j]]
        return code


@dataclass(frozen=True, eq=False)
class Joined:
    """The fitted model: parts, the bucket of each of their cells, and p(class, buckets)."""

    taxonomies: Taxonomies
    parts: tuple[Part, ...]
    buckets: tuple[NDArray[np.int64], ...]
    table: Floats

    def scores(self, leaves: NDArray[np.integer]) -> NDArray[np.int64]:
        """The cell of every row in the table that joins the parts."""
        code = np.zeros(len(leaves), dtype=np.int64)
        for part, bucket, size in zip(self.parts, self.buckets, self.table.shape[1:], strict=True):
            code = code * size + bucket[part.cells(self.taxonomies, leaves)]
        return code

    def posterior(self, leaves: NDArray[np.integer]) -> Floats:
        """p(class | row), rows by classes."""
        k = len(self.table)
        logs = np.log(np.maximum(self.table.reshape(k, -1), _TINY))[:, self.scores(leaves)]
        for part, bucket in zip(self.parts, self.buckets, strict=True):
            logs = logs + np.log(_within(part.table, bucket))[:, part.cells(self.taxonomies, leaves)]
        share = np.exp(logs - logs.max(axis=0))
        return np.asarray((share / share.sum(axis=0)).T)

    def draw(self, n: int, random: Generator) -> tuple[dict[int, NDArray[np.int64]], NDArray[np.int64]]:
        """Nodes of every attribute in the model (at the level of its part), and classes, of n drawn rows."""
        drawn = np.repeat(np.arange(self.table.size), rounded_shares(self.table.reshape(-1), n, random))
        classes, *scores = np.unravel_index(drawn, self.table.shape)
        nodes: dict[int, NDArray[np.int64]] = {}
        for part, bucket, score in zip(self.parts, self.buckets, scores, strict=True):
            cell = np.empty(n, dtype=np.int64)
            within = _within(part.table, bucket)
            for c, s in np.ndindex(len(part.table), int(bucket.max()) + 1):
                rows = np.flatnonzero((classes == c) & (score == s))
                share = np.where(bucket == s, within[c], 0.0)
                found = np.repeat(np.arange(share.size), rounded_shares(share / share.sum(), rows.size, random))
                random.shuffle(found)
                cell[rows] = found
            nodes |= dict(zip(part.attributes, np.unravel_index(cell, part.shape(self.taxonomies)), strict=True))
        return nodes, classes


def _within(table: Floats, bucket: NDArray[np.int64]) -> Floats:
    """p(cell | bucket, class)."""
    sums = np.stack([np.bincount(bucket, row) for row in table])
    return np.asarray(np.maximum(table, _TINY) / np.maximum(sums, _TINY)[:, bucket])


def fit(taxonomies: Taxonomies, size: float, marginals: Sequence[Marginal]) -> Joined:
    """Parts from noisy marginals; one bucket each, so independent given the class."""
    share = _class_shares(marginals)
    parts = tuple(
        _fit_part(taxonomies, share * size, tied, marginals) for tied in tied_attributes([m.grid for m in marginals])
    )
    ones = tuple(np.zeros(p.table.shape[1], dtype=np.int64) for p in parts)
    return Joined(taxonomies, parts, ones, share.reshape(-1, *(1 for _ in parts)))


def bucketed(model: Joined, most: int) -> Joined:
    """The same model with its parts in buckets by likelihood ratio, so many that at most about `most` cells join them."""
    if len(model.parts) < 2:
        return model
    share = model.table.reshape(-1)
    count = max(2, min(12, int(most ** (1.0 / len(model.parts)) + 1e-9)))
    buckets = tuple(_by_ratio(p.table, share, count) for p in model.parts)
    shape = tuple(int(b.max()) + 1 for b in buckets)
    digits = np.unravel_index(np.arange(prod(shape)), shape)
    table = np.repeat(share[:, None], prod(shape), axis=1)
    for part, bucket, digit in zip(model.parts, buckets, digits, strict=True):
        table = table * np.stack([np.bincount(bucket, row) for row in part.table])[:, digit]
    return Joined(model.taxonomies, model.parts, buckets, (table / table.sum()).reshape(-1, *shape))


def rejoined(model: Joined, size: float, noisy: NDArray[np.int64], deviation: float) -> Joined:
    """The model with its joining table drawn to noisy counts of it (classes by cells)."""
    expected = model.table.reshape(-1) * size
    table = expected * np.exp(tilt(expected, noisy.reshape(-1), pull=deviation))
    return Joined(model.taxonomies, model.parts, model.buckets, (table / table.sum()).reshape(model.table.shape))


def tied_attributes(grids: Sequence[Grid]) -> list[tuple[int, ...]]:
    """Sets of attributes connected through grids.

    >>> tied_attributes([((0, 1), (1, 1)), ((2, 1),), ((1, 2), (3, 1))])
    [(2,), (0, 1, 3)]
    """
    tied: list[set[int]] = []
    for grid in grids:
        new = {j for j, _ in grid}
        if new:
            touching = [t for t in tied if t & new]
            tied = [t for t in tied if not t & new] + [new.union(*touching)]
    return [tuple(sorted(t)) for t in tied]


def tilt(expected: Floats, measured: NDArray[np.integer] | Floats, *, pull: float, before: Floats | float = 0.0) -> Floats:
    """The change δ of log-counts with ``expected e^δ + pull (before + δ) = measured``: the measured count, drawn a little
    towards the model, so that noise below zero does no harm. The left side is convex and rising, so Newton's method from
    above cannot fail.

    >>> tilt(np.array([100.0, 100.0]), np.array([200.0, -30.0]), pull=1e-6).round(3).tolist()[0]
    0.693
    """
    current = np.maximum(expected, 1e-9)
    goal = measured - pull * before
    delta = np.log(np.maximum(goal / current, 1.0))
    for _ in range(60):
        scaled = current * np.exp(delta)
        step = (scaled + pull * delta - goal) / (scaled + pull)
        delta = np.maximum(delta - step, -60.0)
        if float(np.abs(step).max()) < 1e-7:
            break
    return np.asarray(delta)


def _class_shares(marginals: Sequence[Marginal]) -> Floats:
    """Shares of the classes by inverse variance over the marginals: each sums the class over its cells."""
    precision = np.array([1.0 / (m.noisy.shape[1] * m.deviation**2) for m in marginals])
    sums = np.stack([m.noisy.sum(axis=1) for m in marginals])
    total = np.maximum((precision[:, None] * sums).sum(axis=0) / precision.sum(), 1.0)
    return np.asarray(total / total.sum())


def _fit_part(taxonomies: Taxonomies, totals: Floats, tied: tuple[int, ...], marginals: Sequence[Marginal]) -> Part:
    """Iterative scaling over the cells of one part; each step draws one marginal to what was measured."""
    mine = [m for m in marginals if m.grid and m.grid[0][0] in tied]
    levels = tuple(max(level for m in mine for i, level in m.grid if i == j) for j in tied)
    shape = tuple(taxonomies[j].sizes[level] for j, level in zip(tied, levels, strict=True))
    digits = dict(zip(tied, np.unravel_index(np.arange(prod(shape)), shape), strict=True))
    finest = dict(zip(tied, levels, strict=True))
    width = np.ones(prod(shape))  # without any measurement all leaves are alike
    for j in tied:
        width = width * np.diff(np.append(taxonomies[j].starts[finest[j]], taxonomies[j].leaves))[digits[j]]
    table = totals[:, None] * width / width.sum()
    places = []
    for m in mine:
        place = np.zeros(prod(shape), dtype=np.int64)
        for j, level in m.grid:
            place = (
                place * taxonomies[j].sizes[level] + taxonomies[j].maps[level][taxonomies[j].starts[finest[j]]][digits[j]]
            )
        places.append(place)
    logs = [np.zeros(m.noisy.shape) for m in mine]
    for _ in range(_SWEEPS if len(mine) > 1 else 3):
        for m, place, log in zip(mine, places, logs, strict=True):
            for c in range(len(table)):
                cells = np.bincount(place, table[c], m.noisy.shape[1]).astype(np.float64)
                delta = tilt(cells, m.noisy[c], pull=_PULL * m.deviation, before=log[c])
                log[c] += delta
                table[c] *= np.exp(delta)[place]
                table[c] *= totals[c] / max(float(table[c].sum()), _TINY)
    table = np.maximum(table / table.sum(axis=1, keepdims=True), _TINY)
    return Part(tied, levels, np.asarray(table / table.sum(axis=1, keepdims=True)))


def _by_ratio(table: Floats, share: Floats, count: int) -> NDArray[np.int64]:
    """Buckets of cells by how much they speak against the favourite class, of equal mass if both sides weighed the same."""
    favourite = int(share.argmax())
    others = np.delete(share, favourite)
    rest = np.delete(table, favourite, axis=0).T @ (others / others.sum())
    order = np.argsort(np.log(rest / table[favourite]), kind="stable")
    mass = ((rest + table[favourite]) / 2.0)[order]
    bucket = np.empty(order.size, dtype=np.int64)
    bucket[order] = np.minimum(((np.cumsum(mass) - mass / 2.0) * count).astype(np.int64), count - 1)
    return np.asarray(np.unique(bucket, return_inverse=True)[1].reshape(-1))
