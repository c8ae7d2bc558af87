"""The cookies of the service: of a session, and of somebody on their way through a provider of OpenID Connect."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from fastapi import Depends, Request, Response

from sfumato.service.accounts.recognising import check_origin, cookie_name
from sfumato.service.accounts.sessions import Started
from sfumato.service.context import Service
from sfumato.service.http.access import Here
from sfumato.service.http.addresses import counted_address

SESSION: Final = "sfumato"
ON_THE_WAY: Final = "sfumato-oidc"


def put(
    service: Service, response: Response, what: str, value: str, seconds: int, samesite: Literal["strict", "lax"] = "strict"
) -> None:
    """Set a cookie that no script reads and no other host gets."""
    response.set_cookie(
        cookie_name(service, what),
        value,
        max_age=seconds,
        path="/",
        secure=service.settings.secure_cookies,
        httponly=True,
        samesite=samesite,
    )


def put_session(service: Service, response: Response, started: Started) -> None:
    """Set the cookie of a session."""
    put(service, response, SESSION, started.secret, service.settings.session_longest)


def drop(service: Service, response: Response, what: str) -> None:
    """Take a cookie back."""
    secure = service.settings.secure_cookies
    response.delete_cookie(cookie_name(service, what), path="/", secure=secure, httponly=True, samesite="strict")


def had(service: Service, request: Request) -> str | None:
    """The secret of the session that a browser has."""
    return request.cookies.get(cookie_name(service, SESSION))


def address_of(request: Request) -> str:
    """Where a request comes from."""
    return counted_address(request.client)


def _own_site(request: Request, service: Here) -> str:
    check_origin(service, request)
    return address_of(request)


OwnSite = Annotated[str, Depends(_own_site)]
"""The address of a request that no other site made a browser send: for routes without a session."""
