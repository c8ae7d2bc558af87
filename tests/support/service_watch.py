"""Watches what Python does with the outside while a request is answered: files, folders, sockets, processes, databases.

A text of a request that ever becomes part of a path or an address is seen here, whatever code did it, because Python's audit
hooks stand below all of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_KINDS = (
    "open",
    "os.",
    "socket.",
    "sqlite3.connect",
    "subprocess.",
    "shutil.",
    "glob.",
    "urllib.",
    "ctypes.dlopen",
    "import",
)
_watchers: list[Watcher] = []
_hooked = False


class Watcher:
    """What was seen: every event whose arguments hold one of the `marks`, and every address that was connected to."""

    def __init__(self, *marks: str) -> None:
        self.marks = marks
        self.seen: list[str] = []

    def notice(self, event: str, args: tuple[Any, ...]) -> None:
        """Called for each event of interest."""
        if event in ("socket.connect", "socket.getaddrinfo"):
            self.seen.append(f"{event} {args[1:] if event == 'socket.connect' else args[:2]}")
            return
        told = " ".join(_plain(argument) for argument in args)
        if any(mark in told for mark in self.marks):
            self.seen.append(f"{event} {told}")


def _plain(argument: Any) -> str:
    if isinstance(argument, bytes):
        return argument.decode("utf-8", "replace")
    return argument if isinstance(argument, str) else repr(argument) if isinstance(argument, (tuple, list)) else ""


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _watchers and event.startswith(_KINDS):
        for watcher in _watchers:
            watcher.notice(event, args)


@contextmanager
def watching(*marks: str) -> Iterator[Watcher]:
    """Watch for the time of a block. Python keeps a hook for ever, so there is one, which looks at nothing otherwise."""
    global _hooked
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked = True
    watcher = Watcher(*marks)
    _watchers.append(watcher)
    try:
        yield watcher
    finally:
        _watchers.remove(watcher)
