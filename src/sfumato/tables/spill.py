"""Folders for what does not fit into memory: rows of the private table, so nobody else may read, spoil or find them later.

Each has the mode 0700 in a folder where nobody else can rename it, and holds a file that its process keeps locked. It goes
with its engine, or with the process. What a killed process left behind is removed when the next one makes its first folder
beside it: the operating system has let go of the lock by then, whatever number the process had.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from sfumato.errors import InputError

# None on Windows, where folders for temporary files are the user's own.
fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None

PREFIX: Final = "sfumato-spill-"
_LOCK: Final = "in-use"
_ROWS: Final = "rows"  # DuckDB removes the folder it is given when it closes; the lock lies beside it


@dataclass(frozen=True)
class Spill:
    """A private folder for spilled rows, and the descriptor that holds its lock."""

    folder: str
    held: int | None
    process: int

    @property
    def rows(self) -> str:
        """Where DuckDB may write."""
        return os.path.join(self.folder, _ROWS)

    def remove(self) -> None:
        """Remove the folder with all that is in it, in the process that made it: a forked child may end before that."""
        if os.getpid() == self.process:
            shutil.rmtree(self.folder, ignore_errors=True)
            if self.held is not None:
                os.close(self.held)


def fresh_spill(parent: str | Path | None = None) -> Spill:
    """A new private folder in `parent`; whoever asks sees to its end."""
    return _made(_parent(parent))


def spill_of_process(parent: str | Path | None = None) -> str:
    """Where all of this process may write that uses `parent`, in one private folder that is removed at its end."""
    return _of_process(os.getpid(), _parent(parent)).rows


@cache
def _of_process(_process: int, parent: str) -> Spill:
    made = _made(parent)
    atexit.register(made.remove)
    return made


def _parent(given: str | Path | None) -> str:
    place = os.path.abspath(tempfile.gettempdir() if given is None else given)
    try:
        mode = os.stat(place).st_mode
    except OSError:
        mode = 0
    if not stat.S_ISDIR(mode) or not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"the spill folder {place!r} is not a folder that can be written to; make it, or name another")
    if fcntl is not None and mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise InputError(
            f"anybody may rename what lies in the spill folder {place!r}, so rows are not safe there; name another "
            f"(engine={{'spill': ...}}, SFUMATO_SPILL), or chmod +t {place}"
        )
    return place


@cache
def _sweep_once(_process: int, parent: str) -> None:
    sweep(parent)  # looking through a full folder takes longer than opening an engine


def _made(parent: str) -> Spill:
    _sweep_once(os.getpid(), parent)
    folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent)
    if fcntl is None:
        return Spill(folder, None, os.getpid())
    # Locked under another name first: a lock that is there and free means that its owner is gone.
    made = os.path.join(folder, "new")
    held = os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.rename(made, os.path.join(folder, _LOCK))
    return Spill(folder, held, os.getpid())


def sweep(parent: str | Path) -> None:
    """Remove the folders in `parent` that processes of this user left behind when they were killed."""
    if fcntl is None:
        return
    for folder in Path(parent).glob(f"{PREFIX}*"):
        try:
            about = folder.lstat()
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
                continue
            held = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue  # just being made, or just removed
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # its process lives
        finally:
            os.close(held)
