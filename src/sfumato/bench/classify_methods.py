"""The methods of the classification bench by name, and how well one of them does on some splits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import classifiers as c
from sfumato.bench.classify_data import Table
from sfumato.bench.classify_noise_free import NoiseFree
from sfumato.bench.metrics import measures, summarise
from sfumato.privacy import Seeded

Make = Callable[[dict[str, Any]], Any]


def _grid_by(learner: str) -> Make:
    def make(arguments: dict[str, Any]) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import SVC

        models = {"tree": None, "logistic": LogisticRegression(max_iter=300), "svm": SVC(max_iter=100_000)}
        return c.HistogramClassifier(estimator=models[learner], **arguments)

    return make


def _noise_free(learner: str) -> Make:
    def make(arguments: dict[str, Any]) -> Any:
        from sklearn.tree import DecisionTreeClassifier

        tree = DecisionTreeClassifier(max_depth=8, min_samples_leaf=30, random_state=0)
        return NoiseFree(estimator=tree if learner == "tree" else None, **arguments)

    return make


METHODS: dict[str, Make] = {
    "AutoClassifier": lambda a: c.AutoClassifier(**a),
    "PrivateAdditive": lambda a: c.PrivateAdditive(**a),
    "PrivPfC, tree": _grid_by("tree"),
    "PrivPfC, logistic": _grid_by("logistic"),
    "PrivPfC, SVM": _grid_by("svm"),
    "PrivateDecisionTree": lambda a: c.PrivateDecisionTree(**a),
    "PrivateForest": lambda a: c.PrivateForest(**a),
    "PrivateNaiveBayes": lambda a: c.PrivateNaiveBayes(**a),
    "PrivateLogisticRegression": lambda a: c.PrivateLogisticRegression(**a),
    "PrivateSVM": lambda a: c.PrivateSVM(**a),
    "OutputPerturbation": lambda a: c.OutputPerturbation(**a),
    "FunctionalMechanism": lambda a: c.FunctionalMechanism(**a),
    "PrivLocal": lambda a: c.PrivLocal(**a),
    "PrivGene": lambda a: c.PrivGene(**a),
    "Majority": lambda a: c.Majority(**a),
    "NoiseFree, logistic (not private)": _noise_free("logistic"),
    "NoiseFree, tree (not private)": _noise_free("tree"),
}


def splits(table: Table, count: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Stratified 80/20 splits, the same for every method."""
    from sklearn.model_selection import StratifiedShuffleSplit

    yield from StratifiedShuffleSplit(count, test_size=0.2, random_state=0).split(np.zeros(len(table.frame)), table.labels)


def misclassification(make: Any, table: Table, epsilon: float, *, repeats: int, **options: Any) -> dict[str, Any]:
    """Figures over the splits (see `told`); a peer measures itself, on the same splits."""
    if hasattr(make, "misclassification"):
        return dict(make.misclassification(table, epsilon, repeats=repeats, **options))
    X, y = table.features, table.labels
    found, seconds = [], []
    for number, (train, test) in enumerate(splits(table, repeats)):
        arguments = {
            "epsilon": epsilon,
            "schema": table.schema,
            "target": table.target,
            "source": Seeded(7000 + number),
            **options,
        }
        model = make(arguments)
        start = time.perf_counter()
        model.fit(X.iloc[train], y[train])
        seconds.append(time.perf_counter() - start)
        found.append(measured(model, X.iloc[test], y[test]))
    return told(found, seconds)


def measured(model: Any, X: Any, y: NDArray[Any]) -> dict[str, float]:
    """Share of errors, area under the curve and balanced accuracy of a fitted model on rows held out."""
    place = {label: code for code, label in enumerate(model.classes_)}
    truth = np.array([place.get(label, -1) for label in y])
    said = np.array([place[label] for label in model.predict(X)])
    scores = model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)
    return measures(truth, said, scores)


def told(draws: Sequence[Mapping[str, float]], seconds: Sequence[float]) -> dict[str, Any]:
    """What a table says of one cell: the share misclassified as `mean`, `sd` and `se`, the other measures with theirs.

    >>> found = told([{"error": 0.1, "auc": 0.9}, {"error": 0.3, "auc": 0.7}], [1.0, 3.0])
    >>> {k: round(v, 3) for k, v in found.items()}
    {'mean': 0.2, 'sd': 0.1, 'se': 0.1, 'auc': 0.8, 'auc_se': 0.1, 'draws': 2, 'seconds': 2.0}
    """
    found = summarise(draws)
    error = {"mean": found.pop("error"), "sd": float(np.std([d["error"] for d in draws])), "se": found.pop("error_se")}
    return error | found | {"seconds": float(np.mean(seconds))}
