"""Where one person stands: what they grant, what waits, what was spent and is left, and what there is to choose from."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from sqlalchemy import Connection, select

from sfumato.ledger import Life, Menu, Receipt
from sfumato.ledger.clock import written
from sfumato.ledger.state import FAR
from sfumato.privacy.units import epsilon_text
from sfumato.service.context import Service
from sfumato.service.http.problems import ProblemError
from sfumato.service.jobs.slots import account_of, untold
from sfumato.service.people.linking import Subject
from sfumato.service.people.meaning import meaning_of
from sfumato.service.store import database, schema

FIXED = (
    "the budgets of this dataset are fixed: nobody is looked up in it by name. Ask its custodian what was agreed; they can "
    "bring its people, and from then on you can choose"
)
_SUMMED = (
    *("tier", "grant", "spent", "left", "left_for_life", "period", "per_period", "spent_in_period", "left_in_period"),
    *("withdrawn", "withdrawn_at", "waiting", "epoch"),
)


def life_of(service: Service, dataset: str) -> tuple[Life, Menu]:
    """The people of a dataset and what they choose from; a problem (409) where the roster is a fixed one."""
    found = life_or_none(service, dataset)
    if found is None:
        raise ProblemError(409, FIXED)
    return found


def life_or_none(service: Service, dataset: str) -> tuple[Life, Menu] | None:
    """The same, ``None`` where the roster is a fixed one."""
    life = service.ledger.people(dataset)
    menu = life.menu()
    return None if menu is None else (life, menu)


def minute_of(moment: int) -> str:
    """A moment of the service as the ledger writes it."""
    return written(datetime.fromtimestamp(moment, UTC))


def told(connection: Connection, receipt: Receipt) -> Receipt:
    """A receipt that says of no release how it ended before its slot, and of whoever asked only their account."""
    entries = [SimpleNamespace(id=line.release, by=line.by) for line in receipt.lines]
    hidden = untold(connection, cast("list[Any]", entries), database.now())
    lines = (replace(line, by=account_of(line.by)) for line in receipt.lines)
    kept = tuple(replace(line, state="reserved") if line.release in hidden else line for line in lines)
    return replace(receipt, lines=kept)


def menu_shown(menu: Menu) -> dict[str, Any]:
    """The menu in plain words, the most careful tier first; and whether an ε of one's own can be chosen."""
    tiers = [
        {
            "tier": menu.called(number),
            "epsilon": epsilon_text(int(level)),
            "per_period": None if menu.cap(number) == FAR else epsilon_text(menu.cap(number)),
            "meaning": meaning_of(int(level)),
        }
        for number, level in enumerate(menu.levels.tolist())
    ]
    return {"tiers": tiers, "own_epsilon": menu.names is not None and not menu.private, "period": menu.period}


def next_epoch(connection: Connection, dataset_id: str) -> str | None:
    """The day of the next epoch, if it was announced and is not over."""
    table = schema.announcements
    day = connection.execute(select(table.c.next_epoch).where(table.c.dataset_id == dataset_id)).scalar()
    return None if day is None or day < today() else str(day)


def today() -> str:
    """The day in UTC."""
    return datetime.fromtimestamp(database.now(), UTC).date().isoformat()


def overview(service: Service, connection: Connection, subject: Subject) -> dict[str, Any]:
    """Where somebody stands in one dataset.

    Of somebody whom the roster does not know it is told to themselves that they take no part; nobody else asks here.
    """
    name, day = subject.dataset.name, next_epoch(connection, subject.dataset.id)
    found = life_or_none(service, name)
    if found is None:
        return {"dataset": name, "roster": "fixed", "next_epoch": None, "menu": None, "mine": None, "words": FIXED}
    life, menu = found
    receipt = life.summary(subject.person)
    mine = None if receipt is None else summed(receipt)
    return {
        "dataset": name,
        "roster": "private" if menu.private else "public",
        "next_epoch": day,
        "menu": menu_shown(menu),
        "mine": mine,
        "words": _words(receipt),
    }


def summed(receipt: Receipt) -> dict[str, Any]:
    """A receipt without its lines, and what the sums mean."""
    made = receipt.to_dict()
    meanings = {"grant_means": meaning_of(receipt.grant), "spent_means": meaning_of(receipt.spent)}
    taking_part = not receipt.withdrawn and receipt.grant > 0
    return {name: made[name] for name in _SUMMED} | {"taking_part": taking_part} | meanings


def _words(receipt: Receipt | None) -> str:
    if receipt is None:
        return "You take no part here. Choose a tier to join at the next epoch."
    if receipt.withdrawn:
        since = f"You have withdrawn: since {receipt.withdrawn_at} no release uses your record."
        return f"{since} What was published stays published."
    if not receipt.grant:
        return "You wait to join: what you chose holds from the next epoch on."
    if not receipt.left:
        return "Nothing is left of what you grant: no release uses your record now."
    return f"You grant {epsilon_text(receipt.grant)} in all; {epsilon_text(receipt.spent)} of it is used."
