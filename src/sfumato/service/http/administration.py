"""The house: accounts and settings."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from sqlalchemy import select

from sfumato import __version__
from sfumato.service.accounts import codes, keeping
from sfumato.service.http.access import Caller, Here, allowed
from sfumato.service.http.account_models import AccountTold, CodeTold, NewAccount, SettingsTold
from sfumato.service.http.idempotency import shown_once
from sfumato.service.http.paging import Listed, Page, page
from sfumato.service.store import database, schema

router = APIRouter(tags=["the house"])
Administrator = Annotated[Caller, allowed("accounts.manage")]
AccountId = Annotated[str, Path(max_length=80)]


@router.post("/accounts", status_code=201, summary="Make an account")
def create(body: NewAccount, caller: Administrator, service: Here, request: Request) -> CodeTold:
    """With a code, shown once, with which its owner sets the password."""
    shown_once(request)
    row, code = keeping.create(service, caller, body.name, body.role)
    return CodeTold(account=AccountTold.of(row), code=code, expires_at=_ends())


@router.get("/accounts", summary="All accounts")
def list_accounts(caller: Administrator, service: Here, asked: Page) -> Listed[AccountTold]:
    """The newest first."""
    found = schema.accounts
    with service.store.read() as connection:
        rows, older = page(connection, select(found), asked, found.c.created_at, found.c.id)
    return Listed(items=[AccountTold.of(row) for row in rows], older=older)


@router.get("/accounts/{account_id}", summary="An account")
def read(account_id: AccountId, caller: Administrator, service: Here) -> AccountTold:
    """As the administrator sees it."""
    with service.store.read() as connection:
        return AccountTold.of(keeping.account(connection, account_id))


@router.post("/accounts/{account_id}/reset", status_code=201, summary="Give a code for a new password")
def reset_password(account_id: AccountId, caller: Administrator, service: Here, request: Request) -> CodeTold:
    """The old password, and all sessions and tokens, are good no more."""
    shown_once(request)
    row, code = keeping.reset_password(service, caller, account_id)
    return CodeTold(account=AccountTold.of(row), code=code, expires_at=_ends())


@router.post("/accounts/{account_id}/second-factor/reset", status_code=204, summary="Take a lost second factor away")
def reset_second_factor(account_id: AccountId, caller: Administrator, service: Here) -> None:
    """Its owner begins a new one."""
    keeping.reset_second_factor(service, caller, account_id)


@router.post("/accounts/{account_id}/disable", summary="Disable an account")
def disable(account_id: AccountId, caller: Administrator, service: Here) -> AccountTold:
    """Nothing works with it from now on."""
    return AccountTold.of(keeping.disable(service, caller, account_id))


@router.post("/accounts/{account_id}/enable", summary="Enable an account")
def enable(account_id: AccountId, caller: Administrator, service: Here) -> AccountTold:
    """With its password; sessions, tokens and codes of before stay ended."""
    return AccountTold.of(keeping.enable(service, caller, account_id))


@router.get("/settings", summary="The settings that are no secret")
def settings(caller: Annotated[Caller, allowed("settings.read")], service: Here) -> SettingsTold:
    """No place, no key, no password."""
    found = service.settings
    return SettingsTold(
        version=__version__,
        base_url=found.base_url,
        slot=found.slot,
        longest=found.longest,
        secure_cookies=found.secure_cookies,
        session_idle=found.session_idle,
        session_longest=found.session_longest,
        sources=sorted(found.sources),
        oidc_issuer=None if found.oidc is None else found.oidc.issuer,
        body_limit=found.limits.body,
        requests_per_minute=found.limits.requests,
    )


def _ends() -> int:
    return database.now() + codes.DAYS * 86_400
