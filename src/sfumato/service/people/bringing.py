"""How a custodian brings people, invites them and closes epochs.

A list never overrules a person: whoever has chosen for themselves, by granting or by leaving, is left as they are. Of a
private roster no answer here has a number in it, and none differs by who is in the roster, who has an account or who chose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Row, delete, select

from sfumato.ledger import Menu
from sfumato.privacy.units import epsilon_text
from sfumato.service.accounts import codes
from sfumato.service.context import Service
from sfumato.service.http.problems import ProblemError, missing
from sfumato.service.people.choosing import in_turn
from sfumato.service.people.linking import digest, sealed
from sfumato.service.people.standing import life_of, life_or_none, minute_of, next_epoch, today
from sfumato.service.planning.datasets import dataset_for, dataset_of
from sfumato.service.store import database, schema
from sfumato.service.store.database import record
from sfumato.service.store.inserting import insert_new

if TYPE_CHECKING:
    from sfumato.service.http.access import Caller

_AT_ONCE: Final = 900
_DAY = 86_400
TWICE = "the same person is in this list twice (7 and '7' are the same, and so are two spellings of é); list each once"


def bring(service: Service, account_id: str, dataset: str, people: Sequence[tuple[str | int, str]]) -> dict[str, Any]:
    """Bring people with what they grant: new ones join, others change, both at the next epoch. Who is not listed stays.

    Parameters
    ----------
    service : Service
    account_id : str
        The custodian.
    dataset : str
    people : sequence of pairs
        Identifier, and a tier or an ε.

    Returns
    -------
    dict
        What the list asks for, by kind, and how many were left as they chose themselves; no numbers of a private roster.
    """
    with service.store.write() as connection:
        row = _own(connection, account_id, dataset)
        in_turn(connection, row.id, alone=True)
        marks = [digest(service, row.id, person) for person, _ in people]
        if len(set(marks)) < len(marks):
            raise ProblemError(422, TWICE)
        theirs = _chosen(connection, row.id, marks)
        free = [pair for pair, mark in zip(people, marks, strict=True) if mark not in theirs]
        life = service.ledger.people(dataset)
        _check_grants(life.menu(), [grant for _, grant in people])
        asked = life.bring([person for person, _ in free], [grant for _, grant in free]) if free else None
        record(connection, "people.bring", account_id=account_id, dataset_id=row.id)
    menu = life.menu()
    if menu is not None and menu.private:
        return {"asked": None, "left_as_they_chose": None}
    kinds = {} if asked is None else asked.to_dict()
    return {"asked": {kind: kinds.get(kind, 0) for kind in KINDS}, "left_as_they_chose": len(people) - len(free)}


def _own(connection: Connection, account_id: str, dataset: str) -> Row[Any]:
    """The dataset, of which this account is the custodian: nobody else brings its people, or makes codes to be them."""
    row = dataset_of(connection, dataset)
    if row.created_by != account_id:
        raise missing()
    return row


KINDS: Final = ("join", "raise", "lower", "move", "withdraw")


def invite(service: Service, account_id: str, dataset: str, people: Sequence[str | int], *, days: int) -> dict[str, Any]:
    """A code for each person, with which they make an account and are linked to it. Codes are shown once.

    Whether somebody is in the roster, or has an account already, makes no difference here.
    """
    ends = database.now() + days * _DAY
    with service.store.write() as connection:
        row = _own(connection, account_id, dataset)
        if len({digest(service, row.id, person) for person in people}) < len(people):
            raise ProblemError(422, TWICE)
        made = [
            codes.invite(
                connection,
                role="person",
                created_by=account_id,
                dataset_id=row.id,
                person=sealed(service, row.id, person),
                expires_at=ends,
            )
            for person in people
        ]
        record(connection, "people.invite", account_id=account_id, dataset_id=row.id)
    items = [{"person": str(person), "code": code} for person, code in zip(people, made, strict=True)]
    return {"items": items, "expires_at": minute_of(ends)}


def close_epoch(service: Service, account_id: str, dataset: str, following: str | None) -> dict[str, Any]:
    """Close an epoch: everything that waits comes into force. `following` is the day of the next one, if it is known."""
    _check_day(following)
    with service.store.read() as connection:
        row = _own(connection, account_id, dataset)
    life, menu = life_of(service, dataset)
    done = (
        life.epoch()
    )  # outside of a transaction here: with a million people it takes a while, and others sign in meanwhile
    with service.store.write() as connection:
        announced(connection, account_id, row.id, following)
        record(connection, "people.epoch", account_id=account_id, dataset_id=row.id, target=str(done.number))
    counts = None if menu.private else {name: getattr(done, name) for name in COUNTS}
    return {"number": done.number, "at": done.at, "counts": counts, "next_epoch": following}


COUNTS: Final = ("people", "cohorts", "joined", "raised", "lowered", "moved", "withdrawn")


def announce(service: Service, account_id: str, dataset: str, day: str | None) -> dict[str, Any]:
    """Say when the next epoch is to be, or take it back; people see it beside their choice."""
    with service.store.write() as connection:
        row = _own(connection, account_id, dataset)
        announced(connection, account_id, row.id, day)
        record(connection, "people.announce", account_id=account_id, dataset_id=row.id)
    return {"next_epoch": day}


def announced(connection: Connection, account_id: str, dataset_id: str, day: str | None) -> None:
    """Write down the day of the next epoch; it must not be over."""
    _check_day(day)
    table = schema.announcements
    connection.execute(delete(table).where(table.c.dataset_id == dataset_id))
    if day is not None:
        insert_new(connection, table, dataset_id=dataset_id, next_epoch=day, announced_by=account_id)


def _check_day(day: str | None) -> None:
    if day is not None and day < today():
        raise ProblemError(422, "the next epoch is a day to come (UTC), such as 2027-01-31")


def standing(service: Service, caller: Caller, dataset: str) -> dict[str, Any]:
    """Where the people of a dataset stand, by tier, and what waits; of a private roster only the menu."""
    with service.store.read() as connection:
        row = dataset_for(service, connection, caller, dataset)
        day = next_epoch(connection, row.id)
    found = life_or_none(service, dataset)
    if found is None:
        return {"roster": "fixed", "epoch": None, "next_epoch": None, "tiers": _fixed(service, dataset), "pending": None}
    life, menu = found
    if menu.private:
        now = life.standing()
        return {"roster": "private", "epoch": now.epoch, "next_epoch": day, "tiers": _menu(menu), "pending": None}
    people = service.ledger.caps(dataset).people
    tiers = [] if people is None else people.summary()
    epoch = life.standing().epoch
    return {"roster": "public", "epoch": epoch, "next_epoch": day, "tiers": tiers, "pending": life.pending().to_dict()}


def _fixed(service: Service, dataset: str) -> list[dict[str, Any]]:
    """A fixed roster by tier; of a private one only the menu."""
    people = service.ledger.caps(dataset).people
    if people is None:
        return []
    if not people.private:
        return people.summary()
    names = people.names or (None,) * len(people.levels)
    return [_bare(name, int(level)) for name, level in zip(names, people.levels.tolist(), strict=True)]


def _menu(menu: Menu) -> list[dict[str, Any]]:
    return [_bare(menu.called(number), int(level)) for number, level in enumerate(menu.levels.tolist())]


def _bare(name: str | None, level: int) -> dict[str, Any]:
    text = epsilon_text(level)
    return {"name": name, "people": None, "levels": 1, "budget": [text, text], "spent": None, "left": None}


def _chosen(connection: Connection, dataset_id: str, marks: Sequence[str]) -> set[str]:
    """Which of these people have chosen for themselves."""
    table, found = schema.subjects, set[str]()
    for start in range(0, len(marks), _AT_ONCE):
        query = select(table.c.digest).where(table.c.dataset_id == dataset_id, table.c.chosen_at.is_not(None))
        found.update(connection.execute(query.where(table.c.digest.in_(marks[start : start + _AT_ONCE]))).scalars())
    return found


def _check_grants(menu: Menu | None, grants: Sequence[str]) -> None:
    """Refuse a grant that is none, for everybody in the list alike: also for those whom it would not change."""
    from sfumato.ledger.menus import granted

    if menu is not None:
        granted(menu, list(grants), len(grants))
