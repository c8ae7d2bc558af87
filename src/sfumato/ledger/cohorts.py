"""What people have spent, when everybody may have a budget of their own.

People who share a budget level and have been charged alike so far are one *cohort*: one entry in a vector of int64.
A release charges all cohorts at once by adding a vector, so a million distinct budgets are one row of 8 MB rewritten
in one transaction, not a million rows. The charge itself is kept too, as ``min(level, step)`` when it is of that
form (one number) and as a compressed vector otherwise, and each one signs the total it led to: a total that was
changed behind the ledger's back does not match and stops the next release.

A cohort is charged as a whole. A release that touches only some people of a level charges all of them, which errs
on the safe side; give such people a tier of their own in the roster (levels may repeat under different names) and
they are charged alone.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, insert, select, update

from sfumato.errors import LedgerError
from sfumato.ledger import schema
from sfumato.ledger.log import Row, row_of
from sfumato.ledger.records import People
from sfumato.privacy.units import NanoArray

_STORED = np.dtype("<i8")
_ROSTER = select(schema.rosters).where(schema.rosters.c.dataset_id == bindparam("dataset"))


@dataclass(frozen=True)
class Cohorts:
    """The people of one dataset as the database has them."""

    people: People
    last_release: int


def pack(values: NDArray[np.int64]) -> bytes:
    """Little-endian bytes, the same on every machine."""
    return values.astype(_STORED, copy=False).tobytes()


def unpack(raw: Any) -> NDArray[np.int64]:
    """The inverse of `pack`.

    >>> unpack(pack(np.array([1, -2]))).tolist()
    [1, -2]
    """
    return np.frombuffer(bytes(raw), dtype=_STORED).astype(np.int64, copy=False)


def enrol(connection: Connection, dataset_id: int, roster: People) -> None:
    """Write down the public roster, with nothing spent."""
    names = None if roster.names is None else json.dumps(list(roster.names))
    if roster.private:
        names = json.dumps({"private": True, "names": roster.names})
    static = {"levels": pack(roster.levels), "counts": pack(roster.counts), "names": names}
    connection.execute(insert(schema.rosters).values(dataset_id=dataset_id, **static))
    nothing = pack(np.zeros_like(roster.levels))
    connection.execute(insert(schema.people).values(dataset_id=dataset_id, spent=nothing, last_release=0))


def load(connection: Connection, dataset_id: int) -> Cohorts | None:
    """The cohorts of a dataset, checked against the last charge; ``None`` when it has no roster."""
    roster = connection.execute(_ROSTER, {"dataset": dataset_id}).one_or_none()
    if roster is None:
        return None
    now = connection.execute(select(schema.people).where(schema.people.c.dataset_id == dataset_id)).one_or_none()
    levels = unpack(roster.levels)
    if now is None or len(now.spent) != levels.nbytes or _unsigned(connection, now):
        raise LedgerError(
            "what people have spent does not match the ledger's last charge: the ledger was changed from outside; "
            "restore it from a backup before releasing anything"
        )
    names, private = _names(roster.names)
    return Cohorts(People(levels, unpack(roster.counts), unpack(now.spent), names, private=private), int(now.last_release))


def _names(stored: str | None) -> tuple[tuple[str, ...] | None, bool]:
    """What the cohorts are called, and whether they are the menu of a private roster."""
    found: Any = None if stored is None else json.loads(stored)
    private = isinstance(found, dict)
    names = found["names"] if private else found
    return None if names is None else tuple(names), private


def _unsigned(connection: Connection, now: Any) -> bool:
    if now.last_release == 0:
        return any(bytes(now.spent))
    signed = select(schema.people_charges.c.after).where(schema.people_charges.c.release_id == now.last_release)
    return bool(connection.execute(signed).scalar() != _signature(now.spent))


def _signature(raw: Any) -> str:
    return hashlib.sha256(raw).hexdigest()


def charge_people(connection: Connection, dataset_id: int, release_id: int, cohorts: Cohorts, asked: NanoArray) -> list[Row]:
    """Add a charge that fits; refuses if anybody else wrote since `load`. Returns the row for the log."""
    people = cohorts.people
    spent = pack(people.spent + asked)
    table = schema.people
    done = connection.execute(
        update(table)
        .where(table.c.dataset_id == dataset_id, table.c.last_release == cohorts.last_release)
        .values(spent=spent, last_release=release_id)
    )
    if done.rowcount != 1:
        raise LedgerError("another process charged the same people at the same moment; nothing was spent, try again")
    step = int(asked.max())
    plain = np.array_equal(asked, np.minimum(people.levels, step))
    vector = None if plain else zlib.compress(pack(asked), 1)
    row = {"release_id": release_id, "step": step, "vector": vector, "after": _signature(spent)}
    connection.execute(insert(schema.people_charges).values(row))
    return [row_of(schema.people_charges, row)]


def charge_of(levels: NanoArray, row: Any) -> NanoArray:
    """A recorded charge as a vector again."""
    return np.minimum(levels, row.step) if row.vector is None else unpack(zlib.decompress(row.vector))
