"""The offers for a figure per group: counts, sums, means and proportions with `by`, at one ε or at everybody's own."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.histograms.bins import Bins
from sfumato.offers import AUTO, Facts, Offer, Request
from sfumato.people.lattice import MOST_POINTS, lattice_between
from sfumato.privacy import Exact, PersonBudgets, positive_nano
from sfumato.registry import mechanism as registered
from sfumato.registry import mechanisms
from sfumato.statistics.by import BY
from sfumato.statistics.group_question import GroupQuestion
from sfumato.statistics.groups import GroupPlan
from sfumato.statistics.shares import Plan, plan_parts
from sfumato.tables.dataset import Dataset
from sfumato.tables.lattice import Lattice
from sfumato.tables.moments import Moments, WeighedMoments
from sfumato.tables.personal import PersonalTable

_UNKNOWN_ROWS = 10**6  # stands for an unknown head count where only the fineness of a lattice depends on it
_PLANNED = "`selectivity` plans one figure from budgets that differ; a figure per group needs none: leave it out"


def offers(request: Request, facts: Facts) -> list[Offer]:
    """The ways to answer a count, sum, mean or proportion with `by`, what "auto" takes first.

    Parameters
    ----------
    request : Request
    facts : Facts

    Returns
    -------
    list of Offer
        Each runs on a `Dataset`.
    """
    place = f"release {request.name!r}"
    by = BY.check(request.parameters.get("by"), place)
    facts.check_where(request.where)
    if request.parameters.get("selectivity") is not None:
        raise InputError(f"{place}: {_PLANNED}")
    facts.schema.check_cells(by)
    question = asked(request, facts, Bins.of_schema(facts.schema, by))
    nano = None if facts.budgets is not None else positive_nano(request.need_epsilon())

    def measure(depth: int, share: Fraction) -> Plan:
        groups = Bins(question.by.axes[:depth]) if depth else None
        part = None if share == 1 else share
        return plan_parts(facts.terms, groups, question.parts, nano=nano, independent=request.independent, share=part)

    kind = f"{request.kind} by"
    found = []
    for entry in mechanisms(kind):
        given = entry.check(request.parameters, place) if entry.name == request.mechanism else {}
        plan: GroupPlan = entry.make(question, measure, **given)
        found.append(_offer(plan, entry.summary, facts, request))
    if request.mechanism != AUTO:
        registered(kind, request.mechanism)  # refuses an unknown name with a hint
    return found


def _offer(plan: GroupPlan, note: str, facts: Facts, request: Request) -> Offer:
    def read(dataset: Dataset) -> Exact[Moments] | WeighedMoments:
        return moments(dataset, facts, request, plan)

    if plan.expected_rmse is None:
        note += " (error decided by the sizes of the groups: state `rows` to see it for groups of average size)"
    elif plan.question.kind in ("mean", "proportion"):
        note += " (error of separate noise in a group of average size)"
    terms = facts.terms.up_to(plan.charge)
    about: dict[str, Any] = {"bias_bound": plan.bias_bound, "plan": plan, "errors": plan.errors}
    return Offer(plan.mechanism, terms, plan.expected_rmse, note, plan.run, **about).reading(read)


def moments(dataset: Dataset, facts: Facts, request: Request, plan: GroupPlan) -> Exact[Moments] | WeighedMoments:
    """What is read of the table: one query."""
    table, question = PersonalTable(dataset, facts.budgets), plan.question
    names, where = list(question.by.names), request.where
    about: dict[str, Any] = {"measure": question.column, "steps": question.steps, "powers": 1}
    if request.kind == "count":
        about = {}
    elif request.kind == "proportion":
        where, about = request.parameters.get("of"), {"holds": request.where, "powers": 1}
    weights = tuple(each for level in plan.plans for each in level.weightings)
    return table.weighed_moments(weights, names, where, **about) if weights else table.moments(names, where, **about)


def asked(request: Request, facts: Facts, by: Bins) -> GroupQuestion:
    """The question with its public bounds and lattice."""
    rows = known_rows(facts)
    if request.kind == "count":
        return GroupQuestion("count", by, rows=rows)
    if request.kind == "proportion":
        return GroupQuestion("proportion", by, rows=rows)
    column = request.parameters.get("column")
    if column is None:
        raise InputError(f"release {request.name!r} needs `column`, a text: the numeric column to add up")
    cut = measured_lattice(facts, request, column)
    about: dict[str, Any] = {"low": cut.low, "high": cut.high, "steps": cut.steps, "rounding": cut.rounding, "rows": rows}
    question = GroupQuestion("sum" if request.kind == "sum" else "mean", by, column, **about)
    base = round(cut.low / cut.unit)
    whole = abs(cut.low - base * cut.unit) <= 1e-9 * cut.unit  # or every row would be off by the same
    if request.kind == "mean" or not whole or (facts.budgets is not None and cut.low < 0):
        return question
    return replace(question, base=base)


def known_rows(facts: Facts) -> float | None:
    """A public number of rows: stated, or as many as the roster's people may own."""
    if facts.budgets is not None:
        return float(facts.budgets.most_people * facts.terms.rows_per_person)
    return None if facts.rows is None else float(facts.rows)


def measured_lattice(facts: Facts, request: Request, column: str, *, most: int = MOST_POINTS) -> Lattice:
    """The lattice of a numeric column, as fine as is useful."""
    bounds, whole = facts.schema.lattice(column, 1), facts.schema[column].whole_steps is not None
    budgets = facts.budgets
    if budgets is None:
        heads = np.array([facts.rows or _UNKNOWN_ROWS])
        budgets = PersonBudgets(np.array([positive_nano(request.need_epsilon())]), heads)
    steps = request.parameters.get("steps")
    return lattice_between(bounds.low, bounds.high, budgets, integer=whole, steps=steps, most=most)
