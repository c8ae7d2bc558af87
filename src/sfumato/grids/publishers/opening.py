"""From whatever holds the table to a Dataset and a Meter, or to the table's own ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import InputError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.meter import Meter
from sfumato.privacy.source import SECURE
from sfumato.privacy.units import Nano
from sfumato.registry import mechanisms
from sfumato.tables.dataset import Dataset
from sfumato.tables.opening import open as open_table
from sfumato.tables.predicates import Where
from sfumato.tables.schema import Schema

if TYPE_CHECKING:
    from sfumato.grids.publishers.base import Publisher


def open_for_release(
    table: Any,
    *,
    schema: Schema | None,
    meter: Meter | None,
    source: Any,
    nano: Nano,
    budgets: PersonBudgets | None,
) -> tuple[Dataset, Meter]:
    """The table as a Dataset, and the meter given or one whose limit is the release's budget."""
    if isinstance(table, Dataset):
        dataset = table
    elif schema is None:
        raise InputError("a table needs its public schema: fit(table, schema=...), or open it with sfumato.open first")
    else:
        dataset = open_table(table, schema=schema)
    if budgets is not None and dataset.budgets is None:
        raise InputError("budgets per person need a table with a roster: open(..., budgets=Roster.column('epsilon'))")
    if meter is None:
        people = None if budgets is None else np.array(budgets.levels)
        terms = dataset.schema.terms.up_to(Charge(nano, people), budgets=budgets)
        meter = Meter.under(terms, source=SECURE if source is None else source)
    elif source is not None:
        raise InputError("give a meter or a source of noise, not both")
    return dataset, meter


def synthesized(publisher: Publisher, table: Any, where: Where, **given: Any) -> Any:
    """The release from a table that keeps a ledger: asked of the table, so that its ledger is charged.

    What the table brings itself (schema, ledger, noise, roster, head count) is not taken from the publisher.
    """
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"a table opened with sfumato.open brings its own schema, ledger and noise: leave out `{name}`, or give "
                "fit the data itself with schema=..."
            )
    if publisher.budgets is not None:
        raise InputError(
            "a table opened with sfumato.open has its own roster: "
            f"table.synthesize(target={publisher.target!r}, share=...) uses a share of everyone's own budget"
        )
    if publisher.rows not in (None, table.facts.rows):
        raise InputError("a public number of records is said where the table is opened: sfumato.open(..., rows=...)")
    return table.synthesize(
        target=publisher.target,
        where=where,
        attributes=publisher.attributes,
        epsilon=publisher.epsilon,
        mechanism=publisher.mechanism,
        parameters=own_parameters(publisher),
    )


def own_parameters(publisher: Publisher) -> dict[str, Any]:
    """The parameters of a registered publisher that differ from their defaults, as a plan would state them."""
    found = [m for m in mechanisms("synthesize") if m.name == publisher.mechanism and m.make is type(publisher)]
    if not found:
        raise InputError(
            f"{type(publisher).__name__} is not a registered mechanism, so the table's ledger cannot record it; register "
            "it, or give fit the data itself with schema=..."
        )
    stated = {p: getattr(publisher, p.name) for p in found[0].parameters}
    return {p.name: value for p, value in stated.items() if value is not None and value != p.default}
