"""Preview, choose, run: the options for a count, a sum or a mean over people with different budgets.

A preview works from public facts only. An `Option` knows its price before anything is read:

    options = preview_count(budgets)
    option = choose_option(options, "auto")
    ... ask the ledger for option.charge ...
    estimate = option.run(reader, Meter(limit=option.charge, budgets=budgets))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sfumato.errors import BudgetError, InputError
from sfumato.people.estimate import Estimate
from sfumato.people.mechanisms.affine import affine_plan
from sfumato.people.mechanisms.exponential import exponential_plan
from sfumato.people.mechanisms.partitioned import privacy_aware_plan, utility_plan
from sfumato.people.mechanisms.robust import robust_plan
from sfumato.people.mechanisms.sampling import sampling_plan
from sfumato.people.mechanisms.simple import minimum_plan, stretching_plan, threshold_plan
from sfumato.people.question import Question
from sfumato.people.reading import PairReader, Reader
from sfumato.privacy import SECURE, Charge, Meter, PersonBudgets, Source

WITH_TEST = 1.01  # a partition at most this much worse than the best is preferred: it tests its own assumption


class Plan(Protocol):
    """A release fixed from public facts: its price, its expected error, and how to run it."""

    @property
    def mechanism(self) -> str: ...
    @property
    def question(self) -> Question: ...
    @property
    def charge(self) -> Charge: ...
    @property
    def expected_rmse(self) -> float: ...
    @property
    def bias_bound(self) -> float: ...
    def run(self, reader: Any, meter: Meter) -> Estimate: ...


@dataclass(frozen=True, eq=False)
class Option:
    """One way to answer, with its price and expected error.

    Attributes
    ----------
    mechanism : str
    charge : Charge
        What to reserve in the ledger before `run`.
    expected_rmse : float
        If budgets are independent of the values.
    bias_bound : float
        Worst possible bias for any data.
    note : str
        One sentence for the person who chooses.
    """

    mechanism: str
    charge: Charge
    expected_rmse: float | None
    bias_bound: float
    note: str
    plan: Plan

    def run(self, reader: Reader | PairReader, meter: Meter) -> Estimate:
        """Read, add noise, estimate. The Meter refuses anything above its limit."""
        return self.plan.run(reader, meter)


_PLANS: dict[str, tuple[Callable[..., Plan], str]] = {
    "affine": (affine_plan, "everybody at their own budget up to a cap, one noise"),
    "partition": (utility_plan, "parts of similar budgets, combined by precision; tests whether the parts agree"),
    "privacy-aware": (privacy_aware_plan, "parts that waste the least budget, combined by precision"),
    "sampling": (sampling_plan, "each record kept with a probability that follows its budget, one budget for the sample"),
    "threshold": (threshold_plan, "only people with a budget above a threshold"),
    "stretching": (stretching_plan, "everybody at their own budget, no cap"),
    "exponential": (exponential_plan, "the personalized exponential mechanism: an answer near the truth is likelier"),
    "robust": (robust_plan, "small error for any data, even if budgets and values go together"),
    "minimum": (minimum_plan, "everybody at the smallest budget: unbiased for any data"),
}
MECHANISMS = (*_PLANS, "auto")


def plan_option(question: Question, mechanism: str, **parameters: Any) -> Option:
    """One option by name; `parameters` are those of its plan (cap, threshold, parts, rounds)."""
    if mechanism not in _PLANS:
        raise InputError(f"unknown mechanism {mechanism!r}; known: {', '.join(MECHANISMS)}")
    make, note = _PLANS[mechanism]
    plan = make(question, **parameters)
    return Option(mechanism, plan.charge, plan.expected_rmse, plan.bias_bound, note, plan)


def preview(question: Question) -> list[Option]:
    """All options that fit the question, least expected error first."""
    options = []
    for mechanism in _PLANS:
        try:
            options.append(plan_option(question, mechanism))
        except (InputError, BudgetError):  # a mechanism that cannot answer this question is not an option
            continue
    if not options:
        raise BudgetError("no mechanism can answer: the budgets are too small for this measure; use a coarser lattice")
    return sorted(options, key=lambda o: float("inf") if o.expected_rmse is None else o.expected_rmse)


def preview_count(budgets: PersonBudgets, *, selectivity: float | None = None, rows_per_person: int = 1) -> list[Option]:
    """Options for the number of people (or rows) that satisfy a condition.

    >>> budgets = PersonBudgets.from_tiers({"strict": (0.01, 5400), "standard": (0.2, 3700), "open": (1.0, 900)})
    >>> [option.mechanism for option in preview_count(budgets)][:2]
    ['affine', 'partition']
    """
    return preview(Question(budgets, rows_per_person=rows_per_person, high=1, selectivity=selectivity))


def preview_sum(
    budgets: PersonBudgets, *, low: int = 0, high: int, unit: float = 1.0, rows_per_person: int = 1
) -> list[Option]:
    """Options for the sum of a measure that lies between `low` and `high` lattice units per record."""
    return preview(Question(budgets, low=low, high=high, unit=unit, rows_per_person=rows_per_person, kind="sum"))


def choose_option(options: Sequence[Option], mechanism: str = "auto") -> Option:
    """The option of that name; "auto" is the least expected error, and within 1% of it a partition that tests itself."""
    if mechanism == "auto":
        best = options[0]
        for option in options:
            if option.mechanism == "partition" and best.expected_rmse and option.expected_rmse is not None:
                tested = option.expected_rmse <= WITH_TEST * best.expected_rmse
                return option if tested and option.plan.question.budgets.groups <= 25 else best
        return best
    for option in options:
        if option.mechanism == mechanism:
            return option
    raise InputError(f"mechanism {mechanism!r} is not among the options: {', '.join(o.mechanism for o in options)}, auto")


def count(
    reader: Reader,
    budgets: PersonBudgets,
    *,
    mechanism: str = "auto",
    selectivity: float | None = None,
    rows_per_person: int = 1,
    meter: Meter | None = None,
    source: Source = SECURE,
    **parameters: Any,
) -> Estimate:
    """How many people (or rows) satisfy a condition, everybody at their own budget.

    >>> import numpy as np
    >>> from sfumato.people.reading import ArrayReader
    >>> budgets = PersonBudgets.from_tiers({"strict": (0.1, 500), "open": (1.0, 500)})
    >>> reader = ArrayReader.of(np.repeat([0, 1], 500), np.arange(1000) % 2)
    >>> estimate = count(reader, budgets)
    >>> abs(estimate.value - 500) < 250, str(estimate.guarantee.epsilon) <= "1"
    (True, True)
    """
    question = Question(budgets, rows_per_person=rows_per_person, selectivity=selectivity)
    return answer(reader, question, mechanism=mechanism, meter=meter, source=source, **parameters)


def answer(
    reader: Reader,
    question: Question,
    *,
    mechanism: str = "auto",
    meter: Meter | None = None,
    source: Source = SECURE,
    **parameters: Any,
) -> Estimate:
    """Plan by name (or take the best by preview), price it, run it."""
    if mechanism == "auto":
        option = choose_option(preview(question))
    else:
        option = plan_option(question, mechanism, **parameters)
    if meter is None:
        meter = Meter(limit=option.charge, budgets=question.budgets, rows_per_person=question.rows_per_person, source=source)
    return option.run(reader, meter)
