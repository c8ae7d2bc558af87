"""Quantiles with one record more or less, at what the release charges for it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.registry import register
from sfumato.audit.transcripts import TranscriptCase
from sfumato.privacy import Exact, Meter, Nano, PersonBudgets, Source, Terms
from sfumato.statistics.quantile_plan import QuantilePlan, plan_choice, plan_weighted

_ROSTER = PersonBudgets.from_tiers({"strict": (0.3, 300), "open": (1.0, 100)})
_COUNTS = np.array([3, 0, 1, 0, 3])
_QUARTERS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


def _one_more(counts: NDArray[np.int64], *place: int) -> NDArray[np.int64]:
    more = counts.copy()
    more[place] += 1
    return more


def _case(name: str, plan: QuantilePlan, pair: tuple[Any, Any], claimed: int, words: str) -> TranscriptCase:
    def fit(table: NDArray[np.int64], meter: Meter) -> list[NDArray[Any]]:
        weights = np.ones(1, dtype=np.int64) if plan.weights is None else plan.weights
        found = plan.run(Exact(table).map(lambda counts: weights @ np.atleast_2d(counts)), meter)
        assert found.ends is not None
        assert found.around is not None
        return [found.points, found.ends, found.around.cells]

    def meter(source: Source) -> Meter:
        return Meter.under(plan.terms.up_to(plan.charge), source=source)

    return TranscriptCase(name, claimed, fit, pair, words, meter=meter)


def _plain(name: str, targets: tuple[Fraction, ...], interval: float, place: int) -> TranscriptCase:
    plan = plan_choice(Terms(), targets, _COUNTS.size, nano=Nano(10**9), interval=interval)
    words = f"one record at point {place} of five, or absent"
    return _case(name, plan, (_one_more(_COUNTS, place), _COUNTS), plan.charge.total, words)


def _personal(group: int) -> TranscriptCase:
    plan = plan_weighted(Terms(budgets=_ROSTER), (Fraction(1, 2),), _COUNTS.size, interval=0.2)
    table = np.stack([_COUNTS, _COUNTS])
    tier, charged = _ROSTER.name(group), plan.charge.people
    assert charged is not None
    words = f"one person of tier {tier!r} at the highest point, or absent"
    return _case(f"median-weighted-{tier}", plan, (_one_more(table, group, 4), table), int(charged[group]), words)


register(_plain("median", (Fraction(1, 2),), 0.1, 4))
register(_plain("median-with-interval", (Fraction(1, 2),), 0.2, 0))
register(_plain("quartiles", _QUARTERS, 0.2, 4))
for _group in (0, 1):
    register(_personal(_group))
