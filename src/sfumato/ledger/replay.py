"""The life of people told again from what was written down: every change and every charge, in turn.

`verify` tells it for all of them, by the rules of `sfumato.ledger.state`; one person's part is told in `personal`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from sfumato.errors import LedgerError
from sfumato.ledger import cohorts, persons, schema
from sfumato.ledger.packing import CHUNK, Columns
from sfumato.ledger.state import GONE, PARTS, State, by_grant
from sfumato.ledger.states import load
from sfumato.privacy.units import NanoArray

_BATCH = 64  # lines that are read at once


@dataclass(frozen=True, eq=False)
class Told:
    """One turn: the change or charge, what each person of the chunk paid in it, and where they stood afterwards."""

    change: Any
    charge: Any
    paid: NanoArray
    state: State


@dataclass(frozen=True, eq=False)
class Story:
    """Every turn of a dataset, without what it did to whom."""

    dataset_id: int
    turns: list[tuple[Any, Any]]
    brought: NanoArray
    """What people of each level of a fixed roster had spent when it came alive."""


def story(connection: Connection, dataset_id: int, upto: int | None = None) -> Story:
    """The turns in order, up to the change `upto` if it is given."""
    changes, charges = schema.changes, schema.life_charges
    turns: list[tuple[int, Any, Any]] = [
        (int(row.turn), row, None)
        for row in connection.execute(select(changes).where(changes.c.dataset_id == dataset_id))
        if upto is None or row.number <= upto
    ]
    turns += [
        (int(row.turn), None, row)
        for row in connection.execute(select(charges).where(charges.c.dataset_id == dataset_id))
        if upto is None or row.change < upto
    ]
    turns.sort(key=lambda turn: turn[0])
    return Story(dataset_id, [(change, charge) for _, change, charge in turns], _brought(connection, dataset_id))


def _brought(connection: Connection, dataset_id: int) -> NanoArray:
    total = None
    levels = cohorts.unpack(
        connection.execute(select(schema.rosters.c.levels).where(schema.rosters.c.dataset_id == dataset_id)).scalar_one()
    )
    for row in fixed_charges(connection, dataset_id):
        charge = cohorts.charge_of(levels, row)
        total = charge if total is None else total + charge
    return np.zeros_like(levels) if total is None else total


def fixed_charges(connection: Connection, dataset_id: int) -> Iterator[Any]:
    """The charges of a roster of head counts, oldest first; a few vectors at a time, since each may be one of a million."""
    table, releases = schema.people_charges, schema.releases
    query = select(table).join(releases, releases.c.id == table.c.release_id).where(releases.c.dataset_id == dataset_id)
    yield from _batches(connection, query.order_by(releases.c.id).limit(8), releases.c.id)


def _batches(connection: Connection, query: Any, key: Any) -> Iterator[Any]:
    """The rows of a query that is ordered by a `key`, its first column, and has a limit: one batch after the other."""
    rows = connection.execute(query).all()
    while rows:
        yield from rows
        rows = connection.execute(query.where(key > rows[-1][0])).all()


class _InTurn:
    """What was stored for some numbers, asked for in rising order; nothing is kept that was passed."""

    def __init__(self, rows: Iterator[Any]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def of(self, number: int) -> Any:
        while self._next is not None and self._next[0] < number:
            self._next = next(self._rows, None)
        return self._next[1] if self._next is not None and self._next[0] == number else None


def tell(connection: Connection, what: Story, chunk: int) -> Iterator[Told]:
    """What each turn did to the people of a `chunk`."""
    changed, charged = schema.change_chunks, schema.charge_chunks
    here = (changed.c.dataset_id == what.dataset_id) & (changed.c.chunk == chunk)
    stored = select(changed.c.number, changed.c.entries).where(here).order_by(changed.c.number)
    entries = _InTurn(_batches(connection, stored.limit(_BATCH), changed.c.number))
    lived = schema.life_charges
    mine = (lived.c.dataset_id == what.dataset_id) & (charged.c.chunk == chunk)
    asked = select(lived.c.release_id, charged.c.entries).join(charged, lived.c.release_id == charged.c.release_id)
    in_order = asked.where(mine).order_by(lived.c.release_id)
    amounts = _InTurn(_batches(connection, in_order.limit(_BATCH), lived.c.release_id))
    now = State.empty()
    for change, charge in what.turns:
        nothing = np.zeros(len(now.grants), dtype=np.int64)
        if change is not None:
            now = _changed(now, what, change, entries.of(change.number))
            yield Told(change, None, np.zeros(len(now.grants), dtype=np.int64), now)
            continue
        now = now.entered(charge.period)
        if charge.form == "grant":
            each = by_grant(now, int(charge.step))
        else:
            packed = amounts.of(charge.release_id)
            each = nothing if packed is None else _amounts(packed, now)
        if (each < 0).any() or (each > now.left).any() or each[now.tiers == GONE].any():
            raise unlike()
        now = replace(now, spent=now.spent + each)
        yield Told(None, charge, each, now)


def _amounts(entries: Any, now: State) -> NanoArray:
    """What was written down that each person paid; who was not there yet has no entry."""
    each = Columns(entries).column(0)
    if len(each) != len(now.grants):
        raise unlike()
    return each


def _changed(now: State, what: Story, change: Any, entries: Any) -> State:
    if entries is None:
        return now
    columns = Columns(entries)
    at = np.cumsum(columns.column(0)) - 1
    grants, tiers, caps = (columns.column(number) for number in (1, 2, 3))
    size = max(len(now.grants), int(at.max(initial=-1)) + 1)
    if size > CHUNK or int(at.min(initial=0)) < 0:
        raise unlike()
    wide = {part: getattr(now, part) for part in PARTS}
    if size > len(now.grants):
        more = np.zeros(size - len(now.grants), dtype=np.int64)
        wide = {part: np.concatenate([column, more + GONE * (part == "tiers")]) for part, column in wide.items()}
    else:
        wide |= {part: wide[part].copy() for part in ("grants", "tiers", "caps")}
    wide["grants"][at], wide["tiers"][at], wide["caps"][at] = grants, tiers, caps
    if change.kind == "start":
        wide["spent"][at] = what.brought[tiers]
    return State.of(wide, now.period)


def unlike() -> LedgerError:
    """The error for charges and changes that contradict each other."""
    return LedgerError(
        "what was written down about people does not fit together: the ledger was changed from outside; "
        "restore it from a backup before releasing anything"
    )


def whole(connection: Connection, dataset_id: int, people: int, upto: int | None = None) -> State:
    """Where all `people` stood once the last turn, or the change `upto`, was done; cohorts are made anew."""
    what = story(connection, dataset_id, upto)
    ends = [State.empty()]
    for chunk in range(-(-people // CHUNK)):
        end = State.empty()
        for told in tell(connection, what, chunk):
            end = told.state
        ends.append(end)
    return State.of({part: np.concatenate([getattr(end, part) for end in ends]) for part in PARTS}).regrouped()


def life_adds_up(connection: Connection, dataset_id: int) -> bool:
    """Whether everybody stands where all changes and charges lead to; that no charge passed a grant `tell` sees."""
    now = load(connection, dataset_id)
    again = whole(connection, dataset_id, len(now.grants))
    alike = all(np.array_equal(getattr(now, part), getattr(again, part)) for part in PARTS if part != "cohorts")
    return alike and persons.in_order(connection, dataset_id, _arrivals(connection, dataset_id), len(now.grants))


def _arrivals(connection: Connection, dataset_id: int) -> NDArray[np.int64]:
    """How many people there were before each change: the first place of who came with it."""
    table = schema.change_chunks
    query = select(table.c.number, table.c.chunk, table.c.entries).where(table.c.dataset_id == dataset_id)
    sizes: dict[int, int] = {}
    for number, chunk, entries in connection.execute(query):
        last = int(Columns(entries).column(0).sum()) - 1  # steps add up to the last of them
        sizes[number] = max(sizes.get(number, 0), int(chunk) * CHUNK + last + 1)
    after = np.maximum.accumulate(np.array([0, *(sizes[number] for number in sorted(sizes))], dtype=np.int64))
    return np.unique(after)
