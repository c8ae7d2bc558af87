"""What each histogram mechanism would cost and how well it would do, from public facts alone. Nothing is read or spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from numpy.typing import ArrayLike

from sfumato.errors import InputError
from sfumato.histograms.bins import Bins
from sfumato.histograms.budgets import Ints, bin_rates
from sfumato.histograms.release import applicable, release_histogram
from sfumato.histograms.result import Histogram
from sfumato.offers import Facts, Offer, Request
from sfumato.privacy import Charge, Epsilon, Exact, Meter, Nano
from sfumato.privacy.terms import Neighbours, Terms
from sfumato.registry import Mechanism, Parameter, ranked
from sfumato.tables.dataset import Dataset

Purpose = Literal["shape", "ranges"]
PURPOSES = ("shape", "ranges")
PARAMETERS = (
    Parameter("columns", "texts", "the columns whose cells are counted", required=True),
    Parameter("purpose", "text", "what it is for: its shape, or sums over ranges of bins", "shape", choices=PURPOSES),
    Parameter("bin_budgets", "numbers", "one ε per bin, row by row: what a person may lose by their rows in it"),
    Parameter("nonnegative", "flag", "whether negative counts are set to the nearest that are not"),
    Parameter("total", "number", "a public number of records that the counts must add up to", low=0, high=2**63 - 1),
)


def offers(request: Request, facts: Facts) -> list[Offer]:
    """The ways to answer a histogram request with one ε for all, best first.

    Parameters
    ----------
    request : Request
        Of kind "histogram".
    facts : Facts

    Returns
    -------
    list of Offer
        Each runs on a `Dataset`.
    """
    bins = bins_asked(request, facts)
    columns = [a.name for a in bins.axes]
    found = offers_under(
        facts.terms,
        epsilon=request.need_epsilon(),
        bins=bins,
        total=facts.rows,
        bin_budgets=request.parameters.get("bin_budgets"),
        purpose=request.parameters.get("purpose") or "shape",
        parameters=request.parameters,
    )

    def counts(dataset: Dataset) -> Exact[Ints]:
        return dataset.counts(columns, request.where)

    return [finished(offer.reading(counts), request) for offer in found]


def bins_asked(request: Request, facts: Facts) -> Bins:
    """The public bins of a request, after everything that can be refused from public facts was refused."""
    place = f"release {request.name!r}"
    given = {p.name: p.check(request.parameters.get(p.name), place) for p in PARAMETERS}
    facts.check_where(request.where)
    facts.schema.check_cells(given["columns"])
    return Bins.of_schema(facts.schema, given["columns"])


def finished(offer: Offer, request: Request) -> Offer:
    """The offer whose result is made consistent as the request asks, after the noise."""
    nonnegative, total = request.parameters.get("nonnegative"), request.parameters.get("total")
    if nonnegative is None and total is None:
        return offer
    run = offer.run

    def consistent(dataset: Dataset, meter: Meter) -> Histogram:
        made: Histogram = run(dataset, meter)
        return made.consistent(nonnegative=nonnegative is not False, total=total)

    return replace(offer, run=consistent)


def preview_histogram(
    *,
    epsilon: Epsilon,
    bins: Bins | int,
    ordered: bool | None = None,
    total: int | None = None,
    bin_budgets: ArrayLike | None = None,
    purpose: Purpose = "shape",
    rows_per_person: int = 1,
    neighbours: Neighbours = "absence",
    parameters: Mapping[str, Any] | None = None,
) -> list[Offer]:
    """The offers for a histogram, best first by the measured comparison in the documentation.

    Parameters
    ----------
    epsilon : Epsilon
    bins : Bins or int
        The public domain, or how many bins it has.
    ordered : bool, optional
        Whether neighbouring bins are alike; by default what the bins say.
    total : int, optional
        The number of records, if it is public: no bin errs by more than that.
    bin_budgets : one ε per bin, optional
        What a person may lose by their rows in each bin, compared with these rows absent.
    purpose : "shape" or "ranges"
        What the histogram is for: its distribution, or sums over ranges of bins.
    rows_per_person : int
        How many rows of one person may count.
    neighbours : "absence" or "replacement"
    parameters : mapping, optional
        Parameters of mechanisms; each takes its own.

    Returns
    -------
    list of Offer
        Each runs on the counts (see `release_histogram`).

    Examples
    --------
    >>> [offer.mechanism for offer in preview_histogram(epsilon=0.5, bins=100)][:3]
    ['auto_shape', 'covariate', 'dawa_shape']
    >>> preview_histogram(epsilon=0.5, bins=100, ordered=False)[0].mechanism
    'geb'
    """
    domain = Bins.numbered(bins, ordered=ordered is not False) if isinstance(bins, int) else bins
    if ordered is not None and ordered != domain.ordered:
        raise InputError(f"the bins are {'ordered' if domain.ordered else 'not ordered'}; say so in their last column")
    return offers_under(
        Terms(rows_per_person=rows_per_person, neighbours=neighbours),
        epsilon=epsilon,
        bins=domain,
        total=total,
        bin_budgets=bin_budgets,
        purpose=purpose,
        parameters=parameters,
    )


def offers_under(
    terms: Terms,
    *,
    epsilon: Epsilon,
    bins: Bins,
    total: int | None,
    bin_budgets: ArrayLike | None,
    purpose: Purpose,
    parameters: Mapping[str, Any] | None,
) -> list[Offer]:
    """The same for whom the `terms` protect; the other arguments are those of `preview_histogram`."""
    if purpose not in PURPOSES:
        raise InputError(f"purpose is 'shape' or 'ranges', got {purpose!r}")
    if total is not None and total < 0:
        raise InputError(f"a public total must not be negative, got {total}")
    if purpose == "ranges" and not bins.ordered:
        raise InputError(f"ranges need bins in a meaningful order and {bins.names[-1]!r} has none; ask for the shape")
    rates = bin_rates(epsilon=epsilon, bins=bins, terms=terms, bin_budgets=bin_budgets)
    asked = {"epsilon": epsilon, "bins": bins, "bin_budgets": bin_budgets}
    priced = terms.up_to(Charge(Nano(int(rates.max()) * terms.factor)))
    return [
        _offer(mechanism, rates, priced, total, {**asked, **mechanism.check(parameters or {}, "the request")})
        for mechanism in ranked("histogram", purpose)
        if applicable(mechanism, bins)
    ]


def _offer(mechanism: Mechanism, rates: Ints, terms: Terms, total: int | None, asked: dict[str, Any]) -> Offer:
    rmse, how = (None, " (error decided by the data)") if mechanism.expected is None else mechanism.expected(rates, total)

    def run(counts: Any, meter: Meter) -> Histogram:
        return release_histogram(counts, meter=meter, mechanism=mechanism.name, **asked)

    return Offer(mechanism.name, terms, rmse, f"{mechanism.summary}{how}", run)
