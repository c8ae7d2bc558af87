"""Tokens for programs: shown once, kept as digests, for some actions, for a time.

A token never does more than its account may, and never what makes a thief's stay longer: other tokens, the password, the
second factor, accounts (whose codes set passwords, its own account's too).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from sfumato.service.context import Service
from sfumato.service.fresh import digest_of, fresh_id, fresh_secret
from sfumato.service.http.access import Caller
from sfumato.service.http.problems import ProblemError, missing
from sfumato.service.roles import ACTIONS, Role, may
from sfumato.service.store import database, schema
from sfumato.service.store.database import record

PREFIX: Final = "sfu_"
LONGEST_DAYS: Final = 365
MOST: Final = 50
NEVER: Final = frozenset({"tokens.manage", "password.change", "second_factor.manage", "session.end", "accounts.manage"})
"""Actions that need a session."""
_tokens, _accounts = schema.tokens, schema.accounts


def scopes_of(role: Role) -> frozenset[str]:
    """The actions that a token of this role may have.

    >>> sorted(scopes_of("administrator"))
    ['keys.read', 'keys.rotate', 'session.read', 'settings.read']
    """
    return frozenset(action for action in ACTIONS if may(role, action) and action not in NEVER)


def make(service: Service, caller: Caller, name: str, scopes: Sequence[str], days: int) -> tuple[str, str, int]:
    """A new token.

    Parameters
    ----------
    service : Service
    caller : Caller
        Whose it will be.
    name : str
        What they call it.
    scopes : sequence of str
        The actions that it may do.
    days : int
        How long it works.

    Returns
    -------
    tuple
        Its id, its secret, and the moment at which it expires.
    """
    possible = scopes_of(caller.role)
    others = sorted(set(scopes) - possible)
    if others or not scopes:
        raise ProblemError(
            422, f"a token of this role may have the scopes {', '.join(sorted(possible))}; ask for some of them"
        )
    if not 1 <= days <= LONGEST_DAYS:
        raise ProblemError(422, f"a token works for 1 to {LONGEST_DAYS} days")
    moment, token, secret = database.now(), fresh_id("token"), fresh_secret(PREFIX)
    expires_at = moment + days * 86_400
    mine = _tokens.c.account_id == caller.id
    with service.store.write() as connection:
        connection.execute(delete(_tokens).where(mine, _tokens.c.expires_at < moment - LONGEST_DAYS * 86_400))
        working = (mine, _tokens.c.revoked_at.is_(None), _tokens.c.expires_at > moment)
        if connection.execute(select(func.count()).select_from(_tokens).where(*working)).scalar_one() >= MOST:
            raise ProblemError(409, f"you have {MOST} tokens that work, which is the most; revoke some first")
        connection.execute(
            insert(_tokens).values(
                id=token,
                account_id=caller.id,
                name=name,
                digest=digest_of(secret),
                scopes=json.dumps(sorted(set(scopes))),
                created_at=moment,
                expires_at=expires_at,
            )
        )
        record(connection, "token made", account_id=caller.id, target=token)
    return token, secret, expires_at


def revoke(service: Service, caller: Caller, token: str) -> None:
    """End one of the caller's tokens; one that was revoked stays so."""
    with service.store.write() as connection:
        mine = (_tokens.c.id == token, _tokens.c.account_id == caller.id)
        if connection.execute(select(_tokens.c.id).where(*mine)).one_or_none() is None:
            raise missing()
        done = connection.execute(
            update(_tokens).where(*mine, _tokens.c.revoked_at.is_(None)).values(revoked_at=database.now())
        )
        if done.rowcount:
            record(connection, "token revoked", account_id=caller.id, target=token)


def revoke_all(connection: Connection, account_id: str) -> None:
    """End all tokens of an account."""
    mine = (_tokens.c.account_id == account_id, _tokens.c.revoked_at.is_(None))
    connection.execute(update(_tokens).where(*mine).values(revoked_at=database.now()))


def found(service: Service, secret: str) -> Row[Any] | None:
    """The token of a secret with its account, if both work."""
    query = (
        select(_tokens, _accounts.c.name.label("account_name"), _accounts.c.role)
        .join(_accounts, _accounts.c.id == _tokens.c.account_id)
        .where(
            _tokens.c.digest == digest_of(secret),
            _tokens.c.revoked_at.is_(None),
            _tokens.c.expires_at > database.now(),
            _accounts.c.state == "active",
        )
    )
    with service.store.read() as connection:
        return connection.execute(query).one_or_none()
