"""The terms of an additive model: what they score, how records weigh by them, and how noisy cells become scores.

Everything here is either a public function of released terms or a function of one record and them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.base import Floats
from sfumato.classifiers.counting.lattice import UNIT, Lattice
from sfumato.classifiers.counting.main_effects import main_effects
from sfumato.records.levels import Levels
from sfumato.records.records import Grid, Records


@dataclass(frozen=True, eq=False)
class Term:
    """One term: a grid and a score per class and cell, centred so that the scores of a cell add up to 0."""

    grid: Grid
    scores: Floats  # classes first, then one axis per column
    mass: Floats  # noisy weight per cell, in records: how much data is behind a score
    noise: float  # scale of the noise, in records

    def at(self, leaves: NDArray[np.integer], taxonomies: tuple[Levels, ...]) -> Floats:
        """Scores of rows, one column per class; a row without a cell in one of the columns gets 0."""
        where: list[Any] = []
        known = np.ones(len(leaves), dtype=bool)
        for j, level in self.grid:
            column = leaves[:, j]
            known &= column >= 0
            where.append(taxonomies[j].maps[level][np.maximum(column, 0)])
        scores = self.scores[(slice(None), *where)] if where else np.tile(self.scores[:, None], len(leaves))
        return np.asarray(np.where(known, scores, 0.0).T)


def weights_of(scores: Floats, classes: NDArray[np.int64], cap: float) -> NDArray[np.int64]:
    """Weights of records in units, from the model's scores (rows by classes); each from its own row alone.

    >>> weights_of(np.zeros((2, 2)), np.array([0, 1]), 0.5).tolist()
    [256, 256]
    >>> weights_of(np.array([[0.0, 2.0], [0.0, 2.0]]), np.array([0, 1]), 0.6).tolist()
    [256, 51]
    """
    shifted = scores - scores.max(axis=1, keepdims=True)
    share = np.exp(shifted)
    share /= share.sum(axis=1, keepdims=True)
    top = np.partition(share, -2, axis=1)[:, -2:] if share.shape[1] > 2 else share
    own = np.take_along_axis(share, classes[:, None], axis=1)[:, 0]
    exact = top[:, 0] * top[:, 1] / np.maximum(own, 1e-12)
    whole: NDArray[np.int64] = np.minimum(np.rint(exact * (UNIT / cap)), UNIT).astype(np.int64)
    return whole


def weighed(records: Records, scores: Floats, cap: float, lattice: Lattice) -> Records:
    """The records with their weights in units, from the model's scores at each and from what their people granted."""
    by_model = weights_of(scores, records.classes.astype(np.int64), cap)
    return replace(records, weights=lattice.weighed(by_model, records.weights))


def heeded(records: Records, common: int, heed: float) -> Records:
    """The records with the weights of the class `common` times `heed`, at most 1 and rounded down: nobody weighs more.

    >>> records = Records((), np.zeros((3, 0), np.int32), np.array([0, 1, 0]), ("no", "yes"), np.array([256, 256, 100]))
    >>> heeded(records, 0, 0.25).weights.tolist()
    [64, 256, 25]
    """
    if heed >= 1 or records.weights is None:
        return records
    factors = np.where(records.classes == common, int(heed * UNIT), UNIT)
    return replace(records, weights=np.asarray(records.weights * factors // UNIT))


def cell_scores(noisy: NDArray[np.int64], *, noise: float, prior: float) -> Floats:
    """Log-odds per cell, drawn towards what the columns say one at a time where the noise drowns the cell.

    A cell's prior is worth `prior` units of the `noise` per class and has the class shares of `main_effects`; a grid of one
    column has the overall shares instead.
    """
    classes = len(noisy)
    held = np.maximum(noisy, 0).astype(np.float64)
    if noisy.ndim > 2:
        share = main_effects(held / noise)
    else:
        totals = held.reshape(classes, -1).sum(axis=1) + noise
        share = np.broadcast_to((totals / totals.sum()).reshape(-1, *([1] * (noisy.ndim - 1))), noisy.shape)
    logs = np.log(held + prior * noise * classes * np.maximum(share, 1e-9))
    return np.asarray(logs - logs.mean(axis=0, keepdims=True))


def model_scores(terms: tuple[Term, ...], leaves: Any, taxonomies: tuple[Levels, ...], classes: int) -> Floats:
    """Sum of the terms at some rows."""
    total = np.zeros((len(leaves), classes))
    for term in terms:
        total += term.at(leaves, taxonomies)
    return total


def shape_function(terms: tuple[Term, ...], taxonomies: tuple[Levels, ...], column: int, classes: int) -> Floats:
    """Sum over the terms that use a column of its scores, averaged over the other columns by noisy mass."""
    total = np.zeros((classes, taxonomies[column].leaves))
    for term in terms:
        for axis, (j, level) in enumerate(term.grid):
            if j == column:
                others = tuple(a for a in range(len(term.grid)) if a != axis)
                mass = term.mass + term.noise
                mean = (term.scores * mass).sum(axis=tuple(a + 1 for a in others)) / mass.sum(axis=others)
                total += mean[:, taxonomies[j].maps[level]]
    return total


def words(term: Term, taxonomies: tuple[Levels, ...]) -> str:
    return " x ".join(f"{taxonomies[j].name} ({taxonomies[j].sizes[level]})" for j, level in term.grid) or "class shares"
