"""A real server on a socket, in a thread: for what a client in the same process cannot do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from sfumato.service.http.patience import patient


@contextmanager
def served(app: Any, *, patience: float = 5, **options: Any) -> Iterator[tuple[str, int]]:
    """An application on a socket of this machine."""
    listening = socket.create_server(("127.0.0.1", 0))
    options = {"http": patient(patience), "timeout_keep_alive": 1, **options}
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", **options))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
