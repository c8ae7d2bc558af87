"""What each way to list the most frequent values would cost and how good it would be. Nothing is read or spent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.histograms.bins import Bins
from sfumato.offers import Facts, Offer, Request
from sfumato.people.answers import best_first
from sfumato.people.gaps import errors_of
from sfumato.privacy import Exact, positive_nano
from sfumato.registry import Mechanism, Parameter, mechanisms
from sfumato.statistics.top import TopPlan
from sfumato.statistics.top_people import PersonalTopPlan
from sfumato.tables.dataset import Dataset
from sfumato.tables.personal import PersonalTable

PARAMETERS = (
    Parameter("column", "text", "the column whose most frequent values are listed"),
    Parameter("columns", "texts", "several columns: the most frequent combinations of their values"),
    Parameter("k", "whole", "how many values to list", low=1, high=10_000, required=True),
    Parameter("counts", "flag", "whether half of the budget goes to how often each listed value occurs"),
)
Ints = NDArray[np.int64]


def offers(request: Request, facts: Facts) -> list[Offer]:
    """The ways to list the most frequent values, best first.

    Parameters
    ----------
    request : Request
        Of kind "top".
    facts : Facts

    Returns
    -------
    list of Offer
        Each runs on a `Dataset`.
    """
    place = f"release {request.name!r}"
    given = {p.name: p.check(request.parameters.get(p.name), place) for p in PARAMETERS}
    facts.check_where(request.where)
    columns = _columns(given, place)
    facts.schema.check_cells(columns)
    bins = Bins.of_schema(facts.schema, columns)
    k, counted = int(given["k"]), bool(given["counts"])
    if k >= bins.size:
        raise InputError(
            f"{place} asks for the top {k} of {bins.size} values, which are all of them: ask for fewer, or for a histogram"
        )
    if facts.budgets is not None:
        return _personal(request, facts, bins, k, counted)
    terms = facts.terms
    rate = terms.per_row(positive_nano(request.need_epsilon()))
    found = []
    for entry in mechanisms("top"):
        if "one epsilon" in entry.needs:
            plan: TopPlan = entry.make(terms, bins, k, rate, counted)
            note = (
                f"{entry.summary} (no listed value is rarer than number {k} by more than {plan.shortfall(0.95):,.3g} rows, "
                "in 95 of 100 cases, whatever the data; the expected error is an upper bound of that kind)"
            )
            offer = Offer(entry.name, terms.up_to(plan.charge), plan.expected_rmse, note, plan.run, plan=plan)
            found.append(offer.reading(_counts(columns, request.where)))
    return sorted(found, key=lambda o: float(o.expected_rmse or 0.0))


def _columns(given: dict[str, Any], place: str) -> list[str]:
    if (given["column"] is None) == (given["columns"] is None):
        raise InputError(f"{place} needs `column`, or `columns` for combinations of values; not both")
    return [given["column"]] if given["columns"] is None else list(given["columns"])


def _counts(columns: list[str], where: str | None) -> Callable[[Dataset], Exact[Ints]]:
    return lambda dataset: dataset.counts(columns, where)


def _personal(request: Request, facts: Facts, bins: Bins, k: int, counted: bool) -> list[Offer]:
    """Everyone at their own budget."""

    def reading(dataset: Dataset) -> Callable[[Ints], Exact[Ints]]:
        table = PersonalTable(dataset, facts.budgets)
        return lambda weights: table.weighted_cells(weights, list(bins.names), request.where)

    def offer(entry: Mechanism) -> Offer:
        plan: PersonalTopPlan = entry.make(facts.terms, bins, k, counted)
        about: dict[str, Any] = {"plan": plan, "bias_bound": plan.bias_bound, "errors": errors_of(plan)}
        made = Offer(entry.name, facts.terms.up_to(plan.charge), plan.expected_rmse, entry.summary, plan.run, **about)
        return made.reading(reading)

    assert facts.budgets is not None
    found = [offer(entry) for entry in mechanisms("top") if "personal budgets" in entry.needs]
    return best_first(found, facts.budgets, independent=request.independent)
