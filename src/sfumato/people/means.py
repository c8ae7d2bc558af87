"""Means, and sums of a measure that does not start at zero: one sum around the middle and one count, half a budget each.

With v the measure's lattice value between 0 and `steps` and N the number of people who satisfy the condition,

    total = middle N + unit/2 Σ (2 v - steps),      mean = total / N

so the sum to be noised reaches ``steps`` lattice units of half size on either side: half the noise of a sum from the lower
bound. Guarantee: two questions in sequence, each within half of everybody's budget.

The interval of a mean is that of a ratio (Fieller 1954; see `error_law.RatioLaw`), not an approximation to first order.
Where N may be zero it is the whole range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sfumato.errors import InputError
from sfumato.offers import AUTO, Offer
from sfumato.people.answers import answer, every_offer, offer_of, plan_offer, run_offer
from sfumato.people.bias import bias_warnings
from sfumato.people.error_law import ErrorLaw, LaplacePlusNormal, RatioLaw
from sfumato.people.estimate import Estimate
from sfumato.people.linear import lattice_words
from sfumato.people.question import Question
from sfumato.people.reading import PairReader, Reader
from sfumato.privacy import SECURE, Charge, Meter, PersonBudgets, Source
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

    def _bias_of_mean(self, count: float) -> float:
        """Both biases, the count's times how far a mean can lie from the middle, over the number of rows."""
        reach = (self.high - self.low) / 2
        return min(2 * reach, (self.centred.bias_bound + reach * self.ones.bias_bound) / count)

    def run(self, reader: Any, meter: Meter) -> Estimate:
        if not isinstance(reader, PairReader):
            raise InputError("a mean reads a PairReader(centred=..., ones=...)")
        total = self.centred.run(reader.centred, meter)
        count = self.ones.run(reader.ones, meter)
        law: ErrorLaw
        if self.kind == "sum":
            value = self.middle * count.value + total.value
            law, rounding, bias = _sum_law(total, count, self.middle), total.rounding, self.bias_bound
            rows = self.question.people * self.question.rows_per_person
            bounds = (min(0.0, self.low * rows), max(0.0, self.high * rows))
        else:
            value, law, rounding, bias = self._ratio(total, count)
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
            details={"count": count.value},
        )

    def _ratio(self, total: Estimate, count: Estimate) -> tuple[float, ErrorLaw, float, float]:
        """The mean, the law of its error, and what rounding and bias may do to it."""
        fewest, most = count.interval(0.99)
        if fewest <= 0 or count.value <= 0:
            return self.middle, _ANYTHING, 0.0, self._bias_of_mean(1.0)
        # Only rows with a value are rounded: `most` of all who might have been.
        rounding = total.rounding * most / (self.question.people * self.question.rows_per_person) / count.value
        bias = self._bias_of_mean(count.value)
        law = RatioLaw(
            sum_of=LaplacePlusNormal(*_parts(total)),
            count_of=LaplacePlusNormal(*_parts(count)),
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


def _sum_law(total: Estimate, count: Estimate, middle: float) -> LaplacePlusNormal:
    a, sd_a = _parts(total)
    b, sd_b = _parts(count)
    # Both see the same people with the same weights, so their sampling errors may add up.
    return LaplacePlusNormal((*a, *(abs(middle) * x for x in b)), sd_a + abs(middle) * sd_b)


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
        return Question(self.budgets, **bounds, **about, rows_per_person=self.rows_per_person, split=2)

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
    rounding: float = 0.0,
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
    rounding : float
        By how many steps a value may differ from its point of the lattice: 0.5 if it was rounded to the nearest.
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
    pair = Pair(budgets, low, high, steps, selectivity, rows_per_person, kind, rounding)
    return every_offer("mean", pair.offer, budgets)


def mean(
    reader: PairReader,
    budgets: PersonBudgets,
    *,
    low: float,
    high: float,
    steps: int = 1000,
    rounding: float = 0.0,
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
    rounding : float
        By how many steps a value may differ from its point of the lattice: 0.5 if it was rounded to the nearest.
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
    pair = Pair(budgets, low, high, steps, selectivity, rows_per_person, kind, rounding)
    offer = every_offer("mean", pair.offer, budgets)[0] if mechanism == AUTO else pair.offer(mechanism)
    return run_offer(offer, reader, offer.plan.question, source=source)


def total(
    reader: Reader,
    budgets: PersonBudgets,
    *,
    high: int,
    low: int = 0,
    unit: float = 1.0,
    rounding: float = 0.0,
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
    rounding : float
        By how many units a value may differ from its lattice value: 0.5 if it was rounded to the nearest.
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
    lattice: dict[str, Any] = {"low": low, "high": high, "unit": unit, "rounding": rounding}
    question = Question(budgets, **lattice, rows_per_person=rows_per_person, kind="sum")
    return answer(reader, question, mechanism=mechanism, source=source, **parameters)
