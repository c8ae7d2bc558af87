"""Where tests put ledgers that are opened and closed thousands of times: in memory, if this machine has room there.

These tests kill processes, never the operating system, and waiting for a disk would be most of what they do.
(PostgreSQL runs without waiting for the disk for the same reason.) That a charge does wait is tested by the settings of
every connection.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_PLACE, _ROOM = Path("/dev/shm"), 10**9


def memory() -> str | None:
    """A folder in memory for `tempfile`; ``None``, which is the usual one, where there is none or it is small."""
    if _PLACE.is_dir() and os.access(_PLACE, os.W_OK) and shutil.disk_usage(_PLACE).free > _ROOM:
        return str(_PLACE)
    return None
