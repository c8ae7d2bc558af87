"""The offers for a variance and for a proportion, at one ε or at everybody's own budget."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from sfumato.errors import InputError
from sfumato.histograms.bins import Bins
from sfumato.offers import Facts, Offer, Request
from sfumato.people.lattice import MOST_POINTS
from sfumato.privacy import Charge, Exact, Meter, positive_nano
from sfumato.registry import Mechanism, Parameter, mechanisms
from sfumato.statistics.by import BY
from sfumato.statistics.figure import Figure
from sfumato.statistics.group_question import GroupQuestion
from sfumato.statistics.groups_offers import known_rows, measured_lattice
from sfumato.statistics.groups_offers import offers as group_offers
from sfumato.statistics.shares import ROUNDING, PersonalPlan, Plan, plan_parts
from sfumato.statistics.variance import VariancePlan
from sfumato.tables.covered import coverage
from sfumato.tables.dataset import Dataset
from sfumato.tables.moments import MOST_SQUARED, Moments, WeighedMoments
from sfumato.tables.personal import PersonalTable

_STEPS = Parameter(
    "steps",
    "whole",
    "steps of the lattice between the column's bounds; as many as are useful if left out",
    low=1,
    high=min(MOST_SQUARED, MOST_POINTS),
)
VARIANCE_PARAMETERS = (Parameter("column", "text", "the numeric column", required=True), _STEPS)
PROPORTION_PARAMETERS = (
    Parameter("of", "text", "the condition of the base, of which `where` is a part; everybody if left out"),
    BY,
)


class FigurePlan(Protocol):
    """A figure fixed from public facts."""

    @property
    def mechanism(self) -> str: ...
    @property
    def charge(self) -> Charge: ...
    @property
    def expected_rmse(self) -> float | None: ...
    @property
    def bias_bound(self) -> float: ...
    def run(self, found: Exact[Moments] | WeighedMoments, meter: Meter) -> Figure: ...


def variance_offers(request: Request, facts: Facts) -> list[Offer]:
    """The ways to answer a variance, what "auto" takes first.

    Parameters
    ----------
    request : Request
    facts : Facts

    Returns
    -------
    list of Offer
        Each runs on a `Dataset`.
    """
    given = {p.name: p.check(request.parameters.get(p.name), f"release {request.name!r}") for p in VARIANCE_PARAMETERS}
    facts.check_where(request.where)
    cut = measured_lattice(facts, request, given["column"], most=MOST_SQUARED)
    rows = _rows(facts, request.where)

    def read(dataset: Dataset, plan: Plan) -> Exact[Moments] | WeighedMoments:
        about: dict[str, Any] = {"measure": given["column"], "steps": cut.steps, "powers": 2}
        table = PersonalTable(dataset, facts.budgets)
        if plan.weightings:
            return table.weighed_moments(plan.weightings, (), request.where, **about, less=ROUNDING)
        return table.moments((), request.where, **about)

    def plan(name: str, parts: Plan) -> FigurePlan:
        return VariancePlan(name, parts, given["column"], cut.low, cut.high, cut.steps, cut.rounding, rows)

    found = _measured(request, facts, 3)
    return [_offer(plan(m.name, made), m, facts).reading(partial(read, plan=made)) for m, made in found]


def proportion_offers(request: Request, facts: Facts) -> list[Offer]:
    """The ways to answer a proportion, what "auto" takes first; one per group with `by`.

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
    given = {p.name: p.check(request.parameters.get(p.name), place) for p in PROPORTION_PARAMETERS}
    if request.where is None:
        raise InputError(f"{place} needs `where`, the condition whose share is asked (and `of`, its base, if not everybody)")
    facts.check_where(request.where)
    facts.check_where(given["of"])
    if given["by"]:
        return group_offers(request, facts)
    rows = _rows(facts, given["of"])

    def read(dataset: Dataset, plan: Plan) -> Exact[Moments] | WeighedMoments:
        table = PersonalTable(dataset, facts.budgets)
        about: dict[str, Any] = {"holds": request.where, "powers": 1}
        if plan.weightings:
            return table.weighed_moments(plan.weightings, (), given["of"], **about)
        return table.moments((), given["of"], **about)

    found = [(m, made, ProportionPlan(m.name, made, rows)) for m, made in _measured(request, facts, 2)]
    return [_offer(plan, m, facts).reading(partial(read, plan=made)) for m, made, plan in found]


@dataclass(frozen=True, eq=False)
class ProportionPlan:
    """A proportion: rows of the base for which the condition holds and rows for which it does not, in parallel.

    **Guarantee.** A row of the base is one of the two, so each has the noise of the whole budget (`shares`, degree 1 with
    values 0 and 1). Both come from one query: a person's rows are capped once.
    """

    mechanism: str
    plan: Plan
    rows: float | None

    @property
    def charge(self) -> Charge:
        """One measurement of two parts."""
        return self.plan.charge

    def _error(self, of_part: float) -> float | None:
        return None if not self.rows else float(min(of_part / np.sqrt(2) / self.rows, 0.5))

    @property
    def expected_rmse(self) -> float | None:
        """For a proportion of one half, if as many rows are in the base as are known."""
        return self._error(float(np.sqrt(2)) * self.plan.scale)

    @property
    def bias_bound(self) -> float:
        """Beside the noise, for any data."""
        return (self._error(self.plan.plan.bias_bound) or 0.0) if isinstance(self.plan, PersonalPlan) else 0.0

    def run(self, found: Exact[Moments] | WeighedMoments, meter: Meter) -> Figure:
        """Both noisy counts, then their ratio."""
        question = GroupQuestion("proportion", Bins.numbered(1))
        noisy = self.plan.run(question.sums(found, 0), meter)
        low, high = question.interval(noisy)
        narrow = noisy.if_independent()
        ends = None if narrow is None else question.interval(narrow)
        return Figure(
            kind="proportion",
            value=float(question.values(noisy.parts)[0]),
            low=float(low[0]),
            high=float(high[0]),
            guarantee=meter.guarantee(),
            mechanism=self.mechanism,
            bounds=(0.0, 1.0),
            if_independent=None if ends is None else (float(ends[0][0]), float(ends[1][0])),
            expected_rmse=self.expected_rmse,
            bias_bound=self.bias_bound,
            details={"rows": max(0.0, float(noisy.parts.sum()))},
            parameters={"noise_scale": noisy.scale, **noisy.told},
            warnings=noisy.warnings,
            alarm=noisy.alarm,
        )


def _offer(plan: FigurePlan, entry: Mechanism, facts: Facts) -> Offer:
    known = "" if plan.expected_rmse is not None else " (error decided by the number of rows: state `rows` to see it)"
    terms = facts.terms.up_to(plan.charge)
    about: dict[str, Any] = {"bias_bound": plan.bias_bound, "plan": plan}
    return Offer(plan.mechanism, terms, plan.expected_rmse, entry.summary + known, plan.run, **about)


def _measured(request: Request, facts: Facts, parts: int) -> list[tuple[Mechanism, Plan]]:
    """The mechanisms that apply, what "auto" takes first, with their measurements."""
    personal = facts.budgets is not None
    needed = "personal budgets" if personal else "one epsilon"
    nano = None if personal else positive_nano(request.need_epsilon())
    found = [(m, m.make(facts.terms, parts, nano=nano)) for m in mechanisms(request.kind) if needed in m.needs]
    return found[::-1] if request.independent else found


def _rows(facts: Facts, where: str | None) -> float | None:
    """A public guess of how many rows there are: by what the condition covers of the schema."""
    rows = known_rows(facts)
    return rows if rows is None or where is None else rows * coverage(facts.schema, where)


def _one_epsilon(terms: Any, parts: int, *, nano: int | None) -> Plan:
    return plan_parts(terms, None, parts, nano=nano)


def _adaptive(terms: Any, parts: int, *, nano: int | None) -> Plan:
    return plan_parts(terms, None, parts, nano=nano)


def _affine(terms: Any, parts: int, *, nano: int | None) -> Plan:
    return plan_parts(terms, None, parts, nano=nano, independent=True)


_KINDS = ("variance", "proportion")
MECHANISMS = (
    Mechanism(
        "laplace",
        _KINDS,
        _one_epsilon,
        "every row shared out among a few noisy parts, each at the whole budget",
        needs=("one epsilon",),
        paper="Dwork, McSherry, Nissim & Smith 2006",
    ),
    Mechanism(
        "adaptive",
        _KINDS,
        _adaptive,
        "the same parts at everybody's own budget: right for any data, precise if budgets and values are independent",
        needs=("personal budgets",),
    ),
    Mechanism(
        "affine",
        _KINDS,
        _affine,
        "the same parts at everybody's own budget up to a cap: right if budgets and values are independent",
        needs=("personal budgets",),
    ),
)
