"""What a person lets their own device tell: each version is kept, the newest counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, Row, insert, select

from sfumato.attributes import DevicePolicy
from sfumato.service.context import Service
from sfumato.service.http.problems import ProblemError, missing
from sfumato.service.people.linking import Subject, subject_of
from sfumato.service.people.standing import minute_of
from sfumato.service.store import database, schema
from sfumato.service.store.database import record

MOST_VERSIONS: Final = 1_000
_table = schema.policies


def keep(service: Service, account_id: str, dataset: str, policy: DevicePolicy) -> dict[str, Any]:
    """Keep a policy as the newest version; the same as the newest again is that one.

    Parameters
    ----------
    service : Service
    account_id : str
        Whose device it is.
    dataset : str
        A dataset that they have a place in.
    policy : DevicePolicy
        About attributes and recipients of that dataset, where it declares them.

    Returns
    -------
    dict
        The version.
    """
    with service.store.write() as connection:
        subject = subject_of(connection, service, account_id, dataset)
        check(policy, json.loads(subject.dataset.caps))
        # Of two at once one waits here; each version has a number of its own.
        places = schema.subjects
        mine = (places.c.account_id == account_id) & (places.c.dataset_id == subject.dataset.id)
        connection.execute(select(places.c.account_id).where(mine).with_for_update())
        newest, text = _newest(connection, subject), policy.to_json()
        if newest is not None and newest.policy == text:
            return shown(newest)
        number = 1 if newest is None else newest.number + 1
        if number > MOST_VERSIONS:
            raise ProblemError(409, f"{MOST_VERSIONS} versions of your policy are kept, and no more; ask the administrator")
        row = {"account_id": account_id, "dataset_id": subject.dataset.id, "number": number, "policy": text}
        connection.execute(insert(_table).values(row | {"created_at": database.now()}))
        record(connection, "me.policy", account_id=account_id, dataset_id=subject.dataset.id, target=str(number))
        kept = _newest(connection, subject)
        assert kept is not None
        return shown(kept)


def kept(service: Service, account_id: str, dataset: str, version: int | None = None) -> dict[str, Any]:
    """A version of one's policy, the newest if none is said; 404 if there is none."""
    with service.store.read() as connection:
        subject = subject_of(connection, service, account_id, dataset)
        row = _newest(connection, subject, version)
    if row is None:
        raise missing()
    return shown(row)


def versions(subject: Subject) -> Any:
    """The query of all versions of somebody's policy."""
    return select(_table).where(_table.c.account_id == subject.account_id, _table.c.dataset_id == subject.dataset.id)


def shown(row: Row[Any]) -> dict[str, Any]:
    """A version as it is told: times to the minute, and the policy as `DevicePolicy.from_dict` reads it."""
    return {"version": row.number, "at": minute_of(row.created_at), "policy": json.loads(row.policy)}


def check(policy: DevicePolicy, caps: Mapping[str, Any]) -> None:
    """Refuse attributes and recipients that the dataset does not have, where it says which it has."""
    for what, named in (("attributes", policy.attributes), ("recipients", policy.recipients)):
        declared = caps.get(what)
        if not declared:
            continue
        others = sorted(set(named) - set(declared))
        if others:
            known = ", ".join(sorted(declared))
            raise ProblemError(422, f"this dataset has no {what[:-1]} {others[0]!r}; its {what} are {known}")


def _newest(connection: Connection, subject: Subject, version: int | None = None) -> Row[Any] | None:
    query = versions(subject).order_by(_table.c.number.desc()).limit(1)
    if version is not None:
        query = query.where(_table.c.number == version)
    found: Row[Any] | None = connection.execute(query).one_or_none()
    return found
