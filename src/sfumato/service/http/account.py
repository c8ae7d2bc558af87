"""One's own account: password, second factor, tokens."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Path, Request
from sqlalchemy import select

from sfumato.service.accounts import joining, second_factor, tokens
from sfumato.service.http.access import Caller, Here, allowed
from sfumato.service.http.account_models import ChangePassword, Confirm, Enrol, Enrolled, NewToken, TokenMade, TokenTold
from sfumato.service.http.idempotency import shown_once
from sfumato.service.http.paging import Listed, Page, page
from sfumato.service.store import schema

router = APIRouter(tags=["one's own account"])
TokenId = Annotated[str, Path(max_length=80)]


@router.post("/account/password", status_code=204, summary="Change the password")
def change_password(body: ChangePassword, caller: Annotated[Caller, allowed("password.change")], service: Here) -> None:
    """The new one counts from now on; all other sessions end."""
    joining.change_password(service, caller, body.password, body.new_password)


@router.post("/account/second-factor", status_code=201, summary="Begin a second factor")
def enrol(
    body: Enrol, caller: Annotated[Caller, allowed("second_factor.manage")], service: Here, request: Request
) -> Enrolled:
    """A secret for an app for one-time codes, shown once; it counts when it is confirmed."""
    shown_once(request)
    joining.prove(service, caller, body.password)
    secret, uri = second_factor.enrol(service, caller)
    return Enrolled(secret=secret, uri=uri)


@router.post("/account/second-factor/confirm", status_code=204, summary="Confirm a second factor")
def confirm(body: Confirm, caller: Annotated[Caller, allowed("second_factor.manage")], service: Here) -> None:
    """With a code that the app shows; all other sessions end."""
    second_factor.confirm(service, caller, body.code)


@router.post("/tokens", status_code=201, summary="Make a token")
def make_token(
    body: NewToken, caller: Annotated[Caller, allowed("tokens.manage")], service: Here, request: Request
) -> TokenMade:
    """Its secret is shown once."""
    shown_once(request)
    token, secret, expires_at = tokens.make(service, caller, body.name, body.scopes, body.days)
    return TokenMade(id=token, token=secret, expires_at=expires_at)


@router.get("/tokens", summary="One's own tokens")
def list_tokens(caller: Annotated[Caller, allowed("tokens.manage")], service: Here, asked: Page) -> Listed[TokenTold]:
    """Without their secrets."""
    found = schema.tokens
    with service.store.read() as connection:
        mine = select(found).where(found.c.account_id == caller.id)
        rows, older = page(connection, mine, asked, found.c.created_at, found.c.id)
    items = [
        TokenTold(
            id=row.id,
            name=row.name,
            scopes=json.loads(row.scopes),
            created_at=row.created_at,
            expires_at=row.expires_at,
            revoked_at=row.revoked_at,
        )
        for row in rows
    ]
    return Listed(items=items, older=older)


@router.delete("/tokens/{token_id}", status_code=204, summary="Revoke a token")
def revoke_token(token_id: TokenId, caller: Annotated[Caller, allowed("tokens.manage")], service: Here) -> None:
    """It works no more."""
    tokens.revoke(service, caller, token_id)
