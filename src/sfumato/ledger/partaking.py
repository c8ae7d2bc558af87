"""Who took part in a release: in which group of its charge each person was charged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from sfumato.errors import InputError
from sfumato.ledger import replay, schema, states
from sfumato.ledger.packing import CHUNK, widen
from sfumato.ledger.standing import Menu
from sfumato.ledger.state import by_grant
from sfumato.privacy.units import NanoArray


def taking_part(
    connection: Connection, dataset_id: int, menu: Menu, release_id: int, places: NDArray[np.int64]
) -> NDArray[np.int64]:
    """See `sfumato.ledger.life.Life.taking_part`."""
    part = _groups(connection, dataset_id, menu, release_id)
    return np.append(part, -1)[np.where(places < len(part), places, -1)]


def heads_charged(connection: Connection, dataset_id: int, menu: Menu, release_id: int) -> NDArray[np.int64]:
    """How many people of each tier of a private `menu` were charged by a release. Not to be told as it is."""
    part = _groups(connection, dataset_id, menu, release_id)
    return np.bincount(part[part >= 0], minlength=len(menu.levels)).astype(np.int64)


def _groups(connection: Connection, dataset_id: int, menu: Menu, release_id: int) -> NDArray[np.int64]:
    """For everybody of then, by place: the group that they were charged in, -1 for none."""
    table = schema.life_charges
    here = (table.c.release_id == release_id) & (table.c.dataset_id == dataset_id)
    charge = connection.execute(select(table).where(here)).one_or_none()
    if charge is None:
        raise InputError(
            f"release {release_id} was not charged to people who have names; give the number that reserve returned"
        )
    now = states.load(connection, dataset_id)
    then = now
    if now.change != charge.change:  # people were grouped anew since
        then = replay.whole(connection, dataset_id, len(now.grants), upto=int(charge.change))
    if charge.form == "grant":
        each = by_grant(then, int(charge.step))
    else:
        each = _written(connection, release_id, len(then.grants))
    part: NDArray[np.int64] = np.where(each > 0, then.tiers if menu.private else then.cohorts, -1)
    return part


def _written(connection: Connection, release_id: int, people: int) -> NanoArray:
    table = schema.charge_chunks
    each = np.zeros(people, dtype=np.int64)
    for chunk, entries in connection.execute(select(table.c.chunk, table.c.entries).where(table.c.release_id == release_id)):
        (amounts,) = widen(entries)
        each[chunk * CHUNK : chunk * CHUNK + len(amounts)] = amounts
    return each
