"""Counts with personal budgets: the table of error ratios, and range counts on a census with every mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.bench.people_consent import tabulated
from sfumato.bench.people_data import census, draw_budgets, draw_selectivity, range_query, roster
from sfumato.people import ArrayReader, Question, plan_offer, preview
from sfumato.people.linear import LinearPlan
from sfumato.people.mechanisms.sampling import quick_variance
from sfumato.people.selectivity import planned_share
from sfumato.privacy import NANO, Meter, Nano, Seeded

# RMSE as a multiple of affine's, measured independently before this code was written (n = 10k, 190k, 370k).
EXPECTED: dict[str, dict[str, tuple[float, float, float]]] = {
    "uniform": {
        "minimum": (4.7, 2.6, 2.2),
        "threshold": (1.9, 1.7, 1.7),
        "sampling, best": (1.2, 1.2, 1.2),
        "sampling, mean": (1.2, 1.6, 1.8),
        "privacy-aware, 10 parts": (2.7, 2.0, 2.0),
        "utility": (1.8, 1.6, 1.6),
        "utility, 3 rounds": (1.7, 1.5, 1.5),
    },
    "normal clipped": {
        "minimum": (4.4, 1.4, 1.2),
        "threshold": (1.2, 1.4, 1.2),
        "sampling, best": (1.1, 1.2, 1.2),
        "sampling, mean": (1.1, 1.4, 1.7),
        "privacy-aware, 10 parts": (1.2, 1.1, 1.04),
        "utility": (1.2, 1.05, 1.03),
        "utility, 3 rounds": (1.15, 1.04, 1.02),
    },
    "normal truncated": {
        "minimum": (11.7, 5.0, 4.2),
        "threshold": (1.6, 1.5, 1.6),
        "sampling, best": (1.2, 1.2, 1.2),
        "sampling, mean": (1.9, 3.4, 3.9),
        "privacy-aware, 10 parts": (1.6, 1.8, 2.0),
        "utility": (1.5, 1.5, 1.5),
        "utility, 3 rounds": (1.4, 1.4, 1.4),
    },
    "three tiers": {
        "minimum": (4.1, 1.3, 1.1),
        "threshold": (1.1, 1.3, 1.1),
        "sampling, best": (1.05, 1.25, 1.14),
        "sampling, mean": (1.1, 1.3, 1.6),
        "privacy-aware, 10 parts": (1.1, 1.0, 1.0),
        "utility": (1.1, 1.0, 1.0),
        "utility, 3 rounds": (1.1, 1.0, 1.0),
    },
}


def _linear_rmse(plan: LinearPlan, variance: float) -> float:
    return float(np.sqrt(plan.spread(variance) ** 2 + 2 * np.square(plan.noise_scales).sum()))


def _sampling_rmse(question: Question, threshold: Nano, variance: float, share: float) -> float:
    return question.people * float(np.sqrt(quick_variance(question, threshold, variance=variance, share=share)))


def error_table(sizes: tuple[int, ...], progress: Callable[[str], None]) -> dict[str, Any]:
    """Expected RMSE of every mechanism per budget profile and size, averaged over random range queries.

    Plans are made without a guess of the selectivity; errors are for the mean ``s (1 - s)`` of the queries.
    """
    rng = np.random.default_rng(3)
    draws = np.array([draw_selectivity(rng) for _ in range(20_000)])
    variance, share = float((draws * (1 - draws)).mean()), float(draws.mean())
    table: dict[str, Any] = {}
    for profile in EXPECTED:
        for n in sizes:
            progress(f"counts: {profile}, {n:,} people")
            budgets, _ = roster(draw_budgets(profile, n, rng))
            q = Question(budgets)
            mean = Nano(int(np.dot(budgets.counts, budgets.epsilons) / n * NANO))
            grid = [Nano(int(t)) for t in np.geomspace(int(budgets.levels[0]), int(budgets.levels[-1]), 60)]
            row = {
                name: _linear_rmse(plan_offer(q, mechanism, **options).plan, variance)
                for name, mechanism, options in (
                    ("affine", "affine", {}),
                    ("minimum", "minimum", {}),
                    ("threshold", "threshold", {}),
                    ("stretching", "stretching", {}),
                    ("privacy-aware, 10 parts", "privacy-aware", {"parts": 10}),
                    ("utility", "partition", {}),
                    ("utility, 3 rounds", "partition", {"rounds": 3}),
                )
            }
            row["sampling, best"] = min(_sampling_rmse(q, t, variance, share) for t in grid)
            row["sampling, mean"] = _sampling_rmse(q, mean, variance, share)
            row["exponential"] = plan_offer(Question(budgets, selectivity=share), "exponential").plan.expected_rmse
            auto = preview(Question(budgets, selectivity=share), independent=True)[0]
            row["auto"] = (
                _linear_rmse(auto.plan, variance) if isinstance(auto.plan, LinearPlan) else float(auto.expected_rmse or 0)
            )
            table[f"{profile}, {n}"] = {"auto_takes": auto.mechanism, "rmse": row}
    return table


def table_claims(table: dict[str, Any], sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Affine is the best, ratios are those of the notes, auto is near the best."""
    affine_over_best, affine_over_all, off, auto_over_best = 0.0, 0.0, {}, 0.0
    for profile, expected in EXPECTED.items():
        for i, n in enumerate((10_000, 190_000, 370_000)):
            if n not in sizes:
                continue
            row = table[f"{profile}, {n}"]["rmse"]
            others = [v for k, v in row.items() if k not in ("affine", "auto")]
            affine_over_best = max(affine_over_best, row["affine"] / min(row[name] for name in expected))
            affine_over_all = max(affine_over_all, row["affine"] / min(others))
            auto_over_best = max(auto_over_best, row["auto"] / min([*others, row["affine"]]))
            for name, ratios in expected.items():
                found = row[name] / row["affine"]
                off[f"{profile}, {n}, {name}"] = abs(found - ratios[i]) / ratios[i]
    worst = max(off, key=lambda k: off[k])
    return [
        {
            "name": "affine, RMSE as a multiple of the best other mechanism of the notes' table, worst cell",
            "figure": round(affine_over_best, 4),
            "limit": 1.02,
            "holds": affine_over_best <= 1.02,
        },
        {
            "name": "affine without a guess of the selectivity, multiple of the best of all (stretching included)",
            "figure": round(affine_over_all, 4),
            "limit": 1.02,
            "holds": affine_over_all <= 1.02,
        },
        {
            "name": f"ratios to affine against the notes, largest relative difference ({worst})",
            "figure": round(off[worst], 4),
            "limit": 0.10,
            "holds": off[worst] <= 0.10,
        },
        {
            "name": "auto, RMSE as a multiple of the best mechanism, worst cell",
            "figure": round(auto_over_best, 4),
            "limit": 1.05,
            "holds": auto_over_best <= 1.05,
        },
    ]


BY_SCHEMA = ("affine", "adaptive", "sampling")  # planned anew for every query, as a release does


def range_counts(
    n: int, *, queries: int, attributes: tuple[int, ...], profiles: tuple[str, ...], progress: Callable[[str], None]
) -> dict[str, Any]:
    """Simulated range counts on a synthetic census: mean |error|/n (RFE) and RMSE/n.

    The mechanisms of `BY_SCHEMA` are planned by what the query covers of the public domain; "affine, p = 1/2" is affine
    without it.
    """
    rng = np.random.default_rng(11)
    table = census(n, rng)
    out: dict[str, Any] = {}
    for profile in profiles:
        budgets, groups = roster(draw_budgets(profile, n, rng), decimals=4)
        q = Question(budgets)
        blind = {name: plan_offer(q, name).plan for name in ("stretching", "threshold", "minimum")}
        blind |= {"affine, p = 1/2": plan_offer(q, "affine").plan}
        blind |= {"partition, 3 rounds": plan_offer(q, "partition", rounds=3).plan}
        planned: dict[float, dict[str, Any]] = {}
        for k in attributes:
            progress(f"range counts: {profile}, {n:,} people, {k} attributes")
            errors: dict[str, list[float]] = {}
            shares: list[tuple[float, float]] = []
            for number in range(queries):
                inside, covered = range_query(table, k, rng)
                share = planned_share(q, covered)
                near = 0.5 if share is None else float(2.0 ** (round(2 * np.log2(min(share, 1 - share))) / 2))  # few plans
                if near not in planned:
                    guessed = Question(budgets, selectivity=None if share is None else near)
                    planned[near] = {name: plan_offer(guessed, name).plan for name in BY_SCHEMA}
                    planned[near]["adaptive"] = tabulated(planned[near]["adaptive"])
                reader = ArrayReader.of(groups, inside.astype(np.int64), group_count=budgets.groups)
                truth = int(inside.sum())
                shares.append((covered, truth / n))
                for name, plan in (planned[near] | blind).items():
                    meter = Meter(budgets=budgets, source=Seeded(number))  # the same luck for all: their ratios vary less
                    errors.setdefault(name, []).append((plan.run(reader, meter).value - truth) / n)
            out[f"{profile}, {k} attributes"] = {
                name: {"rfe": float(np.mean(np.abs(e))), "rmse": float(np.sqrt(np.mean(np.square(e))))}
                for name, e in errors.items()
            }
            out[f"{profile}, {k} attributes"]["shares"] = {
                "covered, median": float(np.median([c for c, _ in shares])),
                "true, median": float(np.median([t for _, t in shares])),
                "true, largest": float(max(t for _, t in shares)),
            }
    return out


def range_claims(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Planned by the schema, affine is near the best mechanism in every cell, and much better than planned for 1/2."""
    over: dict[str, float] = {}
    gain = 0.0
    for n, cells in found.items():
        for cell, rows in cells.items():
            rmse = {name: row["rmse"] for name, row in rows.items() if name != "shares"}
            others = min(rmse[name] for name in ("stretching", "sampling", "threshold", "partition, 3 rounds", "minimum"))
            over[f"{cell}, {n} people"] = rmse["affine"] / others
            gain = max(gain, rmse["affine, p = 1/2"] / rmse["affine"])
    worst = max(over, key=lambda k: over[k])
    # Sixty draws of the same law differ by an eighth in their root mean square, and the best of five others is lucky.
    return [
        {
            "name": f"range counts: affine planned by the schema, multiple of the best other's RMSE, worst cell ({worst})",
            "figure": round(over[worst], 3),
            "limit": 1.25,
            "holds": over[worst] <= 1.25,
        },
        {
            "name": "range counts: planned for 1/2 as a multiple of planned by the schema, largest gain",
            "figure": round(gain, 2),
            "limit": 1.0,
            "holds": gain >= 1.0,
        },
    ]
