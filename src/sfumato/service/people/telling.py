"""What is told to a person: their receipt in pages, and a signed statement to keep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from sfumato.errors import InputError
from sfumato.ledger import Receipt
from sfumato.ledger.signing import signed_json
from sfumato.releases.statements import statement_of
from sfumato.service.context import Service
from sfumato.service.http.problems import ProblemError
from sfumato.service.people.linking import subject_of
from sfumato.service.people.standing import life_of, minute_of, told
from sfumato.service.store import database

MOST_LINES: Final = 5_000
"""Lines of a statement; what was spent before them is in it as a sum."""
_AT_ONCE = 1_000
NOT_THERE = "you take no part in this dataset and never did: nothing was spent on you. Grant a tier to join"


def receipt(service: Service, account_id: str, dataset: str, *, limit: int, before: int | None = None) -> Receipt:
    """A page of one's own receipt, oldest line first; releases whose slot is to come do not say how they ended.

    Parameters
    ----------
    service : Service
    account_id : str
        Whose it is.
    dataset : str
        A dataset that they have a place in.
    limit : int
        The most lines.
    before : int, optional
        Lines before the release of this number.

    Returns
    -------
    Receipt
    """
    with service.store.read() as connection:
        subject = subject_of(connection, service, account_id, dataset)
    life, _ = life_of(service, dataset)
    try:
        found = life.receipt(subject.person, limit=limit, before=before)
    except InputError:  # the one thing that can be wrong here: the roster does not know them
        raise ProblemError(409, NOT_THERE) from None
    with service.store.read() as connection:
        # After the lines: a job that ended meanwhile had its slot already, or is still untold.
        return told(connection, found)


def statement(service: Service, account_id: str, dataset: str) -> tuple[dict[str, Any], Receipt]:
    """A signed statement, and the receipt that it was made of."""
    whole = receipt(service, account_id, dataset, limit=_AT_ONCE)
    pages, older = [whole.lines], whole.older
    while older is not None and sum(map(len, pages)) < MOST_LINES:
        page = receipt(service, account_id, dataset, limit=_AT_ONCE, before=older)
        pages.insert(0, page.lines)
        older = page.older
    whole = replace(whole, lines=tuple(line for page in pages for line in page), older=older)
    # After the lines, so that all of them are below the checkpoint.
    point = service.ledger.signed_checkpoint(dataset)
    return signed_json(service.keys, statement_of(whole, at=minute_of(database.now()), checkpoint=point)), whole
