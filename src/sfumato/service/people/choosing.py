"""What a person chooses for themselves: a tier, an ε, to leave, to come back.

A choice is on disk in the ledger when the answer is sent. It is made in turn with whatever else is written about the people
of this dataset: a custodian who brings a list at the same moment comes before it or after it, and from the first choice on
no list changes what this person chose (`sfumato.service.people.bringing`).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from sqlalchemy import Connection, select, update

from sfumato.ledger import Receipt
from sfumato.privacy.units import as_epsilon, epsilon_text, positive_nano
from sfumato.releases.receipts import CANNOT_BE_UNDONE
from sfumato.service.context import Service
from sfumato.service.http.problems import ProblemError
from sfumato.service.people.linking import Subject, subject_of
from sfumato.service.people.standing import FIXED, next_epoch, summed
from sfumato.service.store import database, schema
from sfumato.service.store.database import record

MOST_A_DAY: Final = 100
"""How often one person may change what they grant on one day; leaving is not counted."""
_DAY = 86_400


def grant(service: Service, account_id: str, dataset: str, *, tier: str | None, epsilon: str | None) -> dict[str, Any]:
    """Grant a tier of the menu or an ε of one's own; joins, comes back, raises, lowers. Twice is as good as once.

    Parameters
    ----------
    service : Service
    account_id : str
        Who chooses.
    dataset : str
        A dataset that they have a place in.
    tier, epsilon : str or None
        One of them.

    Returns
    -------
    dict
        Where they stand now, from when on the choice holds, and what cannot be undone.
    """
    chosen: str | Decimal = tier if tier is not None else as_epsilon(positive_nano(epsilon or "", "epsilon"))
    return _chosen(service, account_id, dataset, "me.grant", chosen)


def withdraw(service: Service, account_id: str, dataset: str) -> dict[str, Any]:
    """Leave, from the next release on. Whoever takes no part stays out, and no list brings them in."""
    return _chosen(service, account_id, dataset, "me.withdraw", None)


def _chosen(service: Service, account_id: str, dataset: str, action: str, grant: str | Decimal | None) -> dict[str, Any]:
    with service.store.write() as connection:
        subject = _mine(connection, service, account_id, dataset, counted=grant is not None)
        life = service.ledger.people(dataset)
        if life.menu() is None:
            raise ProblemError(409, FIXED)
        after = life.choose(subject.person, grant)
        record(connection, action, account_id=account_id, dataset_id=subject.dataset.id)
        return _answer(connection, subject, after)


def _mine(connection: Connection, service: Service, account_id: str, dataset: str, *, counted: bool) -> Subject:
    """One's own place, marked as chosen for; of two who choose at once one waits here for the other."""
    subject = subject_of(connection, service, account_id, dataset)
    in_turn(connection, subject.dataset.id, alone=False)
    table, now = schema.subjects, database.now()
    here = (table.c.account_id == account_id) & (table.c.dataset_id == subject.dataset.id)
    row = connection.execute(select(table.c.chosen_at, table.c.chosen_times).where(here).with_for_update()).one()
    today = row.chosen_at is not None and row.chosen_at // _DAY == now // _DAY
    times = (row.chosen_times if today else 0) + counted
    if times > MOST_A_DAY:
        raise ProblemError(
            429, f"you changed what you grant {MOST_A_DAY} times today; go on tomorrow. You can withdraw at any time"
        )
    connection.execute(update(table).where(here).values(chosen_at=now, chosen_times=times))
    return subject


def in_turn(connection: Connection, dataset_id: str, *, alone: bool) -> None:
    """Wait until nobody brings a list for this dataset (`alone`: nor chooses), and keep it so to the end of the transaction.

    On SQLite a transaction that writes is alone anyway.
    """
    if connection.dialect.name != "sqlite":
        table = schema.datasets
        held = select(table.c.id).where(table.c.id == dataset_id)
        connection.execute(held.with_for_update(read=not alone))


def _answer(connection: Connection, subject: Subject, after: Receipt | None) -> dict[str, Any]:
    day = next_epoch(connection, subject.dataset.id)
    return {
        "dataset": subject.dataset.name,
        "mine": None if after is None else summed(after),
        "holds_from": _from(after),
        "next_epoch": day,
        "words": _happens(after, day),
        "cannot_be_undone": CANNOT_BE_UNDONE if after is not None and after.spent else None,
    }


def _from(after: Receipt | None) -> str:
    """From when on the choice holds: ``now``, ``next release`` or ``next epoch``."""
    if after is None or after.waiting is None:
        return "now"
    return "next release" if after.waiting_lowers else "next epoch"


def _happens(after: Receipt | None, day: str | None) -> str:
    epoch = f"the next epoch ({day})" if day else "the next epoch"
    if after is None:
        return "You take no part, and nobody can bring you in but you."
    if after.waiting is None:
        return "You have withdrawn already." if after.withdrawn else "This is what you grant already; nothing changes."
    if after.waiting == "withdraw":
        return (
            "You leave: no release that is charged from now on uses your record. What was published stays published. You "
            "can come back by granting again; what was spent on you still counts then."
        )
    spent = f" What was spent on you ({epsilon_text(after.spent)}) counts towards it." if after.spent else ""
    if after.waiting_lowers:
        return f"You grant less: it holds for every release that is charged from now on.{spent}"
    if after.withdrawn or not after.grant:
        return f"You join: it holds from {epoch} on.{spent}"
    return f"You grant {after.waiting}: it holds from {epoch} on. Until then what you granted before holds.{spent}"
