"""From whatever holds the table to a Dataset and a Meter."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.meter import Meter
from sfumato.privacy.source import SECURE
from sfumato.privacy.units import Nano
from sfumato.tables.dataset import Dataset
from sfumato.tables.dataset import open as open_table
from sfumato.tables.schema import Schema


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
        meter = Meter(
            limit=Charge(nano, people),
            budgets=budgets,
            rows_per_person=dataset.schema.unit.rows_per_person,
            source=SECURE if source is None else source,
        )
    elif source is not None:
        raise InputError("give a meter or a source of noise, not both")
    return dataset, meter
