"""Codes that are good once: an invitation makes an account, a code for a password sets that of an account which is there.

A code is taken by a conditional UPDATE in the transaction that does what it is for: of two who use it at once, one does.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, Row, insert, select, update

from sfumato.service.fresh import digest_of, fresh_code, read_code
from sfumato.service.http.problems import ProblemError
from sfumato.service.roles import Role
from sfumato.service.store import database, schema

DAYS: Final = 7
_codes = schema.invitations


def invite(
    connection: Connection,
    *,
    role: Role,
    created_by: str,
    expires_at: int,
    dataset_id: str | None = None,
    person: str | None = None,
    account_id: str | None = None,
) -> str:
    """A new code, which is told once and kept as a digest.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    role : Role
        Of the account that it makes.
    created_by : str
        The account that gives it.
    expires_at : int
        The moment from which it is not taken any more.
    dataset_id, person : str, optional
        Whom of which dataset the account will be; the person sealed.
    account_id : str, optional
        The account whose password it sets, instead of making one.
    """
    code = fresh_code()
    connection.execute(
        insert(_codes).values(
            digest=digest_of(code),
            role=role,
            dataset_id=dataset_id,
            person=person,
            account_id=account_id,
            created_by=created_by,
            expires_at=expires_at,
        )
    )
    return code


def open_code(connection: Connection, code: str) -> Row[Any]:
    """What a code is for, if it can be used now; what is wrong with one is not told."""
    open_ = (_codes.c.digest == digest_of(read_code(code)), *_usable())
    row = connection.execute(select(_codes).where(*open_)).one_or_none()
    if row is None:
        raise not_a_code()
    return row


def use(connection: Connection, row: Row[Any], account_id: str) -> None:
    """Use a code up for an account, in the transaction of what it is for."""
    done = connection.execute(
        update(_codes).where(_codes.c.digest == row.digest, *_usable()).values(used_by=account_id, used_at=database.now())
    )
    if done.rowcount != 1:
        raise not_a_code()


def withdraw_codes_for(connection: Connection, account_id: str) -> None:
    """Codes for the password of an account that were not used are good no more."""
    theirs = (_codes.c.account_id == account_id, _codes.c.used_at.is_(None))
    connection.execute(update(_codes).where(*theirs).values(expires_at=0))


def not_a_code() -> ProblemError:
    """The refusal of a code."""
    return ProblemError(403, "this code is not one, has expired or was used; ask whoever gave it to you for a new one")


def _usable() -> tuple[Any, Any]:
    return _codes.c.used_at.is_(None), _codes.c.expires_at > database.now()
