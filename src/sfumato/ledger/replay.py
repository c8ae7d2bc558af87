"""The life of people told again from what was written down: every change and every charge, in turn.

A receipt tells the chunk that one person is in, `verify` tells all of them; both use the rules of `sfumato.ledger.state`.
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


def fixed_charges(connection: Connection, dataset_id: int) -> list[Any]:
    """The charges of a roster from when it was one of head counts."""
    table = schema.people_charges
    joined = select(table).join(schema.releases, schema.releases.c.id == table.c.release_id)
    return list(connection.execute(joined.where(schema.releases.c.dataset_id == dataset_id).order_by(table.c.release_id)))


def tell(connection: Connection, what: Story, chunk: int, only: int | None = None) -> Iterator[Told]:
    """What each turn did to the people of a `chunk`, or to the `only` one at that entry of it."""
    changed, charged = schema.change_chunks, schema.charge_chunks
    here = (changed.c.dataset_id == what.dataset_id) & (changed.c.chunk == chunk)
    entries = dict(connection.execute(select(changed.c.number, changed.c.entries).where(here)).all())
    asked = select(charged.c.release_id, charged.c.entries).join(
        schema.life_charges, schema.life_charges.c.release_id == charged.c.release_id
    )
    mine = (schema.life_charges.c.dataset_id == what.dataset_id) & (charged.c.chunk == chunk)
    amounts = dict(connection.execute(asked.where(mine)).all())
    now = State.empty()
    for change, charge in what.turns:
        nothing = np.zeros(len(now.grants), dtype=np.int64)
        if change is not None:
            now = _changed(now, what, change, entries.get(change.number), only)
            yield Told(change, None, np.zeros(len(now.grants), dtype=np.int64), now)
            continue
        now = now.entered(charge.period)
        if charge.form == "grant":
            each = by_grant(now, int(charge.step))
        elif charge.release_id in amounts:
            each = _amounts(amounts[charge.release_id], now, only)
        else:
            each = nothing
        if (each < 0).any() or (each > now.left).any() or each[now.tiers == GONE].any():
            raise _unlike()
        now = replace(now, spent=now.spent + each)
        yield Told(None, charge, each, now)


def _amounts(entries: Any, now: State, only: int | None) -> NanoArray:
    """What was written down that each person paid; who was not there yet has no entry."""
    columns = Columns(entries)
    if only is None:
        each = columns.column(0)
    else:
        each = np.array([columns.at(0, only)] if only < columns.length else [], dtype=np.int64)
    if len(each) != len(now.grants):
        raise _unlike()
    return each


def _entries(entries: Any, only: int | None) -> tuple[NDArray[np.int64], ...]:
    """Who changed, and their grants, tiers and caps; the `only` one is entry 0."""
    columns = Columns(entries)
    at = np.cumsum(columns.column(0)) - 1
    if only is None:
        return (at, *(columns.column(number) for number in (1, 2, 3)))
    found = int(np.searchsorted(at, only))
    here = [found] if found < len(at) and at[found] == only else []
    picked = ([columns.at(number, entry) for entry in here] for number in (1, 2, 3))
    return (np.zeros(len(here), dtype=np.int64), *(np.array(column, dtype=np.int64) for column in picked))


def _changed(now: State, what: Story, change: Any, entries: Any, only: int | None) -> State:
    if entries is None:
        return now
    at, grants, tiers, caps = _entries(entries, only)
    size = max(len(now.grants), int(at.max(initial=-1)) + 1)
    if size > CHUNK or int(at.min(initial=0)) < 0:
        raise _unlike()
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


def _unlike() -> LedgerError:
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
