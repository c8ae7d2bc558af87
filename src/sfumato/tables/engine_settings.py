"""What DuckDB in this process may use: memory, threads, and the folder to which it moves what does not fit.

Said in a call (``engine={"memory_limit": "4GB"}``), in a plan ([dataset.engine]) or in the environment; a call or plan goes
before the environment. Settings change how an answer is computed, not what is asked: they are no part of a request.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from sfumato.errors import InputError
from sfumato.tables.words import did_you_mean

KEYS: Final = ("memory_limit", "threads", "spill")
VARIABLES: Final = {
    "memory_limit": "SFUMATO_DUCKDB_MEMORY",
    "threads": "SFUMATO_DUCKDB_THREADS",
    "spill": "SFUMATO_SPILL",
}
LEAST_MEMORY: Final = 64 * 10**6
MOST_THREADS: Final = 1024
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([KMGT])(i?)B", re.IGNORECASE)


@dataclass(frozen=True)
class EngineSettings:
    """What DuckDB in this process may use.

    Parameters
    ----------
    memory_limit : str, optional
        The most memory, as ``"4GB"`` or ``"512MiB"``; DuckDB takes four fifths of the machine's if nothing is said.
    threads : int, optional
        The most threads; one for each processor if nothing is said.
    spill : str or path, optional
        The folder in which a private folder is made for what does not fit into memory; that for temporary files if nothing
        is said.

    Examples
    --------
    >>> EngineSettings.of({"memory_limit": "4GB", "threads": 2})
    EngineSettings(memory_limit='4GB', threads=2, spill=None)
    >>> EngineSettings(memory_limit="lots")
    Traceback (most recent call last):
    ...
    sfumato.errors.InputError: engine memory_limit is a size such as '4GB' or '512MiB'; got 'lots'
    """

    memory_limit: str | None = None
    threads: int | None = None
    spill: str | Path | None = None

    def __post_init__(self) -> None:
        if self.memory_limit is not None:
            _check_memory(self.memory_limit, "engine memory_limit")
        if self.threads is not None:
            _check_threads(self.threads, "engine threads")
        if self.spill is not None and not (isinstance(self.spill, str | Path) and str(self.spill).strip()):
            raise InputError(f"engine spill is the path of a folder; got {self.spill!r}")

    @classmethod
    def of(cls, given: EngineSettings | Mapping[str, Any] | None, what: str = "engine") -> EngineSettings | None:
        """From `given`, the keys of a plan file or of a call, which `what` names in errors; None where nothing is said."""
        if given is None or isinstance(given, EngineSettings):
            return given
        if not isinstance(given, Mapping):
            raise InputError(f"{what} holds memory_limit, threads and spill, as {{memory_limit = '4GB'}}; got {given!r}")
        for key in given:
            if key not in KEYS:
                raise InputError(f"{what} has an unknown key {key!r}; {did_you_mean(str(key), KEYS)}")
        return cls(**given)

    @property
    def asked(self) -> bool:
        """Whether anything is said."""
        return self != EngineSettings()

    def with_environment(self) -> EngineSettings:
        """The same, with what the environment says where this says nothing."""
        memory, threads, spill = (os.environ.get(VARIABLES[key]) or None for key in KEYS)
        found = self
        if found.memory_limit is None and memory is not None:
            _check_memory(memory, VARIABLES["memory_limit"])
            found = replace(found, memory_limit=memory)
        if found.threads is None and threads is not None:
            if not threads.isascii() or not threads.isdecimal():
                raise InputError(f"{VARIABLES['threads']} is a whole number of threads; got {threads!r}")
            _check_threads(int(threads), VARIABLES["threads"])
            found = replace(found, threads=int(threads))
        return found if found.spill is not None or spill is None else replace(found, spill=spill)


def _check_memory(given: Any, what: str) -> None:
    size = _SIZE.fullmatch(given.strip()) if isinstance(given, str) else None
    if size is None:
        raise InputError(f"{what} is a size such as '4GB' or '512MiB'; got {given!r}")
    unit = (1024 if size[3] else 1000) ** ("KMGT".index(size[2].upper()) + 1)
    if float(size[1]) * unit < LEAST_MEMORY:
        raise InputError(f"{what} is at least 64MB: with less, DuckDB cannot even move things to disk; got {given!r}")


def _check_threads(given: Any, what: str) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST_THREADS:
        raise InputError(f"{what} is a whole number between 1 and {MOST_THREADS}; got {given!r}")
