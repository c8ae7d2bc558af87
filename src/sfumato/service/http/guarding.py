"""What stands before every route: host, rate, address, size and time of the body; and the headers of every answer."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import MutableMapping
from typing import Any, Final

from anyio import to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.service.context import Service
from sfumato.service.http import idempotency
from sfumato.service.http.addresses import counted_address
from sfumato.service.http.problems import UNFORESEEN, answer
from sfumato.service.http.readable import fault_of_address, fault_of_json
from sfumato.service.http.throttle import Throttle

SECURITY_HEADERS: Final[dict[str, str]] = {
    "content-security-policy": (
        "default-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
LARGER_BODIES: Final[list[tuple[re.Pattern[str], int]]] = [(re.compile(r"/v1/datasets/[^/]{1,80}/people"), 8_388_608)]
"""Addresses that take more than the limit for bodies, and how many bytes."""
_PROBES = frozenset({"/healthz", "/readyz"})  # whoever asks whether the service lives may know its address only
_SHORT = 65_536
_ADDRESS_SHARE = 4  # one address may be a house full of people


class _RefusedError(Exception):
    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}


class Guard:
    """A middleware that refuses what no route should see, and marks every answer.

    Parameters
    ----------
    app : ASGI application
    service : Service
        Whose settings say how much is allowed.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service
        settings = service.settings
        self._hosts = {host.lower() for host in settings.hosts}
        self._callers = Throttle(settings.limits.requests)
        self._addresses = Throttle(settings.limits.requests * _ADDRESS_SHARE)
        self._headers = dict(SECURITY_HEADERS)
        if settings.secure_cookies:
            self._headers["strict-transport-security"] = "max-age=31536000; includeSubDomains"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        marked = self._marking(scope, send)
        headers = _headers_of(scope)
        try:
            self._check_address(scope, headers)
            self._check_rate(scope, headers)
            body = await self._body(scope, headers, receive)
            fault = await _fault_of(body) if _is_json(headers) else None
            if fault is not None:
                raise _RefusedError(422, f"{fault}; send it without")
        except _RefusedError as refused:
            response = answer(refused.status, refused.detail, refused.headers)
            await response(scope, receive, marked)
            return
        except _GoneError:
            return
        await self._answered(scope, headers, body, receive, marked)

    def _check_address(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        host = _name_in(headers.get(b"host", b"").decode("latin-1"))
        if host not in self._hosts and scope["path"] not in _PROBES:
            raise _RefusedError(400, "the service is not called this; use the address that its administrator gave you")
        fault = fault_of_address(
            scope.get("raw_path") or scope["path"].encode(errors="surrogatepass"), scope["query_string"]
        )
        if fault is not None:
            raise _RefusedError(422, f"{fault}; send it without")

    def _check_rate(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        address = counted_address(scope.get("client"))
        wait = self._addresses.wait(address)
        shown = headers.get(b"authorization", b"") + headers.get(b"cookie", b"")
        if not wait:
            wait = self._callers.wait(hashlib.sha256(shown).hexdigest() if shown else address)
        if wait:
            raise _RefusedError(
                429, f"that was more than {self._service.settings.limits.requests} requests in a minute; wait {wait} s",
                {"Retry-After": str(wait)},
            )  # fmt: skip

    async def _body(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        """The whole body, within its limits of size and time."""
        limits = self._service.settings.limits
        most = next((size for path, size in LARGER_BODIES if path.fullmatch(scope["path"])), limits.body)
        told = headers.get(b"content-length", b"0")
        if not told.isdigit() or len(told) > 18:
            raise _RefusedError(400, "Content-Length is not a number", {"Connection": "close"})
        too_large = _RefusedError(413, f"a body may have {most} bytes; send less", {"Connection": "close"})
        if int(told) > most:
            raise too_large
        parts, size = [], 0
        try:
            async with asyncio.timeout(limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _GoneError
                    part = message.get("body", b"")
                    size += len(part)
                    if size > most:
                        raise too_large
                    parts.append(part)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise _RefusedError(
                408, f"the body did not arrive within {limits.body_seconds} s; send it again", {"Connection": "close"}
            ) from None

    async def _answered(self, scope: Scope, headers: dict[bytes, bytes], body: bytes, receive: Receive, send: Send) -> None:
        state: MutableMapping[str, Any] = scope.setdefault("state", {})
        handed = False

        async def again() -> Message:
            nonlocal handed
            if handed:
                return await receive()
            handed = True
            return {"type": "http.request", "body": body, "more_body": False}

        if scope["method"] != "POST" or idempotency.HEADER.encode() not in headers:
            await self._foreseen(scope, again, send)
            return
        state["request_digest"] = idempotency.digest_of_request(scope["method"], scope["path"], scope["query_string"], body)
        await self._foreseen(scope, again, _Keeping(self._service, scope, send))

    async def _foreseen(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Errors that nobody foresaw are answered here, with the headers; whoever logs them gets them too."""
        started = False

        async def noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception:
            if not started:
                await answer(500, UNFORESEEN)(scope, receive, noting)
            raise

    def _marking(self, scope: Scope, send: Send) -> Send:
        added = [(name.encode(), value.encode()) for name, value in self._headers.items()]
        api = scope["path"].startswith("/v1/")

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message.get("headers", [])}
                more = [*added, (b"cache-control", b"no-store")] if api else added
                message["headers"] = [*message.get("headers", []), *(pair for pair in more if pair[0] not in there)]
            await send(message)

        return marked


class _GoneError(Exception):
    """The client hung up before its request was whole."""


class _Keeping:
    """Sends an answer on, after it was kept for whoever asks again: a client that hung up may ask again."""

    def __init__(self, service: Service, scope: Scope, send: Send) -> None:
        self._service, self._scope, self._send = service, scope, send
        self._held: list[Message] = []

    async def __call__(self, message: Message) -> None:
        begun = idempotency.begun_in(self._scope)
        if begun is None:
            await self._send(message)
            return
        self._held.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            status = self._held[0]["status"]
            body = b"".join(held.get("body", b"") for held in self._held[1:])
            await to_thread.run_sync(idempotency.finish, self._service, begun, status, body)
            for held in self._held:
                await self._send(held)


async def _fault_of(body: bytes) -> str | None:
    """A long body is looked at beside the others' requests, not before them."""
    return fault_of_json(body) if len(body) <= _SHORT else await to_thread.run_sync(fault_of_json, body)


def _headers_of(scope: Scope) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.lower(), value)
    return found


def _is_json(headers: dict[bytes, bytes]) -> bool:
    kind = headers.get(b"content-type", b"application/json").split(b";")[0].strip().lower()
    return kind == b"application/json" or kind.endswith(b"+json")


def _name_in(host: str) -> str:
    """The name in a Host header, without the port."""
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]@/\\\s]+)(?::\d{1,5})?", host)
    return found[1].strip("[]").lower() if found else ""
