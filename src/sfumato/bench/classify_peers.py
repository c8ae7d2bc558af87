"""Peers in the same table, where they are installed: diffprivlib's models and interpret's DP-EBM.

They see the same coded features. Each runs at a plain setting of its own with the bounds that the schema gives; DP-EBM is
only (ε, δ)-private (δ = 1e-9).
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.coding import Coding
from sfumato.classifiers.features import design


class _Peer:
    def __init__(self, kind: str, arguments: dict[str, Any]) -> None:
        self.coding = Coding.of(arguments["schema"], target=arguments["target"])
        self.kind, self.epsilon = kind, float(arguments["epsilon"])

    def _rows(self, X: Any) -> NDArray[np.float64]:
        leaves = np.maximum(self.coding.leaves(X), 0)
        if self.kind == "DP-EBM":
            return leaves.astype(np.float64)
        return design(leaves, self.coding.taxonomies)

    def fit(self, X: Any, y: Any) -> _Peer:
        rows = self._rows(X)
        self.model = self._model(rows.shape[1])
        self.model.fit(rows, np.asarray(y, dtype=str))
        return self

    def predict(self, X: Any) -> Any:
        return self.model.predict(self._rows(X)).astype(object)

    def _model(self, width: int) -> Any:
        labels = np.array(self.coding.class_labels)
        if self.kind == "DP-EBM":
            boosting = import_module("interpret.privacy").DPExplainableBoostingClassifier

            bounds = {j: (0, t.leaves - 1) for j, t in enumerate(self.coding.taxonomies)}
            return boosting(epsilon=self.epsilon, delta=1e-9, feature_types=["continuous"] * width, privacy_bounds=bounds)
        models = import_module("diffprivlib.models")

        box = (-np.ones(width), np.ones(width))
        if self.kind == "diffprivlib LR":
            return models.LogisticRegression(epsilon=self.epsilon, data_norm=1.0)
        if self.kind == "diffprivlib NB":
            return models.GaussianNB(epsilon=self.epsilon, bounds=box)
        if self.kind == "diffprivlib tree":
            return models.DecisionTreeClassifier(epsilon=self.epsilon, bounds=box, classes=labels, max_depth=5)
        return models.RandomForestClassifier(epsilon=self.epsilon, bounds=box, classes=labels, n_estimators=10, max_depth=5)


def _maker(kind: str) -> Any:
    return lambda arguments: _Peer(kind, arguments)


PEERS = {
    name: _maker(name) for name in ("diffprivlib LR", "diffprivlib NB", "diffprivlib tree", "diffprivlib forest", "DP-EBM")
}


def available(name: str) -> bool:
    """Whether the peer's package is installed."""
    return find_spec("interpret" if name == "DP-EBM" else "diffprivlib") is not None
