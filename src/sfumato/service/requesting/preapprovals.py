"""Kinds of release that an officer has approved beforehand: for a dataset and a purpose, up to a price each, until a date.

Whether a request is covered is decided here, from the database alone: when it is made, again in the transaction that queues
it, and by the runner before it charges. What was revoked or has ended covers nothing from that moment on, whatever waits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Row, Select, insert, or_, select, update

from sfumato.errors import BudgetError, InputError
from sfumato.ledger.requests import readable
from sfumato.privacy.units import epsilon_text, positive_nano
from sfumato.releases.kinds import all_kinds
from sfumato.service.fresh import fresh_id
from sfumato.service.http.paging import Asked, page
from sfumato.service.http.problems import missing
from sfumato.service.planning.datasets import dataset_for, dataset_of
from sfumato.service.store import schema
from sfumato.service.store.database import now, record

if TYPE_CHECKING:
    from sfumato.service.context import Service
    from sfumato.service.http.access import Caller

LONGEST_PURPOSE: Final = 120
_table = schema.preapprovals


@dataclass(frozen=True)
class Given:
    """What an officer approves beforehand.

    Attributes
    ----------
    purpose : str
        What requests are for.
    kinds : sequence of str
        The kinds of release.
    most : str
        The highest price of one request, in ε.
    ends_at : int or None
        When it ends; ``None`` is when it is revoked.
    """

    purpose: str
    kinds: Sequence[str]
    most: str
    ends_at: int | None = None


def purpose_of(text: str) -> str:
    """A purpose as people read it; refused if two that look the same could differ in blanks."""
    if text != text.strip() or len(text) > LONGEST_PURPOSE:
        raise InputError(f"a purpose is a text of at most {LONGEST_PURPOSE} letters without blanks around it")
    return readable(text, "a purpose")


def give(service: Service, caller: Caller, dataset: str, given: Given) -> dict[str, Any]:
    """Approve kinds of request beforehand."""
    purpose = purpose_of(given.purpose)
    kinds = sorted(set(given.kinds))
    strange = [kind for kind in kinds if kind not in all_kinds()]
    if strange or not kinds:
        raise InputError(f"kinds names the kinds of release that are approved; there are {', '.join(sorted(all_kinds()))}")
    if given.ends_at is not None and given.ends_at <= now():
        raise InputError("ends_at lies in the past; give a moment to come, in seconds since 1970, or leave it out")
    with service.store.read() as connection:
        dataset_row = dataset_of(connection, dataset)
    row = {
        "id": fresh_id("preapproval"),
        "dataset_id": dataset_row.id,
        "purpose": purpose,
        "kinds": json.dumps(kinds),
        "most": int(positive_nano(given.most, "the highest price")),
        "officer_id": caller.id,
        "created_at": now(),
        "ends_at": given.ends_at,
    }
    _note(service, dataset_row.name, "preapproval", row, caller)
    with service.store.write() as connection:
        connection.execute(insert(_table).values(row))
        record(connection, "preapprovals.give", account_id=caller.id, dataset_id=dataset_row.id, target=row["id"])
        return _told(_one(connection, str(row["id"])))


def revoke(service: Service, caller: Caller, preapproval_id: str) -> dict[str, Any]:
    """End what an officer approved beforehand, whichever officer it was; again changes nothing."""
    with service.store.read() as connection:
        found = _one(connection, preapproval_id)
    if found.revoked_at is not None:
        return _told(found)
    _note(service, found.dataset, "preapproval revoked", found._asdict(), caller)
    with service.store.write() as connection:
        in_force = (_table.c.id == preapproval_id) & _table.c.revoked_at.is_(None)
        if connection.execute(update(_table).where(in_force).values(revoked_at=now())).rowcount:
            record(connection, "preapprovals.revoke", account_id=caller.id, dataset_id=found.dataset_id, target=found.id)
        return _told(_one(connection, preapproval_id))


def one(service: Service, caller: Caller, preapproval_id: str) -> dict[str, Any]:
    """What was approved beforehand under this number, for a dataset that is the caller's business."""
    with service.store.read() as connection:
        found = _one(connection, preapproval_id)
        dataset_for(service, connection, caller, found.dataset)
        return _told(found)


def listed(service: Service, caller: Caller, dataset: str, asked: Asked) -> dict[str, Any]:
    """A page of what was approved beforehand for a dataset, newest first."""
    with service.store.read() as connection:
        query = _all().where(_table.c.dataset_id == dataset_for(service, connection, caller, dataset).id)
        rows, older = page(connection, query, asked, _table.c.created_at, _table.c.id)
        return {"items": [_told(row) for row in rows], "older": older}


def highest(connection: Connection, *, dataset_id: str, purpose: str, kind: str) -> int | None:
    """The highest price, in nano-ε, at which a request is approved beforehand now; ``None`` if it is not at any."""
    accounts, at = schema.accounts, now()
    query = (
        select(_table.c.kinds, _table.c.most)
        .join(accounts, accounts.c.id == _table.c.officer_id)
        .where(_table.c.dataset_id == dataset_id, _table.c.purpose == purpose, accounts.c.role == "officer")
        .where(_table.c.revoked_at.is_(None), or_(_table.c.ends_at.is_(None), _table.c.ends_at > at))
    )
    return max((int(row.most) for row in connection.execute(query) if kind in json.loads(row.kinds)), default=None)


def refusal(connection: Connection, *, dataset_id: str, purpose: str, kind: str, nano: int) -> str | None:
    """The sentence with which a request at a price is refused; ``None`` if it is approved beforehand."""
    most = highest(connection, dataset_id=dataset_id, purpose=purpose, kind=kind)
    if most is None:
        return (
            f"no officer has approved requests of kind {kind!r} for the purpose {purpose!r} beforehand; ask for a kind that "
            "is approved, or ask an officer. Nothing was spent"
        )
    if nano > most:
        return (
            f"asked ε {epsilon_text(nano)}, approved beforehand for kind {kind!r} and purpose {purpose!r} is at most "
            f"{epsilon_text(most)}; lower its epsilon or share, or ask an officer. Nothing was spent"
        )
    return None


def check(connection: Connection, *, dataset_id: str, purpose: str, kind: str, nano: int) -> None:
    """Raise where a request at a price is not approved beforehand: for the runner, before it charges."""
    refused = refusal(connection, dataset_id=dataset_id, purpose=purpose, kind=kind, nano=nano)
    if refused is not None:
        raise BudgetError(refused)


def _note(service: Service, dataset: str, kind: str, row: Mapping[str, Any], caller: Caller) -> None:
    """Into the ledger's log first: nothing is in force, or ends, that cannot be proved later."""
    about = {
        "id": row["id"],
        "purpose": row["purpose"],
        "kinds": json.loads(row["kinds"]),
        "most": epsilon_text(row["most"]),
    }
    service.ledger.note(dataset, kind, {**about, "ends_at": row["ends_at"], "officer": caller.id})


def _all() -> Select[Any]:
    accounts, datasets = schema.accounts, schema.datasets
    query = select(_table, accounts.c.name.label("officer"), datasets.c.name.label("dataset"))
    return query.join(accounts, accounts.c.id == _table.c.officer_id).join(datasets, datasets.c.id == _table.c.dataset_id)


def _one(connection: Connection, preapproval_id: str) -> Row[Any]:
    found = connection.execute(_all().where(_table.c.id == preapproval_id)).one_or_none()
    if found is None:
        raise missing()
    return found


def _told(row: Row[Any]) -> dict[str, Any]:
    ended = row.ends_at is not None and row.ends_at <= now()
    return {
        "id": row.id,
        "dataset": row.dataset,
        "purpose": row.purpose,
        "kinds": json.loads(row.kinds),
        "most": epsilon_text(row.most),
        "officer": row.officer,
        "created_at": row.created_at,
        "ends_at": row.ends_at,
        "revoked_at": row.revoked_at,
        "in_force": row.revoked_at is None and not ended,
    }
