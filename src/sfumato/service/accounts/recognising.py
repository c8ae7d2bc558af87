"""Who sends a request: by the cookie of a session or by a token, never by both.

A browser sends the cookie by itself, also with a request that another site made it send. So whatever changes something by
a session needs a token that the other site cannot read, and must not come from elsewhere if the browser says where from.
A request with a cookie *and* a token is refused: whichever of the two were taken, somebody could have meant the other.
"""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from fastapi import Request

from sfumato.service.accounts import sessions, tokens
from sfumato.service.fresh import digest_of
from sfumato.service.http.problems import ProblemError

if TYPE_CHECKING:
    from sfumato.service.context import Service
    from sfumato.service.http.access import Caller

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def cookie_name(service: Service, what: str = "sfumato") -> str:
    """What a cookie is called; with ``__Host-`` browsers take it from this host over HTTPS only."""
    return f"__Host-{what}" if service.settings.secure_cookies else what


def recognise(service: Service, request: Request) -> Caller | None:
    """The caller, or ``None`` for nobody that is known.

    Parameters
    ----------
    service : Service
    request : Request
    """
    shown = request.headers.getlist("authorization")
    cookie = request.cookies.get(cookie_name(service))
    if len(shown) > 1 or (shown and cookie is not None):
        raise ProblemError(400, "send either a session's cookie or one token, not both: it is not clear who is calling")
    if shown:
        return _by_token(service, shown[0])
    return None if cookie is None else _by_session(service, request, cookie)


def check_origin(service: Service, request: Request) -> None:
    """Refuse what a browser says another site made it send."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    if site not in ("same-origin", "none") or (origin is not None and not _is_own(service, request, origin)):
        raise ProblemError(403, "this request was made by another site; open the service's own address and do it there")


def _is_own(service: Service, request: Request, origin: str) -> bool:
    own = urlsplit(service.settings.base_url)
    if origin == f"{own.scheme}://{own.netloc}":
        return True
    # Behind a proxy the scheme may differ; the host was checked against the list before.
    try:
        found = urlsplit(origin)
    except ValueError:
        return False
    return found.scheme in ("http", "https") and bool(found.netloc) and found.netloc == request.headers.get("host")


def _by_session(service: Service, request: Request, secret: str) -> Caller | None:
    from sfumato.service.http.access import Caller

    row = sessions.found(service, secret)
    if row is None:
        return None
    if request.method not in SAFE:
        check_origin(service, request)
        given = digest_of(request.headers.get("x-csrf-token", ""))
        if not hmac.compare_digest(given, row.csrf):
            raise ProblemError(403, "this needs the header X-CSRF-Token, which GET /v1/session tells")
    return Caller(row.account_id, row.name, row.role, session=row.digest)


def _by_token(service: Service, shown: str) -> Caller | None:
    from sfumato.service.http.access import Caller

    scheme, _, secret = shown.partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret.startswith(tokens.PREFIX):
        return None
    row = tokens.found(service, secret)
    if row is None:
        return None
    scopes = frozenset(json.loads(row.scopes)) & tokens.scopes_of(row.role)
    return Caller(row.account_id, row.account_name, row.role, scopes=scopes)
