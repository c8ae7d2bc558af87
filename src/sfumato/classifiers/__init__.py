"""Classifiers: mechanisms that return a model, as scikit-learn estimators.

Every estimator takes `epsilon` and what is public (a schema, bounds, classes) and has a `guarantee_` after fit. They load
when they are used: scikit-learn takes a moment. `__all__` lists the estimators; beside them there are `Model`, what a
release of the kind "model" gives, and `check_pipeline`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.classifiers.automatic import AutoClassifier
    from sfumato.classifiers.counting.additive import PrivateAdditive
    from sfumato.classifiers.counting.baselines import Majority
    from sfumato.classifiers.counting.forest import PrivateForest
    from sfumato.classifiers.counting.histogram import HistogramClassifier
    from sfumato.classifiers.counting.naive_bayes import PrivateNaiveBayes
    from sfumato.classifiers.counting.tree import PrivateDecisionTree
    from sfumato.classifiers.linear.erm import PrivateLogisticRegression, PrivateSVM
    from sfumato.classifiers.linear.functional import FunctionalMechanism
    from sfumato.classifiers.linear.local_search import PrivGene, PrivLocal
    from sfumato.classifiers.linear.output_perturbation import OutputPerturbation
    from sfumato.classifiers.pipelines import check_pipeline as check_pipeline
    from sfumato.classifiers.released import Model as Model
    from sfumato.classifiers.search import PrivateSearch

_NAMES = {
    "AutoClassifier": "automatic",
    "FunctionalMechanism": "linear.functional",
    "HistogramClassifier": "counting.histogram",
    "Majority": "counting.baselines",
    "Model": "released",
    "OutputPerturbation": "linear.output_perturbation",
    "PrivGene": "linear.local_search",
    "PrivLocal": "linear.local_search",
    "PrivateAdditive": "counting.additive",
    "PrivateDecisionTree": "counting.tree",
    "PrivateForest": "counting.forest",
    "PrivateLogisticRegression": "linear.erm",
    "PrivateNaiveBayes": "counting.naive_bayes",
    "PrivateSVM": "linear.erm",
    "PrivateSearch": "search",
    "check_pipeline": "pipelines",
}

__all__ = [
    "AutoClassifier",
    "FunctionalMechanism",
    "HistogramClassifier",
    "Majority",
    "OutputPerturbation",
    "PrivGene",
    "PrivLocal",
    "PrivateAdditive",
    "PrivateDecisionTree",
    "PrivateForest",
    "PrivateLogisticRegression",
    "PrivateNaiveBayes",
    "PrivateSVM",
    "PrivateSearch",
]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'sfumato.classifiers' has no attribute {name!r}")
    found = getattr(import_module(f"sfumato.classifiers.{_NAMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
