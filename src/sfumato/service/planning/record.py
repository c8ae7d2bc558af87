"""The record of a dataset for a data-protection impact assessment: what was planned, decided, released and allowed, and why.

All of it is public input, what was foreseen from public facts, and what the ledger charged. No released figure is in it, and
no private value. What came of a release is told from its slot on, as everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, select

from sfumato.service.jobs.slots import account_of, untold
from sfumato.service.planning.assembling import schema_given
from sfumato.service.planning.decisions import decision_of
from sfumato.service.planning.plans import SHOWN
from sfumato.service.store import schema
from sfumato.service.store.database import now

if TYPE_CHECKING:
    from sfumato.service.context import Service

VERSION = 1


def record_of(service: Service, dataset: Row[Any]) -> dict[str, Any]:
    """The record, ready for JSON."""
    name = dataset.name
    balance = service.ledger.balance(name, releases=1).to_dict()
    entries = list(service.ledger.releases(name))
    checkpoint = service.ledger.checkpoint(name)
    allowances = [allowance.to_dict() for allowance in service.ledger.allowances(name)]
    with service.store.read() as connection:
        plans = [_plan(connection, plan) for plan in _plans(connection, dataset.id)]
        preapproved = _preapproved(connection, dataset.id)
        hidden = untold(connection, entries, now())
        registered_by = connection.execute(
            select(schema.accounts.c.name).where(schema.accounts.c.id == dataset.created_by)
        ).scalar_one()
    known = schema_given(dataset.schema)
    purposes = {a["purpose"] for a in allowances} | {p["purpose"] for p in preapproved}
    return {
        "record_version": VERSION,
        "made_at": now(),
        "dataset": {
            "name": name,
            "source": dataset.source,
            "registered_at": dataset.created_at,
            "registered_by": registered_by,
            "schema_sha256": known.digest,
            "columns": {column: known.note(column).sentence(column, known[column].told()) for column in known.names},
            "unit": {"person": known.unit.person, "rows_per_person": known.unit.rows_per_person},
        },
        "purposes": sorted(purposes),
        "people": None if dataset.people is None else json.loads(dataset.people),
        "caps": json.loads(dataset.caps),
        "spent": {key: balance[key] for key in ("total", "together", "attributes", "recipients", "people")},
        "plans": plans,
        "allowances": allowances,
        "preapproved": preapproved,
        "entries": [_entry(entry, told=entry.id not in hidden) for entry in entries],
        # A root is a hash of every end, also of one that is not told yet.
        "checkpoint": None if hidden else {"size": checkpoint.size, "root": checkpoint.root},
    }


def _plans(connection: Connection, dataset_id: str) -> Iterable[Row[Any]]:
    plans = schema.plans
    submitted = SHOWN.where(plans.c.dataset_id == dataset_id, plans.c.submitted_at.is_not(None))
    return connection.execute(submitted.order_by(plans.c.submitted_at, plans.c.id)).all()


def _plan(connection: Connection, plan: Row[Any]) -> dict[str, Any]:
    seen = json.loads(plan.preview or "{}")
    decided = decision_of(connection, plan.id)
    kept = ("name", "kind", "where", "recipient", "mechanism", "price", "guarantee", "assumption", "errors")
    return {
        "id": plan.id,
        "name": plan.name,
        "author": plan.author,
        "state": plan.state,
        "submitted_at": plan.submitted_at,
        "digest": plan.digest,
        "price": seen.get("price"),
        "guarantee": seen.get("guarantee"),
        "releases": [{key: release.get(key) for key in kept} for release in seen.get("releases", [])],
        "asked": json.loads(plan.releases),
        "decision": None
        if decided is None
        else {
            "decision": decided.decision,
            "officer": decided.officer,
            "reason": decided.reason,
            "decided_at": decided.decided_at,
        },
    }


def _preapproved(connection: Connection, dataset_id: str) -> list[dict[str, Any]]:
    from sfumato.privacy.units import epsilon_text

    table, accounts = schema.preapprovals, schema.accounts
    query = select(table, accounts.c.name.label("officer")).join(accounts, accounts.c.id == table.c.officer_id)
    rows = connection.execute(query.where(table.c.dataset_id == dataset_id).order_by(table.c.created_at, table.c.id))
    return [
        {
            "purpose": row.purpose,
            "kinds": json.loads(row.kinds),
            "most": epsilon_text(int(row.most)),
            "officer": row.officer,
            "created_at": row.created_at,
            "ends_at": row.ends_at,
            "revoked_at": row.revoked_at,
        }
        for row in rows
    ]


def _entry(entry: Any, *, told: bool) -> dict[str, Any]:
    plain = {key: value for key, value in entry_dict(entry).items() if key not in ("artefact", "request")}
    plain["by"] = account_of(entry.by)
    return plain if told else plain | {"state": "reserved", "finished_at": None}


def entry_dict(entry: Any) -> dict[str, Any]:
    """An entry of the ledger without what was released: that is not read."""
    from dataclasses import replace

    found: dict[str, Any] = replace(entry, stored=None, fetch=None).to_dict()
    return found
