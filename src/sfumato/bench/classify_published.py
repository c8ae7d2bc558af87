"""The publishing rivals in the classification bench: a learner trained on the table that each of them publishes.

The same splits as for the models; the number of records is public for them, which costs the others a little of their budget.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sfumato.bench.classify_data import Table
from sfumato.bench.grids_accuracy import RIVALS, evaluate, rival
from sfumato.bench.grids_data import encode
from sfumato.bench.printing import said

NAMES = {"diffgen": "DiffGen", "pph": "PPH", "privbayes": "PrivBayes", "uniform-grid": "UniformGrid"}
FIGURES = ("sd", "se", "auc", "auc_se", "balanced", "balanced_se")
LEARNERS = {"tree": "tree", "logistic": "logistic", "svm": "SVM"}


def published_rivals(
    table: Table,
    epsilons: tuple[float, ...],
    *,
    repeats: int,
    learners: tuple[str, ...],
    without: tuple[str, ...] = (),
    progress: Callable[[str], None],
) -> dict[str, dict[str, dict[str, float]]]:
    """Misclassification by rival and learner, then by ε."""
    case = encode(table.name, table.frame, table.schema, table.target)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name in RIVALS:
        if name in without:
            continue
        for epsilon in epsilons:
            start = time.perf_counter()
            result = evaluate(case, rival(case, name), epsilons=(epsilon,), repeats=repeats, draws=1, learners=learners)
            seconds = (time.perf_counter() - start) / repeats
            for learner in learners:
                told = result[str(epsilon)]
                figures = {"mean": told[learner], **{k: told[f"{learner}_{k}"] for k in FIGURES}, "draws": told["draws"]}
                label = f"{NAMES[name]}, {LEARNERS[learner]}"
                found.setdefault(label, {})[f"{epsilon:g}"] = {**figures, "seconds": seconds}
                progress(f"{table.name}, ε {epsilon:g}, {label}: {said(figures)}")
    return found
