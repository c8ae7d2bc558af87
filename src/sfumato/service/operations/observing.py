"""What is written down about every request: a number that its answer carries, a line in the log, the counters.

It stands around everything else, so a request that is refused for its size or its rate is seen too.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, Final

from sfumato.service.fresh import fresh_id
from sfumato.service.operations.logs import LOGGER
from sfumato.service.operations.metrics import METHODS, Metrics

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER: Final = b"x-request-id"
PREFIX: Final = "/v1/"
_GIVEN: Final = re.compile(rb"[A-Za-z0-9_-]{8,64}")


class Observing:
    """Middleware that counts and logs requests.

    Parameters
    ----------
    app : ASGI application
        What is inside.
    metrics : Metrics
        What counts.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        number, start, status = _number(scope), time.perf_counter(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [(k, v) for k, v in message.get("headers", ()) if k.lower() != HEADER]
                message = {**message, "headers": [*headers, (HEADER, number.encode())]}
            await send(message)

        error: BaseException | None = None
        try:
            await self._app(scope, receive, sending)
        except Exception as failed:
            error = failed
            raise
        finally:
            self._write_down(scope, number, status, time.perf_counter() - start, error)

    def _write_down(self, scope: Scope, number: str, status: int, seconds: float, error: BaseException | None) -> None:
        template = template_of(scope)
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._metrics.count(method, template, status, seconds)
        about: dict[str, Any] = {"request": number, "method": method, "route": template, "status": status}
        about["account"] = scope.get("state", {}).get("account")
        told = None if error is None else (type(error), error, error.__traceback__)
        LOGGER.log(40 if status >= 500 else 20, "request", extra=about, exc_info=told)


def template_of(scope: Scope) -> str | None:
    """The template of the route that a request found; ``None`` for none."""
    path = getattr(scope.get("route"), "path", None)
    if not isinstance(path, str):
        return None
    # FastAPI keeps included routers whole, or, in older versions, copies their routes with the prefix.
    return path if path.startswith(PREFIX) or not scope["path"].startswith(PREFIX) else PREFIX + path.removeprefix("/")


def _number(scope: Scope) -> str:
    """The number that a proxy gave a request, if it is plain, or a new one."""
    given = next((value for name, value in scope["headers"] if name == HEADER), b"")
    return given.decode() if _GIVEN.fullmatch(given) else fresh_id("request")
