"""A classifier trained on rows that were drawn from a published general table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.published.base import seed_of
from sfumato.privacy.source import Seeded
from sfumato.records.coding import leaves_of
from sfumato.records.opened import need_rows

if TYPE_CHECKING:
    from sfumato.grids.published.joint import Joint

MOST_ROWS = 100_000


@dataclass(frozen=True, eq=False)
class JointClassifier:
    """A fitted model over the groups of all columns. Make it with `Joint.classifier`.

    Attributes
    ----------
    joint : Joint
        What it was trained on.
    model : scikit-learn classifier or None
        The fitted model; None where the drawn rows have one class only.
    fallback : int
        The number of the most frequent class.
    """

    joint: Joint
    model: Any
    fallback: int

    @classmethod
    def train(cls, joint: Joint, estimator: Any = None) -> JointClassifier:
        """Train `estimator` (logistic regression if left out) on as many drawn rows as there are records."""
        rows = min(max(joint._estimated_rows(), 1), MOST_ROWS)
        drawn = joint.leaves(rows, Seeded(seed_of(joint._figures())).generator())
        classes = drawn[:, -1]
        favourite = int(np.bincount(classes).argmax())
        if np.unique(classes).size < 2:
            return cls(joint, None, favourite)
        if estimator is None:
            from sklearn.linear_model import LogisticRegression

            estimator = LogisticRegression(max_iter=300)
        return cls(joint, estimator.fit(_features(joint, _grouped(joint, list(drawn.T[:-1]), rows)), classes), favourite)

    def predict(self, table: Any) -> NDArray[Any]:
        """Class labels for the rows of a data frame with the original columns; a value without a cell says nothing."""
        need_rows(table, "predict")
        labels = np.array(list(self.joint.target_domain.labels()), dtype=object)
        if self.model is None:
            return np.full(len(table), labels[self.fallback], dtype=object)
        missing = [a.name for a in self.joint.attributes if a.name not in table]
        if missing:
            raise InputError(f"the table has no column {missing[0]!r}, which the model needs")
        leaves = [leaves_of(a, table[a.name]) for a in self.joint.attributes]
        return np.asarray(labels[self.model.predict(_features(self.joint, _grouped(self.joint, leaves, len(table))))])

    def score(self, table: Any, truth: Any) -> float:
        """Share of the rows of `table` classified as `truth` says."""
        expected = np.array([str(v) for v in truth], dtype=object)
        return float((self.predict(table) == expected).mean())


def _grouped(joint: Joint, leaves: list[NDArray[np.int64]], rows: int) -> NDArray[np.int64]:
    """The group of each leaf, column by column; -1 for a value without a cell."""
    found = [np.where(v < 0, -1, g[v]) for v, g in zip(leaves, joint.groups, strict=False)]
    return np.stack(found, axis=1) if found else np.zeros((rows, 0), dtype=np.int64)


def _features(joint: Joint, codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """One column per group; none of a column's for a value without a cell."""
    parts = [codes[:, [j]] == np.arange(joint.fitted.sizes[j]) for j in range(codes.shape[1])]
    return np.hstack([*parts, np.zeros((len(codes), 1))]).astype(np.float64)
