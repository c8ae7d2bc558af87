"""What one person paid, told from the newest release back: only as far as somebody reads.

A charge to a living roster is ``min(grant, step)`` from everybody who takes part, or an amount per person in a chunk
of 4,096. So what this person paid needs their grant at the time, which their own changes tell: those are read
backwards too, beside the charges. `sfumato.ledger.replay` tells the same from the beginning, for everybody, when a
ledger is verified.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from sfumato.ledger import cohorts, schema
from sfumato.ledger.packing import CHUNK, Columns
from sfumato.ledger.replay import unlike
from sfumato.ledger.state import GONE
from sfumato.ledger.states import changed_from_outside

_BATCH = 64  # lines of the ledger that are read at once


@dataclass(frozen=True)
class Change:
    """A change of one person's own: its number, and what they granted from then on."""

    number: int
    grant: int
    tier: int
    cap: int


@dataclass(frozen=True)
class Paid:
    """What one person paid for a release, and what they granted then."""

    release: int
    epoch: int
    tier: int
    grant: int
    charged: int


class Own:
    """The changes of one person, newest first, read when they are looked at."""

    def __init__(self, connection: Connection, dataset_id: int, place: int) -> None:
        self._connection, self._dataset_id = connection, dataset_id
        self.chunk, self.entry = divmod(place, CHUNK)
        self._seen: list[Change] = []
        self._rest = self._read() if place >= 0 else iter(())

    def at(self, number: int) -> Change | None:
        """The change of that place in the list, newest first; ``None`` if there were not so many."""
        while len(self._seen) <= number:
            found = next(self._rest, None)
            if found is None:
                return None
            self._seen.append(found)
        return self._seen[number]

    def now(self) -> tuple[int, int, int]:
        """Grant, tier and cap per period of today."""
        last = self.at(0)
        if last is None:
            raise changed_from_outside()
        return last.grant, last.tier, last.cap

    def left_at(self) -> str | None:
        """When they withdrew for the last time, if they are out."""
        first, number = None, 0
        while (change := self.at(number)) is not None and change.tier == GONE:
            first, number = change, number + 1
        return None if first is None else str(self.row(first).at)

    def row(self, change: Change) -> Any:
        """The line of a change."""
        table = schema.changes
        here = (table.c.dataset_id == self._dataset_id) & (table.c.number == change.number)
        return self._connection.execute(select(table.c.at, table.c.turn, table.c.kind).where(here)).one()

    def _read(self) -> Iterator[Change]:
        table = schema.change_chunks
        here = (table.c.dataset_id == self._dataset_id) & (table.c.chunk == self.chunk)
        query = select(table.c.number, table.c.entries).where(here).order_by(table.c.number.desc()).limit(_BATCH)
        rows = self._connection.execute(query).all()
        while rows:
            for number, entries in rows:
                found = _entry(entries, self.entry)
                if found is not None:
                    yield Change(int(number), *found)
            rows = self._connection.execute(query.where(table.c.number < rows[-1].number)).all()


def _entry(entries: Any, wanted: int) -> tuple[int, int, int] | None:
    """Grant, tier and cap that a change set for one entry of a chunk, if it did."""
    columns = Columns(entries)
    at = np.cumsum(columns.column(0)) - 1
    found = int(np.searchsorted(at, wanted))
    if found >= len(at) or at[found] != wanted:
        return None
    grant, tier, cap = (columns.at(number, found) for number in (1, 2, 3))
    return grant, tier, cap


def paid_by(
    connection: Connection, dataset_id: int, own: Own, limit: int, before: int | None
) -> tuple[list[Paid], int | None]:
    """What a person paid in the newest `limit` releases `before` one, oldest first, and where older ones begin."""
    found: list[Paid] = []
    for paid in _told(connection, dataset_id, own, before):
        if len(found) == limit:
            return found[::-1], found[-1].release
        found.append(paid)
    return found[::-1], None


def _told(connection: Connection, dataset_id: int, own: Own, before: int | None) -> Iterator[Paid]:
    table = schema.life_charges
    mine = table.c.dataset_id == dataset_id
    newest = select(table.c.turn).where(mine).order_by(table.c.release_id.desc()).limit(1)
    if before is not None:
        newest = newest.where(table.c.release_id < before)
    turn = connection.execute(newest).scalar()
    at = 0
    while turn is not None:
        query = select(table).where(mine, table.c.turn <= turn).order_by(table.c.turn.desc()).limit(_BATCH)
        rows = connection.execute(query).all()
        amounts, epochs = _amounts(connection, own, rows), _epochs(connection, dataset_id, rows)
        turn = int(rows[-1].turn) - 1 if len(rows) == _BATCH else None
        for row in rows:
            while (change := own.at(at)) is not None and change.number > row.change:
                at += 1
            if change is None:  # they were not there yet
                turn = None
                break
            charged = _charged(row, change, own.entry, amounts)
            if charged:
                yield Paid(int(row.release_id), epochs.get(int(row.change), 0), change.tier, change.grant, charged)
            elif change.tier == GONE:  # nothing until they withdrew
                turn = int(own.row(change).turn)
                break
    yield from _fixed(connection, dataset_id, own, before)


def _charged(row: Any, change: Change, entry: int, amounts: dict[int, Any]) -> int:
    if row.form == "grant":
        charged = 0 if change.tier == GONE else min(change.grant, int(row.step))
    elif row.release_id in amounts:
        columns = Columns(amounts[row.release_id])
        if entry >= columns.length:
            raise unlike()
        charged = columns.at(0, entry)
    else:
        charged = 0
    if charged < 0 or charged > change.grant or (charged and change.tier == GONE):
        raise unlike()
    return charged


def _amounts(connection: Connection, own: Own, rows: Any) -> dict[int, Any]:
    table = schema.charge_chunks
    numbers = [row.release_id for row in rows if row.form == "chunks"]
    if not numbers:
        return {}
    here = table.c.release_id.in_(numbers) & (table.c.chunk == own.chunk)
    return dict(connection.execute(select(table.c.release_id, table.c.entries).where(here)).all())


def _epochs(connection: Connection, dataset_id: int, rows: Any) -> dict[int, int]:
    table = schema.changes
    here = (table.c.dataset_id == dataset_id) & table.c.number.in_({int(row.change) for row in rows})
    return dict(connection.execute(select(table.c.number, table.c.epoch).where(here)).all())


def _fixed(connection: Connection, dataset_id: int, own: Own, before: int | None) -> Iterator[Paid]:
    """The releases from when the roster was one of head counts, for somebody who was in it."""
    chunks, started = schema.change_chunks, schema.changes
    first = (chunks.c.dataset_id == dataset_id) & (chunks.c.number == started.c.number)
    begun = select(chunks.c.entries).join(started, first & (started.c.dataset_id == dataset_id))
    begun = begun.where(started.c.number == 1, started.c.kind == "start", chunks.c.chunk == own.chunk)
    entries = connection.execute(begun).scalar()
    there = None if entries is None else _entry(entries, own.entry)
    if there is None:
        return
    grant, level, _ = there
    rosters, table, releases = schema.rosters, schema.people_charges, schema.releases
    levels = cohorts.unpack(
        connection.execute(select(rosters.c.levels).where(rosters.c.dataset_id == dataset_id)).scalar_one()
    )
    query = select(table).join(releases, releases.c.id == table.c.release_id).where(releases.c.dataset_id == dataset_id)
    query = query.order_by(releases.c.id.desc()).limit(_BATCH)
    rows = connection.execute(query if before is None else query.where(releases.c.id < before)).all()
    while rows:
        for row in rows:
            charged = int(cohorts.charge_of(levels, row)[level])
            if charged:
                yield Paid(int(row.release_id), 0, level, grant, charged)
        rows = connection.execute(query.where(releases.c.id < rows[-1].release_id)).all()
