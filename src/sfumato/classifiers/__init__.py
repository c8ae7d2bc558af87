"""Classifiers: mechanisms that return a model, as scikit-learn estimators.

Every estimator takes `epsilon` and what is public (a schema, bounds, classes) and has a `guarantee_` after fit. They load
when they are used: scikit-learn takes a moment.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.classifiers.additive import PrivateAdditive
    from sfumato.classifiers.automatic import AutoClassifier
    from sfumato.classifiers.baselines import Majority, NoiseFree
    from sfumato.classifiers.erm import PrivateLogisticRegression, PrivateSVM
    from sfumato.classifiers.forest import PrivateForest
    from sfumato.classifiers.functional import FunctionalMechanism
    from sfumato.classifiers.histogram import HistogramClassifier
    from sfumato.classifiers.local_search import PrivGene, PrivLocal
    from sfumato.classifiers.naive_bayes import PrivateNaiveBayes
    from sfumato.classifiers.output_perturbation import OutputPerturbation
    from sfumato.classifiers.tree import PrivateDecisionTree

_NAMES = {
    "AutoClassifier": "automatic",
    "FunctionalMechanism": "functional",
    "HistogramClassifier": "histogram",
    "Majority": "baselines",
    "NoiseFree": "baselines",
    "OutputPerturbation": "output_perturbation",
    "PrivGene": "local_search",
    "PrivLocal": "local_search",
    "PrivateAdditive": "additive",
    "PrivateDecisionTree": "tree",
    "PrivateForest": "forest",
    "PrivateLogisticRegression": "erm",
    "PrivateNaiveBayes": "naive_bayes",
    "PrivateSVM": "erm",
}

__all__ = [
    "AutoClassifier",
    "FunctionalMechanism",
    "HistogramClassifier",
    "Majority",
    "NoiseFree",
    "OutputPerturbation",
    "PrivGene",
    "PrivLocal",
    "PrivateAdditive",
    "PrivateDecisionTree",
    "PrivateForest",
    "PrivateLogisticRegression",
    "PrivateNaiveBayes",
    "PrivateSVM",
]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'sfumato.classifiers' has no attribute {name!r}")
    found = getattr(import_module(f"sfumato.classifiers.{_NAMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
