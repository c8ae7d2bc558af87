"""DuckDB in this process: fresh ones for files and frames, and read-only ones on database files, within their settings."""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.tables.engine_settings import EngineSettings
from sfumato.tables.engines import Engine
from sfumato.tables.plain_duckdb import PlainDuckDB
from sfumato.tables.spill import fresh_spill, spill_of_process

_opening = threading.Lock()
# DuckDB has one engine for each file in a process: who opens it again shares memory, threads and folder with the others.
_settings: dict[str, EngineSettings] = {}
_open: dict[str, list[weakref.ref[Any]]] = {}


def fresh_duckdb(settings: EngineSettings | None = None) -> Any:
    """A DuckDB of its own; private rows that it spills lie where nobody else can read or spoil them, and go with it."""
    wanted = (settings or EngineSettings()).with_environment()
    spill = fresh_spill(wanted.spill)
    try:
        backend = PlainDuckDB(temp_directory=spill.rows, **_config(wanted))
    except Exception:
        spill.remove()
        raise
    weakref.finalize(backend, spill.remove)
    return backend


def duckdb_file(path: str, settings: EngineSettings | None = None) -> Any:
    """DuckDB on a database file, read-only; settings that another connection of this process contradicts are refused."""
    asked, place = settings or EngineSettings(), os.path.realpath(path)
    with _opening:
        others = [known for known in _open.get(place, ()) if known() is not None]
        wanted = _settings[place] if others and not asked.asked else asked.with_environment()
        if others and wanted != _settings[place]:
            raise InputError(
                f"{path!r} is open in this process with other engine settings, and DuckDB has one engine for a file: give "
                f"the same ({_words(_settings[place])}), or leave them out"
            )
        folder = spill_of_process(wanted.spill)
        backend = PlainDuckDB(str(Path(path).absolute()), read_only=True, temp_directory=folder, **_config(wanted))
        _settings[place] = wanted
        _open[place] = [*others, weakref.ref(backend)]
    return backend


def _config(settings: EngineSettings) -> dict[str, Any]:
    given = {"memory_limit": settings.memory_limit, "threads": settings.threads}
    return {key: value for key, value in given.items() if value is not None}


def _words(settings: EngineSettings) -> str:
    said = {"memory_limit": settings.memory_limit, "threads": settings.threads, "spill": settings.spill}
    return ", ".join(f"{key} {str(value)!r}" for key, value in said.items() if value is not None) or "none"


def shared_duckdb(near: Engine | None, settings: EngineSettings | None = None) -> Engine:
    """An engine without a table yet, on the DuckDB of `near` if it is one."""
    if near is not None and near.name == "duckdb":
        return Engine(near.backend, None, "duckdb", pending=near.pending, spare=near.spare)
    return Engine(fresh_duckdb(settings), None, "duckdb")


def open_duckdb_url(url: str, settings: EngineSettings | None) -> Any:
    """The backend of ``duckdb:///file.db``; None if there is no such file."""
    path = url.removeprefix("duckdb://").removeprefix("/").partition("?")[0]
    return duckdb_file(path, settings) if Path(path).exists() else None
