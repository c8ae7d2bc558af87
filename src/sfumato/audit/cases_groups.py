"""Figures per group, variances and proportions on one person present or absent, at what that person is charged."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.cases_people import ROSTER
from sfumato.audit.registry import attack_every, register
from sfumato.audit.transcripts import TranscriptCase
from sfumato.histograms.bins import Axis, Bins
from sfumato.privacy import NANO, Exact, Meter, Source, Terms
from sfumato.registry import Mechanism
from sfumato.statistics.figure_offers import ProportionPlan
from sfumato.statistics.group_question import GroupQuestion
from sfumato.statistics.shares import Plan, moments_of, plan_parts
from sfumato.statistics.variance import VariancePlan
from sfumato.tables.moments import Moments

_NANO = NANO // 5
_STEPS = 10
_BY = Bins((Axis.categories("ward", ["A", "B", "C"]), Axis.categories("sex", ["f", "m"])))
_TIERS = np.array([0, 0, 0, 1, 1, 2])
_CELLS = np.array([[0, 0], [0, 0], [2, 1], [1, 0], [0, 0], [0, 1]])
_VALUES = np.array([7, 10, 0, 3, 10, 1])
_QUESTIONS = {
    "count": GroupQuestion("count", _BY),
    "sum": GroupQuestion("sum", _BY, "x", 0.0, 1.0, _STEPS, base=0),
    "mean": GroupQuestion("mean", _BY, "x", 0.0, 1.0, _STEPS),
    "proportion": GroupQuestion("proportion", _BY),
}


def _table(who: NDArray[np.bool_], values: NDArray[np.int64] = _VALUES, *, powers: int = 1, rows: int = 1) -> Exact[Moments]:
    """The moments of some of six people, each with so many rows alike."""
    many = np.repeat(np.flatnonzero(who), rows)
    return Exact(moments_of(_TIERS[many], _CELLS[many], values[many], powers=powers), rows_per_person=rows)


def _published(made: Any) -> list[NDArray[Any]]:
    told = [np.array(repr(made.parameters)), np.array(repr(made.warnings)), np.array(made.low), np.array(made.high)]
    return [np.asarray(getattr(made, "values", getattr(made, "value", None))), *told]


def _case(name: str, plan: Any, tables: tuple[Any, Any], words: str, terms: Terms, group: int | None) -> TranscriptCase:
    charge = plan.charge
    claimed = int(charge.total) if group is None else int(charge.people[group])

    def meter(source: Source) -> Meter:
        return Meter.under(terms.up_to(charge), source=source)

    return TranscriptCase(name, claimed, lambda t, m: _published(plan.run(t, m)), tables, words, meter=meter)


def _one_group(values: NDArray[np.int64], who: NDArray[np.bool_], *, powers: int, rows: int = 1) -> Exact[Moments]:
    """The same people, all in one group and at one ε."""
    many = np.repeat(np.flatnonzero(who), rows)
    none = np.zeros((many.size, 0), dtype=np.int64)
    return Exact(moments_of(np.zeros(many.size, dtype=np.int64), none, values[many], powers=powers), rows_per_person=rows)


def _pair(make: Callable[[NDArray[np.bool_]], Any], person: int) -> tuple[Any, Any]:
    everybody = np.ones(_TIERS.size, dtype=bool)
    return make(everybody), make(np.arange(_TIERS.size) != person)


def _cases(entry: Mechanism) -> list[TranscriptCase]:
    """A mechanism for groups: one person absent, at one ε for all with three rows each, and at budgets of their own."""
    made = []
    for kind in ("count", "sum", "mean"):
        question = _QUESTIONS[kind]
        for rows, terms, nano, group in ((3, Terms(rows_per_person=3), _NANO, None), (1, Terms(budgets=ROSTER), None, 1)):

            def measure(
                depth: int, share: Fraction, terms: Terms = terms, nano: int | None = nano, parts: int = question.parts
            ) -> Plan:
                groups = Bins(_BY.axes[:depth]) if depth else None
                return plan_parts(terms, groups, parts, nano=nano, share=share)

            def table(who: NDArray[np.bool_], rows: int = rows, group: int | None = group) -> Exact[Moments]:
                found = _table(who, rows=rows)
                return found if group is not None else found.map(lambda m: (np.zeros_like(m[0]), *m[1:]))

            words = "one person with three rows absent" if group is None else f"one of tier {ROSTER.name(1)!r} absent"
            name = f"{kind}-by-{entry.name}" + ("" if group is None else "-personal")
            made.append(_case(name, entry.make(question, measure), _pair(table, 4), words, terms, group))
    return made


def _variance_case(rows: int) -> TranscriptCase:
    """A lattice that makes every part round: the price must hold all the same."""
    terms = Terms(rows_per_person=rows)
    plan = VariancePlan("laplace", plan_parts(terms, None, 3, nano=_NANO), "x", 0.0, 1.0, _STEPS, 0.0, 6.0)
    pair = _pair(lambda who: _one_group(_VALUES, who, powers=2, rows=rows), 3)
    return _case(f"variance-{rows}-rows", plan, pair, f"one person with {rows} rows absent", terms, None)


def _replaced_case() -> TranscriptCase:
    """One person's value is another one, at the other end of the range."""
    terms = Terms(neighbours="replacement")
    plan = VariancePlan("laplace", plan_parts(terms, None, 3, nano=_NANO), "x", 0.0, 1.0, _STEPS, 0.0, 6.0)
    everybody = np.ones(_TIERS.size, dtype=bool)
    other = np.where(np.arange(_TIERS.size) == 2, _STEPS, _VALUES)
    pair = (_one_group(_VALUES, everybody, powers=2), _one_group(other, everybody, powers=2))
    return _case("variance-replaced", plan, pair, "one value 0 or at the upper bound", terms, None)


def _proportion_case() -> TranscriptCase:
    terms = Terms()
    plan = ProportionPlan("laplace", plan_parts(terms, None, 2, nano=_NANO), 6.0)
    pair = _pair(lambda who: _one_group((_VALUES > 5).astype(np.int64), who, powers=1), 0)
    return _case("proportion", plan, pair, "one person of whom the condition holds absent", terms, None)


attack_every("mean by", _cases)
register(_variance_case(1))
register(_variance_case(3))
register(_replaced_case())
register(_proportion_case())
