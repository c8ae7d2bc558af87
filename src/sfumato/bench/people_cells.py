"""Adaptive histograms where consent follows the values: error over the bins, ranges, and how often intervals hold.

A *gap* is the share of the careful (or of the generous) people who sit in other bins than the rest would. Where they sit
instead is the pattern: one bin, every second bin, half of the bins, or the neighbour of the largest bin. The careful are the
strictest tier, or the lower half of continuous budgets; the generous are everybody else.

Errors are root mean squares over the bins, as multiples of two measures: `affine` on the same people where budgets are
independent of the values, and the noise of the safe histogram alone (its whole budget, no bias).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms import Bins
from sfumato.people.histogram import PersonalHistogram, PersonalHistogramPlan, plan_histogram
from sfumato.people.mechanisms.adaptive_cells import AdaptiveHistogramPlan, plan_adaptive_histogram
from sfumato.privacy import Exact, Meter, PersonBudgets, Seeded

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Plan = PersonalHistogramPlan | AdaptiveHistogramPlan
PATTERNS = ("one bin", "two bins", "every second bin", "half of the bins")
GAPS = (0.0, 0.01, 0.05, 0.2, 0.4)
BINS = (21, 200)


def rosters() -> dict[str, PersonBudgets]:
    """Three tiers of two sizes, and continuous budgets rounded down to four decimals."""
    rng = np.random.default_rng(13)
    return {
        "three tiers, 50k": PersonBudgets.from_tiers(
            {"strict": (0.005, 26_913), "standard": (0.1, 18_554), "open": (0.5, 4_533)}
        ),
        "three tiers, 190k": PersonBudgets.from_tiers(
            {"strict": (0.01, 102_600), "standard": (0.2, 70_300), "open": (1.0, 17_100)}
        ),
        "uniform, 50k": PersonBudgets.of(rng.uniform(0.01, 0.1, 50_000), decimals=4),
        "lognormal, 50k": PersonBudgets.of(np.exp(rng.normal(np.log(0.05), 0.7, 50_000)), decimals=4),
    }


def shares(bins: int, pattern: str, gap: float) -> tuple[Floats, Floats]:
    """The shares of the bins among most people, and among those who differ by `gap`."""
    base = np.exp(-np.arange(bins) / (bins / 4))
    base[0] += 0.8 * base.sum()  # one bin with nearly half of the people
    base /= base.sum()
    there = np.zeros(bins)
    if pattern == "two bins":
        there[:2] = -1.0, 1.0
        return base, base + gap * there
    if pattern == "one bin":
        there[bins // 2] = 1.0
    elif pattern == "every second bin":
        there[1::2] = 1 / there[1::2].size
    else:
        there[bins // 2 :] = 1 / (bins - bins // 2)
    return base, (1 - gap) * base + gap * there


@dataclass(frozen=True)
class Seen:
    """What some releases at one gap came to; errors are mean squares."""

    bins: float
    worst_bin: float
    tenth: float
    half: float
    covered: float
    covered_half: float


def errors(plan: Plan, draws: int, rng: np.random.Generator) -> float:
    """Root mean square over the bins of `draws` releases where budgets are independent of the values."""
    usual, _ = shares(plan.bins.size, PATTERNS[0], 0.0)
    found = []
    for _ in range(draws):
        cells = rng.multinomial(plan.budgets.counts, usual)
        found.append(_run(plan, cells, rng).flat - cells.sum(axis=0))
    return float(np.sqrt(np.mean(np.square(found))))


def seen(plan: Plan, pattern: str, gap: float, draws: int, rng: np.random.Generator, *, generous: bool = False) -> Seen:
    """Release `draws` times over people drawn anew."""
    budgets = plan.budgets
    bins = plan.bins.size
    usual, other = shares(bins, pattern, gap)
    careful = np.cumsum(budgets.counts) <= 0.54 * budgets.people
    differ = ~careful if generous else careful
    squares, ranges, held, held_half = [], [], [], []
    half, tenth = np.arange(bins) >= bins // 2, max(1, bins // 10)
    tenths = [slice(start, start + tenth) for start in (0, bins // 2, bins - tenth)]
    for _ in range(draws):
        cells = np.where(differ[:, None], rng.multinomial(budgets.counts, other), rng.multinomial(budgets.counts, usual))
        made = _run(plan, cells, rng)
        truth = cells.sum(axis=0)
        error = made.flat - truth
        squares.append(error**2)
        ranges.append([error[half].sum() ** 2, *(error[s].sum() ** 2 for s in tenths)])
        low, high = made.interval()
        held.append((low <= truth) & (truth <= high))
        ends = made.select(half).interval()
        held_half.append(ends[0] <= truth[half].sum() <= ends[1])
    each, sums = np.mean(squares, axis=0), np.mean(ranges, axis=0)
    return Seen(
        float(each.mean()),
        float(each.max()),
        float(sums[1:].max()) / tenth,
        float(sums[0]) / float(half.sum()),
        float(np.mean(held)),
        float(np.mean(held_half)),
    )


def _run(plan: Plan, cells: Integers, rng: np.random.Generator) -> PersonalHistogram:
    meter = Meter.under(plan.terms.up_to(plan.charge), source=Seeded(int(rng.integers(2**62))))
    return plan.run(lambda weights: Exact(weights @ cells), meter)


def table(quick: bool = False) -> list[dict[str, Any]]:
    """One row per roster and number of bins.

    Parameters
    ----------
    quick : bool
        Fewer draws and gaps, one roster, 21 bins.

    Returns
    -------
    list of dict
        ``draws`` per gap and pattern; ``affine`` and ``safe`` (errors of a bin, in people), ``independent`` (times affine),
        ``worst`` (times safe, over all gaps and patterns), ``at_gap`` (the same at single gaps), ``coverage`` (least and
        most over gaps and patterns, of the interval printed first) and ``coverage_half`` (of a range of half the bins),
        ``one_bin``, ``tenth`` and ``half``: the worst bin, and the worst ranges of a tenth and half of the bins, times the
        safe noise of the same bins; ``expected`` and ``expected_worst``: what the plan said beforehand of the two ratios.
    """
    found = []
    for name, budgets in rosters().items():
        if quick and name != "three tiers, 50k":
            continue
        for bins in BINS[:1] if quick else BINS:
            found.append(_row(name, budgets, bins, quick, np.random.default_rng(7)))
    return found


def _row(name: str, budgets: PersonBudgets, bins: int, quick: bool, rng: np.random.Generator) -> dict[str, Any]:
    domain = Bins.numbered(bins)
    plan, affine = plan_adaptive_histogram(budgets, domain), plan_histogram(budgets, domain)
    draws = max(10, (500 if quick else 1_000) // bins)
    gaps = (0.0, 0.05) if quick else GAPS
    usual = errors(affine, 4 * draws, rng)
    safe = float(np.sqrt(2)) * plan.safe_scale
    if_independent = errors(plan, 8 * draws, rng)
    results: dict[float, list[Seen]] = {0.0: [seen(plan, PATTERNS[0], 0.0, draws, rng)]}
    for gap in gaps[1:]:
        results[gap] = [
            seen(plan, pattern, gap, draws, rng, generous=generous) for pattern in PATTERNS for generous in (False, True)
        ]
    every = [r for rows in results.values() for r in rows]

    def most(field: str) -> float:
        return float(np.sqrt(max(getattr(r, field) for r in every))) / safe

    return {
        "roster": name,
        "bins": bins,
        "draws": draws,
        "affine": usual,
        "safe": safe,
        "independent": if_independent / usual,
        "expected": plan.expected_rmse / affine.expected_rmse,
        "worst": most("bins"),
        "expected_worst": plan.worst_rmse / safe,
        "at_gap": {gap: float(np.sqrt(max(r.bins for r in rows))) / safe for gap, rows in results.items()},
        "coverage": (min(r.covered for r in every), max(r.covered for r in every)),
        "coverage_half": float(np.mean([r.covered_half for r in every])),
        "one_bin": most("worst_bin"),
        "tenth": most("tenth"),
        "half": most("half"),
    }
