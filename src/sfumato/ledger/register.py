"""Registering a dataset: its caps are written once and hold until a new period."""

from __future__ import annotations

from sqlalchemy import insert, select

from sfumato.errors import LedgerError
from sfumato.ledger import clock, cohorts, log, log_leaves, menus, persons, schema
from sfumato.ledger.caps import Caps
from sfumato.ledger.database import Store
from sfumato.ledger.reserve import read_caps


def register(store: Store, caps: Caps) -> None:
    """Write down caps of which nothing is spent; see `sfumato.ledger.Ledger.register`."""
    with store.write() as connection:
        store.alone(connection)
        table = schema.datasets
        # Locked as spenders lock it: its caps are read in several steps, between which nobody may charge.
        known = connection.execute(select(table.c.id).where(table.c.name == caps.dataset).with_for_update()).scalar()
        if known is not None:
            check_same(read_caps(connection, int(known), caps.dataset)[0], caps)
            return
        added = insert(table).values(name=caps.dataset, created_at=clock.now()).returning(table.c.id)
        dataset_id = int(connection.execute(added).scalar_one())
        rows = [
            {"dataset_id": dataset_id, "kind": limit.kind, "name": limit.name, "cap": limit.cap, "spent": 0}
            for limit in caps.limits
        ]
        connection.execute(insert(schema.limits), rows)
        if caps.menu is not None:
            menus.enrol(connection, dataset_id, caps.menu)
            if caps.menu.private:  # now, and not when the first person comes
                persons.key_of(connection, store.key, make=True, dataset_id=dataset_id)
        elif caps.people is not None:
            cohorts.enrol(connection, dataset_id, caps.people)
        log.append(connection, dataset_id, log_leaves.registered(connection, dataset_id), dataset=caps.dataset)


def check_same(registered: Caps, asked: Caps) -> None:
    """Refuse other numbers than those that were registered."""
    different = registered.differing(asked)
    if different:
        dataset = asked.dataset
        raise LedgerError(
            f"{dataset!r} is registered with other numbers ({', '.join(different)} differ); what people agreed to "
            "does not change while it is being spent. Use the registered numbers, or open a new ledger period: "
            f"a new ledger file, or a new name such as '{dataset}-2'"
        )
