"""Means, and sums of a measure that does not start at zero: one sum around the middle and one count, half a budget each.

With v the measure's lattice value between 0 and `steps` and N the number of people who satisfy the condition,

    total = middle N + unit/2 Σ (2 v - steps),      mean = total / N

so the sum to be noised reaches ``steps`` lattice units of half size on either side: half the noise of a sum from the lower
bound. Guarantee: two questions in sequence, each within half of everybody's budget.

The interval of a mean is that of a ratio (Fieller 1954; see `error_law.RatioLaw`), not an approximation to first order.
Where N may be zero it is the whole range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from sfumato.errors import InputError
from sfumato.offers import Offer
from sfumato.people.answers import offer_of, plan_offer
from sfumato.people.bias import bias_warnings
from sfumato.people.error_law import ErrorLaw, LaplacePlusNormal, RatioLaw, added
from sfumato.people.estimate import Bracket, Estimate
from sfumato.people.headline import P_VALUE
from sfumato.people.linear import lattice_words
from sfumato.people.question import Question
from sfumato.people.reading import PairReader
from sfumato.privacy import Charge, Meter, PersonBudgets
from sfumato.privacy.terms import Terms
from sfumato.registry import mechanism as registered

_ANYTHING = LaplacePlusNormal((1e300,))  # finite, so that it can be written down as JSON


@dataclass(frozen=True, eq=False)
class PairPlan:
    """A sum around the middle and a count by the same mechanism."""

    question: Question  # of the centred sum
    centred: Offer
    ones: Offer
    low: float
    high: float
    kind: Literal["sum", "mean"]

    @property
    def mechanism(self) -> str:
        return self.centred.mechanism

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    @property
    def charge(self) -> Charge:
        first, second = self.centred.charge.people, self.ones.charge.people
        assert first is not None
        assert second is not None
        return Charge.of_people(first + second)

    def remade(self, mechanism: str, budgets: PersonBudgets) -> PairPlan:
        """The same answer by another mechanism, or for other budgets."""
        first, second = (o.plan.question.among(budgets) for o in (self.centred, self.ones))
        return replace(self, question=first, centred=plan_offer(first, mechanism), ones=plan_offer(second, mechanism))

    def _expected_count(self) -> float:
        share = self.ones.plan.question.selectivity
        return max(1.0, self.question.people * (1.0 if share is None else share))

    @property
    def expected_rmse(self) -> float:
        """For a mean: if the selectivity is as guessed (everybody without a guess) and the mean near the middle."""
        first, second = self.centred.plan.expected_rmse, self.ones.plan.expected_rmse
        if self.kind == "mean":
            return float(first) / self._expected_count()
        return float(np.hypot(first, self.middle * second))

    @property
    def bias_bound(self) -> float:
        if self.kind == "sum":
            return self.centred.bias_bound + abs(self.middle) * self.ones.bias_bound
        return self._bias_of_mean(self._expected_count())

    @property
    def assumes_independence(self) -> bool:
        return bool(self.centred.plan.assumes_independence or self.ones.plan.assumes_independence)

    def error_at(self, gap: float) -> float:
        """The error at a gap in the measure (and, for a sum, in who has one); `gaps` says what that is."""
        first = float(self.centred.plan.error_at(gap))
        if self.kind == "mean":
            return min(self.high - self.low, first / self._expected_count())
        return float(np.hypot(first, self.middle * self.ones.plan.error_at(gap)))

    @property
    def worst_rmse(self) -> float:
        """The largest error over all data, if as many rows count as expected."""
        first, second = float(self.centred.plan.worst_rmse), float(self.ones.plan.worst_rmse)
        if self.kind == "sum":
            return first + abs(self.middle) * second
        return min(self.high - self.low, (first + (self.high - self.low) / 2 * second) / self._expected_count())

    def _bias_of_mean(self, count: float, of_sum: float | None = None, of_count: float | None = None) -> float:
        """Both biases, the count's times how far a mean can lie from the middle, over the number of rows."""
        reach = (self.high - self.low) / 2
        first = self.centred.bias_bound if of_sum is None else of_sum
        second = self.ones.bias_bound if of_count is None else of_count
        return min(2 * reach, (first + reach * second) / count)

    def run(self, reader: Any, meter: Meter) -> Estimate:
        if not isinstance(reader, PairReader):
            raise InputError("a mean reads a PairReader(centred=..., ones=...)")
        total = self.centred.run(reader.centred, meter)
        count = self.ones.run(reader.ones, meter)
        made = self._combined(total, count, meter)
        if total.any_data is None or count.any_data is None:
            return made
        safe = self._combined(total.seen_as(total.any_data), count.seen_as(count.any_data), meter, any_data=True)
        made = replace(made, any_data=Bracket(safe.value, safe.law, safe.bias_bound))
        if total.if_independent is None or count.if_independent is None:
            return made
        keen = self._combined(total.seen_as(total.if_independent), count.seen_as(count.if_independent), meter)
        return replace(made, if_independent=Bracket(keen.value, keen.law))

    def _combined(self, total: Estimate, count: Estimate, meter: Meter, *, any_data: bool = False) -> Estimate:
        """A noisy sum around the middle and a noisy count, as one answer."""
        law: ErrorLaw
        if self.kind == "sum":
            value = self.middle * count.value + total.value
            law, rounding = _sum_law(total, count, self.middle), total.rounding
            bias = total.bias_bound + abs(self.middle) * count.bias_bound
            rows = self.question.budgets.most_people * self.question.rows_per_person
            bounds = (min(0.0, self.low * rows), max(0.0, self.high * rows))
        else:
            value, law, rounding, bias = self._ratio(total, count, any_data)
            bounds = (self.low, self.high)
        warnings = bias_warnings(bias, self.expected_rmse, self.question, kind=self.kind, worst_case=total.bias_in_interval)
        lattice = lattice_words(self.question, rounding)
        if law is _ANYTHING:
            warnings = (*warnings, "the condition may select nobody: the interval is the whole range")
        return Estimate(
            value=value,
            people=self.question.people,
            law=law,
            guarantee=meter.guarantee(),
            mechanism=self.mechanism,
            expected_rmse=self.expected_rmse,
            kind=self.kind,
            bias_bound=bias,
            bias_in_interval=total.bias_in_interval,
            bounds=bounds,
            column=self.question.column,
            clamped=(self.low, self.high),
            rounding=rounding,
            parameters={
                "sum": {k: v for k, v in total.parameters.items() if k not in lattice},
                "count": dict(count.parameters),
                **lattice,
            },
            warnings=warnings,
            details={"count": count.value, **_tested(total, count)},
        )

    def _heads(self, count: Estimate, any_data: bool) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """What noisy head counts add to the sum and to the count of a ratio, whose errors they share.

        If budgets are independent of the values, a ratio r makes the sum's mean r times the count's, so that the two errors
        nearly cancel: r times the difference of the two weights is left. For any data nothing need cancel.
        """
        q = self.question
        if q.budgets.noise is None:
            return (), ()
        which = "safe" if any_data else "keen"
        first, second = (getattr(o.plan, which, None) or getattr(o.plan, "safe", o.plan) for o in (self.centred, self.ones))
        if any_data:
            return tuple(first.head_scales(q.largest).tolist()), tuple(second.head_scales(q.rows_per_person).tolist())
        rows = min((abs(count.value) + 2 * count.law.rmse) / q.people, float(q.rows_per_person))
        between = np.abs(first.influence - second.influence) * q.people * rows * q.budgets.noise
        return tuple(first.head_scales(0.0).tolist()), tuple(between.tolist())

    def _ratio(self, total: Estimate, count: Estimate, any_data: bool) -> tuple[float, ErrorLaw, float, float]:
        """The mean, the law of its error, and what rounding and bias may do to it."""
        fewest, most = count.interval(0.99)
        if fewest <= 0 or count.value <= 0:
            return self.middle, _ANYTHING, 0.0, self._bias_of_mean(1.0)
        # Only rows with a value are rounded: `most` of all who might have been.
        rounding = total.rounding * most / (self.question.people * self.question.rows_per_person) / count.value
        bias = self._bias_of_mean(count.value, total.bias_bound, count.bias_bound)
        heads = self._heads(count, any_data)
        law = RatioLaw(
            sum_of=LaplacePlusNormal(*_parts(total), heads[0]),
            count_of=LaplacePlusNormal(*_parts(count), heads[1]),
            ratio=total.value / count.value,
            count=count.value,
            reach=(self.high - self.low) / 2,
            beside=rounding + (bias if total.bias_in_interval else 0.0),
        )
        return min(max(self.middle + law.ratio, self.low), self.high), law, rounding, bias


def _parts(estimate: Estimate) -> tuple[tuple[float, ...], float]:
    law = estimate.law
    if isinstance(law, LaplacePlusNormal):
        return law.scales, law.sd
    return (), law.rmse


def _tested(total: Estimate, count: Estimate) -> dict[str, float]:
    """The smaller p-value of the two tests, times two for there being two."""
    found = [e.p_value for e in (total, count) if e.p_value is not None]
    return {} if not found else {P_VALUE: min(1.0, len(found) * min(found))}


def _sum_law(total: Estimate, count: Estimate, middle: float) -> LaplacePlusNormal:
    a, sd_a = _parts(total)
    b, sd_b = _parts(count)
    heads = added(_heads(total), tuple(abs(middle) * x for x in _heads(count)))
    # Both see the same people with the same weights, so their sampling errors may add up; so may those of head counts.
    return LaplacePlusNormal((*a, *(abs(middle) * x for x in b)), sd_a + abs(middle) * sd_b, heads)


def _heads(estimate: Estimate) -> tuple[float, ...]:
    return estimate.law.heads if isinstance(estimate.law, LaplacePlusNormal) else ()


@dataclass(frozen=True, eq=False)
class Pair:
    """The two questions behind a mean or a shifted sum, each with half of everybody's budget."""

    terms: Terms
    low: float
    high: float
    steps: int = 1000
    selectivity: float | None = None
    kind: Literal["sum", "mean"] = "mean"
    rounding: float = 0.0  # by how many steps a value may differ from its point of the lattice
    column: str | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite([self.low, self.high]).all() and self.low < self.high):
            raise InputError(f"a mean needs public bounds low < high, got {self.low!r} and {self.high!r}")
        if self.steps < 1:
            raise InputError(f"steps must be at least 1, got {self.steps}")

    @property
    def measure(self) -> Question:
        """The centred sum, in half lattice units."""
        unit = (self.high - self.low) / self.steps / 2
        bounds: dict[str, Any] = {"low": -self.steps, "high": self.steps, "unit": unit}
        about: dict[str, Any] = {"rounding": 2 * self.rounding, "column": self.column, "kind": "sum"}
        return Question(self.terms, **bounds, **about, split=2, taking=self.selectivity)

    @property
    def ones(self) -> Question:
        """The rows that have a value."""
        return Question(self.terms, selectivity=self.selectivity, split=2)

    def offer(self, mechanism: str, **parameters: Any) -> Offer:
        """Both by one mechanism."""
        note = registered("mean", mechanism).summary
        first = plan_offer(self.measure, mechanism, **parameters)
        second = plan_offer(self.ones, mechanism, **parameters)
        plan = PairPlan(self.measure, first, second, float(self.low), float(self.high), self.kind)
        return offer_of(plan, note)
