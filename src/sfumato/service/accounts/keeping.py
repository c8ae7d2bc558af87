"""What the administrator does with accounts: make, reset, disable. Never change a role: make another account."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, Row, or_, select, update

from sfumato.errors import InputError
from sfumato.service.accounts import codes, second_factor, sessions, tokens
from sfumato.service.context import Service
from sfumato.service.fresh import fresh_id
from sfumato.service.http.access import Caller
from sfumato.service.http.problems import ProblemError, missing
from sfumato.service.roles import Role
from sfumato.service.store import database, schema
from sfumato.service.store.database import record
from sfumato.service.store.inserting import insert_new

NAME: Final = r"^[A-Za-z0-9]([A-Za-z0-9 ._@-]{0,78}[A-Za-z0-9])?$"
"""Names of accounts."""
_accounts = schema.accounts
_LIVES: Final = codes.DAYS * 86_400


def first_administrator(service: Service, name: str = "administrator") -> str:
    """A code with which the first administrator sets their password: ``POST /v1/set-password``.

    Asked again before it was used, it gives a new code, and the old one is good no more.

    Parameters
    ----------
    service : Service
    name : str
        What the account is called.
    """
    with service.store.write() as connection:
        if _who_can_sign_in(connection):
            raise InputError("there is an administrator; they make other accounts, or reset one, by POST /v1/accounts")
        there = connection.execute(select(_accounts).where(_accounts.c.name == name)).one_or_none()
        if there is None:
            account_id = fresh_id("account")
            values = {"id": account_id, "name": name, "role": "administrator", "state": "active"}
            if not insert_new(connection, _accounts, **values, created_at=database.now()):
                raise InputError(f"there is an account called nearly {name}; give the administrator another name")
        elif there.role == "administrator" and there.state == "active":
            account_id = there.id
        else:
            raise InputError(f"there is another account called {name}; give the administrator another name")
        return _code_for(connection, account_id, "administrator", by=account_id)


def create(service: Service, caller: Caller, name: str, role: Role) -> tuple[Row[Any], str]:
    """A new account, and the code with which its owner sets the password.

    Parameters
    ----------
    service : Service
    caller : Caller
        The administrator.
    name : str
        Of the account; for an analyst also the recipient's name in the ledger.
    role : Role
        For good.
    """
    account_id = fresh_id("account")
    with service.store.write() as connection:
        values = {"id": account_id, "name": name, "role": role, "state": "active", "created_at": database.now()}
        if not insert_new(connection, _accounts, **values):
            raise ProblemError(409, "there is an account of this name; choose another one")
        code = _code_for(connection, account_id, role, by=caller.id)
        record(connection, "account made", account_id=caller.id, target=account_id)
        return account(connection, account_id), code


def account(connection: Connection, account_id: str) -> Row[Any]:
    """One account."""
    row = connection.execute(select(_accounts).where(_accounts.c.id == account_id)).one_or_none()
    if row is None:
        raise missing()
    return row


def reset_password(service: Service, caller: Caller, account_id: str) -> tuple[Row[Any], str]:
    """A code for a new password; the old one, and all sessions and tokens, are good no more."""
    with service.store.write() as connection:
        row = account(connection, account_id)
        if row.state != "active":
            raise ProblemError(409, "this account is disabled; enable it first")
        connection.execute(update(_accounts).where(_accounts.c.id == account_id).values(password=None))
        _shut(connection, account_id)
        code = _code_for(connection, account_id, row.role, by=caller.id)
        record(connection, "password reset", account_id=caller.id, target=account_id)
        return row, code


def reset_second_factor(service: Service, caller: Caller, account_id: str) -> None:
    """Take away a second factor that its owner has lost."""
    with service.store.write() as connection:
        account(connection, account_id)
        second_factor.reset(connection, account_id, by=caller.id)


def disable(service: Service, caller: Caller, account_id: str) -> Row[Any]:
    """From now on nothing works with this account; somebody must be left who can enable it again."""
    with service.store.write() as connection:
        row = account(connection, account_id)
        others = [who for who in _who_can_sign_in(connection) if who != account_id]
        if row.role == "administrator" and not others:
            raise ProblemError(409, "this is the last administrator who can sign in; make another one first")
        connection.execute(update(_accounts).where(_accounts.c.id == account_id).values(state="disabled"))
        _shut(connection, account_id)
        record(connection, "account disabled", account_id=caller.id, target=account_id)
        return account(connection, account_id)


def enable(service: Service, caller: Caller, account_id: str) -> Row[Any]:
    """Let an account work again: with its password, not with old sessions, tokens or codes."""
    with service.store.write() as connection:
        account(connection, account_id)
        connection.execute(update(_accounts).where(_accounts.c.id == account_id).values(state="active"))
        record(connection, "account enabled", account_id=caller.id, target=account_id)
        return account(connection, account_id)


def _shut(connection: Connection, account_id: str) -> None:
    sessions.end_all(connection, account_id)
    tokens.revoke_all(connection, account_id)
    codes.withdraw_codes_for(connection, account_id)


def _code_for(connection: Connection, account_id: str, role: Role, *, by: str) -> str:
    codes.withdraw_codes_for(connection, account_id)
    expires_at = database.now() + _LIVES
    return codes.invite(connection, role=role, created_by=by, expires_at=expires_at, account_id=account_id)


def _who_can_sign_in(connection: Connection) -> list[str]:
    """Administrators, locked until the transaction ends: two who disable each other must not both succeed."""
    able = or_(_accounts.c.password.is_not(None), _accounts.c.subject.is_not(None))
    query = select(_accounts.c.id).where(_accounts.c.role == "administrator", _accounts.c.state == "active", able)
    return list(connection.execute(query.order_by(_accounts.c.id).with_for_update()).scalars())
