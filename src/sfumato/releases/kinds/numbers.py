"""Counts and sums: everyone at their own budget, or one ε for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import InputError, SchemaError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.units import positive_nano
from sfumato.releases.kinds.base import Facts, Option, need_epsilon
from sfumato.releases.kinds.reading import TableReader
from sfumato.releases.plan import Request

if TYPE_CHECKING:
    from sfumato.people.question import Question
    from sfumato.privacy.meter import Meter
    from sfumato.tables import Dataset


class CountKind:
    """kind = "count": how many rows satisfy `where`; `selectivity` is a public guess of their share."""

    name = "count"
    keys = ("selectivity",)
    personal = True

    def options(self, request: Request, facts: Facts) -> list[Option]:
        from sfumato.people.question import Question

        _check_where(request.where, facts)
        budgets = _budgets(request, facts)
        question = Question(
            budgets,
            rows_per_person=facts.schema.unit.rows_per_person,
            selectivity=request.options.get("selectivity"),
        )
        return _priced(question, facts, lambda dataset: _reader(dataset, facts, budgets, request.where))


class SumKind:
    """kind = "sum": the sum of the numeric `column` over the rows that satisfy `where`, on a lattice of `steps`."""

    name = "sum"
    keys = ("column", "steps")
    personal = True

    def options(self, request: Request, facts: Facts) -> list[Option]:
        from sfumato.people.question import Question

        column = request.options.get("column")
        if not isinstance(column, str):
            raise InputError(f"release {request.name!r} needs `column`, the numeric column to add up")
        steps, base, unit = lattice(facts, column, request.options.get("steps"))
        _check_where(request.where, facts)
        budgets = _budgets(request, facts)
        question = Question(
            budgets,
            low=min(base, 0),
            high=max(base + steps, 0),
            unit=unit,
            rows_per_person=facts.schema.unit.rows_per_person,
            kind="sum",
        )

        def reader(dataset: Dataset) -> Any:
            return _reader(dataset, facts, budgets, request.where, measure=column, steps=steps, base=base)

        return _priced(question, facts, reader)


def lattice(facts: Facts, column: str, steps: int | None) -> tuple[int, int, float]:
    """Steps, the lattice number of the lower bound, and what one step is worth."""
    from sfumato.tables import Numeric

    domain = facts.schema[column]
    if not isinstance(domain, Numeric):
        raise SchemaError(f"column {column!r} is categorical; only numeric columns can be added up")
    width = float(domain.high) - float(domain.low)
    if steps is None:
        if not domain.integer:
            raise InputError(f"column {column!r} is not whole numbers; give `steps`, for example steps = 1000")
        steps = round(width)
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= 2**20:
        raise InputError(f"`steps` is a whole number from 1 to 2^20, got {steps!r}")
    unit = width / steps
    base = round(float(domain.low) / unit)
    if abs(base * unit - float(domain.low)) > 1e-9 * max(1.0, abs(float(domain.low))):
        raise InputError(
            f"the lower bound {domain.low} of {column!r} is no multiple of the step {unit:g}; choose `steps` so that it is"
        )
    return steps, base, unit


def _budgets(request: Request, facts: Facts) -> PersonBudgets:
    if facts.budgets is not None:
        return facts.budgets
    nano = positive_nano(need_epsilon(request))
    if facts.rows is None:
        raise InputError(
            f"release {request.name!r} needs a public head count: add `rows` to [dataset] (an upper bound will do)"
        )
    return PersonBudgets(np.array([nano]), np.array([facts.rows]))


def _reader(dataset: Dataset, facts: Facts, budgets: PersonBudgets, where: Any, **measure: Any) -> Any:
    if facts.budgets is not None:
        return TableReader(dataset, budgets, facts.levels, where, **measure)
    return PlainReader(dataset, where, **measure)


def _priced(question: Question, facts: Facts, reader: Callable[[Dataset], Any]) -> list[Option]:
    from sfumato.people.mechanisms import choose_option, preview

    found = preview(question)
    best = choose_option(found)
    ordered = [best, *(o for o in found if o is not best)]
    if facts.budgets is None:  # with one budget all linear mechanisms are the same plain Laplace sum
        ordered = [o for o in ordered if o.mechanism == "minimum"]

    def runner(option: Any) -> Callable[[Dataset, Meter], Any]:
        return lambda dataset, meter: option.run(reader(dataset), meter)

    return [
        Option(
            "laplace" if facts.budgets is None else o.mechanism,
            o.charge,
            o.expected_rmse,
            "the same noise for everybody" if facts.budgets is None else o.note,
            runner(o),
            budgets=question.budgets,
        )
        for o in ordered
    ]


class PlainReader:
    """The `Reader` of the people family when one ε holds for all: a single person group."""

    def __init__(
        self, dataset: Dataset, where: Any, measure: str | None = None, steps: int | None = None, base: int = 0
    ) -> None:
        self.dataset, self.where, self.measure, self.steps, self.base = dataset, where, measure, steps, base

    def group_sums(self) -> Any:
        if self.measure is None:
            return np.array([self.dataset.count(self.where)], dtype=np.int64)
        total = self.dataset.sum(self.measure, steps=self.steps, base=self.base, where=self.where)
        return np.array([total], dtype=np.int64)

    def weighted_sum(self, weights: Any) -> int:
        return int(self.group_sums()[0]) * int(weights[0])

    def group_values(self) -> Any:
        raise InputError("sampling needs budgets that differ")


def _check_where(where: Any, facts: Facts) -> None:
    """A typo in a condition is found in the preview, not after the table was opened."""
    from sfumato.tables import parse_where

    parse_where(where, facts.schema)


KINDS = (CountKind(), SumKind())
