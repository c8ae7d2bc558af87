"""What each way to make a table would cost and how well it would do, from public facts alone. Nothing is read or spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.histograms.bins import Bins
from sfumato.offers import Facts, Offer, Request
from sfumato.people.answers import best_first
from sfumato.people.gaps import errors_of
from sfumato.privacy import Meter, positive_nano
from sfumato.registry import Mechanism, Parameter, mechanisms
from sfumato.statistics.crosstab import TablePlan, largest, named
from sfumato.statistics.crosstab_people import PersonalTablePlan
from sfumato.statistics.crosstab_result import CrossTable
from sfumato.statistics.margin_plan import Columns, subsets
from sfumato.statistics.tidy import nonnegative, whole
from sfumato.tables.dataset import Dataset
from sfumato.tables.personal import PersonalTable
from sfumato.tables.schema import MAX_CELLS, Schema

MOST_COLUMNS = 8
PARAMETERS = (
    Parameter("columns", "texts", "the columns of the table, up to 8", required=True),
    Parameter(
        "margins",
        "any",
        "which margins matter: 'all', up to so many columns (2), or these numbers of columns ([1, 3])",
        "all",
    ),
    Parameter("nonnegative", "flag", "whether negative cells are set right, all margins with them"),
    Parameter("whole", "flag", "whether cells become whole numbers, all margins with them"),
)
_MOST_TOLD = 7  # margins whose error is told in a note


def offers(request: Request, facts: Facts) -> list[Offer]:
    """The ways to make a table, best first.

    Parameters
    ----------
    request : Request
        Of kind "table".
    facts : Facts

    Returns
    -------
    list of Offer
        Each runs on a `Dataset`.
    """
    place = f"release {request.name!r}"
    given = {p.name: p.check(request.parameters.get(p.name), place) for p in PARAMETERS}
    facts.check_where(request.where)
    columns = _columns(given["columns"], facts.schema, place)
    bins = Bins.of_schema(facts.schema, columns)
    asked = margins_asked(given["margins"], len(columns), place)
    for margin in largest(asked):
        facts.schema.check_cells([columns[i] for i in margin])
    full = len(largest(asked)) == 1
    for name in ("nonnegative", "whole"):
        if given[name] and not full:
            raise InputError(f"`{name}` of {place} needs the whole table: leave `margins` out, or say 'all'")
    found = _everyone(request, facts, bins, asked) if facts.budgets is None else _personal(request, facts, bins, asked)

    def reading(dataset: Dataset, plan: Any) -> Callable[..., Any]:
        weights = plan.weightings if isinstance(plan, PersonalTablePlan) else ()
        return PersonalTable(dataset, facts.budgets).margins(columns, request.where, weights)

    return [_tidied(offer, given).reading(partial(reading, plan=offer.plan)) for offer in found]


def _columns(names: list[str], schema: Schema, place: str) -> list[str]:
    for name in names:
        schema[name]
    if len(set(names)) < len(names):
        raise InputError(f"a column is named twice in `columns` of {place}")
    if len(names) > MOST_COLUMNS:
        raise InputError(
            f"`columns` of {place} names {len(names)} columns, a table has at most {MOST_COLUMNS}: ask for several tables, "
            "or for kind 'synthesize'"
        )
    return list(names)


def margins_asked(margins: Any, columns: int, place: str) -> tuple[Columns, ...]:
    """The margins that matter, as sets of columns.

    >>> margins_asked([1, 2], 3, "release 'wards'")
    ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    """
    if margins is None or margins == "all":
        return tuple(s for s in subsets(range(columns)) if s)
    sizes = [margins] if not isinstance(margins, list | tuple) else list(margins)
    if not sizes or not all(isinstance(m, int) and not isinstance(m, bool) and 1 <= m <= columns for m in sizes):
        raise InputError(
            f"`margins` of {place} is 'all', a number of columns from 1 to {columns}, or a list of such; got {margins!r}"
        )
    wanted = set(sizes) if isinstance(margins, list | tuple) else set(range(1, sizes[0] + 1))
    return tuple(s for s in subsets(range(columns)) if len(s) in wanted)


def _everyone(request: Request, facts: Facts, bins: Bins, asked: tuple[Columns, ...]) -> list[Offer]:
    """One ε for all."""
    terms = facts.terms
    rate = terms.per_row(positive_nano(request.need_epsilon()))
    found: list[Offer] = []
    too_little: InputError | None = None
    for entry in mechanisms("table"):
        if "one epsilon" not in entry.needs or (entry.name == "cells" and bins.size > MAX_CELLS):
            continue
        try:
            plan: TablePlan = entry.make(terms, bins, asked, rate)
        except InputError as error:  # for this mechanism; another may divide it less
            too_little = error
            continue
        note = f"{entry.summary}{_told(plan, bins)}"
        found.append(Offer(entry.name, terms.up_to(plan.charge), plan.expected_rmse, note, plan.run, plan=plan))
    if not found and too_little is not None:
        raise too_little
    return sorted(found, key=lambda o: float(o.expected_rmse or 0.0))


def _personal(request: Request, facts: Facts, bins: Bins, asked: tuple[Columns, ...]) -> list[Offer]:
    """Everyone at their own budget."""

    def offer(entry: Mechanism) -> Offer:
        plan: PersonalTablePlan = entry.make(facts.terms, bins, asked)
        note = f"{entry.summary}{_told(plan, bins)}"
        about: dict[str, Any] = {"plan": plan, "bias_bound": plan.bias_bound, "errors": errors_of(plan)}
        return Offer(entry.name, facts.terms.up_to(plan.charge), plan.expected_rmse, note, plan.run, **about)

    assert facts.budgets is not None
    found = [offer(entry) for entry in mechanisms("table") if "personal budgets" in entry.needs]
    return best_first(found, facts.budgets, independent=request.independent)


def _told(plan: TablePlan | PersonalTablePlan, bins: Bins) -> str:
    """The error of a cell of every margin, or of the best and the worst of many."""
    errors = plan.errors()
    words = [f"{named(bins, s)} {error:,.3g}" for s, error in errors.items()]
    if len(words) <= _MOST_TOLD:
        return f" (error of a cell: {', '.join(words)})"
    low, high = min(errors.values()), max(errors.values())
    return f" (error of a cell: {low:,.3g} to {high:,.3g} over {len(words)} margins)"


def _tidied(offer: Offer, given: dict[str, Any]) -> Offer:
    """The offer whose table has no negative cells, or whole numbers, as the request asks."""
    if not given["nonnegative"] and not given["whole"]:
        return offer
    run, precision = offer.run, offer.plan.precision

    def tidy(read: Any, meter: Meter) -> CrossTable:
        made: CrossTable = run(read, meter)
        (place, table), *_ = made.counts.items()
        asked: dict[str, Any] = {}
        if given["nonnegative"]:
            table, asked = nonnegative(table, replace(precision, shape=table.shape)), {"nonnegative": True}
        if given["whole"]:
            table, asked = whole(np.asarray(table)), {**asked, "whole": True}
        return made.with_counts({place: table}, **asked)

    return replace(offer, run=tidy)
