"""A queue before a ledger in a file: whoever wants to write waits in line instead of knocking.

SQLite lets one process write at a time. A process that finds another one writing sleeps and tries again, ever more
seldom, so with many of them whoever came last often gets in first and some wait for seconds. Here they wait for an empty
file (`flock`), in the kernel, which wakes them one after the other.

The queue is politeness and nothing rests on it. Who may write is decided by SQLite, as ever; a writer that cannot queue
(no `flock` on this system, no folder for its files) or has waited for `PATIENCE` goes on without. The kernel lets go of
the file when its holder ends, however it ends, so a killed process leaves the next one nothing to clean up.

The files are in a folder of the user's own below the temporary one, and not beside the ledger, where they would be left
lying: there are `LINES` of them for all ledgers together. Ledgers that share one wait a little for each other.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None

PATIENCE = 30.0  # seconds in line; then SQLite's own waiting begins
LINES = 256
_held: set[int] = set()  # open files of the queue: a forked child must not keep its parent's place


@contextmanager
def turn(database: str) -> Iterator[None]:
    """One's turn to write to the ledger in the file `database`, from the beginning of the block to its end."""
    place = _opened(database)
    if place is None:
        yield
        return
    try:
        _wait(place)
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(place, fcntl.LOCK_UN)  # at once, even if a child that is being forked has a copy
        _let_go(place)


def line_of(database: str) -> str | None:
    """The file to wait for before writing to the ledger in the file `database`; ``None`` if there can be none."""
    folder = os.path.join(tempfile.gettempdir(), f"sfumato-{os.geteuid()}")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.lstat(folder)
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():  # anybody may have made it first
        return None
    number = hashlib.sha256(os.path.realpath(database).encode("utf-8", "surrogateescape")).digest()[0]
    return os.path.join(folder, f"queue-{number % LINES:02x}")


def _opened(database: str) -> int | None:
    line = None if fcntl is None else line_of(database)
    if line is None:
        return None
    try:
        place = os.open(line, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    _held.add(place)
    return place


def _let_go(place: int) -> None:
    if place in _held:  # not in a child that was forked meanwhile
        _held.discard(place)
        with suppress(OSError):
            os.close(place)


def _wait(place: int) -> None:
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    except BlockingIOError:
        pass
    except OSError:
        return
    # The kernel waits without a limit; a thread that waits in our place can be left behind. It has a copy of the file.
    ours, came = os.dup(place), threading.Event()
    _held.add(ours)

    def stand() -> None:
        with suppress(OSError):
            fcntl.flock(ours, fcntl.LOCK_EX)
        came.set()
        _let_go(ours)

    threading.Thread(target=stand, name="sfumato ledger queue", daemon=True).start()
    came.wait(PATIENCE)


def _forked() -> None:
    """A child holds copies of its parent's files, and would keep the queue waiting after the parent's end."""
    for place in list(_held):
        with suppress(OSError):
            os.close(place)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
