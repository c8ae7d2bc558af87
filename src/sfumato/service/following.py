"""A dataset's log as it is told: checkpoints and proofs to everybody whom the dataset concerns, bodies to whom they are due.

Custodians and officers read all bodies but that of an end which is not told yet. An analyst reads the entries of releases
that were told to them, or to everybody; a person reads none. The hash of an entry tells nothing about it (each body has a
salted seal in it), so all of them get the hashes: whoever keeps a checkpoint can check that the log only grows. How much it
grows tells nothing of people who are private (`sfumato.ledger.log_quiet`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from sfumato.errors import InputError
from sfumato.ledger.caps import MAX_BIGINT
from sfumato.service.http.paging import Asked, packed
from sfumato.service.http.problems import ProblemError, missing
from sfumato.service.jobs.released import due_to
from sfumato.service.jobs.slots import untold
from sfumato.service.planning.datasets import dataset_for, dataset_of
from sfumato.service.store import schema
from sfumato.service.store.database import now

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Row

    from sfumato.ledger.proofs import Entry
    from sfumato.service.context import Service
    from sfumato.service.http.access import Caller


def dataset_followed(service: Service, caller: Caller, name: str) -> Row[Any]:
    """A dataset whose log the caller may follow; any other looks like one that is not there."""
    with service.store.read() as connection:
        if caller.role != "person":
            return dataset_for(service, connection, caller, name)
        found = dataset_of(connection, name)
        table = schema.subjects
        mine = select(table.c.account_id).where(table.c.account_id == caller.id, table.c.dataset_id == found.id)
        if connection.execute(mine).first() is None:
            raise missing()
        return found


def checkpoint(service: Service, caller: Caller, dataset: str) -> dict[str, Any]:
    """The signed state of the log."""
    return service.ledger.signed_checkpoint(dataset_followed(service, caller, dataset).name)


def entries(service: Service, caller: Caller, dataset: str, asked: Asked) -> dict[str, Any]:
    """A page of the log, newest first."""
    name = dataset_followed(service, caller, dataset).name
    found = service.ledger.log_page(name, before=_number(asked), limit=asked.limit)
    shown = _shown(service, caller, name, found)
    items = [
        {
            "number": entry.index,
            "leaf": entry.leaf,
            "kind": entry.kind if entry.index in shown or caller.role in ("custodian", "officer") else None,
            "body": entry.body if entry.index in shown else None,
        }
        for entry in reversed(found)
    ]
    first = found[0].index if found else 0
    return {"items": items, "older": packed([first]) if first > 0 else None}


def _number(asked: Asked) -> int | None:
    if asked.before is None:
        return None
    if len(asked.before) != 1 or not isinstance(asked.before[0], int) or not 0 <= asked.before[0] <= MAX_BIGINT:
        raise ProblemError(422, "`before` is not a page of this list; send the `older` of the page before, or leave it out")
    return asked.before[0]


def proof(service: Service, caller: Caller, dataset: str, number: int, size: int | None) -> dict[str, Any]:
    """That an entry is in the log, of `size` entries or as it is now."""
    name = dataset_followed(service, caller, dataset).name
    try:
        found = service.ledger.inclusion(name, number, size=size)
    except InputError as error:
        raise ProblemError(404, str(error)) from None
    seen = bool(_shown(service, caller, name, [found]))
    said = found.to_dict() | {"leaf": found.leaf}
    return said if seen else said | {"body": None}


def consistency(service: Service, caller: Caller, dataset: str, old: int, new: int | None) -> dict[str, Any]:
    """That the log of `new` entries begins with that of `old`."""
    name = dataset_followed(service, caller, dataset).name
    try:
        return service.ledger.consistency(name, old, new).to_dict()
    except InputError as error:
        raise ProblemError(422, str(error)) from None


def _shown(service: Service, caller: Caller, dataset: str, found: Sequence[Entry]) -> set[int]:
    """The places of the entries whose bodies the caller may read."""
    if caller.role == "person":
        return set()
    if caller.role == "analyst":
        numbers = {entry.release for entry in found if entry.release is not None}
        table = schema.artefacts
        with service.store.read() as connection:
            query = due_to(caller).where(table.c.entry.in_(numbers), schema.datasets.c.name == dataset)
            due = {row.entry for row in connection.execute(query)} if numbers else set()
        return {entry.index for entry in found if entry.release in due}
    ends = {entry.release: entry.index for entry in found if entry.kind == "finished" and entry.release is not None}
    releases = [one for number in ends if (one := service.ledger.entry(dataset, number)) is not None]
    with service.store.read() as connection:
        hidden = untold(connection, releases, now())
    return {entry.index for entry in found} - {ends[number] for number in hidden}
