"""The second factor: a one-time code for each action that asks for one.

A time step is used up by a conditional UPDATE of its account: of two requests with one code, at whatever moments and in
whatever processes, one is let through. The factor is lost only by the administrator's word, which is written down.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Row, or_, select, update

from sfumato.service.accounts import sessions, totp
from sfumato.service.accounts.attempts import Rule, take, take_back
from sfumato.service.fresh import fresh_bytes
from sfumato.service.http.problems import ProblemError
from sfumato.service.store import database, schema
from sfumato.service.store.database import record

if TYPE_CHECKING:
    from sfumato.service.context import Service
    from sfumato.service.http.access import Caller

_BYTES: Final = 20
_accounts = schema.accounts
_NOT_A_CODE = "the one-time code is not right, or was used before; wait for the next one in your app"


def confirm_code(service: Service, caller: Caller, code: str | None) -> None:
    """Use up a code of the caller's; refused if it is not one, or was used before.

    Parameters
    ----------
    service : Service
    caller : Caller
    code : str or None
        Six digits, from the header ``X-One-Time-Code``.
    """
    row = _row(service, caller.id)
    if row.totp is None or not row.totp_confirmed:
        raise ProblemError(
            403,
            "this needs a second factor, and your account has none yet: sign in, POST /v1/account/second-factor, put the"
            " secret into an app for one-time codes, and confirm it",
        )
    if code is None:
        raise ProblemError(403, "this needs a one-time code of your app in the header X-One-Time-Code, each time a new one")
    _use(service, row, code)


def enrol(service: Service, caller: Caller) -> tuple[str, str]:
    """A new secret that counts once `confirm` was called with a code of it.

    Parameters
    ----------
    service : Service
    caller : Caller
        Whose password was asked for just now.

    Returns
    -------
    tuple
        The secret as text, and its ``otpauth:`` address.
    """
    secret = fresh_bytes(_BYTES)
    sealed = service.sealer.seal(base64.b64encode(secret).decode(), _place(caller.id))
    with service.store.write() as connection:
        # Only where none is confirmed: whoever has a session for a moment must not exchange the factor.
        waiting = (_accounts.c.id == caller.id, _accounts.c.totp_confirmed == 0)
        done = connection.execute(update(_accounts).where(*waiting).values(totp=sealed, totp_used=None))
        if done.rowcount != 1:
            raise ProblemError(409, "your account has a second factor; if it is lost, ask the administrator to reset it")
        record(connection, "second factor begun", account_id=caller.id)
    return totp.as_text(secret), totp.as_address(secret, caller.name, "Sfumato")


def confirm(service: Service, caller: Caller, code: str) -> None:
    """Make the new secret count: the caller's app gives its codes. All other sessions of theirs end."""
    row = _row(service, caller.id)
    if row.totp is None:
        raise ProblemError(409, "there is no second factor to confirm: POST /v1/account/second-factor first")
    if row.totp_confirmed:
        raise ProblemError(409, "your second factor is confirmed")
    _use(service, row, code, totp_confirmed=1)
    with service.store.write() as connection:
        sessions.end_all(connection, caller.id, but=caller.session)
        record(connection, "second factor confirmed", account_id=caller.id)


def reset(connection: Connection, account_id: str, *, by: str) -> None:
    """Take an account's second factor away, and end its sessions."""
    none = {"totp": None, "totp_confirmed": 0, "totp_used": None}
    connection.execute(update(_accounts).where(_accounts.c.id == account_id).values(**none))
    sessions.end_all(connection, account_id)
    record(connection, "second factor reset", account_id=by, target=account_id)


def has_one(service: Service, account_id: str) -> bool:
    """Whether an account has a second factor that counts."""
    with service.store.read() as connection:
        found = connection.execute(select(_accounts.c.totp_confirmed).where(_accounts.c.id == account_id)).scalar()
    return bool(found)


def _use(service: Service, row: Row[Any], code: str, **more: int) -> None:
    """Use up a code, in one statement with `more` changes to the account."""
    if not re.fullmatch(r"[0-9]{6}", code):
        raise ProblemError(403, "a one-time code is six digits")
    limits = service.settings.limits
    counted = take(service, [(f"code {row.id}", Rule(limits.failures, limits.lock))])
    secret = base64.b64decode(service.sealer.unseal(row.totp, _place(row.id)))
    step = totp.matching_step(secret, code, database.now())
    if step is None:
        raise ProblemError(403, _NOT_A_CODE)
    # `totp` too: the secret may have been exchanged since it was read.
    unused = (
        _accounts.c.id == row.id,
        _accounts.c.totp == row.totp,
        or_(_accounts.c.totp_used.is_(None), _accounts.c.totp_used < step),
    )
    with service.store.write() as connection:
        done = connection.execute(update(_accounts).where(*unused).values(totp_used=step, **more))
    if done.rowcount != 1:
        raise ProblemError(403, _NOT_A_CODE)
    take_back(service, counted)


def _row(service: Service, account_id: str) -> Row[Any]:
    with service.store.read() as connection:
        return connection.execute(select(_accounts).where(_accounts.c.id == account_id)).one()


def _place(account_id: str) -> str:
    return f"second factor of {account_id}"
