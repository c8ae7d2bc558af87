"""The configuration: one TOML file, with environment variables over it.

The list of sources is here and nowhere else: whoever uses the service names a source, and never says where it lies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class SourceSettings:
    """A private table that may be registered.

    Attributes
    ----------
    location : str
        A file or a URL, as a plan's ``[dataset] source``. Only the runner opens it.
    table, csv, engine : optional
        As in a plan's ``[dataset]``.
    """

    location: str = field(repr=False)
    table: Any = None
    csv: Mapping[str, Any] | None = None
    engine: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Settings:
    """What a service is run with.

    Attributes
    ----------
    state : Path
        The folder for databases, keys and artefacts.
    database : str
        The service's tables; by default a SQLite file in the state folder.
    ledger : str
        The ledger; by default a SQLite file in the state folder.
    sources : mapping
        Name -> the private table.
    rosters : mapping
        Name -> a roster of people's budgets in a table of its own, as a plan's ``[people] source``.
    slot : int
        Seconds between the moments at which answers are told.
    longest : int
        Seconds that a release may run.
    secure_cookies : bool
        Whether cookies need HTTPS; off only for trying things out on one machine.
    base_url : str
        Where people reach the service.
    """

    state: Path
    database: str = field(repr=False)
    ledger: str = field(repr=False)
    sources: Mapping[str, SourceSettings] = field(default_factory=dict)
    rosters: Mapping[str, SourceSettings] = field(default_factory=dict)
    slot: int = 60
    longest: int = 600
    secure_cookies: bool = True
    base_url: str = "http://127.0.0.1:8000"

    @classmethod
    def in_folder(cls, state: Path, **given: Any) -> Settings:
        """The defaults for a state folder."""
        given.setdefault("database", str(state / "service.db"))
        given.setdefault("ledger", str(state / "ledger.db"))
        return cls(state, **given)
