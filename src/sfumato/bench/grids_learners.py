"""What do classifiers predict that were trained on a published table? Decision tree, logistic regression, RBF support
vectors.

A published table is a list of weighted cells (codes per column, class, weight); test rows are coded the same way.
Numbers enter the tree as ordered codes, categories one column per node; the other two learners see one column per node
throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEARNERS = ("tree", "logistic", "svm")


@dataclass(frozen=True, eq=False)
class Published:
    """Weighted training cells and the coded test rows."""

    codes: NDArray[np.int64]
    classes: NDArray[np.int64]
    weights: NDArray[np.float64]
    test: NDArray[np.int64]
    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]


def predictions(
    published: Published, classes: int, *, learners: Sequence[str] = LEARNERS, seed: int = 0
) -> dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """What each learner predicts for the test rows, and its scores per class."""
    keep = published.weights > 0
    codes, given, weights = published.codes[keep], published.classes[keep], published.weights[keep]
    if np.unique(given).size < 2 or codes.shape[1] == 0:
        sums = np.bincount(given, weights, minlength=classes)
        said = np.full(len(published.test), int(sums.argmax()))
        return dict.fromkeys(learners, (said, np.zeros((len(said), classes))))
    test, back = np.unique(published.test, axis=0, return_inverse=True)
    out = {}
    for learner in learners:
        model, encode = _fit(learner, codes, given, weights, published, seed)
        rows, back = encode(test), back.reshape(-1)
        out[learner] = (model.predict(rows)[back].astype(np.int64), _scores(model, rows, classes)[back])
    return out


def _scores(model: Any, rows: Any, classes: int) -> NDArray[np.float64]:
    scores = np.zeros((rows.shape[0], max(classes, int(model.classes_.max()) + 1)))
    found = model.predict_proba(rows) if hasattr(model, "predict_proba") else model.decision_function(rows)
    if found.ndim == 1:  # two classes: one signed score, for the second of them
        found = np.column_stack([-found, found])
    scores[:, model.classes_] = found
    return scores


def _fit(learner: str, codes: Any, classes: Any, weights: Any, published: Published, seed: int) -> tuple[Any, Any]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    def tree_encode(x: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.hstack(
            [
                x[:, [j]].astype(float) if ordered or size <= 2 else (x[:, [j]] == np.arange(size)).astype(float)
                for j, (size, ordered) in enumerate(zip(published.sizes, published.ordered, strict=True))
            ]
        )

    def one_hot(x: NDArray[np.int64]) -> Any:
        from scipy import sparse

        offset = np.concatenate([[0], np.cumsum(published.sizes)])
        rows = np.repeat(np.arange(len(x)), x.shape[1])
        return sparse.csr_matrix((np.ones(x.size), (rows, (x + offset[:-1]).reshape(-1))), shape=(len(x), int(offset[-1])))

    if learner == "tree":
        tree = DecisionTreeClassifier(max_depth=8, min_weight_fraction_leaf=0.001, random_state=0)
        return tree.fit(tree_encode(codes), classes, sample_weight=weights), tree_encode
    if learner == "logistic":
        return LogisticRegression(C=1.0, max_iter=300).fit(one_hot(codes), classes, sample_weight=weights), one_hot
    most = 2000
    if len(codes) > most:  # libsvm is quadratic: a weighted sample of the table stands in for it
        drawn = np.random.default_rng(seed).choice(len(codes), most, p=weights / weights.sum())
        codes, classes, weights = codes[drawn], classes[drawn], np.ones(most)
        if np.unique(classes).size < 2:
            return _fit("tree", published.codes, published.classes, published.weights, published, seed)
    model = SVC(C=1.0, gamma="scale", cache_size=300, max_iter=200_000)
    return model.fit(one_hot(codes), classes, sample_weight=np.minimum(weights, 1e4)), one_hot
