"""Signing in and out, invitations, OpenID Connect."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from sfumato.service.accounts import joining, oidc, second_factor, sessions, tokens
from sfumato.service.accounts.recognising import cookie_name
from sfumato.service.http import cookies
from sfumato.service.http.access import Caller, Here, allowed
from sfumato.service.http.account_models import (
    AccountBrief,
    Join,
    SessionTold,
    SetPassword,
    SignIn,
    StartOidc,
    Way,
    WhoIsCalling,
)
from sfumato.service.http.cookies import OwnSite
from sfumato.service.roles import ACTIONS, may

router = APIRouter(tags=["signing in"])


@router.post("/sign-in", summary="Sign in with a password")
def sign_in(body: SignIn, service: Here, address: OwnSite, request: Request, response: Response) -> SessionTold:
    """A new session in a cookie, and the token that requests which change something must carry."""
    caller, started = joining.sign_in(service, body.name, body.password, address, had=cookies.had(service, request))
    cookies.put_session(service, response, started)
    return SessionTold.of(caller, started)


@router.post("/join", status_code=201, summary="Make an account with an invitation")
def join(body: Join, service: Here, address: OwnSite, request: Request, response: Response) -> SessionTold:
    """A new account, and a session of it."""
    had = cookies.had(service, request)
    caller, started = joining.join(service, body.code, body.name, body.password, address, had=had)
    cookies.put_session(service, response, started)
    return SessionTold.of(caller, started)


@router.post("/set-password", status_code=204, summary="Set a password with a code of the administrator's")
def set_password(body: SetPassword, service: Here, address: OwnSite) -> None:
    """The new password counts from now on; sign in with it."""
    joining.set_password(service, body.code, body.password, address)


@router.post("/sign-out", status_code=204, summary="End this session")
def sign_out(caller: Annotated[Caller, allowed("session.end")], service: Here, response: Response) -> None:
    """The session is gone, not only its cookie."""
    if caller.session is not None:
        with service.store.write() as connection:
            sessions.end(connection, caller.session)
    cookies.drop(service, response, cookies.SESSION)


@router.post("/sign-out-elsewhere", status_code=204, summary="End all other sessions of this account")
def sign_out_elsewhere(caller: Annotated[Caller, allowed("session.end")], service: Here) -> None:
    """Whoever else was signed in must sign in again."""
    with service.store.write() as connection:
        sessions.end_all(connection, caller.id, but=caller.session)


@router.get("/session", summary="Who is calling")
def session(caller: Annotated[Caller, allowed("session.read")], service: Here, request: Request) -> WhoIsCalling:
    """The account, what it may do, and the token against forged requests."""
    secret = cookies.had(service, request) if caller.session is not None else None
    possible = {action for action in ACTIONS if may(caller.role, action)}
    return WhoIsCalling(
        account=AccountBrief.of(caller),
        actions=sorted(possible if caller.scopes is None else possible & caller.scopes - tokens.NEVER),
        csrf_token=None if secret is None else sessions.csrf_of(secret),
        second_factor=second_factor.has_one(service, caller.id),
    )


@router.post("/oidc/start", summary="Sign in with the provider of OpenID Connect")
def start_oidc(body: StartOidc, service: Here, address: OwnSite, response: Response) -> Way:
    """Where the browser goes on; a cookie binds what comes back to this browser."""
    url, sealed = oidc.start(service, body.code, body.name, address)
    cookies.put(service, response, cookies.ON_THE_WAY, sealed, oidc.LIVES, "lax")  # it must come along on the way back
    return Way(url=url)


@router.get("/oidc/callback", response_class=HTMLResponse, summary="Where the provider sends the browser back to")
def finish_oidc(
    service: Here,
    request: Request,
    state: Annotated[str, Query(max_length=200)] = "",
    code: Annotated[str, Query(max_length=2000)] = "",
) -> HTMLResponse:
    """A session, and a page that leads to the service: a cookie for this site alone does not come along on the way back."""
    sealed = request.cookies.get(cookie_name(service, cookies.ON_THE_WAY))
    _, started = oidc.finish(service, sealed, state, code, had=cookies.had(service, request))
    response = HTMLResponse(
        '<!doctype html><html lang="en"><meta http-equiv="refresh" content="0;url=/"><title>Signed in</title>'
        '<p>You are signed in. <a href="/">Go on</a></p></html>'
    )
    cookies.drop(service, response, cookies.ON_THE_WAY)
    cookies.put_session(service, response, started)
    return response
