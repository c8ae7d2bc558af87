"""Granting an allowance: one transaction, one more line."""

from __future__ import annotations

from sqlalchemy import insert

from sfumato.ledger import clock, log, log_leaves, schema
from sfumato.ledger.allowance import name_of
from sfumato.ledger.allowances import load, settle
from sfumato.ledger.database import Store
from sfumato.ledger.requests import readable
from sfumato.ledger.reserve import lock
from sfumato.privacy.units import Epsilon, nano_down


def allow(
    store: Store, dataset: str, *, analyst: str, purpose: str, epsilon: Epsilon, per_day: Epsilon | None, by: str | None
) -> None:
    """See `sfumato.ledger.Ledger.allow`."""
    name = name_of(analyst, purpose)
    cap = nano_down(epsilon, "an allowance")
    daily = None if per_day is None else nano_down(per_day, "a daily rate")
    if by is not None:
        readable(by, "whoever grants")
    with store.write() as connection:
        dataset_id, now = lock(connection, dataset), clock.now()
        row = {"dataset_id": dataset_id, "name": name, "analyst": analyst, "purpose": purpose, "cap": cap}
        row |= {"per_day": daily, "granted_at": now, "granted_by": by}
        added = insert(schema.allowances).values(row).returning(schema.allowances.c.id)
        row["id"] = int(connection.execute(added).scalar_one())
        log.append(connection, dataset_id, log_leaves.allowance(row))
        granted = load(connection, dataset_id, [(analyst, purpose)], clock.day_of(now))[0]
        settle(connection, dataset_id, granted.limits)
