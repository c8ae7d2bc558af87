"""The web server: uvicorn with limits on what a client may hold, and rules about where it may listen.

A request must arrive, and its answer be taken, in the time of `sfumato.service.http.patience`. Beyond `CONNECTIONS` of them
at once the answer is 503.
"""

from __future__ import annotations

import socket
from typing import Any, Final
from urllib.parse import urlsplit

import uvicorn

from sfumato.errors import InputError
from sfumato.service.context import Service
from sfumato.service.http.operations import is_loopback
from sfumato.service.http.patience import patient
from sfumato.service.settings import Settings

KEEP_ALIVE_SECONDS: Final = 5
STOP_SECONDS: Final = 20
HEADER_BYTES: Final = 32_768
CONNECTIONS: Final = 512


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


def is_only_here(settings: Settings) -> bool:
    """Whether nobody but this machine can reach the service."""
    return is_loopback(settings.host) and is_loopback(urlsplit(settings.base_url).hostname)


def server_for(app: Any, settings: Settings) -> uvicorn.Server:
    """The server for an application; it is not started."""
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=patient(settings.limits.body_seconds),
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
