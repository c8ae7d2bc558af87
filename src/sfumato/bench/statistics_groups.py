"""Means, sums and counts of 2,000 groups: separate noise against shrinkage, over simulated and real tables.

Every simulated table is released by both mechanisms from the same noise, with fresh seeds. Errors are root mean
squares over the groups that hold somebody (an empty group has no mean), each group counting once; `by rows` weighs them by
their size. `separate` is the clamped ratio of the noisy parts, the middle of the range where the noisy number of rows is not
positive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.bins import Axis, Bins
from sfumato.privacy import NANO, Exact, Meter, PersonBudgets, Seeded, Terms
from sfumato.statistics.group_question import GroupQuestion
from sfumato.statistics.groups import GroupPlan, separate, shrunk
from sfumato.statistics.shares import Plan, plan_parts

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
GROUPS, STEPS = 2000, 1000
LIMIT, NEVER = 0.7, 1.05
EPSILONS = (0.05, 0.2, 0.5, 2.0)
SIZES: dict[str, Callable[[np.random.Generator], Integers]] = {
    "1 to 1e5, even in logarithms": lambda draw: np.floor(np.exp(draw.uniform(0, np.log(1e5), GROUPS))).astype(np.int64),
    "Zipf": lambda draw: np.maximum(1, 1e5 / np.arange(1, GROUPS + 1) ** 1.3).astype(np.int64),
    "1 to 1e5, even": lambda draw: draw.integers(1, 100_001, GROUPS),
    "1 to 30": lambda draw: draw.integers(1, 31, GROUPS),
    "200 to 3,000": lambda draw: draw.integers(200, 3001, GROUPS),
    "most empty": lambda draw: np.where(draw.random(GROUPS) < 0.6, 0, np.exp(draw.uniform(0, 11.5, GROUPS))).astype(
        np.int64
    ),
}
MEANS: dict[str, Callable[[Integers, np.random.Generator], Floats]] = {
    "all alike": lambda n, draw: np.full(n.size, 0.5),
    "all alike, off the middle": lambda n, draw: np.full(n.size, 0.85),
    "sd 5% of the range": lambda n, draw: 0.6 + 0.05 * draw.standard_normal(n.size),
    "sd 15% of the range": lambda n, draw: 0.5 + 0.15 * draw.standard_normal(n.size),
    "anywhere": lambda n, draw: draw.random(n.size),
    "two clusters": lambda n, draw: np.where(draw.random(n.size) < 0.5, 0.1, 0.9),
    "at both ends": lambda n, draw: draw.integers(0, 2, n.size).astype(np.float64),
    "larger with size": lambda n, draw: 0.05 + 0.9 * np.log(np.maximum(n, 1)) / np.log(1e5),
    "large and small at opposite ends": lambda n, draw: np.where(n > 100, 1.0, 0.0),
    "3% outliers": lambda n, draw: np.where(draw.random(n.size) < 0.03, draw.integers(0, 2, n.size), 0.6),
    "near one end": lambda n, draw: 0.01 + 0.02 * draw.random(n.size),
}
WITHIN: dict[str, Callable[[Floats, Integers, np.random.Generator], Floats]] = {
    "rows alike": lambda m, n, draw: m + 0.02 * draw.standard_normal(m.size) / np.sqrt(np.maximum(n, 1)),
    "rows differ by 20% of the range": lambda m, n, draw: m + 0.2 * draw.standard_normal(m.size) / np.sqrt(np.maximum(n, 1)),
    "yes or no": lambda m, n, draw: draw.binomial(np.maximum(n, 1), np.clip(m, 0, 1)) / np.maximum(n, 1),
}


def run(
    *, quick: bool = False, data: Path | None = None, peers: bool = False, progress: Callable[[str], None] = lambda _: None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Figures and claims."""
    draw = np.random.default_rng()
    reps = 2
    every = list(product(SIZES, MEANS, EPSILONS))
    chosen = every[:: len(every) // 12] if quick else every
    cells = []
    for i, (sizes, means, epsilon) in enumerate(chosen):
        within = list(WITHIN)[i % len(WITHIN)]
        progress(f"groups: {sizes}, {means}, ε {epsilon}")
        cells.append(
            {"sizes": sizes, "means": means, "within": within, **_compared(sizes, means, within, epsilon, reps, draw)}
        )
    headline = [
        {"between": means, **_compared(next(iter(SIZES)), means, "rows differ by 20% of the range", epsilon, reps, draw)}
        for means in ("sd 5% of the range", "sd 15% of the range")
        for epsilon in ((0.2,) if quick else (0.05, 0.2, 0.5, 1.0, 2.0))
    ]
    figures: dict[str, Any] = {"cells": cells, "headline": headline, "personal": _personal(quick, draw, progress)}
    if data is not None:
        figures["tables"] = list(_tables(data, reps, draw, progress))
    return figures, claims(figures)


def claims(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """What must hold."""
    main = [c["ratio"] for c in figures["headline"] if c["between"] == "sd 5% of the range"]
    made = [
        _claim("2,000 groups of 1 to 1e5 rows, means with an sd of 5% of the range: error over separate", max(main), LIMIT),
        _claim("largest error over separate in any simulated cell", max(c["ratio"] for c in figures["cells"]), NEVER),
        _claim(
            "least share of groups in their average interval", min(c["average"] for c in figures["cells"]), 0.94, least=True
        ),
        _claim(
            "least share of groups in their interval for any data", min(c["any"] for c in figures["cells"]), 0.94, least=True
        ),
        _claim("budgets of everybody's own: largest over separate", max(c["ratio"] for c in figures["personal"]), NEVER),
    ]
    if "tables" in figures:
        made.append(_claim("largest error over separate on a real table", max(t["ratio"] for t in figures["tables"]), NEVER))
    return made


def _claim(name: str, figure: float, limit: float, *, least: bool = False) -> dict[str, Any]:
    return {"name": name, "figure": round(figure, 4), "limit": limit, "holds": figure >= limit if least else figure <= limit}


# --- simulated tables ------------------------------------------------------------------------------------------------


def _plans(groups: int, terms: Terms, nano: int | None) -> tuple[GroupPlan, GroupPlan]:
    question = GroupQuestion(
        "mean", Bins((Axis.categories("group", [str(i) for i in range(groups)]),)), "x", 0.0, 1.0, STEPS
    )

    def measure(depth: int, share: Fraction) -> Plan:
        return plan_parts(terms, question.by if depth else None, 2, nano=nano)

    return separate(question, measure), shrunk(question, measure)


def _compared(sizes: str, means: str, within: str, epsilon: float, reps: int, draw: np.random.Generator) -> dict[str, Any]:
    plans = _plans(GROUPS, Terms(), int(epsilon * NANO))
    found = []
    for _ in range(reps):
        rows = SIZES[sizes](draw)
        share = np.clip(WITHIN[within](np.clip(MEANS[means](rows, draw), 0, 1), rows, draw), 0, 1)
        found.append(_errors(plans, rows[None, :], share[None, :], Terms(), draw))
    return {"epsilon": epsilon, **_ratios(np.mean(found, axis=0))}


def _errors(
    plans: tuple[GroupPlan, ...], rows: Integers, share: Floats, terms: Terms, draw: np.random.Generator
) -> list[float]:
    """Squared errors of every plan, each group once and by rows, and the coverage of the last plan's intervals.

    `rows` and `share` have a line for every group of people.
    """
    total = np.rint(rows * share * STEPS).astype(np.int64)
    tier, group = np.nonzero(rows)
    exact = Exact((tier, group[:, None], np.stack([rows[tier, group], total[tier, group]], axis=1)))
    there = rows.sum(axis=0) > 0
    weight = rows.sum(axis=0)[there]
    truth = total.sum(axis=0)[there] / STEPS / weight
    out, seed = [], int(draw.integers(2**31))  # the same noise for all: the plans differ in what they make of it
    for plan in plans:
        meter = Meter.under(terms.up_to(plan.charge), source=Seeded(seed))
        made = plan.run(exact, meter)
        wrong = (made.values[there] - truth) ** 2
        out += [float(wrong.mean()), float(np.average(wrong, weights=weight))]
    assert made.average_low is not None
    assert made.average_high is not None
    for low, high in ((made.average_low, made.average_high), (made.low, made.high)):
        out.append(float(np.mean((low[there] <= truth + 1e-9) & (truth <= high[there] + 1e-9))))
    return out


def _ratios(found: Floats) -> dict[str, float]:
    plain, plain_rows, best, best_rows, average, every = found.tolist()
    return {
        "separate": round(float(np.sqrt(plain)), 5),
        "shrunk": round(float(np.sqrt(best)), 5),
        "ratio": round(float(np.sqrt(best / plain)), 4),
        "ratio by rows": round(float(np.sqrt(best_rows / plain_rows)), 4),
        "average": round(average, 4),
        "any": round(every, 4),
    }


def _personal(quick: bool, draw: np.random.Generator, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Three tiers, once with budgets that have nothing to do with the values and once with the strict at the lower end."""
    people = np.array([54_000, 37_000, 9_000])
    terms = Terms(budgets=PersonBudgets(np.array([10**7, 2 * 10**8, 10**9]), people))
    out = []
    for leaning in (False, True):
        for groups in (50,) if quick else (50, 500):
            progress(f"groups: budgets of everybody's own, {groups} groups, {'leaning' if leaning else 'independent'}")
            plans, found = _plans(groups, terms, None), []
            for _ in range(2 if quick else 4):
                spread = draw.dirichlet(np.full(groups, 0.5))
                rows = np.stack([draw.multinomial(n, spread) for n in people])
                means = np.clip(0.5 + 0.1 * draw.standard_normal(groups), 0, 1)
                share = np.stack([means * (0.5 if leaning and tier == 0 else 1.0) for tier in range(3)])
                found.append(_errors(plans, rows, share, terms, draw))
            out.append({"leaning": leaning, "groups": groups, **_ratios(np.mean(found, axis=0))})
    return out


# --- real tables -----------------------------------------------------------------------------------------------------

_ASKED = (
    ("adult", "hours_per_week", ("occupation", "native_country"), 0.0, 99.0),
    ("adult", "age", ("education", "occupation"), 17.0, 90.0),
    ("ml1m_ratings", "rating", ("movie",), 1.0, 5.0),
    ("yelp2013_reviews", "stars", ("business",), 1.0, 5.0),
)


def _tables(data: Path, reps: int, draw: np.random.Generator, progress: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    import pandas as pd

    for name, column, by, low, high in _ASKED:
        file = data / f"{name}.parquet"
        if not file.exists():
            continue
        frame = pd.read_parquet(file)
        if not {column, *by} <= set(frame.columns):
            continue
        frame = frame.dropna(subset=[column, *by])
        code = frame.groupby(list(by)).ngroup().to_numpy()
        rows = np.bincount(code)
        share = (np.bincount(code, weights=frame[column].clip(low, high)) / rows - low) / (high - low)
        for epsilon in (0.1, 1.0):
            progress(f"groups: mean of {column} by {' and '.join(by)} in {name}, ε {epsilon}")
            plans = _plans(rows.size, Terms(), int(epsilon * NANO))
            found = [_errors(plans, rows[None, :], share[None, :], Terms(), draw) for _ in range(reps)]
            asked = {"table": name, "column": column, "by": list(by), "groups": int(rows.size), "epsilon": epsilon}
            yield {**asked, **_ratios(np.mean(found, axis=0))}


# --- pictures --------------------------------------------------------------------------------------------------------


def plots(folder: Path, figures: dict[str, Any]) -> list[Path]:
    """The error over that of separate noise, in every simulated cell."""
    from matplotlib.figure import Figure

    from sfumato.palette import CYCLE, VERMILION

    figure = Figure(figsize=(8, 4.6), layout="constrained")
    ax = figure.add_subplot()
    names = list(MEANS)
    for i, sizes in enumerate(SIZES):
        some = [c for c in figures["cells"] if c["sizes"] == sizes]
        place = [names.index(c["means"]) + (i - 2.5) * 0.11 for c in some]
        ax.plot([c["ratio"] for c in some], place, "o", ms=3.5, color=CYCLE[i], label=sizes)
    ax.axvline(1.0, color="0.3", lw=0.8)
    ax.axvline(NEVER, color=VERMILION, lw=0.8, ls="--")
    ax.set_yticks(range(len(names)), names, fontsize=8)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(0, 1.1)
    ax.set_xlabel("error of shrunk means over that of separate noise")
    ax.set_ylabel("means of the groups")
    ax.legend(frameon=False, fontsize=7, title="sizes of the groups", title_fontsize=7, loc="lower left")
    path = folder / "groups-shrunk.png"
    figure.savefig(path, dpi=110)
    return [path]
