"""Our own models on the tables kept aside: how far behind the best of them is the one that chooses by itself?

The best of our own is known after the fact only, so a regret of 0 is out of reach for any rule; the claims say how much is
allowed. Share of errors and area under the curve, each against the best of all models in that cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sfumato.bench.aside_tables import aside_tables
from sfumato.bench.classify_methods import METHODS, misclassification
from sfumato.bench.printing import said

EPSILONS = (0.1, 0.2, 1.0)
CHOOSER = "AutoClassifier"
OTHERS = (
    "PrivateAdditive",
    "PrivPfC, tree",
    "PrivateDecisionTree",
    "PrivateForest",
    "PrivateNaiveBayes",
    "PrivateLogisticRegression",
    "PrivateSVM",
    "Majority",
)
LIMITS = {"error": (0.002, 0.006), "auc": (0.005, 0.015)}  # behind the best of our own: on average, in the worst cell


def aside(*, quick: bool, draws: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """By table, model and ε: figures over some splits."""
    found: dict[str, Any] = {}
    for table in aside_tables(1_500 if quick else 20_000):
        if quick and table.name not in ("rare class", "small"):
            continue
        by_method = found[table.name] = {}
        for name in (CHOOSER, *OTHERS) if not quick else (CHOOSER, "PrivateNaiveBayes", "Majority"):
            by_method[name] = {}
            for epsilon in (1.0,) if quick else EPSILONS:
                figure = misclassification(METHODS[name], table, epsilon, repeats=draws)
                by_method[name][f"{epsilon:g}"] = figure
                progress(f"{table.name}, ε {epsilon:g}, {name}: {said(figure)}")
    return found


def regrets(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How far the chooser is behind the best of all, on average and in the worst cell.

    >>> figures = {"AutoClassifier": {"1": {"mean": 0.2, "auc": 0.8}}, "Majority": {"1": {"mean": 0.195, "auc": 0.5}}}
    >>> [(c["figure"], c["holds"]) for c in regrets({"small": figures})]
    [(0.005, False), (0.005, True), (0.0, True), (0.0, True)]
    """
    claims = []
    for measure, limits in LIMITS.items():
        key, sign = ("mean", 1) if measure == "error" else ("auc", -1)
        behind = {}
        for table, by_method in found.items():
            for epsilon, figure in by_method[CHOOSER].items():
                best = min(sign * by_epsilon[epsilon][key] for by_epsilon in by_method.values())
                behind[f"{table}, ε {epsilon}"] = sign * figure[key] - best
        worst = max(behind, key=lambda cell: behind[cell])
        means = (float(np.mean(list(behind.values()))), behind[worst])
        for name, figure, limit in zip(("on average", f"at worst ({worst})"), means, limits, strict=True):
            told = {"name": f"kept aside: {measure} behind the best of our own, {name}", "figure": round(figure, 4)}
            claims.append({**told, "limit": limit, "holds": bool(round(figure, 4) <= limit)})
    return claims
