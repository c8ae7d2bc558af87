"""Does it matter where the columns stand, or what they are called? PrivPfC as published, and with automatic settings.

The published pool is cut by position, so its outcome depends on the order of the columns, which says nothing about the
data. Here a table is published with its columns in several orders, and with its columns under each other's names: the
spread of the mean error over these is what order or names decide. Draws are paired: split and seed are the same for every
order. A fine sweep over ε shows whether a little more budget lets a lucky grid in or out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.bench.grids_accuracy import EPSILONS, PAPER_OPTIONS, evaluate, privpfc
from sfumato.bench.grids_data import Case
from sfumato.bench.printing import short

MOST_SPREAD = 0.001
"""The largest standard deviation over orders, or over names, that automatic settings may have."""
LEARNERS = ("tree", "logistic")
Progress = Callable[[str], None]


def orders(case: Case, *, quick: bool, progress: Progress) -> dict[str, Any]:
    """Misclassification by way, ε and learner: mean over orders (or names), the spread over them, and the draws."""
    if quick:
        one: dict[str, Any] = {"epsilons": (0.1,), "repeats": 1, "draws": 1}
        ways = {"as published, other orders": (2, one), "auto, other orders": (2, one), "auto, other names": (2, one)}
    else:
        ways = {
            "as published, other orders": (6, {"epsilons": EPSILONS, "repeats": 3, "draws": 1}),
            "auto": (1, {"epsilons": EPSILONS, "repeats": 5, "draws": 2}),
            "auto, other orders": (3, {"epsilons": (0.1, 0.5), "repeats": 2, "draws": 2}),
            "auto, other names": (4, {"epsilons": (0.1,), "repeats": 4, "draws": 4}),
        }
    found = {}
    for way, (count, how) in ways.items():
        views = [case.renamed(number) if way.endswith("names") else case.in_order(number) for number in range(count)]
        found[way] = _over(views, PAPER_OPTIONS if way.startswith("as published") else {}, how)
        progress(f"{case.name}, {way}: {found[way]}")
    return found


def sweep(case: Case, *, epsilons: Sequence[float], progress: Progress, **how: Any) -> dict[str, Any]:
    """The tree's error over budgets that differ by little, and the largest step from one to the next."""
    by_epsilon = evaluate(case, privpfc(case), epsilons=epsilons, learners=("tree",), name="sweep", progress=progress, **how)
    errors = [figures["tree"] for figures in by_epsilon.values()]
    steps = np.abs(np.diff(errors))
    return {"errors": dict(zip(by_epsilon, errors, strict=True)), "largest step": round(float(steps.max()), 4)}


def _over(views: Sequence[Case], options: Mapping[str, Any], how: Mapping[str, Any]) -> dict[str, Any]:
    runs = [evaluate(view, privpfc(view, **options), learners=LEARNERS, **how) for view in views]
    return {
        epsilon: {learner: _spread([run[epsilon] for run in runs], learner) for learner in LEARNERS} for epsilon in runs[0]
    }


def _spread(runs: Sequence[Mapping[str, Any]], learner: str) -> dict[str, Any]:
    """Mean error of a learner over several orders, its standard error over splits, spread and ends, and draws per order.

    >>> _spread([{"tree": 0.16, "tree_se": 0.001, "draws": 8}, {"tree": 0.18, "tree_se": 0.001, "draws": 8}], "tree")
    {'mean': 0.17, 'se': 0.001, 'sd': 0.0141, 'least': 0.16, 'most': 0.18, 'orders': 2, 'draws': 8}
    """
    errors = [run[learner] for run in runs]
    return {
        "mean": round(float(np.mean(errors)), 4),
        "se": round(float(np.mean([run[f"{learner}_se"] for run in runs])), 4),
        "sd": round(float(np.std(errors, ddof=1)), 4) if len(errors) > 1 else 0.0,
        "least": round(min(errors), 4),
        "most": round(max(errors), 4),
        "orders": len(errors),
        "draws": runs[0]["draws"],
    }


def order_claims(name: str, found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """That the spread over orders and over names is small with automatic settings, whatever the learner."""
    claims = []
    for way, by_epsilon in found.items():
        if not way.startswith("auto, "):
            continue
        for epsilon, by_learner in by_epsilon.items():
            for learner, figure in by_learner.items():
                told = f"{name} ε={epsilon}, {learner}, {way}: standard deviation of the error"
                claims.append(
                    {"name": told, "figure": figure["sd"], "limit": MOST_SPREAD, "holds": figure["sd"] <= MOST_SPREAD}
                )
    return claims


def order_table(name: str, found: Mapping[str, Any]) -> str:
    """The figures as Markdown.

    >>> figure = {"mean": 0.17, "se": 0.001, "sd": 0.0141, "least": 0.16, "most": 0.18, "orders": 2, "draws": 8}
    >>> print(order_table("adult", {"as published, other orders": {"0.5": {"tree": figure}}}))
    | adult | ε | learner | mean ± s.e. | standard deviation over orders | least to most | orders | draws of each |
    |---|---|---|---|---|---|---|---|
    | as published, other orders | 0.5 | tree | .1700 ± .0010 | .0141 | .160 to .180 | 2 | 8 |
    """
    title = "mean ± s.e. | standard deviation over orders | least to most | orders | draws of each"
    lines = [f"| {name} | ε | learner | {title} |", "|---" * 8 + "|"]
    for way, by_epsilon in found.items():
        for epsilon, by_learner in by_epsilon.items():
            for learner, f in by_learner.items():
                spread = f"{short(f['sd'], 4)} | {short(f['least'])} to {short(f['most'])}" if f["orders"] > 1 else " | "
                mean = f"{short(f['mean'], 4)} ± {short(f['se'], 4)}"
                lines.append(f"| {way} | {epsilon} | {learner} | {mean} | {spread} | {f['orders']} | {f['draws']} |")
    return "\n".join(lines)
