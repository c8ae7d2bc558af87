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

from sfumato.bench.grids_accuracy import PAPER_OPTIONS, evaluate, privpfc
from sfumato.bench.grids_data import Case
from sfumato.bench.printing import short

MOST_SPREAD = 0.001
"""The largest standard deviation over orders, or over names, that automatic settings may have."""
LEARNERS = ("tree", "logistic")
Progress = Callable[[str], None]


def orders(case: Case, *, quick: bool, progress: Progress) -> dict[str, Any]:
    """Misclassification by way, ε and learner: mean over orders (or names), the spread over them, and the draws."""
    count = 2 if quick else 6
    how: dict[str, Any] = {"epsilons": (0.1,) if quick else (0.1, 0.5), "learners": LEARNERS}
    how |= {"repeats": 1, "draws": 1} if quick else {"repeats": 4, "draws": 2}
    published = {**how, "epsilons": (0.1,) if quick else (0.1, 0.5, 1.0)}
    views = [case.in_order(number) for number in range(count)]
    names = [case.renamed(number) for number in range(count)]
    found = {
        "as published, other orders": _over(views, PAPER_OPTIONS, published),
        "auto, other orders": _over(views, {}, how),
        "auto, other names": _over(names, {}, how),
    }
    progress(f"{case.name}: {found}")
    return found


def sweep(case: Case, *, epsilons: Sequence[float], progress: Progress, **how: Any) -> dict[str, Any]:
    """The tree's error over budgets that differ by little, and the largest step from one to the next."""
    by_epsilon = evaluate(case, privpfc(case), epsilons=epsilons, learners=("tree",), name="sweep", progress=progress, **how)
    errors = [figures["tree"] for figures in by_epsilon.values()]
    steps = np.abs(np.diff(errors))
    return {"errors": dict(zip(by_epsilon, errors, strict=True)), "largest step": round(float(steps.max()), 4)}


def _over(views: Sequence[Case], options: Mapping[str, Any], how: Mapping[str, Any]) -> dict[str, Any]:
    runs = [evaluate(view, privpfc(view, **options), **how) for view in views]
    return {
        epsilon: {
            learner: _spread([run[epsilon][learner] for run in runs], runs[0][epsilon]["draws"]) for learner in LEARNERS
        }
        for epsilon in runs[0]
    }


def _spread(errors: Sequence[float], draws: int) -> dict[str, Any]:
    """Mean, spread and ends of the mean errors of several orders.

    >>> _spread([0.16, 0.18], 8)
    {'mean': 0.17, 'sd': 0.0141, 'least': 0.16, 'most': 0.18, 'orders': 2, 'draws': 8}
    """
    return {
        "mean": round(float(np.mean(errors)), 4),
        "sd": round(float(np.std(errors, ddof=1)), 4) if len(errors) > 1 else 0.0,
        "least": round(min(errors), 4),
        "most": round(max(errors), 4),
        "orders": len(errors),
        "draws": draws,
    }


def order_claims(name: str, found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """That the spread over orders and over names is small with automatic settings, whatever the learner."""
    claims = []
    for way, by_epsilon in found.items():
        if not way.startswith("auto"):
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

    >>> figure = {"mean": 0.17, "sd": 0.0141, "least": 0.16, "most": 0.18, "orders": 2, "draws": 8}
    >>> print(order_table("adult", {"as published, other orders": {"0.5": {"tree": figure}}}))
    | adult | ε | learner | mean | standard deviation | least to most | orders | draws of each |
    |---|---|---|---|---|---|---|---|
    | as published, other orders | 0.5 | tree | .1700 | .0141 | .160 to .180 | 2 | 8 |
    """
    lines = [f"| {name} | ε | learner | mean | standard deviation | least to most | orders | draws of each |"]
    lines.append("|---" * 8 + "|")
    for way, by_epsilon in found.items():
        for epsilon, by_learner in by_epsilon.items():
            for learner, f in by_learner.items():
                ends = f"{short(f['least'])} to {short(f['most'])}"
                figures = f"{short(f['mean'], 4)} | {short(f['sd'], 4)} | {ends} | {f['orders']} | {f['draws']}"
                lines.append(f"| {way} | {epsilon} | {learner} | {figures} |")
    return "\n".join(lines)
