"""What a synthesize release would cost and what it would do, from public facts alone. Nothing is read, nothing is spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from sfumato.errors import InputError
from sfumato.grids.publishers.base import Publisher
from sfumato.grids.publishers.task import Task
from sfumato.offers import AUTO, Facts, Offer, Request
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.meter import Meter
from sfumato.privacy.terms import Terms
from sfumato.privacy.units import Epsilon, positive_nano
from sfumato.registry import Parameter, ranked
from sfumato.registry import mechanism as registered
from sfumato.results import Result
from sfumato.tables.dataset import Dataset
from sfumato.tables.predicates import Where
from sfumato.tables.schema import Schema

Purpose = Literal["classification", "general"]
PURPOSES: tuple[str, ...] = get_args(Purpose)
PARAMETERS = (
    Parameter("target", "text", "the column to predict", required=True),
    Parameter(
        "purpose",
        "text",
        "what the table is for: predicting `target`, or all columns alike",
        "classification",
        choices=PURPOSES,
    ),
    Parameter("attributes", "texts", "the predictors to consider; every other column if left out"),
)


def offers(request: Request, facts: Facts) -> list[Offer]:
    """The ways to publish a synthetic table, best first for its purpose.

    Parameters
    ----------
    request : Request
        Of kind "synthesize".
    facts : Facts
        What is public about the table.

    Returns
    -------
    list of Offer
        Each runs on a `Dataset`.
    """
    place = f"release {request.name!r}"
    given = {p.name: p.check(request.parameters.get(p.name), place) for p in PARAMETERS}
    facts.check_where(request.where)
    named = request.mechanism != AUTO
    return offers_under(
        facts.terms,
        schema=facts.schema,
        target=given["target"],
        epsilon=request.need_epsilon() if facts.budgets is None else None,
        rows=facts.rows if facts.budgets is None and request.where is None else None,
        where=request.where,
        attributes=given["attributes"],
        purpose=given["purpose"] or "classification",
        mechanism=request.mechanism,
        parameters=registered("synthesize", request.mechanism).check(request.parameters, place) if named else None,
    )


def preview_synthesize(
    *,
    schema: Schema,
    target: str,
    epsilon: Epsilon | None = None,
    rows: int | None = None,
    budgets: PersonBudgets | None = None,
    where: Where = None,
    attributes: Sequence[str] | None = None,
    purpose: str = "classification",
    mechanism: str = AUTO,
    parameters: Mapping[str, Any] | None = None,
) -> list[Offer]:
    """The ways to publish a synthetic table, best first for its purpose (by the bench; see docs/grids.md).

    Parameters
    ----------
    schema : Schema
        Public domains.
    target : str
        The column to predict.
    epsilon : Epsilon, optional
        One ε for everybody; or `budgets`.
    rows : int, optional
        A public number of records.
    budgets : PersonBudgets, optional
        What everybody granted.
    where : condition, optional
        Only these rows.
    attributes : sequence of str, optional
        The predictors to consider; every other column if left out.
    purpose : "classification" or "general"
        What the table is for: predicting the target, or all columns alike.
    mechanism : str
        A mechanism that must be among the offers: if it cannot be, the reason is raised. Others that cannot are left out.
    parameters : mapping, optional
        Parameters of that mechanism.

    Returns
    -------
    list of Offer
        Each runs on a `Dataset`. The expected error is the standard deviation of the noise on a published count.

    Examples
    --------
    >>> from sfumato.tables import Categorical, Numeric
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "ill": Categorical(["no", "yes"])})
    >>> [o.mechanism for o in preview_synthesize(schema=schema, target="ill", epsilon=0.5)]
    ['privpfc', 'diffgen', 'pph', 'privbayes', 'marginals', 'uniform-grid']
    >>> preview_synthesize(schema=schema, target="ill", epsilon=0.5, purpose="general")[0].mechanism
    'marginals'
    """
    return offers_under(
        replace(schema.terms, budgets=budgets),
        schema=schema,
        target=target,
        epsilon=epsilon,
        rows=rows,
        where=where,
        attributes=attributes,
        purpose=purpose,
        mechanism=mechanism,
        parameters=parameters,
    )


def offers_under(
    terms: Terms,
    *,
    schema: Schema,
    target: str,
    epsilon: Epsilon | None,
    rows: int | None,
    where: Where,
    attributes: Sequence[str] | None,
    purpose: str,
    mechanism: str,
    parameters: Mapping[str, Any] | None,
) -> list[Offer]:
    """The same for whom the `terms` protect; the other arguments are those of `preview_synthesize`."""
    if parameters and mechanism == AUTO:
        raise InputError(f"`{next(iter(parameters))}` is a parameter of a mechanism: name the mechanism as well")
    if purpose not in PURPOSES:
        raise InputError(f"purpose is {' or '.join(map(repr, PURPOSES))}, got {purpose!r}")
    budgets = terms.budgets
    if budgets is None and epsilon is not None:
        positive_nano(epsilon)
    task = Task.of(schema, target, attributes)
    asked = {"target": target, "epsilon": epsilon, "budgets": budgets, "rows": rows, "attributes": attributes}
    found: list[Offer] = []
    refused: InputError | None = None
    for entry in ranked("synthesize", purpose):
        named = entry.name == mechanism
        try:
            publisher: Publisher = entry.make(**asked, **(parameters or {} if named else {}))
            rmse, how = publisher.expected(task, terms.factor)
        except InputError as error:
            if named:
                raise
            refused = refused or error
            continue
        people = None if budgets is None else np.array(budgets.levels)
        priced = terms.up_to(Charge(publisher.nano, people))
        found.append(Offer(entry.name, priced, rmse, f"{entry.summary}{how}", _runner(publisher, where)))
    if not found and refused is not None:
        raise refused
    return found


def _runner(publisher: Publisher, where: Where) -> Callable[[Dataset, Meter], Result]:
    def run(dataset: Dataset, meter: Meter) -> Result:
        return publisher.fit(dataset, meter=meter, where=where).synopsis

    return run
