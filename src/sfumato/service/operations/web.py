"""The web server: uvicorn with limits against clients that are slow on purpose, and rules about where it may listen.

Headers must have arrived within `HEADER_SECONDS` of a connection or of the answer before, however they trickle; the body has
its time from `sfumato.service.http.guarding`; whoever does not read an answer for `UNREAD_SECONDS` is cut off. A connection is
counted from the first byte on, and beyond `CONNECTIONS` of them the answer is 503.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final
from urllib.parse import urlsplit

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sfumato.errors import InputError
from sfumato.service.context import Service
from sfumato.service.http.operations import is_loopback
from sfumato.service.settings import Settings

HEADER_SECONDS: Final = 10
UNREAD_SECONDS: Final = 60
KEEP_ALIVE_SECONDS: Final = 5
STOP_SECONDS: Final = 20
HEADER_BYTES: Final = 32_768
CONNECTIONS: Final = 512


class Impatient(H11Protocol):
    """HTTP/1.1 that closes a connection whose request does not arrive, or whose answer is not read.

    Parameters
    ----------
    *given, **named
        As uvicorn makes its protocols.
    """

    header_seconds: float = HEADER_SECONDS
    unread_seconds: float = UNREAD_SECONDS

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._waiting: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected by `transport`: its first request is due."""
        super().connection_made(transport)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone, with `exc` or in peace."""
        self._forget()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """An answer was sent: the next request is due, if there is one."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._expect()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.unread_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _expect(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = self.loop.call_later(self.header_seconds, self._late)

    def _late(self) -> None:
        if self.cycle is None or self.cycle.response_complete:  # no request is being answered
            self.transport.abort()

    def _forget(self) -> None:
        for timer in (self._waiting, self._unread):
            if timer is not None:
                timer.cancel()


def check_place(settings: Settings) -> None:
    """Refuse to listen to other machines without HTTPS in front: passwords and sessions would travel in the open.

    Parameters
    ----------
    settings : Settings
        With the host and port that will be used.
    """
    outside = not is_loopback(settings.host)
    https = urlsplit(settings.base_url).scheme == "https"
    if outside and not (https and settings.secure_cookies):
        raise InputError(
            f"{settings.host} can be reached by other machines, and then base_url must begin with https:// and "
            "secure_cookies be true: put a proxy with a certificate before the service, or listen on 127.0.0.1"
        )
    if https and not settings.secure_cookies:
        raise InputError("base_url begins with https://, so secure_cookies must be true; delete the line that says false")
    if not https and not is_loopback(urlsplit(settings.base_url).hostname):
        raise InputError("base_url names another machine without https://; passwords would travel in the open")


def server_for(app: Any, settings: Settings) -> uvicorn.Server:
    """The server for an application; it is not started."""
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=Impatient,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
        h11_max_incomplete_event_size=HEADER_BYTES,
    )
    return uvicorn.Server(config)


def listening(settings: Settings) -> socket.socket:
    """The socket, so that a port that is taken is told before anything else is started."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((settings.host, settings.port))
    except OSError as error:
        found.close()
        raise InputError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror}; stop what listens there, or choose "
            "another port with --port"
        ) from None
    return found


def application(service: Service) -> Any:
    """The application of an open service."""
    from sfumato.service.http.app import create_app

    return create_app(service)
