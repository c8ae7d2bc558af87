"""Whether the service is well, for probes and monitors. These routes lie outside the version: ``/healthz``, ``/readyz``."""

from __future__ import annotations

import hmac
import ipaddress
from typing import Any, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from sfumato.service.http.access import Here
from sfumato.service.http.problems import answer, missing
from sfumato.service.operations import health
from sfumato.service.operations.metrics import text
from sfumato.service.settings import Settings

router = APIRouter()
probes = APIRouter(tags=["operations"])
_PROBLEM: dict[str, Any] = {"content": {"application/problem+json": {}}}


class Alive(BaseModel):
    """The web process answers."""

    alive: Literal[True] = True


class Ready(BaseModel):
    """Every part answers."""

    database: bool
    ledger: bool
    runner: bool


@probes.get("/healthz")
def healthz() -> Alive:
    """Whether the web process lives. Asks nobody else, so a slow database does not get it restarted."""
    return Alive()


@probes.get("/readyz", response_model=Ready, responses={503: _PROBLEM | {"description": "A part does not answer."}})
def readyz(service: Here) -> Any:
    """Whether database, ledger and runner answer."""
    said = health.ready(service)
    if all(said.values()):
        return said
    absent = ", ".join(part for part, well in said.items() if not well)
    return answer(503, f"no answer from: {absent}; see the service's log, and restart what is down", parts=said)


@probes.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={404: _PROBLEM | {"description": "Not from here, and not without the token."}},
)
def metrics(request: Request, service: Here) -> PlainTextResponse:
    """Counters for Prometheus; from this machine, or with the token of the configuration."""
    if not _may_read(request, service.settings):
        raise missing()
    return PlainTextResponse(text(service, request.app.state.metrics), media_type="text/plain; version=0.0.4; charset=utf-8")


def is_loopback(host: str | None) -> bool:
    """Whether an address, or a name, is this machine itself.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org", None)]
    [True, True, True, False, False, False]
    """
    if host is None:
        return False
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _may_read(request: Request, settings: Settings) -> bool:
    """By the token; or from this machine, where nobody else can come from: behind a proxy everybody has its address."""
    given = request.headers.get("authorization", "").encode("utf-8", "replace")
    token = settings.metrics_token
    if token is not None:
        return hmac.compare_digest(given, f"Bearer {token}".encode())
    alone = is_loopback(urlsplit(settings.base_url).hostname) and is_loopback(settings.host) and not settings.proxies
    forwarded = {"forwarded", "x-forwarded-for", "via"} & set(request.headers)
    here = request.client is not None and is_loopback(request.client.host)
    return alone and here and not forwarded
