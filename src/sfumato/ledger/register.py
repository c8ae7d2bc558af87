"""Registering a dataset: its caps are written once and hold until a new period."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, insert, select

from sfumato.errors import InputError, LedgerError
from sfumato.ledger import cohorts, schema
from sfumato.ledger.database import Store
from sfumato.ledger.reserve import now, read_limits
from sfumato.privacy.budgets import AttributeBudgets, PersonBudgets, RecipientBudgets
from sfumato.privacy.units import Epsilon, positive_nano


def register(
    store: Store,
    dataset: str,
    *,
    epsilon: Epsilon | None,
    people: PersonBudgets | None,
    attributes: AttributeBudgets | None,
    recipients: RecipientBudgets | None,
) -> None:
    """See `sfumato.ledger.Ledger.register`."""
    if not dataset.strip() or not dataset.isprintable():
        raise InputError(f"a dataset needs a name of printable characters, for example 'clinic'; got {dataset!r}")
    total = None if epsilon is None else positive_nano(epsilon)
    caps = list(_caps(total, attributes, recipients))
    with store.write() as connection:
        store.alone(connection)
        table = schema.datasets
        known = connection.execute(select(table.c.id).where(table.c.name == dataset)).scalar()
        if known is not None:
            _check_same(connection, int(known), dataset, caps, people)
            return
        added = insert(table).values(name=dataset, created_at=now()).returning(table.c.id)
        dataset_id = int(connection.execute(added).scalar_one())
        rows = [{"dataset_id": dataset_id, "kind": k, "name": n, "cap": c, "spent": 0} for k, n, c in caps]
        connection.execute(insert(schema.limits), rows)
        if people is not None:
            cohorts.enrol(connection, dataset_id, people)


def _caps(
    total: int | None, attributes: AttributeBudgets | None, recipients: RecipientBudgets | None
) -> Iterator[tuple[str, str, int | None]]:
    yield "total", "", total
    for name, nano in attributes.nano.items() if attributes else ():
        yield "attribute", name, int(nano)
    if recipients:
        for name, nano in recipients.nano.items():
            yield "recipient", name, int(nano)
        if recipients.together is not None:
            yield "together", "", int(recipients.together)


def _check_same(
    connection: Connection,
    dataset_id: int,
    dataset: str,
    caps: list[tuple[str, str, int | None]],
    people: PersonBudgets | None,
) -> None:
    there = {(limit.kind, limit.name, limit.cap) for limit in read_limits(connection, dataset_id)}
    different = sorted({kind for kind, _, _ in there.symmetric_difference(caps)})
    if not _same_people(cohorts.load(connection, dataset_id), people):
        different.append("people")
    if different:
        raise LedgerError(
            f"{dataset!r} is registered with other numbers ({', '.join(different)} differ); what people agreed to "
            "does not change while it is being spent. Use the registered numbers, or open a new ledger period: "
            f"a new ledger file, or a new name such as '{dataset}-2'"
        )


def _same_people(group: cohorts.Cohorts | None, roster: Any) -> bool:
    if group is None or roster is None:
        return group is None and roster is None
    there = group.people
    return (
        cohorts.pack(there.levels) == cohorts.pack(roster.levels)
        and cohorts.pack(there.counts) == cohorts.pack(roster.counts)
        and there.names == roster.names
    )
