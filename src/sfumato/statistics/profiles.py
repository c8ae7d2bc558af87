"""Profile: what many people's items say, attribute by attribute, each at a price of its own.

A column holds items, a public catalogue says which attributes each item has (a_ij of attribute j), and what is released is
the total of every attribute over the rows. The noise is that of DP-MultiUPP (Shen, Chen & Jin 2016;
`attributes.allocation`): rates r_j with the least expected error under a budget for each attribute and one for all.

*Guarantee.* One row more or less moves the totals by the row a_i of its item, so it costs ``Σ_j a_ij r_j`` altogether and
``a_ij r_j`` through attribute j alone, because the noises are independent. A person has at most R rows, which may all go or
come (and be replaced, which counts twice): with k = R, or 2 R against replacement, the release costs
``k max_i Σ_j a_ij r_j <= ε``, and attribute j ``k max_i a_ij r_j <= t_j``. The policy is allocated for ``ε / k`` and
``t_j / k``, rounded down, and checked in exact integers.

*What an attribute's charge bounds.* The neighbour in which a person's items differ in attribute j alone, by any weight up to
the largest in the catalogue: only the total of j moves, by at most ``R max_i a_ij``. The item column itself is charged by
the common rule (`releases.attribute_charges`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes.allocation import allocate, compose
from sfumato.attributes.catalogue import Catalogue
from sfumato.attributes.catalogue_file import read_catalogue
from sfumato.attributes.policy import Policy
from sfumato.attributes.profiled import Profiled
from sfumato.attributes.release import WHOLE_COUNTS
from sfumato.attributes.utility import NAMES
from sfumato.errors import InputError
from sfumato.offers import AUTO, Facts, Offer, Request
from sfumato.privacy.budgets import AttributeBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.exact import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.noise import laplace_variance
from sfumato.privacy.terms import Terms
from sfumato.privacy.units import Nano, as_epsilon, positive_nano
from sfumato.registry import Mechanism, Parameter, mechanisms
from sfumato.registry import mechanism as registered
from sfumato.tables.dataset import Dataset

_ROOM = 1 << 62  # what sums of 64-bit integers must stay below


@dataclass(frozen=True)
class CatalogueParameter(Parameter):
    """A parameter that is a catalogue: a file, a table in the plan, or a `Catalogue`."""

    def check(self, value: Any, place: str) -> Catalogue:
        """The catalogue that `value` states; `place` names the release."""
        if value is None:
            raise InputError(f"{place} needs `{self.name}`, {self._values()}: {self.help}")
        return read_catalogue(value)


@dataclass(frozen=True)
class BudgetsParameter(Parameter):
    """A parameter that is a table of attributes and what each may lose."""

    def check(self, value: Any, place: str) -> dict[str, Any] | None:
        """The budgets by name; `place` names the release."""
        if value is None:
            return None
        if not isinstance(value, Mapping) or not value:
            raise InputError(f"`{self.name}` of {place} is a table of attributes and what each may lose, got {value!r}")
        AttributeBudgets.of(value)
        return dict(value)


PARAMETERS = (
    Parameter("column", "text", "the column whose values are the items", required=True),
    CatalogueParameter("catalogue", "file", "JSON, TOML or CSV: the attributes of each item", required=True),
    BudgetsParameter("budgets", "any", "what each attribute may lose by this release; `epsilon` where one is left out"),
)
UTILITY = Parameter("utility", "text", "what the noise minimises", "mse", choices=NAMES)


def offers(request: Request, facts: Facts) -> list[Offer]:
    """The ways to release totals of attributes, best first.

    Parameters
    ----------
    request : Request
        Of kind "profile".
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
    if facts.budgets is not None:
        raise InputError(f"{place} draws on personal budgets; a profile needs one `epsilon` for all")
    column, catalogue = given["column"], given["catalogue"]
    items = facts.schema[column].labels()
    facts.schema.check_cells([column])
    both = [name for name in catalogue.attributes if name in facts.schema.names]
    if both:
        raise InputError(f"{place}: {both[0]!r} is an attribute of the catalogue and a column; give one another name")
    known = [item for item in items if item in catalogue]
    if not known:
        raise InputError(
            f"{place}: no value of column {column!r} is in the catalogue; it lists items by the labels of the schema, "
            f"such as {items[0]!r}"
        )
    here = catalogue.part(items)
    note = "" if len(known) == len(items) else f"; {len(items) - len(known)} of {len(items)} values are in no row of it"
    found = []
    for entry in mechanisms("profile"):
        chosen = entry.check(request.parameters, place) if entry.name == request.mechanism else {}
        policy = entry.make(here, **shares(here, given["budgets"], request, facts.terms), **chosen)
        found.append(_offer(entry, policy, here, column, request, facts.terms, note))
    if request.mechanism != AUTO:
        registered("profile", request.mechanism)
    return found


def shares(catalogue: Catalogue, budgets: Mapping[str, Any] | None, request: Request, terms: Terms) -> dict[str, Any]:
    """What one row may cost, in all and through each attribute, so that no person loses more than was asked."""
    epsilon = positive_nano(request.need_epsilon())
    named = AttributeBudgets.of(budgets).nano if budgets else {}
    strange = [name for name in named if name not in catalogue.attributes]
    if strange:
        known = ", ".join(catalogue.attributes)
        raise InputError(f"`budgets` of release {request.name!r} names {strange[0]!r}; the catalogue has {known}")
    row = terms.per_row(epsilon)
    each = {name: terms.per_row(min(named.get(name, epsilon), epsilon)) for name in catalogue.attributes}
    if min(row, *each.values()) < 1:
        raise InputError(f"a budget of release {request.name!r} is below 1e-9 for each of a person's rows; raise it")
    return {"budgets": AttributeBudgets({n: Nano(t) for n, t in each.items()}), "epsilon": as_epsilon(Nano(row))}


def _offer(
    entry: Mechanism, policy: Policy, here: Catalogue, column: str, request: Request, terms: Terms, note: str
) -> Offer:
    row, factor = policy.charge, terms.factor
    price = Charge(Nano(row.total * factor), attributes={name: Nano(nano * factor) for name, nano in row.attributes.items()})
    held_to = replace(terms, attributes=policy.attributes).up_to(price)
    matrix = dense(here)

    def run(dataset: Dataset, meter: Meter) -> Profiled:
        noisy = noisy_totals(dataset.counts([column], request.where), matrix, policy, meter)
        promise = meter.guarantee()
        warnings = (WHOLE_COUNTS.format(epsilon=promise.epsilon),)
        about: dict[str, Any] = {"recipient": request.recipient or "", "warnings": warnings}
        return Profiled(noisy, policy, promise, column=column, method=entry.name, **about)

    rmse = float(policy.unit) * float(np.sqrt(np.mean(laplace_variance(policy.rates))))
    return Offer(entry.name, held_to, rmse, f"{entry.summary}{note}", run, plan=policy)


def noisy_totals(
    counts: Exact[NDArray[np.int64]], matrix: NDArray[np.int64], policy: Policy, meter: Meter
) -> NDArray[np.int64]:
    """Totals of attributes over items that were counted, with the noise of the `policy`; `matrix` has a row per item."""
    totals = counts.map(lambda found: _totals(matrix, found))
    label = "totals of attributes"
    return meter.laplace(totals, rate=policy.rates, touches=policy.touches, attributes=policy.attributes, label=label)


def dense(catalogue: Catalogue) -> NDArray[np.int64]:
    """The weights of a catalogue as a matrix, one row per item."""
    out = np.zeros((catalogue.size, len(catalogue.attributes)), dtype=np.int64)
    out[np.repeat(np.arange(catalogue.size), np.diff(catalogue.indptr)), catalogue.indices] = catalogue.values
    return out


def _totals(matrix: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Attribute totals of counted items, exactly; beyond 64 bits they are held at the end, as the Meter holds results."""
    if int(matrix.max(initial=0)) * int(counts.sum()) < _ROOM:
        return np.asarray(counts @ matrix)
    exact = [sum(int(c) * int(a) for c, a in zip(counts, column, strict=True)) for column in matrix.T]
    return np.array([min(total, _ROOM) for total in exact], dtype=np.int64)


def multilevel(catalogue: Catalogue, *, budgets: AttributeBudgets, epsilon: Any, utility: str = "mse") -> Policy:
    """The rates with the least error under both kinds of budget."""
    return allocate(catalogue, budgets=budgets, epsilon=epsilon, utility=utility)


MULTILEVEL = Mechanism(
    "multilevel",
    ("profile",),
    multilevel,
    "the least error under a budget for each attribute and one for all of them",
    parameters=(UTILITY,),
    paper="Shen, Chen & Jin 2016",
)
COMPOSITION = Mechanism(
    "composition",
    ("profile",),
    lambda catalogue, **given: compose(catalogue, **given),
    "all budgets of attributes cut by the same factor; never better than multilevel",
    paper="Shen, Chen & Jin 2016, 4.2",
)
