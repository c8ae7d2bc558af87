"""What people have chosen and what is not in force yet: durable the moment it is said, in force at the next epoch.

A choice is for a person whom the dataset knows (by place) or for a newcomer (by hash). Of several choices of one person the
last one counts. `lowers` says which choices take something away: those bind before the next release (see `epochs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import CompoundSelect, Connection, Select, delete, func, insert, select

from sfumato.ledger import log, log_leaves, log_quiet, schema
from sfumato.ledger.packing import CHUNK, squeeze, widen
from sfumato.ledger.persons import MEMBER
from sfumato.ledger.state import GONE
from sfumato.privacy.units import NanoArray


@dataclass(frozen=True, eq=False)
class Choices:
    """Choices of many people: tier `GONE` is a withdrawal."""

    people: NDArray[np.void]
    """Entries of `MEMBER`; the place is that of a known person and means nothing for a newcomer."""
    known: NDArray[np.bool_]
    grants: NanoArray
    tiers: NDArray[np.int64]
    caps: NanoArray

    def __len__(self) -> int:
        return len(self.people)

    @property
    def places(self) -> NDArray[np.int64]:
        """Where known people are."""
        return self.people["place"].astype(np.int64)

    def __getitem__(self, which: Any) -> Choices:
        return Choices(*(column[which] for column in (self.people, self.known, self.grants, self.tiers, self.caps)))

    def last_of_each(self) -> Choices:
        """Only what each person chose last: known people by place, then newcomers by hash."""
        kept = []
        for chosen in (np.flatnonzero(self.known), np.flatnonzero(~self.known)):
            late = chosen[::-1]
            same = self.people[late]
            keys = (same["place"],) if self.known[chosen[:1]].any() else (same["low"], same["high"])
            columns = [np.ascontiguousarray(key).astype(np.uint64) for key in keys]
            order = np.lexsort(columns)  # stable: of one person the last choice comes first
            new = np.zeros(len(order), dtype=bool)
            new[:1] = True
            for column in columns:
                new[1:] |= column[order][1:] != column[order][:-1]
            kept.append(late[order[new]])
        return self[np.concatenate(kept)]


def none() -> Choices:
    """No choices."""
    nothing = np.zeros(0, dtype=np.int64)
    return Choices(np.zeros(0, dtype=MEMBER), np.zeros(0, dtype=bool), nothing, nothing, nothing)


def lowers(chosen: Choices, grants: NanoArray, tiers: NDArray[np.int64], caps: NanoArray) -> NDArray[np.bool_]:
    """Which choices of known people take something away from what they grant now (three vectors beside `chosen`)."""
    less = (chosen.tiers == GONE) | (chosen.grants < grants) | (chosen.caps < caps)
    found: NDArray[np.bool_] = less & (tiers != GONE) & chosen.known
    return found


def write(connection: Connection, dataset_id: int, chosen: Choices, lowering: NDArray[np.bool_]) -> None:
    """Keep choices, one per person, after those that are there; `lowering` says which of them take something away."""
    rows = []
    for which in (np.flatnonzero(chosen.known), np.flatnonzero(~chosen.known)):
        keys = _keys(chosen[which])
        order = np.argsort(keys, kind="stable")
        for start in range(0, len(which), CHUNK):
            part = order[start : start + CHUNK]
            some = chosen[which[part]]
            row = {"first": int(keys[part[0]]), "last": int(keys[part[-1]]), "lowers": int(lowering[which[part]].sum())}
            rows.append({"dataset_id": dataset_id, **row, "entries": _packed(some), "salt": log.fresh_salt()})
    if rows and log_quiet.is_private(connection, dataset_id):
        connection.execute(insert(schema.choices), log_quiet.with_checksums(connection, rows))
    elif rows:
        added = insert(schema.choices).returning(schema.choices.c.id, sort_by_parameter_order=True)
        numbers = connection.execute(added, rows).scalars().all()
        written = [row | {"id": int(number)} for row, number in zip(rows, numbers, strict=True)]
        log.append(connection, dataset_id, log_leaves.chosen(written))


def _keys(chosen: Choices) -> NDArray[np.int64]:
    """What choices are found by: places of known people, and numbers below 0 for newcomers."""
    first_bytes = (chosen.people["high"].astype(np.uint64) >> np.uint64(56)).astype(np.int64)
    return np.where(chosen.known, chosen.places, first_bytes - 256)


def _packed(chosen: Choices) -> bytes:
    known = bool(chosen.known[0])
    who = squeeze([chosen.places]) if known else chosen.people.astype(MEMBER).tobytes()
    columns = squeeze([chosen.grants, chosen.tiers, chosen.caps])
    return np.array([known, len(columns)], dtype="<u4").tobytes() + columns + who


def read(connection: Connection, dataset_id: int, only: int | None = None) -> tuple[Choices, int]:
    """Everything that waits, oldest first, and the number of its last line (0: nothing waits).

    `only` leaves out most of what is not about one person: their place, or the first byte of their hash less 256.
    """
    table = schema.choices
    mine = select(table.c.id, table.c.entries).where(table.c.dataset_id == dataset_id)
    query: Select[Any] | CompoundSelect[Any] = mine
    if only is not None:
        # Two searches, each by an index: of single choices, of which there may be very many, and of lists.
        single = mine.where(table.c.first == only, table.c.first == table.c.last)
        several = mine.where(table.c.first < table.c.last, table.c.first <= only, table.c.last >= only)
        query = single.union_all(several)
    last, parts = 0, [none()]
    for number, entries in sorted(connection.execute(query), key=itemgetter(0)):
        last = int(number)
        parts.append(_choices(bytes(entries)))
    columns = zip(*((p.people, p.known, p.grants, p.tiers, p.caps) for p in parts), strict=True)
    return Choices(*(np.concatenate(column) for column in columns)), last


def _choices(raw: bytes) -> Choices:
    known, size = np.frombuffer(raw, dtype="<u4", count=2).tolist()
    grants, tiers, caps = widen(raw[8 : 8 + size])
    people = np.zeros(len(grants), dtype=MEMBER)
    if known:
        (people["place"],) = widen(raw[8 + size :])
    else:
        people[:] = np.frombuffer(raw, dtype=MEMBER, offset=8 + size)
    return Choices(people, np.full(len(grants), bool(known)), grants, tiers, caps)


def taken_in(connection: Connection, dataset_id: int, last: int) -> None:
    """Forget the lines up to `last`, which a change has taken in; the database allows no others to go."""
    table = schema.choices
    connection.execute(delete(table).where(table.c.dataset_id == dataset_id, table.c.id <= last))


def lowering(connection: Connection, dataset_id: int) -> int:
    """How many choices that take something away wait; 0 when a release may be charged."""
    table = schema.choices
    query = select(func.coalesce(func.sum(table.c.lowers), 0)).where(table.c.dataset_id == dataset_id, table.c.lowers > 0)
    return int(connection.execute(query).scalar_one())
