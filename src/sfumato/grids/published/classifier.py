"""A classifier trained on a published grid: it predicts for rows of the original table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.published.cuts import Cut, ScoreCut, codes_of
from sfumato.records.coding import leaves_of
from sfumato.records.opened import need_rows

if TYPE_CHECKING:
    from sfumato.grids.published.synopsis import Synopsis


@dataclass(frozen=True, eq=False)
class GridClassifier:
    """A fitted model over the cells of a grid. Make it with `Synopsis.classifier`.

    Attributes
    ----------
    synopsis : Synopsis
        What it was trained on.
    model : scikit-learn classifier or None
        The fitted model; None where the synopsis knows one class only, or no columns.
    fallback : int
        The number of the most frequent class.
    """

    synopsis: Synopsis
    model: Any
    fallback: int

    @classmethod
    def train(cls, synopsis: Synopsis, estimator: Any = None) -> GridClassifier:
        """Train `estimator` (a decision tree if left out) on the cells of a synopsis."""
        codes, classes, weights = synopsis.weighted_cells()
        totals = np.bincount(classes, weights, minlength=len(synopsis.class_labels))
        favourite = int(totals.argmax())
        keep = weights > 0
        if codes.shape[1] == 0 or np.unique(classes[keep]).size < 2:
            return cls(synopsis, None, favourite)
        if estimator is None:
            from sklearn.tree import DecisionTreeClassifier

            estimator = DecisionTreeClassifier(max_depth=8, min_weight_fraction_leaf=0.001, random_state=0)
        features = encode(synopsis.cuts, codes[keep])
        return cls(synopsis, estimator.fit(features, classes[keep], sample_weight=weights[keep]), favourite)

    def predict(self, table: Any) -> NDArray[Any]:
        """Class labels for the rows of a data frame with the original columns (only those of the grid are needed)."""
        need_rows(table, "predict")
        labels = np.array(self.synopsis.class_labels, dtype=object)
        if self.model is None:
            return np.full(len(table), labels[self.fallback], dtype=object)
        leaves = _needed_leaves(self.synopsis, table)
        codes = codes_of(self.synopsis.cuts, np.maximum(leaves, 0))
        found = self.model.predict(encode(self.synopsis.cuts, codes))
        lost, weights = without_unknown_columns(self.synopsis, leaves, codes)
        found[lost] = weights.argmax(axis=1)
        return np.asarray(labels[found])

    def cell_scores(self) -> NDArray[np.float64] | None:
        """Logarithms of class weights of every cell, cells by classes; None where nothing could be trained."""
        if self.model is None:
            return None
        cells = self.synopsis.counts.shape[1]
        features = encode(self.synopsis.cuts, np.stack(np.unravel_index(np.arange(cells), self.synopsis.shape), axis=1))
        scores = np.zeros((cells, len(self.synopsis.class_labels)))
        if hasattr(self.model, "predict_proba"):
            scores[:] = -30.0
            scores[:, self.model.classes_] = np.log(np.maximum(self.model.predict_proba(features), 1e-12))
        else:
            scores[np.arange(cells), self.model.predict(features)] = 5.0
        return scores

    def score(self, table: Any, truth: Any) -> float:
        """Share of the rows of `table` classified as `truth` says."""
        expected = np.array([str(v) for v in truth], dtype=object)
        return float((self.predict(table) == expected).mean())


def without_unknown_columns(
    synopsis: Synopsis, leaves: NDArray[np.integer], codes: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which rows have a column without a cell (leaf -1), and the class weights of those: such a column says nothing.

    The weights are those of all cells that agree with the row in its other columns.
    """
    unknown = np.stack([(leaves[:, cut.columns] < 0).any(axis=1) for cut in synopsis.cuts], axis=1)
    lost = np.asarray(unknown.any(axis=1))
    counts = np.maximum(synopsis.counts, 0).reshape(len(synopsis.counts), *synopsis.shape)
    weights = np.zeros((int(lost.sum()), len(counts)))
    for pattern in np.unique(unknown[lost], axis=0):
        rows = (unknown[lost] == pattern).all(axis=1)
        kept = counts.sum(axis=tuple(np.flatnonzero(pattern) + 1))
        weights[rows] = kept[(slice(None), *codes[lost][rows][:, ~pattern].T)].T
    overall = counts.reshape(len(counts), -1).sum(axis=1)
    return lost, weights + 1e-9 * (overall + 1)  # where no cell agrees, the whole table decides


def encode(cuts: tuple[Cut | ScoreCut, ...], codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Features: ordered columns as numbers, others one column per group."""
    parts = [
        codes[:, [i]] if cut.ordered or cut.size <= 2 else codes[:, [i]] == np.arange(cut.size) for i, cut in enumerate(cuts)
    ]
    return np.hstack(parts).astype(np.float64)


def _needed_leaves(synopsis: Synopsis, table: Any) -> NDArray[np.int64]:
    skip = set(synopsis.not_in_grid())
    leaves = np.zeros((len(table), len(synopsis.attributes)), dtype=np.int64)
    for j, attribute in enumerate(synopsis.attributes):
        if attribute.name not in skip:
            if attribute.name not in table:
                raise InputError(f"the table has no column {attribute.name!r}, which the grid needs")
            leaves[:, j] = leaves_of(attribute, table[attribute.name])
    return leaves
