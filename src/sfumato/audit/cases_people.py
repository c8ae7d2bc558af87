"""Personalized answers on one person present or absent, at what the release charges that person's tier."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.registry import attack_every, register
from sfumato.audit.transcripts import TranscriptCase
from sfumato.histograms.bins import Bins
from sfumato.offers import Offer
from sfumato.people import ArrayReader, PairReader, Question, SumReader, plan_offer
from sfumato.people.head_counts import plan_head_counts
from sfumato.people.histogram import plan_histogram
from sfumato.people.mechanisms.adaptive_cells import plan_adaptive_histogram
from sfumato.people.pairs import Pair
from sfumato.privacy import Charge, Exact, Meter, PersonBudgets, Source, Terms
from sfumato.registry import Mechanism

ROSTER = PersonBudgets.from_tiers({"strict": (0.3, 3), "standard": (0.8, 2), "open": (2, 1)})
_HEAD_SHARE = Fraction(1, 20)
_GROUPS = np.array([0, 0, 0, 1, 1, 2])


def _meter(offer: Offer) -> Callable[[Source], Meter]:
    return lambda source: Meter.under(offer.terms, source=source)


def _one_less(group: int, values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same values without those of the first person of the group."""
    return np.where(np.arange(values.size) == int(np.flatnonzero(group == _GROUPS)[0]), 0, values)


def _published(estimate: Any) -> list[NDArray[Any]]:
    said = [np.array(repr(estimate.parameters)), np.array(repr(estimate.warnings)), np.array(repr(estimate.details))]
    return [np.array(estimate.value), np.array(repr(estimate.law)), *said]


def _of_offer(name: str, offer: Offer, group: int, pair: tuple[Any, Any], words: str, **more: Any) -> TranscriptCase:
    """An offer on two readers, one person of the group present or absent, at what that group is charged."""
    charged = offer.charge.people
    assert charged is not None
    who = f"one person of tier {ROSTER.name(group)!r} {words}"
    settings = {"meter": _meter(offer)} | more
    return TranscriptCase(name, int(charged[group]), lambda r, m: _published(offer.run(r, m)), pair, who, **settings)


def _case(mechanism: str, group: int) -> TranscriptCase:
    given = {"parts": 3} if mechanism == "partition" else {}
    offer = plan_offer(Question(ROSTER), mechanism, **given)
    ones = np.ones(_GROUPS.size, dtype=np.int64)
    pair = tuple(ArrayReader.of(_GROUPS, x, group_count=ROSTER.groups) for x in (ones, _one_less(group, ones)))
    kept = float(offer.plan.thresholds[group]) / 2.0**63 if mechanism == "sampling" else 1.0
    name = f"people-{mechanism}-{ROSTER.name(group)}"
    return _of_offer(name, offer, group, (pair[0], pair[1]), "counted or absent", kept=kept)


def _fine_case(group: int) -> TranscriptCase:
    """A sum on a lattice so fine that it is divided before the noise (see `people.linear`)."""
    full = 10**9
    offer = plan_offer(Question(ROSTER, high=full, unit=1 / full, kind="sum"), "affine")
    x = np.full(_GROUPS.size, full)
    pair = [SumReader.of(_GROUPS, v, group_count=ROSTER.groups) for v in (x, _one_less(group, x))]
    name = f"people-fine-lattice-{ROSTER.name(group)}"
    return _of_offer(name, offer, group, (pair[0], pair[1]), "at the upper bound or absent")


def _rows_case(group: int, rows: int) -> TranscriptCase:
    """A sum to which everybody adds several rows, each at the upper bound; all of one person's go together."""
    high = 4
    offer = plan_offer(Question(Terms(rows_per_person=rows, budgets=ROSTER), high=high, kind="sum"), "affine")
    whose, x = np.repeat(_GROUPS, rows), np.full(_GROUPS.size, high)
    values = [np.repeat(v, rows) for v in (x, _one_less(group, x))]
    pair = [SumReader.of(whose, v, group_count=ROSTER.groups) for v in values]
    name = f"people-{rows}-rows-{ROSTER.name(group)}"
    words = f"with {rows} rows at the upper bound or absent"
    return _of_offer(name, offer, group, (pair[0], pair[1]), words)


def _mean_case(mechanism: str, group: int) -> TranscriptCase:
    """A mean, from a noisy sum around the middle and a noisy number of people."""
    steps = 10
    offer = Pair(Terms(budgets=ROSTER), 0.0, 1.0, steps).offer(mechanism)
    top, ones = np.full(_GROUPS.size, steps), np.ones(_GROUPS.size, dtype=np.int64)

    def reader(absent: bool) -> PairReader:
        centred, counted = (_one_less(group, v) if absent else v for v in (top, ones))
        return PairReader(
            centred=SumReader.of(_GROUPS, centred, group_count=ROSTER.groups),
            ones=ArrayReader.of(_GROUPS, counted, group_count=ROSTER.groups),
        )

    name = f"people-mean-{mechanism}-{ROSTER.name(group)}"
    return _of_offer(name, offer, group, (reader(False), reader(True)), "at the upper bound or absent")


def _histogram_case(group: int, rows: int, *, adaptive: bool = False) -> TranscriptCase:
    """A histogram in which everybody enters with their own budget; one person's rows, all in the first bin."""
    make: Callable[..., Any] = plan_adaptive_histogram if adaptive else plan_histogram
    # Among few people the adaptive one would not need its second sum; the roster may name more than are in the table.
    roster = PersonBudgets(ROSTER.levels, ROSTER.counts * 100, ROSTER.names) if adaptive else ROSTER
    plan = make(Terms(rows_per_person=rows, budgets=roster), Bins.numbered(4))
    ones = np.ones(_GROUPS.size, dtype=np.int64)
    tables = [np.outer(rows * np.bincount(_GROUPS, x, ROSTER.groups), [1, 0, 0, 0]) for x in (ones, _one_less(group, ones))]

    def fit(table: NDArray[np.float64], meter: Meter) -> list[NDArray[Any]]:
        exact = Exact(table.astype(np.int64), rows_per_person=rows)
        made = plan.run(lambda weights: exact.map(lambda counts: weights @ counts), meter)
        said = [np.array(repr(made.parameters)), np.array(repr(made.warnings))]
        return [made.counts, made.noise, *said, *made.interval(), *made.interval(independent=True)]

    def meter(source: Source) -> Meter:
        return Meter.under(plan.terms.up_to(plan.charge), source=source)

    charged = plan.charge.people
    assert charged is not None
    tier, kind = ROSTER.name(group), "adaptive-histogram" if adaptive else "histogram"
    return TranscriptCase(
        f"people-{kind}-{rows}-rows-{tier}" if rows > 1 else f"people-{kind}-{tier}",
        int(charged[group]),
        fit,
        (tables[0], tables[1]),
        f"one person of tier {tier!r} with {rows} row{'s' * (rows > 1)} in one bin, or absent",
        meter=meter,
    )


def _private_case(group: int, words: str) -> TranscriptCase:
    """A private roster: head counts first, then a count priced and weighted by them; all that is told is compared."""
    menu = PersonBudgets(ROSTER.levels, np.zeros_like(ROSTER.counts), ROSTER.names)
    counting = plan_head_counts(menu, _HEAD_SHARE, Terms())
    less = ROSTER.counts - (np.arange(ROSTER.groups) == group)

    def fit(heads: NDArray[np.int64], meter: Meter) -> list[NDArray[Any]]:
        counted = counting.run(Exact(heads), meter)
        terms = Terms(budgets=counted.budgets.share(1 - _HEAD_SHARE), granted=ROSTER.levels, roster="private")
        offer = plan_offer(Question(terms), "stretching")
        told = [np.array(repr(offer.charge.people)), np.array(repr(offer.expected_rmse))]
        answer = offer.run(SumReader(Exact(tuple(heads.tolist()))), meter)
        return [counted.counts, *told, *_published(answer)]

    def meter(source: Source) -> Meter:
        return Meter.under(Terms(budgets=menu, roster="private", limit=Charge.of_people(ROSTER.levels)), source=source)

    name = f"people-private-roster-{ROSTER.name(group)}"
    who = f"one person of tier {ROSTER.name(group)!r} {words}"
    return TranscriptCase(name, int(ROSTER.levels[group]), fit, (ROSTER.counts, less), who, meter=meter)


def _cases(entry: Mechanism) -> list[TranscriptCase]:
    """A mechanism for counts on the strictest and the most generous tier; who is left out loses nothing to attack."""
    if "one epsilon" in entry.needs:
        return []
    made = [_case(entry.name, group) for group in (0, 2)]
    return [case for case in made if case.claimed > 0]


attack_every("count", _cases)
for _group in (0, 2):
    register(_private_case(_group, "absent with their budget entry, or only the entry missing"))
    register(_fine_case(_group))
    register(_rows_case(_group, 3))
    register(_histogram_case(_group, 1))
    register(_histogram_case(_group, 2))
    register(_histogram_case(_group, 1, adaptive=True))
    register(_histogram_case(_group, 2, adaptive=True))
    for _mechanism in ("affine", "partition"):
        register(_mean_case(_mechanism, _group))
