"""People for the tests of the service: a dataset with a living roster, accounts linked to its people, charges on them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from sqlalchemy import insert

from sfumato.ledger import Line
from sfumato.privacy.budgets import AttributeBudgets, PersonBudgets, RecipientBudgets
from sfumato.privacy.charge import Charge
from sfumato.service.context import Service
from sfumato.service.fresh import fresh_id
from sfumato.service.people.linking import link, sealed
from sfumato.service.store import schema
from sfumato.service.store.database import now

TIERS = {"strict": ("0.01", 0), "standard": ("0.2", 0), "open": (1, 0)}


def make_dataset(service: Service, custodian: Any, name: str = "clinic", *, living: bool = True, **given: Any) -> str:
    """A dataset in the service and in the ledger, without a table behind it; returns its id."""
    people = PersonBudgets.from_tiers(given.pop("tiers", TIERS))
    caps = {"attributes": {"age": "1", "stay": "1"}, "recipients": {"adnet": "1", "ministry": "1"}}
    caps = given.pop("caps", caps)
    ledger_caps: dict[str, Any] = {}
    if "attributes" in caps:
        ledger_caps["attributes"] = AttributeBudgets.of(caps["attributes"])
    if "recipients" in caps:
        ledger_caps["recipients"] = RecipientBudgets.of(caps["recipients"])
    service.ledger.register(name, people=people, living=living, **ledger_caps, **given)
    dataset_id = fresh_id("dataset")
    row = {"id": dataset_id, "name": name, "source": f"table of {name}", "schema": "", "caps": json.dumps(caps)}
    with service.store.write() as connection:
        connection.execute(insert(schema.datasets).values(**row, created_by=custodian.id, created_at=now()))
    return dataset_id


def linked(service: Service, caller: Any, dataset_id: str, person: str | int) -> None:
    """Make an account a person, as joining with an invitation does."""
    invitation = SimpleNamespace(dataset_id=dataset_id, person=sealed(service, dataset_id, person))
    with service.store.write() as connection:
        link(connection, service, caller.id, invitation)  # type: ignore[arg-type]


def spend(service: Service, dataset: str = "clinic", *, share: int = 10, request: Any = None, **about: Any) -> int:
    """Charge everybody of a public roster a part of what they have left, and commit it; returns the ledger's number."""
    life = service.ledger.people(dataset)
    life.bind()
    standing = life.standing()
    amounts = [int(left) // share for left in standing.left.tolist()]
    asked = request or {"kind": "count", "where": "age >= 65", "turn": standing.version, "left": amounts}
    made = service.ledger.reserve(dataset, Charge.of_people(amounts), request=asked, standing=standing, **about)
    service.ledger.commit(made.id, {"folder": f"release-{made.id}"})
    return made.id


def lines_of(service: Service, person: str, dataset: str = "clinic") -> tuple[Line, ...]:
    """The lines of somebody's receipt in the ledger."""
    return service.ledger.people(dataset).receipt(person).lines
