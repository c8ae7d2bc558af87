"""Sessions: a secret in a cookie, its digest and its times in the database.

A session is new at every sign-in, whatever cookie came with it, so nobody can prepare one for somebody else. Its token
against forged requests is computed from the secret, and so is told only to whom the cookie is sent.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Row, delete, or_, select, update

from sfumato.service.context import Service
from sfumato.service.fresh import digest_of, fresh_secret
from sfumato.service.store import database, schema

MOST: Final = 20  # of one account; the oldest ends
_SEEN_EVERY: Final = 60  # seconds between two notes that a session is in use: a write for each request is too much
_sessions, _accounts = schema.sessions, schema.accounts


@dataclass(frozen=True)
class Started:
    """A session that has just begun.

    Attributes
    ----------
    secret : str
        For the cookie, and nowhere else.
    csrf : str
        For the header ``X-CSRF-Token``.
    expires_at : int
        When it ends at the latest.
    """

    secret: str
    csrf: str
    expires_at: int


def csrf_of(secret: str) -> str:
    """The token against forged requests of a session.

    >>> csrf_of("a") == csrf_of("a"), csrf_of("a") == csrf_of("b")
    (True, False)
    """
    return hmac.digest(secret.encode(), b"sfumato: forged requests", "sha256").hex()


def start(connection: Connection, service: Service, account_id: str, *, instead_of: str | None = None) -> Started:
    """A new session for an account.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    service : Service
    account_id : str
    instead_of : str, optional
        The secret of a session that ends now: the one that the browser had.
    """
    moment, secret = database.now(), fresh_secret()
    if instead_of is not None:
        end(connection, digest_of(instead_of))
    idle = moment - service.settings.session_idle
    ended = or_(_sessions.c.expires_at <= moment, _sessions.c.seen_at <= idle)
    mine = _sessions.c.account_id == account_id
    connection.execute(delete(_sessions).where(mine, ended))
    newest = select(_sessions.c.digest).where(mine).order_by(_sessions.c.created_at.desc()).limit(MOST - 1)
    connection.execute(delete(_sessions).where(mine, _sessions.c.digest.not_in(newest)))
    started = Started(secret, csrf_of(secret), moment + service.settings.session_longest)
    connection.execute(
        _sessions.insert().values(
            digest=digest_of(secret),
            account_id=account_id,
            csrf=digest_of(started.csrf),
            created_at=moment,
            seen_at=moment,
            expires_at=started.expires_at,
        )
    )
    return started


def found(service: Service, secret: str) -> Row[tuple[object, ...]] | None:
    """The session of a cookie with its account, if it has not ended and the account works."""
    moment, digest = database.now(), digest_of(secret)
    query = (
        select(_sessions, _accounts.c.name, _accounts.c.role)
        .join(_accounts, _accounts.c.id == _sessions.c.account_id)
        .where(
            _sessions.c.digest == digest,
            _sessions.c.expires_at > moment,
            _sessions.c.seen_at > moment - service.settings.session_idle,
            _accounts.c.state == "active",
        )
    )
    with service.store.read() as connection:
        row = connection.execute(query).one_or_none()
    if row is not None and row.seen_at + _SEEN_EVERY <= moment:
        with service.store.write() as connection:
            connection.execute(update(_sessions).where(_sessions.c.digest == digest).values(seen_at=moment))
    return row


def end(connection: Connection, digest: str) -> None:
    """End one session."""
    connection.execute(delete(_sessions).where(_sessions.c.digest == digest))


def end_all(connection: Connection, account_id: str, *, but: str | None = None) -> None:
    """End the sessions of an account, but for one of this digest."""
    mine = _sessions.c.account_id == account_id
    connection.execute(delete(_sessions).where(mine, *([] if but is None else [_sessions.c.digest != but])))
