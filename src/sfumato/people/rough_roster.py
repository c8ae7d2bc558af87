"""A roster of very many budgets, rounded down to a few thousand: good enough to compare mechanisms by.

Every mechanism makes a few passes over all budgets, and a preview compares ten of them. Errors are means over people, so
budgets that differ by a few parts in a thousand may stand for each other: the error of an offer moves by less than that. The
offer that is taken is planned, priced and charged for every budget as it is (`people.offers`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.offers import Facts
from sfumato.privacy.budgets import PersonBudgets

MANY = 20_000  # budgets; as many as this are compared one by one
CELLS = 2048


def roughly(facts: Facts) -> Facts:
    """The same facts with budgets rounded down to at most `CELLS`, where there are more than `MANY`; else `facts` itself.

    >>> from sfumato.tables import Numeric, Schema
    >>> people = PersonBudgets(np.arange(1, 50_001) * 1000, np.full(50_000, 2))
    >>> facts = Facts(Schema({"age": Numeric(0, 99, bins=2)}), budgets=people)
    >>> rough = roughly(facts).budgets
    >>> rough.people == people.people, rough.groups <= CELLS, bool(np.isin(rough.levels, people.levels).all())
    (True, True, True)
    """
    budgets = facts.budgets
    if budgets is None or budgets.groups <= MANY or budgets.names is not None or budgets.noise is not None:
        return facts
    size = np.log(budgets.levels / budgets.levels[0])
    cell = np.floor(size * ((CELLS - 1) / max(float(size[-1]), 1e-9))).astype(np.int64)
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    given = facts.granted.levels if isinstance(facts.granted, PersonBudgets) else facts.granted
    granted = None if given is None else given[..., first]
    return replace(
        facts, budgets=PersonBudgets(budgets.levels[first], np.add.reduceat(budgets.counts, first)), granted=granted
    )
