"""The state of a living roster in the database: read with its signature checked, written with a new one."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, insert, select, update

from sfumato.errors import LedgerError
from sfumato.ledger import schema
from sfumato.ledger.state import PARTS, State


def load(connection: Connection, dataset_id: int) -> State:
    """Where everybody stands, checked against the signature of the last turn."""
    table = schema.states
    rows = connection.execute(select(table.c.part, table.c.vector).where(table.c.dataset_id == dataset_id))
    raw = {str(part): bytes(vector) for part, vector in rows}
    change, charge = last_turns(connection, dataset_id)
    last = max((turn for turn in (change, charge) if turn is not None), key=lambda turn: turn.turn, default=None)
    if last is None:
        if raw:
            raise changed_from_outside()
        return State.empty()
    if set(raw) != set(PARTS) or _signature(raw) != last.after:
        raise changed_from_outside()
    vectors = {part: np.frombuffer(raw[part], dtype=kind).astype(np.int64, copy=False) for part, kind in PARTS.items()}
    period = None if charge is None else charge.period
    number, epoch = (0, 0) if change is None else (int(change.number), int(change.epoch))
    return replace(State.of(vectors, period), turn=int(last.turn), change=number, epoch=epoch)


def last_turns(connection: Connection, dataset_id: int) -> tuple[Any, Any]:
    """The last change and the last charge, ``None`` where there is none."""
    change, charge = schema.changes, schema.life_charges
    return (
        connection.execute(
            select(change).where(change.c.dataset_id == dataset_id).order_by(change.c.number.desc()).limit(1)
        ).one_or_none(),
        connection.execute(
            select(charge).where(charge.c.dataset_id == dataset_id).order_by(charge.c.turn.desc()).limit(1)
        ).one_or_none(),
    )


def save(connection: Connection, dataset_id: int, after: State, changed: set[str]) -> str:
    """Write the vectors that `changed`, as of turn ``after.turn``; returns the signature of all of them."""
    table = schema.states
    raw = {part: getattr(after, part).astype(kind).tobytes() for part, kind in PARTS.items()}
    for part, vector in raw.items():
        row = {"turn": after.turn, "vector": vector}
        if after.turn == 1:
            connection.execute(insert(table).values(dataset_id=dataset_id, part=part, **row))
        elif part in changed:
            here = (table.c.dataset_id == dataset_id) & (table.c.part == part) & (table.c.turn < after.turn)
            if connection.execute(update(table).where(here).values(row)).rowcount != 1:
                raise LedgerError(
                    "another process changed where people stand at the same moment; nothing was done, try again"
                )
    return _signature(raw)


def _signature(raw: dict[str, bytes]) -> str:
    whole = hashlib.blake2b(digest_size=32)
    for part in PARTS:
        whole.update(hashlib.blake2b(raw[part]).digest())
    return whole.hexdigest()


def changed_from_outside() -> LedgerError:
    """The error for vectors that do not match what led to them."""
    return LedgerError(
        "where people stand does not match the ledger's last charge or epoch: the ledger was changed from outside; "
        "restore it from a backup before releasing anything"
    )


def at_place(connection: Connection, dataset_id: int, place: int, parts: tuple[str, ...]) -> list[int]:
    """One person's entry in some vectors, without reading the others."""
    table, found = schema.states, {}
    for kind in sorted({PARTS[part] for part in parts}):  # one statement for all vectors of a width
        size, some = np.dtype(kind).itemsize, [part for part in parts if PARTS[part] == kind]
        pieces = select(table.c.part, func.substr(table.c.vector, place * size + 1, size))
        here = (table.c.dataset_id == dataset_id) & table.c.part.in_(some)
        for part, piece in connection.execute(pieces.where(here)):
            found[part] = int(np.frombuffer(bytes(piece), dtype=kind)[0])
    if set(found) != set(parts):
        raise changed_from_outside()
    return [found[part] for part in parts]
