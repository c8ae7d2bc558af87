"""Balances, history, and adding the totals up again from every single charge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, inspect, select

from sfumato.errors import LedgerError
from sfumato.ledger import clock, cohorts, log_check, schema
from sfumato.ledger.allowance import Allowance
from sfumato.ledger.allowances import Pair, load, of_analyst
from sfumato.ledger.allowances import wrong as wrong_allowances
from sfumato.ledger.caps import MAX_BIGINT, Caps
from sfumato.ledger.database import Store
from sfumato.ledger.limits import adds_up, sums
from sfumato.ledger.pages import one, page
from sfumato.ledger.records import Balance, Limit, Page, Release, Reservation
from sfumato.ledger.register import check_same
from sfumato.ledger.replay import fixed_charges, life_adds_up
from sfumato.ledger.requests import canonical
from sfumato.ledger.reserve import committed, read_caps, unknown
from sfumato.ledger.state import State

BALANCE = 100  # the newest releases that a balance shows if nobody says how many


def datasets(store: Store) -> list[str]:
    """Names of all registered datasets."""
    with store.read() as connection:
        query = select(schema.datasets.c.name).order_by(schema.datasets.c.name)
        return [str(name) for name in connection.execute(query).scalars()]


def balance(store: Store, dataset: str, releases: int | None) -> Balance:
    """See `sfumato.ledger.Ledger.balance`."""
    with store.read() as connection:
        dataset_id = find_dataset(connection, dataset)
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
            allowances=tuple(load(connection, dataset_id, None, clock.day_of(clock.now()))),
            releases=Page() if releases == 0 else page(store, connection, dataset_id, limit=releases, most=BALANCE),
        )


def history(store: Store, dataset: str, limit: int | None, before: int | None, after: int | None) -> Page:
    """See `sfumato.ledger.Ledger.history`."""
    with store.read() as connection:
        return page(store, connection, find_dataset(connection, dataset), limit=limit, before=before, after=after)


def releases(store: Store, dataset: str) -> Iterator[Release]:
    """See `sfumato.ledger.Ledger.releases`."""
    return _following(store, dataset, history(store, dataset, None, None, 0))  # a name that is wrong is refused here


def _following(store: Store, dataset: str, found: Page) -> Iterator[Release]:
    yield from found
    while found.newer is not None:
        found = history(store, dataset, None, None, found.newer)
        yield from found


def entry(store: Store, dataset: str, release_id: int) -> Release | None:
    """See `sfumato.ledger.Ledger.entry`."""
    if not 0 < release_id <= MAX_BIGINT:  # read from a file that anybody may have written
        return None
    with store.read() as connection:
        return one(connection, find_dataset(connection, dataset), release_id)


def caps(store: Store, dataset: str, own: Collection[Pair]) -> Caps:
    """See `sfumato.ledger.Ledger.caps`."""
    with store.read() as connection:
        return read_caps(connection, find_dataset(connection, dataset), dataset, own=own)[0]


def allowances(store: Store, dataset: str, analyst: str | None) -> tuple[Allowance, ...]:
    """See `sfumato.ledger.Ledger.allowances`."""
    with store.read() as connection:
        dataset_id, day = find_dataset(connection, dataset), clock.day_of(clock.now())
        if analyst is None:
            return tuple(load(connection, dataset_id, None, day))
        return tuple(of_analyst(connection, dataset_id, analyst, day))


def attributes(store: Store, dataset: str) -> tuple[str, ...]:
    """See `sfumato.ledger.Ledger.attributes`."""
    with store.read() as connection:
        table = schema.limits
        here = table.c.dataset_id == find_dataset(connection, dataset)
        query = select(table.c.name).where(here, table.c.kind == "attribute")
        return tuple(sorted(str(name) for name in connection.execute(query).scalars()))


def find(store: Store, dataset: str, request: str | Mapping[str, Any], recipient: str | None) -> Reservation | None:
    """See `sfumato.ledger.Ledger.find`."""
    with store.read() as connection:
        return committed(connection, find_dataset(connection, dataset), canonical(request), recipient)


def standing(
    location: str | Path, asked: Caps, requests: Sequence[tuple[str, str | None]], own: Collection[Pair] = ()
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
        own = own if own and inspect(connection).has_table(schema.allowances.name) else ()
        there = read_caps(connection, int(dataset_id), asked.dataset, own=own, lives=store.has_lives)[0]
        check_same(there, asked)
        stored = [committed(connection, int(dataset_id), request, recipient) for request, recipient in requests]
        return there, [None if paid is None else paid.id for paid in stored]


def verify(store: Store, dataset: str) -> None:
    """See `sfumato.ledger.Ledger.verify`."""
    with store.read() as connection:
        dataset_id = find_dataset(connection, dataset)
        with log_check.readable(dataset):
            wrong = _not_adding_up(connection, dataset_id, dataset)
            if not wrong:
                log_check.check(connection, dataset_id, dataset)
    if wrong:
        raise LedgerError(
            f"the totals of {dataset!r} are not the sum of its charges ({', '.join(wrong)}): the ledger was changed "
            "from outside; restore it from a backup before releasing anything"
        )


def _not_adding_up(connection: Connection, dataset_id: int, dataset: str) -> list[str]:
    """What has not carried the sum of its charges."""
    added = sums(connection, dataset_id)
    granted, group = read_caps(connection, dataset_id, dataset)
    wrong = [f"{limit.kind} {limit.name}".strip() for limit in granted.limits if not adds_up(limit, added)]
    wrong += wrong_allowances(connection, dataset_id, added)
    if isinstance(group, State):
        if not life_adds_up(connection, dataset_id):
            wrong.append("people")
    elif group is not None:
        total = np.zeros_like(group.people.levels)
        for row in fixed_charges(connection, dataset_id):
            total = total + cohorts.charge_of(group.people.levels, row)
        if not np.array_equal(total, group.people.spent):
            wrong.append("people")
    return wrong


def find_dataset(connection: Connection, dataset: str) -> int:
    """The id of a dataset; an error if it was never registered."""
    found = connection.execute(select(schema.datasets.c.id).where(schema.datasets.c.name == dataset)).scalar()
    if found is None:
        raise unknown(connection, dataset)
    return int(found)
