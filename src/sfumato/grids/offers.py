"""What a synthesize release would cost and what it would do, from public facts alone. Nothing is read, nothing is spent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.grids.publishers.diffgen import DiffGen
from sfumato.grids.publishers.one_grid import Weights
from sfumato.grids.publishers.pph import PPH
from sfumato.grids.publishers.privbayes import PrivBayes
from sfumato.grids.publishers.privpfc import PrivPfC
from sfumato.grids.publishers.stacking import CLASS_PART
from sfumato.grids.publishers.task import Task
from sfumato.grids.publishers.uniform import UniformGrid
from sfumato.offers import AUTO, Facts, Offer, Request
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.meter import Meter
from sfumato.privacy.noise import laplace_variance
from sfumato.privacy.units import Epsilon, Nano, positive_nano
from sfumato.registry import Parameter
from sfumato.registry import mechanism as registered
from sfumato.tables.dataset import Dataset
from sfumato.tables.predicates import Where
from sfumato.tables.schema import Schema

PARAMETERS = (
    Parameter("target", "text", "the column to predict", required=True),
    Parameter("attributes", "texts", "the predictors to consider; every other column if left out"),
)


def offers(request: Request, facts: Facts) -> list[Offer]:
    """The ways to publish a table for classification, best first.

    Parameters
    ----------
    request : Request
        Of kind "synthesize".
    facts : Facts

    Returns
    -------
    list of Offer
        Each runs on a `Dataset`.
    """
    place = f"release {request.name!r}"
    given = {p.name: p.check(request.parameters.get(p.name), place) for p in PARAMETERS}
    facts.check_where(request.where)
    attributes = given["attributes"]
    name = "privpfc" if request.mechanism == AUTO else request.mechanism
    return preview_synthesize(
        schema=facts.schema,
        target=given["target"],
        epsilon=request.need_epsilon() if facts.budgets is None else None,
        rows=facts.rows if facts.budgets is None and request.where is None else None,
        budgets=facts.budgets,
        where=request.where,
        attributes=None if attributes is None else tuple(attributes),
        **(registered("synthesize", name).check(request.parameters, place)),
    )


def preview_synthesize(
    *,
    schema: Schema,
    target: str,
    epsilon: Epsilon | None = None,
    rows: int | None = None,
    budgets: PersonBudgets | None = None,
    where: Where = None,
    attributes: tuple[str, ...] | None = None,
    **options: Any,
) -> list[Offer]:
    """The ways to publish a table for classification, best first (by the bench; see docs/grids.md).

    Examples
    --------
    >>> from sfumato.tables import Categorical, Numeric
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
    >>> [o.mechanism for o in preview_synthesize(schema=schema, target="ill", epsilon=0.5)]
    ['privpfc', 'diffgen', 'pph', 'privbayes', 'uniform-grid']
    """
    main = PrivPfC(target=target, epsilon=epsilon, rows=rows, budgets=budgets, attributes=attributes, **options)
    task = Task.of(schema, target, attributes)
    factor = schema.unit.rows_per_person
    settings = main.settings(task, factor)
    weights = Weights.of(budgets)
    # Of the last grid, whose counts are published; the number of records is known by then if another step told it.
    left = main.nano - main.nano // CLASS_PART if settings.grids == "auto" else main.nano
    nano = left if settings.grids == 1 else left // 2
    shares = settings.shares(
        Nano(nano // factor), public_size=rows is not None or budgets is not None or settings.grids != 1
    )
    rate = weights.usable(shares[2])
    if rate < 1:
        raise InputError("the budget is too small for this release; raise epsilon")
    unit = 1.0 if weights.counts is None else float((weights.counts * weights.groups).sum() / max(weights.counts.sum(), 1))
    noise = float(np.sqrt(laplace_variance(rate))) / unit
    people = None if budgets is None else np.array(budgets.levels)
    note = f"one grid chosen among up to {settings.most} for classifying {target}, noisy class counts per cell"
    if settings.grids != 1:
        note += "; a second grid for what the first misses"
    if settings.grids == "auto":
        note += ", if class counts (2% of the budget) say that there is enough to find"
    found = [Offer("privpfc", Charge(main.nano, people), noise, note, _runner(main, where), budgets)]
    if budgets is None:
        assert epsilon is not None
        charge = Charge(positive_nano(epsilon))
        for kind, text in (
            (DiffGen, "taxonomy nodes divided one at a time"),
            (PPH, "a few columns chosen one at a time, with all their values"),
            (PrivBayes, "a Bayesian network over all columns; not made for classification"),
            (UniformGrid, "every column cut alike, without looking at the data"),
        ):
            rival = kind(epsilon=epsilon, target=target, rows=rows, attributes=attributes)
            found.append(Offer(rival.mechanism, charge, None, text, _runner(rival, where)))
    return found


def _runner(publisher: Any, where: Where) -> Callable[[Dataset, Meter], Any]:
    def run(dataset: Dataset, meter: Meter) -> Any:
        return publisher.fit(dataset, meter=meter, where=where).synopsis

    return run
