"""Who is calling, and whether the table of roles lets them: every route takes a `Caller` by `allowed`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request

from sfumato.service.context import Service
from sfumato.service.http.idempotency import begin
from sfumato.service.http.problems import ProblemError
from sfumato.service.roles import SECOND_FACTOR, Role, may


@dataclass(frozen=True)
class Caller:
    """Somebody who is signed in.

    Attributes
    ----------
    id : str
        Their account.
    name : str
        What it is called.
    role : Role
    scopes : frozenset of str or None
        The actions that their token may do; ``None`` for a session.
    session : str or None
        The digest of their session; ``None`` for a token.
    """

    id: str
    name: str
    role: Role
    scopes: frozenset[str] | None = None
    session: str | None = None


def service_of(request: Request) -> Service:
    """The service that the application was made for."""
    found: Service = request.app.state.service
    return found


Here = Annotated[Service, Depends(service_of)]


def current_caller(request: Request, service: Here) -> Caller | None:
    """Who is calling: by a session's cookie or by a token. Tests put somebody in their place."""
    from sfumato.service.accounts.recognising import recognise

    return recognise(service, request)


Anyone = Annotated[Caller | None, Depends(current_caller)]


def allowed(action: str) -> Any:
    """A dependency that gives the `Caller` if they may do `action`; the route is marked with it."""

    def check(caller: Anyone, request: Request, service: Here) -> Caller:
        if caller is None:
            raise ProblemError(401, "sign in, or send a token as Authorization: Bearer ...", {"WWW-Authenticate": "Bearer"})
        request.state.account = caller.id  # for the log
        if not may(caller.role, action):
            raise ProblemError(
                403, f"this needs another role than {caller.role}: see the table of roles in the documentation"
            )
        if caller.scopes is not None and action not in caller.scopes:
            raise ProblemError(403, f"this token may not do {action}; make one with that scope, or sign in")
        begin(service, caller.id, request)  # a request that is sent again is answered before it asks for another code
        if action in SECOND_FACTOR:
            from sfumato.service.accounts.second_factor import confirm_code

            confirm_code(service, caller, request.headers.get("X-One-Time-Code"))
        return caller

    check.action = action  # type: ignore[attr-defined]
    return Depends(check)


def action_of(route: Any) -> str | None:
    """The action that a route asks for; ``None`` for one that is open to everybody."""
    found = [getattr(d.call, "action", None) for d in _all(route.dependant)]
    return next((action for action in found if action is not None), None)


def _all(dependant: Any) -> list[Any]:
    return [dependant, *(inner for d in dependant.dependencies for inner in _all(d))]
