"""What dependence between budgets and values does to a count: rosters x gaps between the tiers x which tier differs.

For every cell the error of `affine` (which assumes independence), of an unbiased answer (`minimum`) and of `adaptive`, and
how often the interval that is printed first and the narrow one hold the truth. Simulated people satisfy the condition with
probability .4, those of the tier that differs with .4 less the gap. On a table of real people (`consent_table`) the values
are the table's, and who grants how much goes with age, sex or income.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.bench.people_consent_data import dealt_tiers, people_by
from sfumato.bench.people_data import draw_budgets, roster
from sfumato.people import Question, SumReader, plan_offer
from sfumato.people.mechanisms.adaptive import AdaptivePlan
from sfumato.people.shrinkage import INDEPENDENT, Shrinkage
from sfumato.privacy import Exact, Meter, PersonBudgets, Seeded

Integers = NDArray[np.int64]
GAPS = (0.0, 0.01, 0.05, 0.2, 0.4)
PATTERNS = ("strict", "middle", "generous", "trend")
RATE = 0.4
WAYS = ("affine", "minimum", "adaptive")
# What must be reached: at most this many times affine if independent, and times the unbiased answer at any gap.
REACH = {
    "three tiers, 50k": (1.6, 1.3),
    "three tiers, 190k": (1.05, 1.12),
    "Uniform(.01, .1), 50k": (1.9, 1.4),
    "lognormal, 50k": (1.9, 1.4),
}


class _Tabulated(AdaptivePlan):
    """The adaptive plan with its ψ solved for two digits of the spread: draws that are alike share a table."""

    def shrinkage(self, variance: float) -> Shrinkage:
        return Shrinkage.of(float(f"{self._spread(variance):.2g}"), weight=self.weight)


def tabulated(plan: AdaptivePlan) -> AdaptivePlan:
    """The plan for many draws: the same sums, the same ψ to within a percent of its spread."""
    return _Tabulated(plan.question, plan.safe, plan.keen)


@cache
def rosters() -> dict[str, PersonBudgets]:
    """The rosters by name."""
    rng = np.random.default_rng(23)
    tiers = {
        "three tiers, 50k": ((0.005, 26_913), (0.1, 18_554), (0.5, 4_533)),
        "three tiers, 190k": ((0.01, 102_600), (0.2, 70_300), (1.0, 17_100)),
    }
    named = {
        name: PersonBudgets.from_tiers(dict(zip(("strict", "standard", "open"), found, strict=True)))
        for name, found in tiers.items()
    }
    for name, profile in (("Uniform(.01, .1), 50k", "uniform"), ("lognormal, 50k", "lognormal")):
        named[name] = roster(draw_budgets(profile, 50_000, rng), decimals=3)[0]
    return named


def rates(budgets: PersonBudgets, gap: float, pattern: str) -> NDArray[np.float64]:
    """The share of each person group that satisfies the condition.

    Groups are split by their order into three tiers of people; one of them differs by `gap`, or rates fall with the budget
    from the strictest to the most generous.
    """
    below = np.cumsum(budgets.counts) - budgets.counts / 2
    place = below / budgets.people
    if budgets.groups == 3:
        place = np.array([0.1, 0.5, 0.9])
    shape = {
        "strict": place < 1 / 3,
        "middle": (place >= 1 / 3) & (place < 2 / 3),
        "generous": place >= 2 / 3,
        "trend": (place - place[0]) / (place[-1] - place[0]),
    }[pattern].astype(np.float64)
    return np.asarray(RATE + (gap / 2 if pattern == "trend" else 0.0) - gap * shape)


def consent(
    *,
    draws: int,
    gaps: tuple[float, ...] = GAPS,
    names: tuple[str, ...] = tuple(REACH),
    patterns: tuple[str, ...] = PATTERNS,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """The table of simulated people: per roster what is expected, and every cell."""
    table: dict[str, Any] = {}
    for name in names:
        budgets = rosters()[name]
        plans = _plans(budgets)
        rows: dict[str, Any] = {}
        for gap in gaps:
            for pattern in patterns if gap else patterns[:1]:
                progress(f"consent: {name}, gap {gap:g}, {pattern}")
                rng = np.random.default_rng([int(1000 * gap), PATTERNS.index(pattern), budgets.people])
                share = rates(budgets, gap, pattern)
                counts = (rng.binomial(budgets.counts, share) for _ in range(draws))
                rows[f"gap {gap:g}, {pattern}" if gap else "gap 0"] = _cell(plans, budgets, counts, rng)
        table[name] = {"expected": _expected(plans), "cells": rows, "draws": draws}
    return table


def consent_table(*, draws: int, data: Path | None, progress: Callable[[str], None]) -> dict[str, Any]:
    """The same on tables of people (real ones if the folder holds them): who grants what goes with one of their columns."""
    table: dict[str, Any] = {}
    for name, people in people_by(data).items():
        rows: dict[str, Any] = {}
        expected: dict[str, float] = {}
        for column, odds in ((c, o) for c in people for o in (1.0, 1.5, 4.0)):
            if odds == 1.0 and column != "age":
                continue  # without dependence all columns are alike
            progress(f"consent: {name}, consent by {column}, odds {odds:g}")
            rng = np.random.default_rng([int(10 * odds), len(column), len(name)])
            budgets, heads, gap = dealt_tiers(people[column], odds)
            plans = _plans(budgets)
            counts = (_dealt(heads, people[column].positives, rng) for _ in range(draws))
            expected = expected or _expected(plans)  # tiers have the same shares whoever is in them
            made = _cell(plans, budgets, counts, rng)
            rows["independent" if odds == 1.0 else f"by {column}, odds {odds:g}"] = made | {"gap": round(gap, 4)}
        table[name] = {"expected": expected, "cells": rows, "draws": draws}
    return table


def _dealt(heads: Integers, positives: Integers, rng: np.random.Generator) -> Integers:
    """The real positives of every kind of people, dealt to the tiers of that kind."""
    dealt = [
        rng.multivariate_hypergeometric(row, int(some), method="marginals")
        for row, some in zip(heads, positives, strict=True)
    ]
    return np.asarray(np.sum(dealt, axis=0))


def _plans(budgets: PersonBudgets) -> dict[str, Any]:
    plans = {way: plan_offer(Question(budgets, selectivity=RATE), way).plan for way in WAYS}
    return plans | {"adaptive": tabulated(plans["adaptive"])}


def _expected(plans: dict[str, Any]) -> dict[str, float]:
    adaptive = plans["adaptive"]
    affine, unbiased = plans["affine"].expected_rmse, plans["minimum"].expected_rmse
    largest = max(adaptive.error_at(gap) for gap in np.linspace(0, max(GAPS), 60))
    return {
        "affine": affine,
        "unbiased": unbiased,
        "adaptive": adaptive.expected_rmse,
        "adaptive, worst gap": largest,
        "over affine": adaptive.expected_rmse / affine,
        "over unbiased": largest / unbiased,
    }


def _cell(plans: dict[str, Any], budgets: PersonBudgets, counts: Any, rng: np.random.Generator) -> dict[str, float]:
    errors: dict[str, list[float]] = {way: [] for way in WAYS}
    first: list[bool] = []
    narrow: list[bool] = []
    for found in counts:
        truth = int(found.sum())
        reader = SumReader(Exact(tuple(int(c) for c in found)))
        for way, plan in plans.items():
            made = plan.run(reader, Meter(budgets=budgets, source=Seeded(int(rng.integers(2**62)))))
            errors[way].append(made.value - truth)
            if way == "adaptive":
                for held, (low, high) in ((first, made.interval()), (narrow, made.interval(independent=True))):
                    held.append(low <= truth <= high)
    rmse = {way: float(np.sqrt(np.mean(np.square(e)))) for way, e in errors.items()}
    return {
        "affine": rmse["affine"],
        "unbiased": rmse["minimum"],
        "adaptive": rmse["adaptive"],
        # The denominators by their formulas: two simulated numbers would make the ratio twice as uncertain.
        "over affine at 0": rmse["adaptive"] / plans["affine"].expected_rmse,
        "over unbiased": rmse["adaptive"] / plans["minimum"].expected_rmse,
        "first interval": float(np.mean(first)),
        "narrow interval": float(np.mean(narrow)),
    }


def consent_claims(table: dict[str, Any]) -> list[dict[str, Any]]:
    """What must be reached: by the formulas exactly, by the simulation within what chance explains."""
    claims = []
    for name, found in table.items():
        draws, cells = found["draws"], found["cells"]
        # The root mean square of so many errors with heavy tails, three standard errors; intervals likewise.
        slack, share = 3 * np.sqrt(5 / draws) / 2, 3 * np.sqrt(0.95 * 0.05 / draws)
        near, far = REACH.get(name, REACH["three tiers, 50k"])  # real tables have three tiers, and as many people or more
        said, worst = found["expected"], max(cells, key=lambda c: cells[c]["over unbiased"])
        simulated = next(iter(cells.values()))["over affine at 0"]
        claims += [
            _at_most(f"{name}: adaptive over affine if independent, by formula", said["over affine"], near),
            _at_most(f"{name}: the same, simulated", simulated, near * (1 + slack)),
            _at_most(f"{name}: adaptive over unbiased at the worst gap up to .4, by formula", said["over unbiased"], far),
            _at_most(f"{name}: the same, simulated ({worst})", cells[worst]["over unbiased"], far * (1 + slack)),
        ]
        lowest = min(cells, key=lambda c: cells[c]["first interval"])
        figure = cells[lowest]["first interval"]
        claims.append(
            {
                "name": f"{name}: 95% interval printed first, share that holds the truth, smallest ({lowest})",
                "figure": round(figure, 4),
                "limit": round(float(0.94 - share), 4),
                "holds": bool(figure >= 0.94 - share),
            }
        )
        mean = float(np.mean([row["first interval"] for row in cells.values()]))
        most = 0.98 + share / np.sqrt(len(cells))
        claims.append(_at_most(f"{name}: 95% interval printed first, share that holds the truth, all cells", mean, most))
    return claims


def cells_claims(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same for histograms (`people_cells.table`): errors over all bins, intervals per bin."""
    claims = []
    for row in rows:
        name = f"histogram of {row['bins']} bins, {row['roster']}"
        low, high = row["coverage"]
        # The smallest and the largest of some thirty shares, each over so many bins: four standard errors.
        share = 4 * float(np.sqrt(0.95 * 0.05 / (row["draws"] * row["bins"])))
        if "tiers" in row["roster"]:  # what must be reached is stated for tiers
            claims += [
                _at_most(f"{name}: adaptive over affine if independent", row["independent"], 1.3),
                _at_most(f"{name}: adaptive over unbiased, worst gap and pattern", row["worst"], 1.2),
            ]
        claims.append(
            _at_most(f"{name}: 95% interval printed first, share that misses the truth, largest", 1 - low, 0.05 + share)
        )
        claims.append(_at_most(f"{name}: the same, share that holds it, largest", high, 0.98 + share))
    return claims


def _at_most(name: str, figure: float, limit: float) -> dict[str, Any]:
    return {"name": name, "figure": round(figure, 4), "limit": round(float(limit), 4), "holds": bool(figure <= limit)}


def frontier(
    name: str = "three tiers, 50k", weights: tuple[float, ...] = (0.3, 0.5, 0.65, 0.75, 0.83, 0.9, 0.95, 0.98)
) -> Any:
    """The best possible trade-offs for a roster, as a picture: error if independent against error at the worst gap."""
    import matplotlib.pyplot as plt

    from sfumato.palette import BLUE, GREY

    plans = _plans(rosters()[name])
    adaptive = plans["adaptive"]
    level = np.sqrt(2) * adaptive.safe_scale
    spread = adaptive.shrinkage(adaptive.question.variance).spread
    points = {w: Shrinkage.of(spread, weight=w) for w in sorted({*weights, INDEPENDENT})}
    near = [p.if_independent * level / plans["affine"].expected_rmse for p in points.values()]
    far = [p.worst * level / plans["minimum"].expected_rmse for p in points.values()]
    figure, ax = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
    ax.plot(near, far, color=GREY, zorder=1, label="best possible, within 0.2%")
    said = _expected(plans)
    ax.scatter([said["over affine"]], [said["over unbiased"]], color=BLUE, zorder=2, label="adaptive")
    ax.set_xlabel("error if budgets and values are independent, multiple of affine's")
    ax.set_ylabel("error at the worst gap, multiple of unbiased")
    ax.set_title(name, fontsize=10)
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure
