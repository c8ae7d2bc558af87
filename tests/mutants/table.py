"""All mutants, read from the files beside this one, and the few that the normal test run kills every time."""

from __future__ import annotations

import tomllib
from pathlib import Path

from .model import Mutant


def _read(path: Path) -> list[Mutant]:
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    return [Mutant(name, **{**entry, "tests": tuple(entry["tests"])}) for name, entry in entries.items()]


MUTANTS = tuple(mutant for path in sorted(Path(__file__).parent.glob("*.toml")) for mutant in _read(path))
QUICK = ("rows-per-person-not-priced", "more-rows-than-priced", "device-together")
