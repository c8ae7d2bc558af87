"""Who works on a job: a lock on a file that all of its processes hold, and that is free only when every one of them is gone.

A runner that gave no sign of life may still live. Its lock says so: whoever cannot have it leaves the job alone. A process
that makes a release has the lock from its runner (it is the same open file), and keeps it if the runner is killed.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class Lock:
    """A lock that is held. Get one with `taken`.

    Parameters
    ----------
    path : Path
        The file.
    handle : int
        The open file.
    """

    def __init__(self, path: Path, handle: int) -> None:
        self._path, self._handle = path, handle

    @classmethod
    def taken(cls, state: Path, job_id: str) -> Lock | None:
        """The lock of a job; ``None`` if somebody has it."""
        folder = state / "locks"
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / job_id
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return cls(path, handle)

    def free(self, *, for_good: bool = False) -> None:
        """Let others have it; `for_good` where nobody will want it again."""
        if for_good:
            self._path.unlink(missing_ok=True)
        os.close(self._handle)
