"""Balances, history, and adding the totals up again from every single charge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, and_, func, select

from sfumato.errors import LedgerError
from sfumato.ledger import cohorts, schema
from sfumato.ledger.caps import MAX_BIGINT, Caps
from sfumato.ledger.database import Store
from sfumato.ledger.records import Balance, Limit, Release, Reservation
from sfumato.ledger.register import check_same
from sfumato.ledger.replay import life_adds_up
from sfumato.ledger.requests import canonical
from sfumato.ledger.reserve import committed, read_caps, unknown
from sfumato.ledger.state import State
from sfumato.privacy.units import Nano, epsilon_text

# What people of a living roster were charged, in words
FORMS = {"grant": "the budget", "chunks": "by group"}


def datasets(store: Store) -> list[str]:
    """Names of all registered datasets."""
    with store.read() as connection:
        query = select(schema.datasets.c.name).order_by(schema.datasets.c.name)
        return [str(name) for name in connection.execute(query).scalars()]


def balance(store: Store, dataset: str) -> Balance:
    """See `sfumato.ledger.Ledger.balance`."""
    with store.read() as connection:
        dataset_id = _find(connection, dataset)
        granted = read_caps(connection, dataset_id, dataset)[0]
        by_kind: defaultdict[str, list[Limit]] = defaultdict(list)
        for limit in granted.limits:
            by_kind[limit.kind].append(limit)
        return Balance(
            dataset=dataset,
            total=by_kind["total"][0],
            together=by_kind["together"][0] if by_kind["together"] else None,
            attributes=tuple(by_kind["attribute"]),
            recipients=tuple(by_kind["recipient"]),
            people=granted.people,
            releases=_releases(connection, dataset_id),
        )


def history(store: Store, dataset: str) -> tuple[Release, ...]:
    """See `sfumato.ledger.Ledger.history`."""
    with store.read() as connection:
        return _releases(connection, _find(connection, dataset))


def entry(store: Store, dataset: str, release_id: int) -> Release | None:
    """See `sfumato.ledger.Ledger.entry`."""
    if not 0 < release_id <= MAX_BIGINT:  # read from a file that anybody may have written
        return None
    with store.read() as connection:
        found = _releases(connection, _find(connection, dataset), only=release_id)
        return found[0] if found else None


def caps(store: Store, dataset: str) -> Caps:
    """See `sfumato.ledger.Ledger.caps`."""
    with store.read() as connection:
        return read_caps(connection, _find(connection, dataset), dataset)[0]


def attributes(store: Store, dataset: str) -> tuple[str, ...]:
    """See `sfumato.ledger.Ledger.attributes`."""
    with store.read() as connection:
        table = schema.limits
        here = table.c.dataset_id == _find(connection, dataset)
        query = select(table.c.name).where(here, table.c.kind == "attribute")
        return tuple(sorted(str(name) for name in connection.execute(query).scalars()))


def find(store: Store, dataset: str, request: str | Mapping[str, Any], recipient: str | None) -> Reservation | None:
    """See `sfumato.ledger.Ledger.find`."""
    with store.read() as connection:
        return committed(connection, _find(connection, dataset), canonical(request), recipient)


def standing(
    location: str | Path, asked: Caps, requests: Sequence[tuple[str, str | None]]
) -> tuple[Caps, list[int | None]] | None:
    """Where a dataset stands: its caps, and the entry that paid for each request; ``None`` when it is not registered.

    Only reads, and only columns that every format of the ledger has.
    """
    store = Store.existing(location)
    if store is None:
        return None
    with store.read() as connection:
        query = select(schema.datasets.c.id).where(schema.datasets.c.name == asked.dataset)
        dataset_id = connection.execute(query).scalar()
        if dataset_id is None:
            return None
        there = read_caps(connection, int(dataset_id), asked.dataset, lives=store.has_lives)[0]
        check_same(there, asked)
        stored = [committed(connection, int(dataset_id), request, recipient) for request, recipient in requests]
        return there, [None if paid is None else paid.id for paid in stored]


def verify(store: Store, dataset: str) -> None:
    """See `sfumato.ledger.Ledger.verify`."""
    with store.read() as connection:
        dataset_id = _find(connection, dataset)
        table = schema.charges
        sums = (
            select(table.c.kind, table.c.name, func.sum(table.c.nano))
            .join(schema.releases, schema.releases.c.id == table.c.release_id)
            .where(schema.releases.c.dataset_id == dataset_id)
            .group_by(table.c.kind, table.c.name)
        )
        added = {(kind, name): int(nano) for kind, name, nano in connection.execute(sums)}
        granted, group = read_caps(connection, dataset_id, dataset)
        wrong = [
            f"{limit.kind} {limit.name}".strip()
            for limit in granted.limits
            if limit.spent != added.get((limit.kind, limit.name), 0)
        ]
        if isinstance(group, State):
            if not life_adds_up(connection, dataset_id):
                wrong.append("people")
        elif group is not None:
            total = np.zeros_like(group.people.levels)
            for row in connection.execute(_people_charges(dataset_id)):
                total = total + cohorts.charge_of(group.people.levels, row)
            if not np.array_equal(total, group.people.spent):
                wrong.append("people")
    if wrong:
        raise LedgerError(
            f"the totals of {dataset!r} are not the sum of its charges ({', '.join(wrong)}): the ledger was changed "
            "from outside; restore it from a backup before releasing anything"
        )


def _find(connection: Connection, dataset: str) -> int:
    found = connection.execute(select(schema.datasets.c.id).where(schema.datasets.c.name == dataset)).scalar()
    if found is None:
        raise unknown(connection, dataset)
    return int(found)


def _people_charges(dataset_id: int):  # type: ignore[no-untyped-def]  # SQLAlchemy's Select has one type per column
    table = schema.people_charges
    return (
        select(table)
        .join(schema.releases, schema.releases.c.id == table.c.release_id)
        .where(schema.releases.c.dataset_id == dataset_id)
        .order_by(table.c.release_id)
    )


def _releases(connection: Connection, dataset_id: int, only: int | None = None) -> tuple[Release, ...]:
    table, lines, shape = schema.releases, schema.charges, schema.people_charges
    chosen = table.c.dataset_id == dataset_id
    if only is not None:
        chosen = and_(chosen, table.c.id == only)
    paid: defaultdict[int, list[tuple[str, str, Nano]]] = defaultdict(list)
    joined = select(lines.c.release_id, lines.c.kind, lines.c.name, lines.c.nano).join(table).where(chosen)
    for release, kind, name, nano in connection.execute(joined.order_by(lines.c.release_id, lines.c.kind, lines.c.name)):
        paid[release].append((kind, name, Nano(nano)))
    steps = select(shape.c.release_id, shape.c.step, shape.c.vector.is_(None)).join(table).where(chosen)
    people = {
        release: f"the budget, at most {epsilon_text(step)}" if plain else f"by group, at most {epsilon_text(step)}"
        for release, step, plain in connection.execute(steps)
    }
    lived, changes = schema.life_charges, schema.changes
    then = (changes.c.dataset_id == lived.c.dataset_id) & (changes.c.number == lived.c.change)
    living = select(lived.c.release_id, lived.c.form, lived.c.step, changes.c.epoch).join(table).outerjoin(changes, then)
    epochs = {}
    private = connection.execute(select(schema.lives.c.private).where(schema.lives.c.dataset_id == dataset_id)).scalar()
    for release, form, step, epoch in connection.execute(living.where(chosen)):
        # How a charge is stored depends on who could pay it: of a private roster that is not told.
        people[release] = f"{FORMS['chunks' if private else form]}, at most {epsilon_text(step)}"
        epochs[release] = int(epoch or 0)
    rows = connection.execute(select(table).where(chosen).order_by(table.c.id))
    return tuple(
        Release(
            id=int(row.id),
            name=row.name,
            state=row.state,
            request=row.request,
            fingerprint=row.fingerprint,
            recipient=row.recipient,
            by=row.asked_by,
            total=Nano(row.total),
            charges=tuple(paid[row.id]),
            people=people.get(row.id),
            stored=row.artefact,
            reserved_at=row.reserved_at,
            finished_at=row.finished_at,
            epoch=epochs.get(row.id),
        )
        for row in rows
    )
