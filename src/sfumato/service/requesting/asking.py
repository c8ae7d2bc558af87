"""What an analyst asks: one release for a purpose, to nobody but themselves.

Everything that public facts can refuse is refused before anything is queued, let alone charged: a kind that is not approved
beforehand, a price above what is, an allowance, a daily rate or any other cap that is too small. That is a courtesy to
whoever asks. What holds is decided again when it is charged: by the runner for the approval, by the ledger for every cap. So
two requests that each fit may both wait, and the second one is refused if the first has used what both need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, func, select

from sfumato.errors import BudgetError, InputError
from sfumato.privacy.units import nano_of
from sfumato.service.http.problems import ProblemError
from sfumato.service.jobs.queue import enqueue
from sfumato.service.planning.datasets import dataset_for
from sfumato.service.planning.previewing import workers
from sfumato.service.requesting import preapprovals
from sfumato.service.requesting.preapprovals import purpose_of
from sfumato.service.store import schema
from sfumato.service.store.database import record

if TYPE_CHECKING:
    from sfumato.service.context import Service
    from sfumato.service.http.access import Caller

MOST_WAITING: Final = 1000
"""Requests of one analyst that may wait at a time."""

_SHOWN = (
    *("name", "kind", "where", "recipient", "epsilon", "share", "mechanism", "guarantee", "expected_rmse", "errors"),
    *("independent", "assumption", "offers", "notes", "already_paid"),
)
_NO_HEADS = (
    "people's own budgets are private and their heads have not been counted; ask with `epsilon`, or ask the custodian to "
    "count them with a plan first. Nothing was spent"
)


def preview(service: Service, caller: Caller, dataset: str, purpose: str, release: Mapping[str, Any]) -> dict[str, Any]:
    """The price and expected error of a request, and every reason for which it would be refused now."""
    with service.store.read() as connection:
        found = dataset_for(service, connection, caller, dataset)
    table = _own(caller, release)
    seen = _seen(service, found, caller, purpose_of(purpose), table)
    with service.store.read() as connection:
        refused = _refusals(connection, found.id, purpose, table, seen)
    mine = _mine(seen, table)
    allowance = next((a for a in service.ledger.allowances(found.name, caller.name) if a.purpose == purpose), None)
    return {
        "price": _price(mine),
        "fits": not refused,
        "refusals": refused,
        "release": None if mine is None else {key: mine[key] for key in _SHOWN},
        "allowance": None if allowance is None else allowance.to_dict(),
    }


def ask(service: Service, caller: Caller, dataset: str, purpose: str, release: Mapping[str, Any]) -> dict[str, Any]:
    """Queue a request that may be made now; refused otherwise, and then nothing was spent."""
    with service.store.read() as connection:
        found = dataset_for(service, connection, caller, dataset)
    table = _own(caller, release)
    seen = _seen(service, found, caller, purpose_of(purpose), table)
    with service.store.write() as connection:
        refused = _refusals(connection, found.id, purpose, table, seen)
        if refused:
            raise BudgetError(refused[0])
        _check_waiting(connection, caller)
        job = enqueue(connection, dataset_id=found.id, account_id=caller.id, request=table, purpose=purpose)
        record(connection, "requests.make", account_id=caller.id, dataset_id=found.id, target=job)
    mine = _mine(seen, table)
    return {"job": job, "price": _price(mine), "already_paid": mine is not None and bool(mine["already_paid"])}


def _own(caller: Caller, release: Mapping[str, Any]) -> dict[str, Any]:
    """The table of the release, which is for the caller alone."""
    table = {key: value for key, value in release.items() if value is not None}
    if table.get("recipient", caller.name) != caller.name:
        raise InputError("a request is released to whoever makes it; leave `recipient` out")
    kind = table.get("kind")
    if not isinstance(kind, str):
        raise InputError("a request says the `kind` of its release, for example 'count'")
    return {"name": kind, **table, "recipient": caller.name}


def _seen(service: Service, dataset: Any, caller: Caller, purpose: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """The preview, by a worker that is stopped when it takes too long or too much."""
    row = {name: getattr(dataset, name) for name in ("name", "source", "schema", "people", "caps")}
    whose = {"analyst": caller.name, "purpose": purpose}
    seen: dict[str, Any] = workers().do(service.settings, "preview", row=row, given=[table], **whose)
    return seen


def _mine(seen: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any] | None:
    """The release itself; ``None`` where heads must be counted before it has a price."""
    return next((one for one in seen["releases"] if one["name"] == table["name"]), None)


def _price(mine: Mapping[str, Any] | None) -> str | None:
    return None if mine is None else "0" if mine["already_paid"] else str(mine["price"]["epsilon"])


def _refusals(
    connection: Connection, dataset_id: str, purpose: str, table: Mapping[str, Any], seen: Mapping[str, Any]
) -> list[str]:
    """Why a request may not be made now, one sentence each; none if it may."""
    mine = _mine(seen, table)
    kind = str(table["kind"] if mine is None else mine["kind"])
    nano = int(nano_of(_price(mine) or "0"))
    unapproved = preapprovals.refusal(connection, dataset_id=dataset_id, purpose=purpose, kind=kind, nano=nano)
    too_small = _NO_HEADS if mine is None else mine["refusal"]
    return [sentence for sentence in (unapproved, too_small) if sentence is not None]


def _check_waiting(connection: Connection, caller: Caller) -> None:
    jobs = schema.jobs
    query = select(func.count()).select_from(jobs).where(jobs.c.account_id == caller.id, jobs.c.state == "waiting")
    if int(connection.execute(query).scalar_one()) >= MOST_WAITING:
        raise ProblemError(429, f"{MOST_WAITING:,} of your requests wait already; ask again later", {"Retry-After": "60"})
