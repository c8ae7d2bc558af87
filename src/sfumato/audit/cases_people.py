"""Personalized answers and models on one person present or absent, at what the release charges that person's tier."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.harness import AuditCase
from sfumato.audit.registry import attack_every, register
from sfumato.classifiers.linear.objective import calibrate, minimise
from sfumato.offers import Offer
from sfumato.people import ArrayReader, Question, Reader, SumReader, plan_offer
from sfumato.privacy import Exact, Meter, Nano, PersonBudgets, Source
from sfumato.privacy.objective import Objective
from sfumato.registry import Mechanism

ROSTER = PersonBudgets.from_tiers({"strict": (0.3, 3), "standard": (0.8, 2), "open": (2, 1)})
_GROUPS = np.array([0, 0, 0, 1, 1, 2])
_ENOUGH = 20_000  # every draw is a whole release


def _reader(which: int, group: int) -> ArrayReader:
    """Everybody is counted; under the second neighbour one person of the group is absent."""
    x = np.ones(_GROUPS.size, dtype=np.int64)
    x[int(np.flatnonzero(group == _GROUPS)[0])] -= which
    return ArrayReader.of(_GROUPS, x, group_count=ROSTER.groups)


def _answer(offer: Offer, reader: Reader, group: int, source: Source) -> float:
    estimate = offer.run(reader, Meter(limit=offer.charge, budgets=ROSTER, source=source))
    if "part_means" in estimate.details:  # only the person's own part depends on them
        return float(estimate.details["part_means"][int(offer.plan.rounds[0].parts[group])])
    return float(estimate.value)


def _case(mechanism: str, group: int) -> AuditCase:
    given = {"parts": 3} if mechanism == "partition" else {}
    offer = plan_offer(Question(ROSTER), mechanism, **given)

    def draw(which: int, n: int, source: Source) -> NDArray[np.float64]:
        reader = _reader(which, group)
        return np.array([_answer(offer, reader, group, source) for _ in range(n)])

    charged = offer.charge.people
    assert charged is not None
    tier = ROSTER.name(group)
    who = f"one person of tier {tier!r} counted or absent"
    return AuditCase(f"people-{mechanism}-{tier}", int(charged[group]), draw, who, most=_ENOUGH)


def _fine_case(group: int) -> AuditCase:
    """A sum on a lattice so fine that it is divided before the noise (see `people.linear`)."""
    full = 10**9
    offer = plan_offer(Question(ROSTER, high=full, unit=1 / full, kind="sum"), "affine")

    def draw(which: int, n: int, source: Source) -> NDArray[np.float64]:
        x = np.full(_GROUPS.size, full)
        x[int(np.flatnonzero(group == _GROUPS)[0])] *= 1 - which
        reader = SumReader.of(_GROUPS, x, group_count=ROSTER.groups)
        return np.array([_answer(offer, reader, group, source) for _ in range(n)])

    charged, tier = offer.charge.people, ROSTER.name(group)
    assert charged is not None
    who = f"one person of tier {tier!r} at the upper bound or absent"
    return AuditCase(f"people-fine-lattice-{tier}", int(charged[group]), draw, who, most=_ENOUGH)


def _model_case(group: int) -> AuditCase:
    """The weighted objective in one dimension, where the sign and size of the coefficient tell most."""
    at = calibrate(Nano(int(ROSTER.levels[-1])), kind="logistic", dimension=1)
    weights = at.weights(ROSTER.levels)
    claimed = int(at.loss(weights)[group])

    def draw(which: int, n: int, source: Source) -> NDArray[np.float64]:
        rows = np.where(group == _GROUPS, 1.0, -0.2)[:, None]
        kept = np.ones(_GROUPS.size, dtype=bool)
        kept[int(np.flatnonzero(group == _GROUPS)[0])] = not which
        objective = Exact(Objective("logistic", rows[kept], weights[_GROUPS[kept]], at.penalty))
        out = np.empty(n)
        for i in range(n):
            meter = Meter(budgets=ROSTER, source=source)
            out[i] = meter.optimum(objective, minimise, by=at.by, weights=weights)[0]
        return out

    tier = ROSTER.name(group)
    return AuditCase(
        f"people-weighted-model-{tier}",
        claimed,
        draw,
        f"one person of tier {tier!r} in the training table or not",
        most=4000,
    )


def _cases(entry: Mechanism) -> list[AuditCase]:
    """A mechanism for counts on the strictest and the most generous tier; who is left out loses nothing to attack."""
    if "one epsilon" in entry.needs:
        return []
    made = [_case(entry.name, group) for group in (0, 2)]
    return [case for case in made if case.claimed > 0]


attack_every("count", _cases)
register(_fine_case(0))
register(_model_case(2))
