"""The head counts of a private roster, as a private value: how many people chose each budget of the public menu.

One person is one head. They are counted as the least budget that is written for them, as everywhere, so that a person
who is taken out, or whose budget entry is taken out, lowers one count by one and leaves the others as they are; one who
chooses another tier lowers one and raises one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy.exact import Exact
from sfumato.tables.capping import lowest_of_each
from sfumato.tables.living import LivingRoster
from sfumato.tables.roster_join import matched
from sfumato.tables.rows import granted_rows

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset


def heads(dataset: Dataset) -> Exact[NDArray[np.int64]]:
    """See `Dataset.heads`."""
    roster = dataset.roster
    if isinstance(roster, LivingRoster):  # who is there is the ledger's to say, not the table's
        return roster.heads()
    if not roster.tiers_nano:
        raise InputError("head counts are per tier of a public menu; this roster has none")
    dataset.check()
    # A person moves one count by one: one row each, however many they own in the table.
    return Exact.reading(lambda: _counted(dataset), rows_per_person=1)


def _counted(dataset: Dataset) -> NDArray[np.int64]:
    roster, engine = dataset.roster, dataset.engine
    if roster.source is not None:
        engine = roster.connect(near=dataset.engine)
        person = dataset.engine.column(str(dataset.schema.unit.person), "the person column")
        # Named as in the table: two spellings of one person are one head.
        each = matched(roster, person.type(), engine, dataset.engine)
    else:
        each = granted_rows(dataset)
        if dataset.schema.unit.person is not None:
            each = lowest_of_each(each)
    found = engine.fetch(each.group_by("key").agg(n=each.count()))
    return _by_tier(found, len(roster.tiers_nano))


def _by_tier(found: Any, tiers: int) -> NDArray[np.int64]:
    """Counts in the order of the menu; key 0 stands for no budget."""
    counts = np.zeros(tiers + 1, dtype=np.int64)
    counts[found["key"].to_numpy().astype(np.int64)] = found["n"].to_numpy().astype(np.int64)
    return counts[1:]
