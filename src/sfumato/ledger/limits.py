"""Raising the single caps by what a release costs: two statements, however many recipients and attributes there are.

The lines of a release are written first, all in one round trip. One UPDATE then raises every cap by its own line, where that
fits: what a total was raised by and what the line says it was raised by are the same number in the database, not two that
a program keeps alike. It must hit as many caps as there are lines; if one is short, the caller's transaction goes back.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, exists, insert, or_, select, update

from sfumato.errors import LedgerError
from sfumato.ledger import schema
from sfumato.privacy.units import Nano

Cap = tuple[str, str]  # kind and name of a limit


def charge_limits(connection: Connection, dataset_id: int, release_id: int, asked: Iterable[tuple[Cap, Nano]]) -> None:
    """Charge each cap of a dataset what is `asked` of it, or raise and leave it to the transaction to charge none."""
    rows = [
        {"release_id": release_id, "kind": kind, "name": name, "nano": nano} for (kind, name), nano in asked if nano
    ]
    if not rows:
        return
    connection.execute(insert(schema.charges), rows)
    table, lines = schema.limits, schema.charges
    mine = (lines.c.release_id == release_id) & (lines.c.kind == table.c.kind) & (lines.c.name == table.c.name)
    fits = or_(table.c.cap.is_(None), table.c.spent + lines.c.nano <= table.c.cap)
    raised = connection.execute(
        update(table)
        .where(table.c.dataset_id == dataset_id, exists().where(mine, fits))
        .values(spent=table.c.spent + select(lines.c.nano).where(mine).scalar_subquery())
    )
    if raised.rowcount != len(rows):
        raise LedgerError("a balance changed under the dataset's lock; nothing was spent, check the ledger")
