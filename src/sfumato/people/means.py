"""Means, and sums of a measure that does not start at zero: one sum around the middle and one count, half a budget each.

With v the measure's lattice value between 0 and `steps` and N the number of people who satisfy the condition,

    total = middle N + unit/2 Σ (2 v - steps),      mean = total / N

so the sum to be noised reaches ``steps`` lattice units of half size on either side: half the noise of a sum from the lower
bound. Guarantee: two questions in sequence, each within half of everybody's budget.

The interval of a mean is first-order (delta method) with the smallest plausible N; where N may be zero it is the whole
range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sfumato.errors import InputError
from sfumato.offers import AUTO, Offer
from sfumato.people.answers import answer, every_offer, offer_of, plan_offer, run_offer
from sfumato.people.error_law import LaplacePlusNormal
from sfumato.people.estimate import Estimate
from sfumato.people.question import Question
from sfumato.people.reading import PairReader, Reader
from sfumato.privacy import SECURE, Charge, Meter, PersonBudgets, Source
from sfumato.registry import mechanism as registered


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
        return min((self.high - self.low) / 2, self.centred.bias_bound / self._expected_count())

    def run(self, reader: Any, meter: Meter) -> Estimate:
        if not isinstance(reader, PairReader):
            raise InputError("a mean reads a PairReader(centred=..., ones=...)")
        total = self.centred.run(reader.centred, meter)
        count = self.ones.run(reader.ones, meter)
        warnings = total.warnings[:1]
        parameters = {"sum": dict(total.parameters), "count": dict(count.parameters)}
        if self.kind == "sum":
            value = self.middle * count.value + total.value
            law = _sum_law(total, count, self.middle)
            n = self.question.people
            bounds = (min(0.0, self.low * n), max(0.0, self.high * n))
        else:
            value, law, sure = _ratio(total, count)
            value = min(max(self.middle + value, self.low), self.high)
            bounds = (self.low, self.high)
            if not sure:
                warnings = (*warnings, "the condition may select nobody: the interval is the whole range")
        return Estimate(
            value=value,
            people=self.question.people,
            law=law,
            guarantee=meter.guarantee(),
            mechanism=self.mechanism,
            expected_rmse=self.expected_rmse,
            kind=self.kind,
            bias_bound=self.bias_bound,
            bias_in_interval=total.bias_in_interval,
            bounds=bounds,
            parameters=parameters,
            warnings=warnings,
            details={"count": count.value},
        )


def _parts(estimate: Estimate) -> tuple[tuple[float, ...], float]:
    law = estimate.law
    if isinstance(law, LaplacePlusNormal):
        return law.scales, law.sd
    return (), law.rmse


def _sum_law(total: Estimate, count: Estimate, middle: float) -> LaplacePlusNormal:
    a, sd_a = _parts(total)
    b, sd_b = _parts(count)
    # Both see the same people with the same weights, so their sampling errors may add up.
    return LaplacePlusNormal((*a, *(abs(middle) * x for x in b)), sd_a + abs(middle) * sd_b)


def _ratio(total: Estimate, count: Estimate) -> tuple[float, LaplacePlusNormal, bool]:
    """Sum over count, the law of its error, and whether the count is surely above zero."""
    low = count.interval(0.99)[0]
    if low <= 0 or count.value <= 0:
        return 0.0, LaplacePlusNormal((float("1e300"),)), False
    ratio = total.value / count.value
    law = _sum_law(total, count, -ratio)
    return ratio, LaplacePlusNormal(tuple(x / low for x in law.scales), law.sd / low), True


@dataclass(frozen=True, eq=False)
class Pair:
    """The two questions behind a mean or a shifted sum, each with half of everybody's budget."""

    budgets: PersonBudgets
    low: float
    high: float
    steps: int = 1000
    selectivity: float | None = None
    rows_per_person: int = 1
    kind: Literal["sum", "mean"] = "mean"

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
        return Question(self.budgets, **bounds, rows_per_person=self.rows_per_person, kind="sum", split=2)

    @property
    def ones(self) -> Question:
        """The rows that have a value."""
        return Question(self.budgets, rows_per_person=self.rows_per_person, selectivity=self.selectivity, split=2)

    def offer(self, mechanism: str, **parameters: Any) -> Offer:
        """Both by one mechanism."""
        note = registered("mean", mechanism).summary
        first = plan_offer(self.measure, mechanism, **parameters)
        second = plan_offer(self.ones, mechanism, **parameters)
        plan = PairPlan(self.measure, first, second, float(self.low), float(self.high), self.kind)
        return offer_of(plan, note, self.budgets)


def preview_mean(
    budgets: PersonBudgets,
    *,
    low: float,
    high: float,
    steps: int = 1000,
    selectivity: float | None = None,
    rows_per_person: int = 1,
    kind: Literal["sum", "mean"] = "mean",
) -> list[Offer]:
    """Offers for the mean (or shifted sum) of a measure with public bounds, best first.

    Parameters
    ----------
    budgets : PersonBudgets
    low, high : float
        Public bounds of the measure.
    steps : int
        Size of the lattice between them.
    selectivity : float, optional
        A public guess of the share of people who satisfy the condition.
    rows_per_person : int
    kind : "mean" or "sum"

    Returns
    -------
    list of Offer
        Each runs on a `PairReader`.

    Examples
    --------
    >>> budgets = PersonBudgets.from_tiers({"strict": (0.1, 5000), "open": (1.0, 5000)})
    >>> preview_mean(budgets, low=0, high=100)[0].mechanism
    'partition'
    """
    pair = Pair(budgets, low, high, steps, selectivity, rows_per_person, kind)
    return every_offer("mean", pair.offer, budgets)


def mean(
    reader: PairReader,
    budgets: PersonBudgets,
    *,
    low: float,
    high: float,
    steps: int = 1000,
    selectivity: float | None = None,
    rows_per_person: int = 1,
    mechanism: str = AUTO,
    kind: Literal["sum", "mean"] = "mean",
    source: Source = SECURE,
) -> Estimate:
    """The mean of a measure over the people who satisfy a condition, everybody at their own budget.

    Parameters
    ----------
    reader : PairReader
    budgets : PersonBudgets
    low, high : float
        Public bounds of the measure.
    steps : int
        Size of the lattice between them.
    selectivity : float, optional
        A public guess of the share of people who satisfy the condition.
    rows_per_person : int
    mechanism : str
        A mechanism's name; "auto" takes the best by preview.
    kind : "mean" or "sum"
    source : Source
        Random bits.

    Returns
    -------
    Estimate
    """
    pair = Pair(budgets, low, high, steps, selectivity, rows_per_person, kind)
    offer = every_offer("mean", pair.offer, budgets)[0] if mechanism == AUTO else pair.offer(mechanism)
    return run_offer(offer, reader, offer.plan.question, source=source)


def total(
    reader: Reader,
    budgets: PersonBudgets,
    *,
    high: int,
    low: int = 0,
    unit: float = 1.0,
    rows_per_person: int = 1,
    mechanism: str = AUTO,
    source: Source = SECURE,
    **parameters: Any,
) -> Estimate:
    """The sum of a measure that lies between ``low <= 0`` and `high` lattice units, everybody at their own budget.

    Parameters
    ----------
    reader : Reader
    budgets : PersonBudgets
    low, high : int
        Public bounds in lattice units.
    unit : float
        What a lattice unit means.
    rows_per_person : int
    mechanism : str
        A mechanism's name; "auto" takes the best by preview.
    source : Source
        Random bits.
    parameters
        Of the mechanism.

    Returns
    -------
    Estimate
    """
    question = Question(budgets, low=low, high=high, unit=unit, rows_per_person=rows_per_person, kind="sum")
    return answer(reader, question, mechanism=mechanism, source=source, **parameters)
