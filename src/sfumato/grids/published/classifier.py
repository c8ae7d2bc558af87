"""A classifier trained on a published grid: it predicts for rows of the original table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.published.cuts import Cut, ScoreCut
from sfumato.records.reading import leaves_of_frame

if TYPE_CHECKING:
    from sfumato.grids.published.synopsis import Synopsis


@dataclass(frozen=True, eq=False)
class GridClassifier:
    """A fitted model over the cells of a grid. Make it with `Synopsis.classifier`."""

    synopsis: Synopsis
    model: Any
    fallback: int

    @classmethod
    def train(cls, synopsis: Synopsis, estimator: Any = None) -> GridClassifier:
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
        labels = np.array(self.synopsis.class_labels, dtype=object)
        if self.model is None:
            return np.full(len(table), labels[self.fallback], dtype=object)
        leaves = _needed_leaves(self.synopsis, table)
        codes = np.stack([cut.codes(leaves) for cut in self.synopsis.cuts], axis=1)
        return np.asarray(labels[self.model.predict(encode(self.synopsis.cuts, codes))])

    def score(self, table: Any, truth: Any) -> float:
        """Share of rows classified correctly."""
        expected = np.array([str(v) for v in truth], dtype=object)
        return float((self.predict(table) == expected).mean())


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
            leaves[:, [j]] = leaves_of_frame(table, [attribute])
    return leaves
