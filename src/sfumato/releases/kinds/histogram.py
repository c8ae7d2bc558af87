"""Histograms over one or more columns: one ε for all, or everyone at their own budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError
from sfumato.releases.kinds.base import Facts, Option, need_epsilon
from sfumato.releases.plan import Request

if TYPE_CHECKING:
    from sfumato.histograms import Bins
    from sfumato.privacy.meter import Meter
    from sfumato.tables import Dataset, Schema


def bins_of(schema: Schema, columns: Sequence[str]) -> Bins:
    """The public bins of some columns."""
    from sfumato.histograms import Axis, Bins
    from sfumato.tables import Numeric

    axes = []
    for name in columns:
        domain = schema[name]
        labels = domain.labels()
        if isinstance(domain, Numeric) and len(domain.edges) == len(labels) + 1:
            axes.append(Axis(name, tuple(labels), tuple(map(float, domain.boundaries)), ordered=True))
        else:
            axes.append(Axis.categories(name, labels, ordered=isinstance(domain, Numeric)))
    return Bins(tuple(axes))


class HistogramKind:
    """kind = "histogram": `columns`, `purpose` ("shape" or "ranges"), `bin_budgets`, `nonnegative`, `total`."""

    name = "histogram"
    keys = ("columns", "purpose", "bin_budgets", "nonnegative", "total")
    personal = True

    def options(self, request: Request, facts: Facts) -> list[Option]:
        columns = request.options.get("columns")
        if isinstance(columns, str):
            columns = [columns]
        if not isinstance(columns, Sequence) or not columns or not all(isinstance(c, str) for c in columns):
            raise InputError(f"release {request.name!r} needs `columns`, a list of column names of the schema")
        _check_finish(request)
        bins = bins_of(facts.schema, columns)
        _check_where(request, facts)
        if facts.budgets is not None:
            return [_personal(request, facts, list(columns), bins)]
        return _uniform(request, facts, list(columns), bins)


def _personal(request: Request, facts: Facts, columns: list[str], bins: Bins) -> Option:
    from sfumato.people.histogram import plan_histogram
    from sfumato.releases.kinds.reading import weighted_cells

    if request.options.get("bin_budgets") is not None:
        raise InputError(f"release {request.name!r} draws on personal budgets; bin budgets need one `epsilon` for all")
    assert facts.budgets is not None
    plan = plan_histogram(facts.budgets, bins, rows_per_person=facts.schema.unit.rows_per_person)

    def run(dataset: Dataset, meter: Meter) -> Any:
        made = plan.run(lambda weights: weighted_cells(dataset, facts, weights, columns, request.where), meter)
        return _finish(made, request)

    return Option(
        "affine",
        plan.charge,
        plan.expected_rmse,
        "everybody at their own budget up to a cap, one noise per bin",
        run,
        budgets=facts.budgets,
    )


def _uniform(request: Request, facts: Facts, columns: list[str], bins: Bins) -> list[Option]:
    from sfumato.histograms import preview_histogram

    given = preview_histogram(
        epsilon=need_epsilon(request),
        bins=bins,
        total=facts.rows,
        bin_budgets=request.options.get("bin_budgets"),
        purpose=request.options.get("purpose", "shape"),
        rows_per_person=facts.schema.unit.rows_per_person,
    )

    def runner(option: Any) -> Any:
        def run(dataset: Dataset, meter: Meter) -> Any:
            return _finish(option.run(lambda: dataset.counts(columns, request.where).reshape(-1), meter), request)

        return run

    return [Option(o.mechanism, o.charge, o.expected_rmse, o.note, runner(o)) for o in given]


def _finish(made: Any, request: Request) -> Any:
    nonnegative, total = request.options.get("nonnegative"), request.options.get("total")
    if nonnegative is None and total is None:
        return made
    return made.consistent(nonnegative=nonnegative is not False, total=total)


def _check_finish(request: Request) -> None:
    """What is done after the noise is checked before it, or a typo would cost the budget."""
    nonnegative, total = request.options.get("nonnegative"), request.options.get("total")
    if nonnegative is not None and not isinstance(nonnegative, bool):
        raise InputError(f"`nonnegative` of release {request.name!r} is true or false, got {nonnegative!r}")
    if total is not None and (isinstance(total, bool) or not isinstance(total, int | float) or not 0 <= total < 2**63):
        raise InputError(f"`total` of release {request.name!r} is a public number of rows, got {total!r}")


def _check_where(request: Request, facts: Facts) -> None:
    """A typo in a condition is found in the preview, not after the table was opened."""
    from sfumato.tables.predicates import parse_where

    parse_where(request.where, facts.schema)


KINDS = (HistogramKind(),)
