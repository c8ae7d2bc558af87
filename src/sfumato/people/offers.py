"""The offers for counts, sums, means and histograms over a table: everyone at their own budget, or one ε for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from sfumato.errors import InputError
from sfumato.histograms.offers import bins_asked, finished
from sfumato.offers import AUTO, Facts, Offer, Request, choose
from sfumato.people import histogram
from sfumato.people.answers import best_first, every_offer, plan_offer
from sfumato.people.gaps import errors_of
from sfumato.people.histogram import PersonalHistogramPlan
from sfumato.people.lattice import MOST_POINTS, lattice_between
from sfumato.people.mechanisms import adaptive_cells
from sfumato.people.mechanisms.adaptive_cells import AdaptiveHistogramPlan
from sfumato.people.pairs import Pair
from sfumato.people.question import Question
from sfumato.people.reading import DatasetReader, PairReader, Reader
from sfumato.people.rough_roster import roughly
from sfumato.people.selectivity import planned_share
from sfumato.privacy import Charge, Meter, PersonBudgets, positive_nano
from sfumato.privacy.terms import Terms
from sfumato.registry import Mechanism, Parameter
from sfumato.registry import mechanism as registered
from sfumato.tables.covered import coverage
from sfumato.tables.dataset import Dataset
from sfumato.tables.lattice import Lattice
from sfumato.tables.notes import Wording
from sfumato.tables.personal import PersonalTable

_SELECTIVITY = Parameter(
    "selectivity", "number", "a public guess of the share of rows that count; by the schema if left out", low=0, high=1
)
MOST_BUDGETS = 5_000_000  # different ones; more would take a preview more than a second, and memory near 1 GB
COUNT_PARAMETERS = (_SELECTIVITY,)
MEASURE_PARAMETERS = (
    Parameter("column", "text", "the numeric column to add up", required=True),
    Parameter(
        "steps",
        "whole",
        "steps of the lattice between the column's bounds; as many as are useful if left out",
        low=1,
        high=MOST_POINTS // 2,
    ),
    _SELECTIVITY,
)


def offers(request: Request, facts: Facts) -> list[Offer]:
    """The ways to answer a count, sum, mean or personal histogram, best first.

    Parameters
    ----------
    request : Request
    facts : Facts

    Returns
    -------
    list of Offer
        Each runs on a `Dataset`.
    """
    if facts.budgets is not None and facts.budgets.groups > MOST_BUDGETS:
        raise InputError(
            f"{facts.budgets.groups:,} different budgets; a preview prices at most {MOST_BUDGETS:,}, which takes seconds: "
            "round the budgets of the roster down to a few decimals"
        )
    make = {"count": _count, "sum": _measure, "mean": _measure, "histogram": _histogram}[request.kind]
    rough = roughly(facts)
    if rough is facts:
        return make(request, facts)
    # Only the offer that is taken must be planned for every budget: the others are there to be compared with it.
    compared = make(request, rough)
    taken = choose(compared, request.mechanism, place=f"release {request.name!r}")
    return [*make(request, facts, only=taken), *(o for o in compared if o is not taken)]


def _count(request: Request, facts: Facts, only: Offer | None = None) -> list[Offer]:
    given = _checked(request, facts, COUNT_PARAMETERS)
    question = Question(_terms(request, facts))
    question = replace(question, selectivity=_selectivity(request, facts, question, given["selectivity"]))
    found = _every(request, facts, question.budgets, partial(_planned, question, only), only)
    found = _saying(found, question.selectivity, given["selectivity"])
    return [o.reading(lambda d: _reader(d, facts, request.where)) for o in found]


def _planned(question: Question, like: Offer | None, mechanism: str, **given: Any) -> Offer:
    """An offer by name; its errors are those of one `like` it, where that was planned for nearly the same budgets."""
    if like is None:
        return plan_offer(question, mechanism, **given)
    entry = registered(question.kind, mechanism)
    plan = entry.make(question, **given)
    terms = question.terms.up_to(plan.charge)
    return replace(like, terms=terms, run=plan.run, plan=plan, note=entry.summary)


def _measure(request: Request, facts: Facts, only: Offer | None = None) -> list[Offer]:
    given = _checked(request, facts, MEASURE_PARAMETERS)
    column = given["column"]
    if request.kind == "sum" and not facts.schema[column].adds_up:
        raise InputError(
            f"release {request.name!r} adds up {column!r}, whose values are dates; ask for their mean or median"
        )
    terms = _terms(request, facts)
    budgets = Question(terms).budgets
    if request.kind == "sum" and facts.schema.lattice(column, 1).low == 0:  # one noisy sum, without the number of rows
        cut = lattice(facts, column, budgets, given["steps"])
        about: dict[str, Any] = {
            "rounding": cut.rounding / cut.unit,
            "column": column,
            "kind": "sum",
        }
        question = Question(terms, high=cut.steps, unit=cut.unit, **about)
        question = replace(question, taking=_selectivity(request, facts, question, given["selectivity"]))
        found = _every(request, facts, budgets, partial(_planned, question, only), only)
        found = _saying(found, question.taking, given["selectivity"])
        found = [o.reading(lambda d: _reader(d, facts, request.where, column, cut.steps)) for o in _readable(found)]
        return _worded(found, facts, column)
    cut = lattice(facts, column, budgets, given["steps"], halved=True)
    steps = cut.steps

    def read(dataset: Dataset) -> PairReader:
        return PairReader(
            centred=_reader(dataset, facts, request.where, column, 2 * steps, -steps),
            ones=_reader(dataset, facts, _present(column, request.where)),
        )

    kind: Literal["sum", "mean"] = "sum" if request.kind == "sum" else "mean"
    # The engine rounds to half steps, so a value is at most a quarter of a step away.
    about = {"rounding": cut.rounding / cut.unit / 2, "column": column}
    share = _selectivity(request, facts, Question(terms, split=2), given["selectivity"])
    pair = Pair(terms, cut.low, cut.high, steps, share, kind, **about)
    found = _saying(_every(request, facts, budgets, pair.offer, only), share, given["selectivity"])
    return _worded([o.reading(read) for o in _readable(found)], facts, column)


def _worded(found: list[Offer], facts: Facts, column: str) -> list[Offer]:
    """Offers whose answer knows the unit of its column."""
    wording = facts.schema.wording(column)
    return found if wording == Wording() else [_saying_it(o, wording) for o in found]


def _saying_it(offer: Offer, wording: Wording) -> Offer:
    run = offer.run
    return replace(offer, run=lambda data, meter: replace(run(data, meter), wording=wording))


def _histogram(request: Request, facts: Facts, only: Offer | None = None) -> list[Offer]:
    bins = bins_asked(request, facts)
    if request.parameters.get("bin_budgets") is not None:
        raise InputError(f"release {request.name!r} draws on personal budgets; bin budgets need one `epsilon` for all")
    columns = [a.name for a in bins.axes]

    def offer(make: Mechanism) -> Offer:
        plan: PersonalHistogramPlan | AdaptiveHistogramPlan = make.make(facts.terms, bins)

        def run(dataset: Dataset, meter: Meter) -> Any:
            table = PersonalTable(dataset, facts.budgets)
            return plan.run(table.weighed_at_once(plan.weightings, columns, request.where), meter)

        priced = facts.terms.up_to(plan.charge)
        about: dict[str, Any] = {"plan": plan, "bias_bound": plan.bias_bound, "errors": errors_of(plan)}
        return Offer(make.name, priced, plan.expected_rmse, make.summary, run, **about)

    found = [
        offer(make)
        for make in (histogram.MECHANISM, adaptive_cells.MECHANISM)
        if only is None or only.mechanism == make.name
    ]
    assert facts.budgets is not None
    return [finished(o, request) for o in best_first(found, facts.budgets, independent=request.independent)]


def _selectivity(request: Request, facts: Facts, question: Question, given: float | None) -> float | None:
    """The share of people to plan for: as the request says, or by what the condition covers of the public domain."""
    if given is not None or request.where is None:
        return given
    return planned_share(question, coverage(facts.schema, request.where))


def _saying(found: list[Offer], share: float | None, given: float | None) -> list[Offer]:
    """Offers that say which share of the people they were planned for, where nobody stated it."""
    if share is None or given is not None:
        return found
    words = f"planned for {share:.2g} of the people, by what the condition covers of the schema"
    return [replace(o, note=f"{o.note}; {words}") for o in found]


def _checked(request: Request, facts: Facts, parameters: tuple[Parameter, ...]) -> dict[str, Any]:
    facts.check_where(request.where)
    return {p.name: p.check(request.parameters.get(p.name), f"release {request.name!r}") for p in parameters}


def _every(
    request: Request, facts: Facts, budgets: PersonBudgets, make: Callable[..., Offer], only: Offer | None = None
) -> list[Offer]:
    """All offers, best first; the one asked for by name with the parameters it was given, or the reason why not.

    With `only`, an offer of its mechanism alone.
    """
    if facts.budgets is None:  # nobody's budget differs: all mechanisms come to the same
        plain = make("laplace")
        return [replace(plain, terms=facts.terms.up_to(Charge(plain.charge.total)))]
    if only is not None and request.mechanism == AUTO:
        return [make(only.mechanism)]
    found = [] if only else every_offer(request.kind, make, budgets, independent=request.independent)
    if request.mechanism == AUTO:
        return found
    given = registered(request.kind, request.mechanism).check(request.parameters, f"release {request.name!r}")
    asked = make(request.mechanism, **given)
    return [asked, *(o for o in found if o.mechanism != asked.mechanism)]


def _readable(found: list[Offer]) -> list[Offer]:
    """Without sampling: it needs the number of rows per value of the measure, which is not read from a table."""
    return [o for o in found if o.mechanism != "sampling"]


def lattice(facts: Facts, column: str, budgets: PersonBudgets, steps: int | None = None, *, halved: bool = False) -> Lattice:
    """The lattice of a numeric column, from public facts; `halved` where the engine cuts every step in two."""
    bounds, whole = facts.schema.lattice(column, 1), facts.schema[column].whole_steps
    most = MOST_POINTS // 2 if halved else MOST_POINTS
    return lattice_between(bounds.low, bounds.high, budgets, whole=whole, steps=steps, most=most)


def _terms(request: Request, facts: Facts) -> Terms:
    """What the answer is held to; with one ε for all, as if the public head count had granted it."""
    if facts.budgets is not None:
        return facts.terms
    nano = positive_nano(request.need_epsilon())
    if facts.rows is None:
        raise InputError(
            f"release {request.name!r} needs a public head count (an upper bound will do): `rows` under [dataset] in a "
            "plan, sf.open(..., rows=...) in Python"
        )
    return replace(facts.terms, budgets=PersonBudgets(np.array([nano]), np.array([facts.rows])))


def _reader(
    dataset: Dataset, facts: Facts, where: Any, measure: str | None = None, steps: int | None = None, base: int = 0
) -> Reader:
    return DatasetReader(dataset, facts.budgets, where, measure, steps, base)


def _present(column: str, where: str | None) -> str:
    """Rows with a value: a missing one has no part in a mean."""
    quoted = '"' + column.replace('"', '""') + '"'
    return f"{quoted} is not missing" if where is None else f"({where}) and {quoted} is not missing"
