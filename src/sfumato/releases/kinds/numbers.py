"""Counts, sums and means: everyone at their own budget, or one ε for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sfumato.errors import InputError, SchemaError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.units import positive_nano
from sfumato.releases.kinds.base import Facts, Option, need_epsilon
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
            selectivity=_selectivity(request),
        )
        return _priced(preview_all(question), facts, budgets, lambda d: _reader(d, facts, request.where))


class MeasureKind:
    """kind = "sum" or "mean" of the numeric `column` over the rows that satisfy `where`, on a lattice of `steps`."""

    keys = ("column", "steps", "selectivity")
    personal = True

    def __init__(self, name: Literal["sum", "mean"]) -> None:
        self.name = name

    def options(self, request: Request, facts: Facts) -> list[Option]:
        from sfumato.people.means import preview_mean
        from sfumato.people.question import Question
        from sfumato.people.reading import PairReader

        column = request.options.get("column")
        if not isinstance(column, str):
            raise InputError(f"release {request.name!r} needs `column`, a numeric column of the schema")
        low, high, steps = lattice(facts, column, request.options.get("steps"))
        _check_where(request.where, facts)
        budgets = _budgets(request, facts)
        rows = facts.schema.unit.rows_per_person
        if self.name == "sum" and low == 0:  # one noisy sum will do; otherwise the number of rows is needed as well
            question = Question(budgets, high=steps, unit=high / steps, rows_per_person=rows, kind="sum")
            found = _readable(preview_all(question))
            return _priced(found, facts, budgets, lambda d: _reader(d, facts, request.where, column, steps))

        def reader(dataset: Dataset) -> Any:
            return PairReader(
                centred=_reader(dataset, facts, request.where, column, 2 * steps, -steps),
                ones=_reader(dataset, facts, _present(column, request.where)),
            )

        found = preview_mean(
            budgets,
            low=low,
            high=high,
            steps=steps,
            selectivity=_selectivity(request),
            rows_per_person=rows,
            kind=self.name,
        )
        return _priced(_readable(found), facts, budgets, reader)


def _readable(found: Any) -> list[Any]:
    """Without sampling: it needs the number of rows per value of the measure, which is not read from a table."""
    return [o for o in found if o.mechanism != "sampling"]


def lattice(facts: Facts, column: str, steps: int | None) -> tuple[float, float, int]:
    """Public bounds of a numeric column and the size of its lattice."""
    from sfumato.tables import Numeric

    domain = facts.schema[column]
    if not isinstance(domain, Numeric):
        raise SchemaError(f"column {column!r} is categorical; only numeric columns can be added up")
    low, high = float(domain.low), float(domain.high)
    if steps is None:
        steps = round(high - low) if domain.integer else 1000
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= 2**20:
        raise InputError(f"`steps` is a whole number from 1 to 2^20, got {steps!r}")
    return low, high, steps


def _selectivity(request: Request) -> float | None:
    guess = request.options.get("selectivity")
    if guess is not None and (isinstance(guess, bool) or not isinstance(guess, int | float) or not 0 <= guess <= 1):
        raise InputError(f"`selectivity` of release {request.name!r} is a share between 0 and 1, got {guess!r}")
    return guess


def _budgets(request: Request, facts: Facts) -> PersonBudgets:
    if facts.budgets is not None:
        return facts.budgets
    nano = positive_nano(need_epsilon(request))
    if facts.rows is None:
        raise InputError(
            f"release {request.name!r} needs a public head count: add `rows` to [dataset] (an upper bound will do)"
        )
    return PersonBudgets(np.array([nano]), np.array([facts.rows]))


def _reader(
    dataset: Dataset, facts: Facts, where: Any, measure: str | None = None, steps: int | None = None, base: int = 0
) -> Any:
    from sfumato.people.reading import DatasetReader

    if facts.budgets is not None:
        return DatasetReader(dataset, facts.budgets, where, measure, steps, base)
    return PlainReader(dataset, where, measure, steps, base)


def preview_all(question: Question) -> Any:
    """Every applicable mechanism."""
    from sfumato.people.answers import preview

    return preview(question)


def _priced(found: Any, facts: Facts, budgets: PersonBudgets, reader: Callable[[Dataset], Any]) -> list[Option]:
    from sfumato.people.answers import choose_option

    best = choose_option(found)
    ordered = [best, *(o for o in found if o is not best)]
    plain = facts.budgets is None
    if plain:  # with one budget all linear mechanisms are the same plain Laplace sum
        ordered = [o for o in ordered if o.mechanism == "minimum"]

    def runner(option: Any) -> Callable[[Dataset, Meter], Any]:
        def run(dataset: Dataset, meter: Meter) -> Any:
            made = option.run(reader(dataset), meter)
            return replace(made, mechanism="laplace") if plain else made  # the name in the preview and the ledger

        return run

    return [
        Option(
            "laplace" if plain else o.mechanism,
            Charge(o.charge.total) if plain else o.charge,
            o.expected_rmse,
            "the same noise for everybody" if plain else o.note,
            runner(o),
            budgets=None if plain else budgets,
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


def _present(column: str, where: str | None) -> str:
    """Rows with a value: a missing one has no part in a mean."""
    quoted = '"' + column.replace('"', '""') + '"'
    return f"{quoted} is not missing" if where is None else f"({where}) and {quoted} is not missing"


def _check_where(where: Any, facts: Facts) -> None:
    """A typo in a condition is found in the preview, not after the table was opened."""
    from sfumato.tables import parse_where

    parse_where(where, facts.schema)


KINDS = (CountKind(), MeasureKind("sum"), MeasureKind("mean"))
