"""Signing in with a password, and coming in with a code."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from sfumato.service.accounts import attempts, codes, passwords, sessions, tokens
from sfumato.service.accounts.attempts import Rule
from sfumato.service.accounts.sessions import Started
from sfumato.service.context import Service
from sfumato.service.fresh import fresh_id
from sfumato.service.http.access import Caller
from sfumato.service.http.problems import ProblemError
from sfumato.service.store import database, schema
from sfumato.service.store.database import record
from sfumato.service.store.inserting import insert_new

_accounts = schema.accounts
_JUST = 600  # seconds in which a session has just begun


def sign_in(service: Service, name: str, password: str, address: str, *, had: str | None = None) -> tuple[Caller, Started]:
    """A new session for somebody who knows their password.

    Parameters
    ----------
    service : Service
    name, password : str
    address : str
        Where they come from, for the count of tries.
    had : str, optional
        The secret of the session that their browser has; it ends.
    """
    counted = attempts.take(service, attempts.sign_in_tries(service, name, address))
    with service.store.read() as connection:
        row = connection.execute(select(_accounts).where(func.lower(_accounts.c.name) == name.lower())).one_or_none()
    # The same work, and below the same answer, whether there is such a name, it has a password, or it is disabled.
    fits = passwords.fits(service, None if row is None else row.password, password)
    if row is None or not fits or row.state != "active":
        raise _not_right()
    attempts.signed_in(service, counted, name, address)
    renewed = passwords.hashed(service, password) if passwords.is_outdated(service, row.password) else None
    with service.store.write() as connection:
        # Unless it was reset while it was being compared.
        same = (_accounts.c.id == row.id, _accounts.c.password == row.password)
        if connection.execute(update(_accounts).where(*same).values(password=renewed or row.password)).rowcount != 1:
            raise _not_right()
        return entered(connection, service, row.id, "signed in", had=had)


def entered(
    connection: Connection, service: Service, account_id: str, how: str, *, had: str | None = None
) -> tuple[Caller, Started]:
    """A session for an account that works at this moment, whatever was read of it before."""
    query = select(_accounts.c.id, _accounts.c.name, _accounts.c.role).where(
        _accounts.c.id == account_id, _accounts.c.state == "active"
    )
    row = connection.execute(query.with_for_update()).one_or_none()
    if row is None:
        raise _not_right()
    started = sessions.start(connection, service, row.id, instead_of=had)
    record(connection, how, account_id=row.id)
    return Caller(row.id, row.name, row.role), started


def join(
    service: Service, code: str, name: str, password: str, address: str, *, had: str | None = None
) -> tuple[Caller, Started]:
    """A new account for somebody with an invitation, and a session.

    Parameters
    ----------
    service : Service
    code : str
        Of the invitation.
    name, password : str
        What they choose.
    address : str
        Where they come from, for the count of tries.
    had : str, optional
        The secret of the session that their browser has; it ends.
    """
    checked_code(service, code, address)
    passwords.check_new(password, name)
    stored = passwords.hashed(service, password)  # before the transaction: it takes long
    with service.store.write() as connection:
        row = codes.open_code(connection, code)
        if row.account_id is not None:
            raise codes.not_a_code()
        account_id = made(connection, service, row, name=name, password=stored)
        return entered(connection, service, account_id, "joined", had=had)


def made(connection: Connection, service: Service, invitation: Row[Any], **account: Any) -> str:
    """The account that an invitation is for; the invitation is used up, or neither happens."""
    account_id = fresh_id("account")
    new = insert_new(
        connection, _accounts, id=account_id, role=invitation.role, state="active", created_at=database.now(), **account
    )
    if not new:
        raise ProblemError(409, "there is an account of this name; choose another one")
    codes.use(connection, invitation, account_id)
    if invitation.person is not None:
        from sfumato.service.people.linking import link

        link(connection, service, account_id, invitation)
    return account_id


def set_password(service: Service, code: str, password: str, address: str) -> None:
    """Set the password of an account with a code of the administrator's; all its sessions and tokens end.

    Parameters
    ----------
    service : Service
    code : str
    password : str
        The new one.
    address : str
        Where they come from, for the count of tries.
    """
    row = checked_code(service, code, address)
    if row.account_id is None:
        raise codes.not_a_code()
    with service.store.read() as connection:
        name = connection.execute(select(_accounts.c.name).where(_accounts.c.id == row.account_id)).scalar_one()
    passwords.check_new(password, name)
    stored = passwords.hashed(service, password)
    with service.store.write() as connection:
        codes.use(connection, row, row.account_id)
        mine = (_accounts.c.id == row.account_id, _accounts.c.state == "active")
        if connection.execute(update(_accounts).where(*mine).values(password=stored)).rowcount != 1:
            raise codes.not_a_code()
        sessions.end_all(connection, row.account_id)
        tokens.revoke_all(connection, row.account_id)
        record(connection, "password set by code", account_id=row.account_id)


def change_password(service: Service, caller: Caller, old: str, new: str) -> None:
    """Another password for somebody who knows the old one; all other sessions of theirs end."""
    check_password(service, caller, old)
    passwords.check_new(new, caller.name)
    stored = passwords.hashed(service, new)
    with service.store.write() as connection:
        connection.execute(update(_accounts).where(_accounts.c.id == caller.id).values(password=stored))
        sessions.end_all(connection, caller.id, but=caller.session)
        codes.withdraw_codes_for(connection, caller.id)
        record(connection, "password changed", account_id=caller.id)


def check_password(service: Service, caller: Caller, password: str) -> None:
    """Whether it is the caller's password: a session alone does not prove who sits there."""
    limits = service.settings.limits
    counted = attempts.take(service, [(f"password {caller.id}", Rule(limits.failures, limits.lock))])
    with service.store.read() as connection:
        stored = connection.execute(select(_accounts.c.password).where(_accounts.c.id == caller.id)).scalar()
    if not passwords.fits(service, stored, password):
        raise ProblemError(403, "this is not the password of your account")
    attempts.take_back(service, counted)


def prove(service: Service, caller: Caller, password: str | None) -> None:
    """Ask who sits there before the account's keys change: for the password, or without one for having just come in."""
    with service.store.read() as connection:
        stored = connection.execute(select(_accounts.c.password).where(_accounts.c.id == caller.id)).scalar()
        began = connection.execute(
            select(schema.sessions.c.created_at).where(schema.sessions.c.digest == (caller.session or ""))
        ).scalar()
    if stored is not None:
        if password is None:
            raise ProblemError(403, "this needs your password")
        check_password(service, caller, password)
    elif began is None or began + _JUST < database.now():
        raise ProblemError(403, "sign in again first: this needs a session that has just begun")


def _not_right() -> ProblemError:
    return ProblemError(401, "name or password is not right; the administrator can give you a code for a new password")


def checked_code(service: Service, code: str, address: str) -> Row[Any]:
    """The open invitation of a code; wrong ones are counted for their address."""
    limits = service.settings.limits
    counted = attempts.take(service, [(f"code from {address}", Rule(limits.sign_ins, min(60, limits.lock)))])
    with service.store.read() as connection:
        row = codes.open_code(connection, code)
    attempts.take_back(service, counted)
    return row
