"""Charging a release to a living roster: one vector rewritten, and what each person paid kept so that a receipt finds it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sqlalchemy import Connection, insert

from sfumato.errors import LedgerError
from sfumato.ledger import schema, states
from sfumato.ledger.log import Row, row_of
from sfumato.ledger.packing import CHUNK, squeeze
from sfumato.ledger.standing import Menu
from sfumato.ledger.state import State, by_grant
from sfumato.privacy.units import NanoArray


def charge_life(
    connection: Connection, dataset_id: int, release_id: int, menu: Menu, people: State, asked: NanoArray
) -> list[Row]:
    """Add a charge that fits: `asked` of each cohort, or of each tier where the roster is private.

    Returns the rows for the log.
    """
    step = int(asked.max(initial=0))
    # An amount of one's own, and who withdrew, come last: no tier, no cohort, nothing to pay.
    if menu.private:
        each = np.append(asked, [0, 0])[people.tiers]
        each = np.where(each <= people.left, each, 0)
    else:
        each = np.append(asked, 0)[people.cohorts]
    plain = np.array_equal(each, by_grant(people, step))
    if (each > people.left).any():
        raise LedgerError("somebody has less left than this charge asks of them; nothing was spent, check the ledger")
    # A new period begins with its first charge: where the period's count starts is written then.
    changed = {"spent", "base"} if people.base is people.spent else {"spent"}
    after = replace(people, spent=people.spent + each, turn=people.turn + 1)
    signature = states.save(connection, dataset_id, after, changed)
    row = {
        "release_id": release_id,
        "dataset_id": dataset_id,
        "turn": after.turn,
        "change": after.change,
        "period": after.period,
        "form": "grant" if plain else "chunks",
        "step": step,
        "after": signature,
    }
    connection.execute(insert(schema.life_charges).values(row))
    rows: list[dict[str, Any]] = []
    if not plain:
        starts = range(0, len(each), CHUNK)
        rows = [
            {"release_id": release_id, "chunk": start // CHUNK, "entries": squeeze([each[start : start + CHUNK]])}
            for start in starts
            if each[start : start + CHUNK].any()
        ]
        if rows:
            connection.execute(insert(schema.charge_chunks), rows)
    return [row_of(schema.life_charges, row), *(row_of(schema.charge_chunks, chunk) for chunk in rows)]
