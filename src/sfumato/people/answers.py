"""Preview, choose, run: the offers for a count or a sum over people with different budgets.

A preview works from public facts only, so an offer knows its price before anything is read:

    offers = preview_count(budgets)
    offer = choose(offers)
    ... ask the ledger for offer.charge ...
    estimate = offer.run(reader, Meter.under(offer.terms))
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from sfumato.errors import BudgetError, InputError
from sfumato.offers import AUTO, Offer
from sfumato.people.estimate import Estimate
from sfumato.people.gaps import errors_of
from sfumato.people.question import Question
from sfumato.people.reading import Reader
from sfumato.privacy import SECURE, Charge, Meter, PersonBudgets, Source
from sfumato.privacy.terms import Terms
from sfumato.registry import mechanism as registered
from sfumato.registry import mechanisms

HONEST = "adaptive"  # what `auto` takes where budgets differ and nobody vouches for independence
WITH_TEST = 1.01  # a partition at most this much worse than the best is preferred: it tests its own assumption
_FEW_GROUPS = 25  # up to here the parts of a partition can be compared


class FixedPlan(Protocol):
    """A release fixed from public facts, as a mechanism's `make` returns it: its price, its error, and how to run it."""

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
    @property
    def worst_rmse(self) -> float: ...
    @property
    def assumes_independence(self) -> bool: ...
    def error_at(self, gap: float) -> float: ...
    def run(self, reader: Any, meter: Meter) -> Estimate: ...


def plan_offer(question: Question, mechanism: str, **parameters: Any) -> Offer:
    """One offer by name.

    Parameters
    ----------
    question : Question
    mechanism : str
        A mechanism for counts and sums; `sfumato mechanisms count` lists them.
    parameters
        Of the mechanism (cap, threshold, parts, rounds).

    Returns
    -------
    Offer
        Runs on a `Reader`.
    """
    entry = registered(question.kind, mechanism)
    plan: FixedPlan = entry.make(question, **parameters)
    return offer_of(plan, entry.summary)


def offer_of(plan: FixedPlan, note: str) -> Offer:
    """A fixed plan as an offer, under the terms of its question and at its price."""
    terms = plan.question.terms.up_to(plan.charge)
    about: dict[str, Any] = {"bias_bound": plan.bias_bound, "errors": errors_of(plan), "plan": plan}
    return Offer(plan.mechanism, terms, plan.expected_rmse, note, plan.run, **about)


def preview(question: Question, *, independent: bool = False) -> list[Offer]:
    """All offers that fit the question, the best first.

    Where budgets differ the best is `adaptive`, which needs no assumption. With `independent`, or where nobody's budget
    differs, it is the one with the least expected error; within 1% of it a partition that tests whether its parts agree.

    Parameters
    ----------
    question : Question
    independent : bool
        Whether the caller states that what people granted has nothing to do with their values.

    Returns
    -------
    list of Offer
        Each runs on a `Reader`.
    """
    make = partial(plan_offer, question)
    return every_offer(question.kind, make, question.budgets, independent=independent)


def every_offer(
    kind: str, make: Callable[[str], Offer], budgets: PersonBudgets, *, independent: bool = False
) -> list[Offer]:
    """The offers of all mechanisms for personal budgets that can answer, best first."""
    offers = []
    for entry in mechanisms(kind):
        if "one epsilon" in entry.needs:
            continue
        try:
            offers.append(make(entry.name))
        except (InputError, BudgetError):  # a mechanism that cannot answer this question is no offer
            continue
    if not offers:
        raise BudgetError("no mechanism can answer: the budgets are too small for this measure; use a coarser lattice")
    return best_first(offers, budgets, independent=independent)


def best_first(offers: list[Offer], budgets: PersonBudgets, *, independent: bool = False) -> list[Offer]:
    """What `auto` takes, then the others by their expected error.

    Where budgets differ that is the adaptive offer, if there is one: it is right without assumptions. Who states that
    budgets and values are independent gets the least expected error, but for a partition that is nearly as good and tests
    itself.
    """
    if not independent and int(np.count_nonzero(budgets.counts)) > 1:
        honest = next((o for o in offers if o.mechanism == HONEST), None)
        if honest is not None:
            return [honest, *_by_error([o for o in offers if o is not honest], budgets)]
    return _by_error(offers, budgets)


def _by_error(offers: list[Offer], budgets: PersonBudgets) -> list[Offer]:
    if not offers:
        return []
    by_error = sorted(offers, key=lambda o: float("inf") if o.expected_rmse is None else o.expected_rmse)
    best = by_error[0]
    tested = next((o for o in by_error if o.mechanism == "partition"), None)
    if tested is None or not best.expected_rmse or tested.expected_rmse is None or budgets.groups > _FEW_GROUPS:
        return by_error
    if tested.expected_rmse > WITH_TEST * best.expected_rmse:
        return by_error
    return [tested, *(o for o in by_error if o is not tested)]


def preview_count(
    budgets: PersonBudgets, *, selectivity: float | None = None, rows_per_person: int = 1, independent: bool = False
) -> list[Offer]:
    """Offers for the number of people (or rows) that satisfy a condition.

    Parameters
    ----------
    budgets : PersonBudgets
    selectivity : float, optional
        A public guess of the share of people who satisfy the condition.
    rows_per_person : int
    independent : bool
        Whether you state that what people granted has nothing to do with their values.

    Returns
    -------
    list of Offer
        Best first; each runs on a `Reader`.

    Examples
    --------
    >>> budgets = PersonBudgets.from_tiers({"strict": (0.01, 5400), "standard": (0.2, 3700), "open": (1.0, 900)})
    >>> preview_count(budgets)[0].mechanism, preview_count(budgets, independent=True)[0].mechanism
    ('adaptive', 'affine')
    """
    question = Question(Terms(rows_per_person=rows_per_person, budgets=budgets), selectivity=selectivity)
    return preview(question, independent=independent)


def preview_sum(
    budgets: PersonBudgets,
    *,
    low: int = 0,
    high: int,
    unit: float = 1.0,
    rounding: float = 0.0,
    rows_per_person: int = 1,
    independent: bool = False,
) -> list[Offer]:
    """Offers for the sum of a measure that lies between `low` and `high` lattice units per record.

    Parameters
    ----------
    budgets : PersonBudgets
    low, high : int
        Public bounds in lattice units, ``low <= 0 <= high``.
    unit : float
        What a lattice unit means.
    rounding : float
        By how many units a value may differ from its lattice value: 0.5 if it was rounded to the nearest.
    rows_per_person : int
    independent : bool
        Whether you state that what people granted has nothing to do with their values.

    Returns
    -------
    list of Offer
        Best first; each runs on a `Reader`.
    """
    terms = Terms(rows_per_person=rows_per_person, budgets=budgets)
    question = Question(terms, low=low, high=high, unit=unit, rounding=rounding, kind="sum")
    return preview(question, independent=independent)


def count(
    reader: Reader,
    budgets: PersonBudgets,
    *,
    mechanism: str = AUTO,
    selectivity: float | None = None,
    rows_per_person: int = 1,
    independent: bool = False,
    meter: Meter | None = None,
    source: Source = SECURE,
    **parameters: Any,
) -> Estimate:
    """How many people (or rows) satisfy a condition, everybody at their own budget.

    Parameters
    ----------
    reader : Reader
    budgets : PersonBudgets
    mechanism : str
        A mechanism's name; "auto" takes the best by preview.
    selectivity : float, optional
        A public guess of the share of people who satisfy the condition.
    rows_per_person : int
    independent : bool
        Whether you state that what people granted has nothing to do with their values.
    meter : Meter, optional
        One with the offer's price as its limit if left out.
    source : Source
        Random bits.
    parameters
        Of the mechanism.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.people.reading import ArrayReader
    >>> budgets = PersonBudgets.from_tiers({"strict": (0.1, 500), "open": (1.0, 500)})
    >>> reader = ArrayReader.of(np.repeat([0, 1], 500), np.arange(1000) % 2)
    >>> estimate = count(reader, budgets)
    >>> abs(estimate.value - 500) < 250, str(estimate.guarantee.epsilon) <= "1"
    (True, True)
    """
    question = Question(Terms(rows_per_person=rows_per_person, budgets=budgets), selectivity=selectivity)
    about: dict[str, Any] = {"mechanism": mechanism, "independent": independent, "meter": meter}
    return answer(reader, question, **about, source=source, **parameters)


def answer(
    reader: Any,
    question: Question,
    *,
    mechanism: str = AUTO,
    independent: bool = False,
    meter: Meter | None = None,
    source: Source = SECURE,
    **parameters: Any,
) -> Estimate:
    """Plan by name (or take the best by preview), price it, run it.

    Parameters
    ----------
    reader : Reader
        The exact sums of the measure.
    question : Question
        What is asked, in public facts.
    mechanism : str
        A mechanism's name; "auto" takes the best by preview.
    independent : bool
        Whether the caller states that what people granted has nothing to do with their values.
    meter : Meter, optional
        One with the offer's price as its limit if left out.
    source : Source
        Random bits.
    parameters
        Of the mechanism.

    Returns
    -------
    Estimate
    """
    if mechanism == AUTO:
        offer = preview(question, independent=independent)[0]
    else:
        offer = plan_offer(question, mechanism, **parameters)
    return run_offer(offer, reader, meter=meter, source=source)


def run_offer(offer: Offer, reader: Any, *, meter: Meter | None = None, source: Source = SECURE) -> Estimate:
    """Run an offer under a Meter that holds it to its terms."""
    made: Estimate = offer.run(reader, Meter.under(offer.terms, source=source) if meter is None else meter)
    return made
