"""Our own models on the tables kept aside: how far behind the best of them is the one that chooses by itself?

The best of our own is known after the fact only, so a regret of 0 is out of reach for any rule; the claims say how much is
allowed. Share of errors and area under the curve, each against the best of all models in that cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.bench.aside_tables import aside_tables
from sfumato.bench.classify_data import Table, real_table, some_rows
from sfumato.bench.classify_methods import METHODS, misclassification
from sfumato.bench.grids_data import FILES
from sfumato.bench.printing import said

EPSILONS = (0.1, 0.2, 1.0)
CHOOSER = "AutoClassifier"
MOST_ROWS = 75_000  # of a real table, so that all models have the time
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
    """By table, model and ε: figures over some splits of the tables kept aside."""
    tables = aside_tables(1_500 if quick else 20_000)
    return own(
        [t for t in tables if not quick or t.name in ("rare class", "small")], quick=quick, draws=draws, progress=progress
    )


def real(data: Path) -> list[Table]:
    """Adult, Bank and a part of Census-Income, as far as they are in the folder."""
    names = [name for name in ("adult", "bank", "census") if (data / FILES[name]).exists()]
    return [some_rows(real_table(name, data), MOST_ROWS) for name in names]


def own(tables: Iterable[Table], *, quick: bool, draws: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """By table, model and ε: figures of our own models over some splits."""
    found: dict[str, Any] = {}
    for table in tables:
        by_method = found[table.name] = {}
        for name in (CHOOSER, *OTHERS) if not quick else (CHOOSER, "PrivateNaiveBayes", "Majority"):
            by_method[name] = {}
            for epsilon in (1.0,) if quick else EPSILONS:
                figure = misclassification(METHODS[name], table, epsilon, repeats=draws)
                by_method[name][f"{epsilon:g}"] = figure
                progress(f"{table.name}, ε {epsilon:g}, {name}: {said(figure)}")
    return found


def regrets(found: Mapping[str, Any], where: str = "kept aside") -> list[dict[str, Any]]:
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
            told = {"name": f"{where}: {measure} behind the best of our own, {name}", "figure": round(figure, 4)}
            claims.append({**told, "limit": limit, "holds": bool(round(figure, 4) <= limit)})
    return claims
