"""Means and sums from arrays: preview, or answer in one call. How they are made stands in `pairs` and `linear`."""

from __future__ import annotations

from typing import Any, Literal

from sfumato.offers import AUTO, Offer
from sfumato.people.answers import answer, every_offer, run_offer
from sfumato.people.estimate import Estimate
from sfumato.people.pairs import Pair
from sfumato.people.question import Question
from sfumato.people.reading import PairReader, Reader
from sfumato.privacy import SECURE, PersonBudgets, Source
from sfumato.privacy.terms import Terms


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
    independent: bool = False,
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
    independent : bool
        Whether you state that what people granted has nothing to do with their values.

    Returns
    -------
    list of Offer
        Each runs on a `PairReader`.

    Examples
    --------
    >>> budgets = PersonBudgets.from_tiers({"strict": (0.1, 5000), "open": (1.0, 5000)})
    >>> preview_mean(budgets, low=0, high=100)[0].mechanism
    'adaptive'
    """
    terms = Terms(rows_per_person=rows_per_person, budgets=budgets)
    pair = Pair(terms, low, high, steps, selectivity, kind, rounding)
    return every_offer("mean", pair.offer, budgets, independent=independent)


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
    independent: bool = False,
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
    independent : bool
        Whether you state that what people granted has nothing to do with their values.
    source : Source
        Random bits.

    Returns
    -------
    Estimate
    """
    terms = Terms(rows_per_person=rows_per_person, budgets=budgets)
    pair = Pair(terms, low, high, steps, selectivity, kind, rounding)
    if mechanism == AUTO:
        offer = every_offer("mean", pair.offer, budgets, independent=independent)[0]
    else:
        offer = pair.offer(mechanism)
    return run_offer(offer, reader, source=source)


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
    independent: bool = False,
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
    independent : bool
        Whether you state that what people granted has nothing to do with their values.
    source : Source
        Random bits.
    parameters
        Of the mechanism.

    Returns
    -------
    Estimate
    """
    terms = Terms(rows_per_person=rows_per_person, budgets=budgets)
    question = Question(terms, low=low, high=high, unit=unit, rounding=rounding, kind="sum")
    return answer(reader, question, mechanism=mechanism, independent=independent, source=source, **parameters)
