"""Signing in with OpenID Connect: the code flow with PKCE, state and nonce, bound to one browser by a sealed cookie.

An account is found by issuer and subject, never by a name or an address that a provider may give to somebody else later.
"""

from __future__ import annotations

import binascii
import hmac
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, Row, select, update

from sfumato.errors import InputError
from sfumato.service.accounts import codes, joining, provider
from sfumato.service.accounts.keeping import NAME
from sfumato.service.accounts.sessions import Started
from sfumato.service.context import Service
from sfumato.service.fresh import fresh_id, fresh_secret
from sfumato.service.http.access import Caller
from sfumato.service.http.problems import ProblemError, missing
from sfumato.service.settings import OidcSettings
from sfumato.service.store import database, schema
from sfumato.service.store.inserting import insert_new

LIVES: Final = 600
_PLACE: Final = "on the way through a provider"
_accounts = schema.accounts


def start(service: Service, code: str | None, name: str | None, address: str) -> tuple[str, str]:
    """Where the browser goes, and the cookie that it keeps meanwhile.

    Parameters
    ----------
    service : Service
    code : str, optional
        An invitation, for somebody new, or the administrator's code for an account that is there.
    name : str, optional
        What a new account shall be called.
    address : str
        Where they come from, for the count of tries.
    """
    oidc = _settings(service)
    if code is not None:
        joining.checked_code(service, code, address)
    kept = {
        "state": fresh_secret(),
        "nonce": fresh_secret(),
        "verifier": fresh_secret(),
        "code": code,
        "name": name,
        "ends": database.now() + LIVES,
    }
    url = provider.way(oidc, _back(service), kept["state"], kept["nonce"], kept["verifier"])  # type: ignore[arg-type]
    return url, service.sealer.seal(json.dumps(kept), _PLACE)


def finish(service: Service, cookie: str | None, state: str, code: str, *, had: str | None) -> tuple[Caller, Started]:
    """A session for whom the provider sent back.

    Parameters
    ----------
    service : Service
    cookie : str or None
        What `start` gave to this browser.
    state, code : str
        What came back with it.
    had : str or None
        The secret of the session that it has; it ends.
    """
    oidc = _settings(service)
    kept = _kept(service, cookie)
    if not hmac.compare_digest(kept["state"].encode(), state.encode()) or not code:
        raise provider.not_signed_in()
    claims = provider.claims_of(oidc, _back(service), code, kept["nonce"], kept["verifier"])
    with service.store.write() as connection:
        account_id = _account(connection, service, oidc, claims, kept)
        role = connection.execute(select(_accounts.c.role).where(_accounts.c.id == account_id)).scalar_one()
        if role not in oidc.roles:
            raise ProblemError(403, f"accounts of the role {role} sign in with a password here, not with the provider")
        return joining.entered(connection, service, account_id, "signed in with the provider", had=had)


def _account(
    connection: Connection, service: Service, oidc: OidcSettings, claims: Mapping[str, Any], kept: Mapping[str, Any]
) -> str:
    """The account of a subject; one is made, or bound to it, where a code or the settings say so."""
    identity = {"issuer": oidc.issuer, "subject": claims["sub"]}
    mine = (_accounts.c.issuer == oidc.issuer, _accounts.c.subject == claims["sub"])
    known: str | None = connection.execute(select(_accounts.c.id).where(*mine)).scalar()
    invitation = None if kept["code"] is None else codes.open_code(connection, kept["code"])
    if known is not None:
        if invitation is not None:
            raise ProblemError(409, "you have an account; sign in without the code")
        return known
    if invitation is None:
        return _new_account(connection, oidc, kept, claims, identity)
    if invitation.account_id is not None:
        return _bound(connection, invitation, identity)
    return joining.made(connection, service, invitation, name=_name(kept, claims), **identity)


def _bound(connection: Connection, invitation: Row[Any], identity: dict[str, str]) -> str:
    account_id: str = invitation.account_id
    codes.use(connection, invitation, account_id)
    unbound = (_accounts.c.id == account_id, _accounts.c.subject.is_(None), _accounts.c.state == "active")
    if connection.execute(update(_accounts).where(*unbound).values(**identity)).rowcount != 1:
        raise codes.not_a_code()
    return account_id


def _new_account(
    connection: Connection,
    oidc: OidcSettings,
    kept: Mapping[str, Any],
    claims: Mapping[str, Any],
    identity: dict[str, str],
) -> str:
    if oidc.new_accounts is None:
        raise ProblemError(403, "nobody here knows you yet; ask for an invitation, and begin again with its code")
    account_id = fresh_id("account")
    values = {"id": account_id, "name": _name(kept, claims), "role": oidc.new_accounts, "state": "active", **identity}
    if not insert_new(connection, _accounts, **values, created_at=database.now()):
        raise ProblemError(409, "there is an account of this name; begin again and choose another one")
    return account_id


def _name(kept: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
    name = kept["name"] if kept["name"] is not None else claims.get("preferred_username")
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        raise ProblemError(422, "begin again and say what your account shall be called")
    return name


def _kept(service: Service, cookie: str | None) -> dict[str, Any]:
    try:
        kept: dict[str, Any] = json.loads(service.sealer.unseal(cookie or "", _PLACE))
    except (InputError, binascii.Error, ValueError):
        raise provider.not_signed_in() from None
    if kept["ends"] < database.now():
        raise provider.not_signed_in()
    return kept


def _settings(service: Service) -> OidcSettings:
    if service.settings.oidc is None:
        raise missing()
    return service.settings.oidc


def _back(service: Service) -> str:
    return service.settings.base_url.rstrip("/") + "/v1/oidc/callback"
