"""The personalized exponential mechanism (Jorgensen, Yu & Cormode 2015): answers that few budgets would explain are likely.

Each possible answer r has a distance from the data: the least total budget of units that must change for the sum to
become r, ``d(r) = min Σ_u ε_u |x_u - x'_u| / reach``. For a count this is the paper's: the cheapest records that must
flip. The answer is chosen with score ``-d(r)/2``.

Guarantee. Blanking person u changes d(r) by at most ``ε_u |x_u| / reach <= ε_u`` (triangle inequality), for some answers up
and for others down, so the spread of the scores is at most ``2 ε_u / 2 = ε_u``. Costs are whole units of 2 nano-ε, rounded
down, so all of this is exact.

It pays for moving the answer with the *cheapest* budgets: the error follows the smallest ε, which is why it seldom wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.people.error_law import DiscreteLaw
from sfumato.people.estimate import Estimate
from sfumato.people.linear import lattice_words
from sfumato.people.question import Question
from sfumato.people.reading import Integers, Reader, fitted
from sfumato.privacy import NANO, Charge, Meter
from sfumato.registry import Mechanism

MOST_ANSWERS = 1 << 22
_FARTHEST = (1 << 52) - 1  # distances beyond it are cut: cutting never enlarges a change
FLAT = "it draws the answer towards where the cheapest budgets lead; error assumes budgets independent of the values"


@dataclass(frozen=True, eq=False)
class ExponentialPlan:
    """All possible sums as candidates."""

    question: Question
    mechanism: str = "exponential"
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def costs(self) -> Integers:
        """Cost of moving one unit of a person of each group, in units of 2 nano-ε."""
        return self.question.levels // (2 * self.question.reach)

    @cached_property
    def charge(self) -> Charge:
        return Charge.of_people(2 * self.costs * self.question.reach)

    @property
    def bias_bound(self) -> float:
        """No useful bound below the whole range is public."""
        q = self.question
        return q.people * q.unit * q.span / 2

    def scores(self, sums: Integers) -> Integers:
        """Minus the distance of every possible sum, given the sum per person group."""
        q = self.question
        people = q.budgets.counts * q.rows_per_person
        inside = np.clip(sums, people * q.low, people * q.high)
        up = _cumulated(self.costs, people * q.high - inside)
        down = _cumulated(self.costs, inside - people * q.low)
        return -np.concatenate([down[::-1], [0], up])

    def law(self, share: float) -> DiscreteLaw:
        """The law of the error if everybody's expected value lies at `share` of the range."""
        q = self.question
        people = q.budgets.counts * q.rows_per_person
        sums = np.rint(people * (q.low + share * (q.high - q.low))).astype(np.int64)
        scores = self.scores(sums).astype(np.float64) / NANO
        start = int((people * q.low).sum()) - int(sums.sum())
        # The choice adds exponential noise to scores; its probabilities are bounded by, and close to, the softmax.
        weight = np.exp(np.maximum(scores - scores.max(), -700.0))
        errors = (start + np.arange(scores.size)) * q.unit
        keep = weight > 1e-12
        return DiscreteLaw(errors[keep].astype(np.float64), weight[keep] / weight[keep].sum())

    @cached_property
    def expected_rmse(self) -> float:
        share = 0.5 if self.question.selectivity is None else self.question.selectivity
        return float(np.hypot(self.law(share).rmse, self.question.rounding_bound))

    @property
    def assumes_independence(self) -> bool:
        return self.question.budgets.groups > 1

    @cached_property
    def worst_rmse(self) -> float:
        """Whatever the data, moving the answer by a unit costs at least the cheapest budget."""
        q = self.question
        least = float(self.costs[q.budgets.counts > 0].min()) / NANO
        whole = float(q.people * q.unit * q.span)
        far = whole if least == 0 else min(whole, np.sqrt(2) * q.unit / least)
        return max(self.expected_rmse, float(far) + q.rounding_bound)

    def error_at(self, gap: float) -> float:
        """The error at a gap: its bound for any data, as nothing narrower is known of it."""
        return self.expected_rmse if gap == 0 else self.worst_rmse

    def run(self, reader: Reader, meter: Meter) -> Estimate:
        """Choose an answer by its distance from the data."""
        q = self.question
        chosen = meter.choose(
            reader.group_sums().map(lambda found: self.scores(fitted(found, q.budgets.groups))),
            rate=1,
            spread=2 * self.costs * q.record_reach,
            label="personalized exponential mechanism",
        )
        people = q.budgets.counts * q.rows_per_person
        low, high = int((people * q.low).sum()), int((people * q.high).sum())
        units = low + chosen
        return Estimate(
            value=units * q.unit,
            people=q.people,
            law=self.law((units - low) / (high - low)),
            guarantee=meter.guarantee(),
            mechanism=self.mechanism,
            expected_rmse=self.expected_rmse,
            kind=q.kind,
            bias_bound=self.bias_bound,
            bounds=(low * q.unit, high * q.unit),
            column=q.column,
            clamped=q.clamped,
            rounding=q.rounding_bound,
            parameters=lattice_words(q, q.rounding_bound),
            warnings=(FLAT,),
        )


def _cumulated(costs: Integers, capacity: Integers) -> NDArray[np.int64]:
    """Cost of moving 1, 2, ... units, cheapest first (costs are sorted)."""
    step = np.repeat(np.minimum(costs, 1 << 39), capacity)  # 2^22 answers of at most 2^39 fit in 64 bits
    return np.asarray(np.minimum(np.cumsum(step), _FARTHEST))


def exponential_plan(question: Question) -> ExponentialPlan:
    """The plan, if the possible sums are few enough to score each of them."""
    question.need_exact_heads("exponential")
    answers = question.people * question.span
    if answers > MOST_ANSWERS:
        raise InputError(f"the exponential mechanism would score {answers} answers, at most {MOST_ANSWERS}")
    plan = ExponentialPlan(question)
    if int(plan.costs.max()) == 0:
        raise InputError("no budget of this roster buys one unit of the measure; use a coarser lattice for it")
    return plan


MECHANISM = Mechanism(
    "exponential",
    ("count", "sum"),
    exponential_plan,
    "the personalized exponential mechanism: an answer near the truth is likelier",
    paper="Jorgensen, Yu & Cormode 2015",
)
