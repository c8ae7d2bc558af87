"""Which person of which dataset an account is.

An identifier is kept sealed, under the service's key and for its dataset, and as a keyed digest that is there once per
dataset: two accounts cannot be the same person. Whether the roster knows that person is not looked at. Linking works alike
for somebody who is in it and for somebody who is not, so nobody learns from it who is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, select

from sfumato.ledger.persons import spelt
from sfumato.service.context import Service
from sfumato.service.http.problems import ProblemError, missing
from sfumato.service.store import schema
from sfumato.service.store.database import record
from sfumato.service.store.inserting import insert_new

TAKEN = (
    "this invitation is for somebody who has an account here already. If that is you, sign in to it; if it is not, tell the "
    "custodian of the dataset: somebody else uses your place"
)
ANOTHER = "this account is somebody else in that dataset already; join with an account of your own"
_subjects, _datasets, _accounts = schema.subjects, schema.datasets, schema.accounts


@dataclass(frozen=True)
class Subject:
    """One's own place in a dataset.

    Attributes
    ----------
    account_id : str
    dataset : Row
        The line of ``service_datasets``.
    person : str
        The identifier, in clear.
    """

    account_id: str
    dataset: Row[Any]
    person: str


def sealed(service: Service, dataset_id: str, person: str | int) -> str:
    """A person's identifier as an invitation or a link keeps it."""
    return service.sealer.seal(spelt(person), dataset_id)


def digest(service: Service, dataset_id: str, person: str | int) -> str:
    """What finds a person of a dataset again."""
    return service.sealer.digest(spelt(person), dataset_id)


def link(connection: Connection, service: Service, account_id: str, invitation: Row[Any]) -> None:
    """Make an account the person of an invitation, in the caller's transaction; a problem (409) if somebody else is.

    Doing it twice changes nothing. The place of an account that was disabled can be taken over.

    Parameters
    ----------
    connection : Connection
        A transaction that writes.
    service : Service
    account_id : str
        A person's account.
    invitation : row
        The line of ``service_invitations``, with `dataset_id` and the sealed `person`.
    """
    dataset_id = invitation.dataset_id
    person = service.sealer.unseal(invitation.person, dataset_id)
    who = digest(service, dataset_id, person)
    here = _subjects.c.dataset_id == dataset_id
    mine = connection.execute(select(_subjects.c.digest).where(here, _subjects.c.account_id == account_id)).scalar()
    if mine == who:
        return
    if mine is not None:
        raise ProblemError(409, ANOTHER)
    gone = select(_accounts.c.id).where(_accounts.c.state == "disabled")
    connection.execute(delete(_subjects).where(here, _subjects.c.digest == who, _subjects.c.account_id.in_(gone)))
    row = {"account_id": account_id, "dataset_id": dataset_id, "person": sealed(service, dataset_id, person), "digest": who}
    if not insert_new(connection, _subjects, **row):
        raise ProblemError(409, TAKEN)
    record(connection, "people.link", account_id=account_id, dataset_id=dataset_id)


def subject_of(connection: Connection, service: Service, account_id: str, dataset: str) -> Subject:
    """One's own place in a dataset; what one has no place in is not there (404)."""
    query = select(_datasets, _subjects.c.person.label("sealed")).join(_subjects, _subjects.c.dataset_id == _datasets.c.id)
    row = connection.execute(query.where(_subjects.c.account_id == account_id, _datasets.c.name == dataset)).one_or_none()
    if row is None:
        raise missing()
    return Subject(account_id, row, service.sealer.unseal(row.sealed, row.id))


def datasets_of(connection: Connection, account_id: str, *, limit: int, before: str | None) -> list[str]:
    """The names of the datasets that an account has a place in, from the last back; one more than `limit` if there are."""
    query = select(_datasets.c.name).join(_subjects, _subjects.c.dataset_id == _datasets.c.id)
    query = query.where(_subjects.c.account_id == account_id).order_by(_datasets.c.name.desc()).limit(limit + 1)
    return list(connection.execute(query if before is None else query.where(_datasets.c.name < before)).scalars())
