"""Allowances: granted by an officer, kept by the ledger, read by whom they concern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select

from sfumato.service.http.paging import Asked, cut
from sfumato.service.http.problems import ProblemError
from sfumato.service.planning.datasets import dataset_for, dataset_of
from sfumato.service.requesting.preapprovals import purpose_of
from sfumato.service.store import schema
from sfumato.service.store.database import record

if TYPE_CHECKING:
    from sfumato.ledger import Allowance
    from sfumato.service.context import Service
    from sfumato.service.http.access import Caller


def grant(
    service: Service, caller: Caller, dataset: str, *, analyst: str, purpose: str, epsilon: str, per_day: str | None
) -> dict[str, Any]:
    """Say what an analyst may spend for a purpose from now on; what was spent stays spent."""
    purpose_of(purpose)
    with service.store.read() as connection:
        found = dataset_of(connection, dataset)
        account_id = _analyst(connection, analyst)
    service.ledger.allow(found.name, analyst=analyst, purpose=purpose, epsilon=epsilon, per_day=per_day, by=caller.name)
    with service.store.write() as connection:
        record(connection, "allowances.grant", account_id=caller.id, dataset_id=found.id, target=account_id)
    mine = service.ledger.allowances(found.name, analyst)
    return next(_told(found.name, allowance) for allowance in mine if allowance.purpose == purpose)


def listed(service: Service, caller: Caller, dataset: str | None, asked: Asked) -> dict[str, Any]:
    """A page of allowances, the newest grant first: an analyst's own, or those of all analysts of a dataset."""
    with service.store.read() as connection:
        if dataset is not None:
            names = [str(dataset_for(service, connection, caller, dataset).name)]
        else:
            query = select(schema.datasets.c.name)
            if caller.role == "custodian":
                query = query.where(schema.datasets.c.created_by == caller.id)
            names = list(connection.execute(query).scalars())
    known = set(service.ledger.datasets())
    whose = caller.name if caller.role == "analyst" else None
    found = [(name, one) for name in names if name in known for one in service.ledger.allowances(name, whose)]
    found.sort(key=lambda pair: pair[1].number, reverse=True)
    items, older = cut(found, asked, lambda pair: pair[1].number)
    return {"items": [_told(*pair) for pair in items], "older": older}


def _analyst(connection: Connection, name: str) -> str:
    accounts = schema.accounts
    query = select(accounts.c.id).where(accounts.c.name == name, accounts.c.role == "analyst", accounts.c.state == "active")
    found = connection.execute(query).scalar()
    if found is None:
        raise ProblemError(422, "analyst is the name of an active analyst's account; there is none of this name")
    return str(found)


def _told(dataset: str, allowance: Allowance) -> dict[str, Any]:
    return {"dataset": dataset, **allowance.to_dict()}
