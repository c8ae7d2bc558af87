"""Reserve, commit, fail: each one transaction.

`reserve` takes the dataset's lock first and looks at the balances afterwards, so no two requests can both see the
same last bit of budget. Whether the charge fits is decided by the rule in `sfumato.ledger.caps`. All caps are then
raised by one UPDATE that carries its own condition and must hit each of them; the table's CHECK and triggers say the
same once more. When the transaction returns the charge is on disk: whatever happens next, a crash included, it stays
spent. There is no way back from *reserved* but to *committed* or *failed*.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, insert, or_, select, update

from sfumato.errors import InputError, LedgerError
from sfumato.ledger import (
    allowances,
    charges,
    choices,
    clock,
    cohorts,
    epochs,
    limits,
    log,
    log_leaves,
    menus,
    schema,
    states,
)
from sfumato.ledger.allowance import Allowance, both_or_none, name_of
from sfumato.ledger.caps import Caps
from sfumato.ledger.database import Store
from sfumato.ledger.records import Reservation
from sfumato.ledger.requests import canonical, fingerprint_of, readable
from sfumato.ledger.standing import LivePeople, Menu, Standing
from sfumato.ledger.state import State
from sfumato.privacy.charge import Charge

# Made once: to build a statement takes longer than to send it.
_LOCK = select(schema.datasets.c.id).where(schema.datasets.c.name == bindparam("dataset")).with_for_update()
_LOCK_OF = (
    select(schema.datasets.c.id)
    .join(schema.releases, schema.releases.c.dataset_id == schema.datasets.c.id)
    .where(schema.releases.c.id == bindparam("release"))
    .with_for_update(of=schema.datasets)
)
_ADD = insert(schema.releases).returning(schema.releases.c.id)


def lock(connection: Connection, dataset: str) -> int:
    """The dataset's id, with every other spender of this dataset kept waiting until the transaction ends."""
    found = connection.execute(_LOCK, {"dataset": dataset}).scalar()
    if found is None:
        raise unknown(connection, dataset)
    return int(found)


def unknown(connection: Connection, dataset: str) -> LedgerError:
    """The error for a dataset that was never registered."""
    names = connection.execute(select(schema.datasets.c.name).order_by(schema.datasets.c.name)).scalars().all()
    there = ", ".join(repr(n) for n in names[:10]) if names else "it is empty"
    return LedgerError(
        f"the ledger has no dataset {dataset!r} ({there}); check the name: a dataset is registered with its caps before its "
        "first release"
    )


def read_caps(
    connection: Connection, dataset_id: int, dataset: str, *, own: Collection[allowances.Pair] = (), lives: bool = True
) -> tuple[Caps, cohorts.Cohorts | State | None]:
    """The caps of a dataset as they stand, and its people as the database has them: cohorts, or the state of each person.

    Of allowances only those of the pairs of analyst and purpose in `own`. Ledgers of an older format have no `lives`.
    """
    menu = menus.load(connection, dataset_id) if lives else None
    now = clock.now()
    return _standing(
        connection, dataset_id, dataset, menu, allowances.load(connection, dataset_id, own, clock.day_of(now)), now
    )


def _standing(
    connection: Connection,
    dataset_id: int,
    dataset: str,
    menu: Menu | None,
    own: Iterable[Allowance],
    now: str,
) -> tuple[Caps, cohorts.Cohorts | State | None]:
    found = limits.shared(connection, dataset_id)
    for allowance in own:
        found += allowance.limits
    if menu is not None:
        everybody = states.load(connection, dataset_id).entered(clock.period_of(menu.period, now))
        return Caps(dataset, found, None if menu.private else LivePeople.of(everybody, menu), menu), everybody
    group = cohorts.load(connection, dataset_id)
    return Caps(dataset, found, None if group is None else group.people), group


def reserve(
    store: Store,
    dataset: str,
    charge: Charge,
    *,
    request: str | Mapping[str, Any],
    recipient: str | None,
    name: str | None,
    by: str | None,
    standing: Standing | int | None,
    analyst: str | None,
    purpose: str | None,
) -> Reservation:
    """See `sfumato.ledger.Ledger.reserve`."""
    asked_for = canonical(request)
    both_or_none(analyst, purpose)
    pair = None if analyst is None or purpose is None else (analyst, purpose)
    if pair is not None:
        name_of(*pair)
    for given, what in ((recipient, "a recipient"), (name, "a release"), (by, "whoever asks")):
        if given is not None:
            readable(given, what)
    with store.write() as connection:
        dataset_id = lock(connection, dataset)
        stored = committed(connection, dataset_id, asked_for, recipient)
        if stored is not None:
            return stored
        menu = menus.load(connection, dataset_id)
        if menu is not None:
            _bound(connection, dataset_id, dataset, menu, charge, standing)
        now = clock.now()  # once, under the lock: the day that is charged is that of the release
        own, stale = ([], []) if pair is None else allowances.one(connection, dataset_id, pair, clock.day_of(now))
        caps, group = _standing(connection, dataset_id, dataset, menu, own, now)
        price = caps.check(charge, recipient, analyst=analyst, purpose=purpose)
        row = {
            "dataset_id": dataset_id,
            "name": name,
            "fingerprint": fingerprint_of(asked_for),
            "request": asked_for,
            "recipient": recipient,
            "asked_by": by,
            "total": price.total,
            "state": "reserved",
            "reserved_at": now,
        }
        release_id = int(connection.execute(_ADD, row).scalar_one())
        allowances.settle(connection, dataset_id, stale)
        lines = limits.charge_limits(connection, dataset_id, release_id, price.limits)
        charged: list[log.Row] = []
        turned: list[log.Row] | None = None
        if isinstance(group, State) and price.people is not None:
            assert caps.menu is not None
            charged = charges.charge_life(connection, dataset_id, release_id, caps.menu, group, price.people)
            turned = log_leaves.standing_of(connection, dataset_id)
        elif isinstance(group, cohorts.Cohorts) and price.people is not None:
            charged = cohorts.charge_people(connection, dataset_id, release_id, group, price.people)
        log.append(connection, dataset_id, log_leaves.reserved(row | {"id": release_id}, lines, charged, turned))
    return Reservation(release_id, "reserved")


def _bound(
    connection: Connection, dataset_id: int, dataset: str, menu: Menu, charge: Charge, standing: Standing | int | None
) -> None:
    """What was lowered or withdrawn binds before this charge; one that was priced without it is refused."""
    if menu.private or charge.people is None:  # the price does not depend on who is in which cohort
        epochs.bind(connection, dataset_id, clock.now())
        return
    if standing is None:
        raise InputError(
            f"the people of {dataset!r} change: say for which standing the charge was priced, reserve(..., standing=...) "
            "with what people(...).standing() gave. Nothing was spent"
        )
    priced_for = standing if isinstance(standing, int) else standing.version
    change = states.last_turns(connection, dataset_id)[0]
    if choices.lowering(connection, dataset_id) or priced_for != (0 if change is None else int(change.number)):
        raise LedgerError(
            f"the people of {dataset!r} changed since this was priced: what is lowered or withdrawn binds at once. "
            "Nothing was spent; price it again: bind(), then standing()"
        )


def committed(connection: Connection, dataset_id: int, request: str, recipient: str | None) -> Reservation | None:
    """The committed release that answers a canonical request at no cost.

    A release to nobody in particular was charged to every recipient, so each of them may have it again.
    """
    table = schema.releases
    everybody = table.c.recipient.is_(None)
    seen_by = everybody if recipient is None else or_(everybody, table.c.recipient == recipient)
    query = select(table.c.id, table.c.artefact).where(
        table.c.dataset_id == dataset_id,
        table.c.fingerprint == fingerprint_of(request),
        table.c.state == "committed",
        seen_by,
    )
    row = connection.execute(query.order_by(table.c.id).limit(1)).one_or_none()
    return None if row is None else Reservation(int(row.id), "committed", json.loads(row.artefact), repeated=True)


def finish(store: Store, release_id: int, *, state: str, artefact: str | None) -> None:
    """Move a release from reserved to committed or failed; saying the same thing twice is fine."""
    table = schema.releases
    with store.write() as connection:
        dataset_id = connection.execute(_LOCK_OF, {"release": release_id}).scalar()  # its log grows under its lock
        end = {"state": state, "artefact": artefact, "finished_at": clock.now()}
        done = connection.execute(update(table).where(table.c.id == release_id, table.c.state == "reserved").values(end))
        if done.rowcount == 1:
            log.append(connection, int(dataset_id or 0), log_leaves.finished(end | {"id": release_id}))
            return
        query = select(table.c.state, table.c.artefact).where(table.c.id == release_id)
        row = connection.execute(query).one_or_none()
        if row is None:
            raise LedgerError(f"the ledger has no release {release_id}; commit what reserve returned")
        if (row.state, row.artefact) != (state, artefact):
            raise LedgerError(f"release {release_id} is {row.state} already and stays so; it cannot become {state}")
