"""Reserve, commit, fail: each one transaction.

`reserve` takes the dataset's lock first and looks at the balances afterwards, so no two requests can both see the
same last bit of budget. Each cap is then raised by an UPDATE that carries its own condition and must hit one row;
the table's CHECK and triggers say the same once more. When the transaction returns the charge is on disk: whatever
happens next, a crash included, it stays spent. There is no way back from *reserved* but to *committed* or *failed*.
"""

from __future__ import annotations

import getpass
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, insert, or_, select, update

from sfumato.errors import BudgetError, InputError, LedgerError
from sfumato.ledger import cohorts, schema
from sfumato.ledger.database import Store
from sfumato.ledger.records import Limit, Reservation, canonical
from sfumato.privacy.charge import Charge
from sfumato.privacy.units import epsilon_text

MAX_BIGINT = 2**63 - 1


def now() -> str:
    """The time in UTC, as text that sorts."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def lock(connection: Connection, dataset: str) -> int:
    """The dataset's id, with every other spender of this dataset kept waiting until the transaction ends."""
    table = schema.datasets
    found = connection.execute(select(table.c.id).where(table.c.name == dataset).with_for_update()).scalar()
    if found is None:
        raise unknown(connection, dataset)
    return int(found)


def unknown(connection: Connection, dataset: str) -> LedgerError:
    """The error for a dataset that was never registered."""
    names = connection.execute(select(schema.datasets.c.name).order_by(schema.datasets.c.name)).scalars().all()
    there = ", ".join(repr(n) for n in names[:10]) if names else "it is empty"
    return LedgerError(f"the ledger has no dataset {dataset!r} ({there}); register it with its caps first")


def read_limits(connection: Connection, dataset_id: int) -> list[Limit]:
    """All single caps of a dataset, in a fixed order."""
    table = schema.limits
    query = select(table.c.kind, table.c.name, table.c.cap, table.c.spent).where(table.c.dataset_id == dataset_id)
    return [Limit(*row) for row in connection.execute(query.order_by(table.c.kind, table.c.name))]


def reserve(
    store: Store,
    dataset: str,
    charge: Charge,
    *,
    request: str | Mapping[str, Any],
    recipient: str | None,
    by: str | None,
) -> Reservation:
    """See `sfumato.ledger.Ledger.reserve`."""
    asked_for = canonical(request)
    fingerprint = hashlib.sha256(asked_for.encode()).hexdigest()
    with store.write() as connection:
        dataset_id = lock(connection, dataset)
        stored = _committed(connection, dataset_id, fingerprint, recipient)
        if stored is not None:
            return stored
        limits = read_limits(connection, dataset_id)
        asks = asked_of_limits(limits, charge, recipient=recipient, dataset=dataset)
        group = cohorts.load(connection, dataset_id)
        asked = None
        if group is not None:
            asked = cohorts.asked_of_people(group.people, total=charge.total, charge=charge.people)
        refused = [*_over(dataset, asks)]
        if group is not None and asked is not None and (short := cohorts.over(group.people, asked)):
            refused.append((short[0], short[1], f"{short[2]} in '{dataset}'"))
        if refused:
            raise _refusal(refused)

        row = {
            "dataset_id": dataset_id,
            "fingerprint": fingerprint,
            "request": asked_for,
            "recipient": recipient,
            "asked_by": by or _user(),
            "total": int(charge.total),
            "state": "reserved",
            "reserved_at": now(),
        }
        added = insert(schema.releases).values(row).returning(schema.releases.c.id)
        release_id = int(connection.execute(added).scalar_one())
        _charge_limits(connection, dataset_id, release_id, asks)
        if group is not None and asked is not None:
            cohorts.charge_people(connection, dataset_id, release_id, group, asked)
    return Reservation(release_id, "reserved")


def _committed(connection: Connection, dataset_id: int, fingerprint: str, recipient: str | None) -> Reservation | None:
    # A release to nobody in particular was charged to every recipient, so each of them may have it again.
    table = schema.releases
    everybody = table.c.recipient.is_(None)
    seen_by = everybody if recipient is None else or_(everybody, table.c.recipient == recipient)
    query = select(table.c.id, table.c.artefact).where(
        table.c.dataset_id == dataset_id,
        table.c.fingerprint == fingerprint,
        table.c.state == "committed",
        seen_by,
    )
    row = connection.execute(query.order_by(table.c.id).limit(1)).one_or_none()
    return None if row is None else Reservation(int(row.id), "committed", json.loads(row.artefact), repeated=True)


def asked_of_limits(
    limits: Sequence[Limit], charge: Charge, *, recipient: str | None, dataset: str
) -> list[tuple[Limit, int]]:
    """What a charge asks of each single cap.

    A charge that names no attribute may concern all of them, and a release to nobody in particular is seen by every
    recipient: both then pay the total.
    """
    for kind, named in (("attribute", set(charge.attributes)), ("recipient", {recipient} - {None})):
        known = {limit.name for limit in limits if limit.kind == kind}
        if known and named - known:
            strange = sorted(str(name) for name in named - known)[0]
            raise InputError(
                f"{kind} {strange!r} has no budget in '{dataset}'; it has {', '.join(sorted(known))}. "
                f"Name one of those, or give {strange!r} a budget in a new ledger period"
            )
    asks = []
    for limit in limits:
        nano = int(charge.total)
        if limit.kind == "attribute" and charge.attributes:
            nano = int(charge.attributes.get(limit.name, 0))
        elif limit.kind == "recipient" and recipient not in (None, limit.name):
            nano = 0
        asks.append((limit, nano))
    return asks


def _over(dataset: str, asks: Sequence[tuple[Limit, int]]) -> Iterator[tuple[int, int, str]]:
    for limit, nano in asks:
        cap = MAX_BIGINT if limit.cap is None else limit.cap
        if nano > cap - limit.spent:
            whose = {
                "total": f"'{dataset}'",
                "together": f"all recipients of '{dataset}' together",
            }.get(limit.kind, f"{limit.kind} '{limit.name}' of '{dataset}'")
            yield nano, cap - limit.spent, f"of {epsilon_text(cap)} left for {whose}"


def _refusal(refused: Sequence[tuple[int, int, str]]) -> BudgetError:
    # The tightest cap is the one that would let the smallest share of its charge through.
    asked, left, whose = min(refused, key=lambda r: Fraction(r[1], r[0]))
    more = f" ({len(refused) - 1} more caps would be passed)" if len(refused) > 1 else ""
    return BudgetError(
        f"asked ε {epsilon_text(asked)}, {epsilon_text(left)} {whose}{more}; "
        "lower the plan's epsilon or open a new ledger period. Nothing was spent"
    )


def _charge_limits(connection: Connection, dataset_id: int, release_id: int, asks: Sequence[tuple[Limit, int]]) -> None:
    table = schema.limits
    rows = []
    for limit, nano in asks:
        if not nano:
            continue
        done = connection.execute(
            update(table)
            .where(table.c.dataset_id == dataset_id, table.c.kind == limit.kind, table.c.name == limit.name)
            .where(or_(table.c.cap.is_(None), table.c.spent + nano <= table.c.cap))
            .values(spent=table.c.spent + nano)
        )
        if done.rowcount != 1:
            raise LedgerError("a balance changed under the dataset's lock; nothing was spent, check the ledger")
        rows.append({"release_id": release_id, "kind": limit.kind, "name": limit.name, "nano": nano})
    if rows:
        connection.execute(insert(schema.charges), rows)


def finish(store: Store, release_id: int, *, state: str, artefact: str | None, reason: str | None) -> None:
    """Move a release from reserved to committed or failed; saying the same thing twice is fine."""
    table = schema.releases
    with store.write() as connection:
        done = connection.execute(
            update(table)
            .where(table.c.id == release_id, table.c.state == "reserved")
            .values(state=state, artefact=artefact, reason=reason, finished_at=now())
        )
        if done.rowcount == 1:
            return
        row = connection.execute(select(table).where(table.c.id == release_id)).one_or_none()
        if row is None:
            raise LedgerError(f"the ledger has no release {release_id}; commit what reserve returned")
        if (row.state, row.artefact, row.reason) != (state, artefact, reason):
            raise LedgerError(f"release {release_id} is {row.state} already and stays so; it cannot become {state}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container may run under a number without a name
        return "unknown"
