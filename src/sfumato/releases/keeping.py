"""Where the spending of a table is written down, and what is said where that starts afresh.

A budget is worth what its ledger remembers. So a ledger is found beside a file, also for a glob or a DuckDB file; for
anything else it is named. One that is forgotten with the object is asked for by name, or warned of. And whatever makes a
budget fresh (no ledger yet, another name in a ledger that exists, certificates of earlier releases without their ledger)
is said.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from sfumato.errors import InputError, PrivacyWarning
from sfumato.ledger import datasets_at
from sfumato.tables.addresses import without_secrets

MEMORY: Final = ":memory:"
"""The ledger that is forgotten with the object that opened it."""

FORGOTTEN: Final = (
    "the ledger is kept in memory and forgotten with the table that was opened: whoever opens it again starts with a fresh "
    "budget, and what is spent then adds to this"
)
UNNAMED: Final = (
    "nobody said where the spending of this table is written down, and it does not lie in a file: it is kept in memory and "
    "forgotten with this object, so whoever opens the table again starts with a fresh budget. Name a ledger: "
    "sf.open(..., ledger='clinic.ledger', name='clinic'), or say ledger=':memory:' if that is what you want"
)
_WILD: Final = "*?["
_MOST_CERTIFICATES: Final = 1000


@dataclass(frozen=True)
class Kept:
    """What a table is called, and where its spending is written down.

    Attributes
    ----------
    name : str
        The dataset's name in the ledger.
    ledger : str, Path or None
        The file or URL; None for a ledger in memory.
    folder : Path or None
        Where the data lies, if that is a folder.
    """

    name: str
    ledger: str | Path | None
    folder: Path | None = None

    @property
    def words(self) -> str:
        """The ledger in a few words, without a password."""
        return "in memory" if self.ledger is None else without_secrets(str(self.ledger))

    @property
    def in_file(self) -> bool:
        """Whether the ledger is a file, which can be looked at without a server."""
        return self.ledger is not None and "://" not in str(self.ledger)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of a certificate must know of the ledger."""
        return (FORGOTTEN,) if self.ledger is None else ()

    def fresh(self, *also: Path) -> tuple[str, ...]:
        """Why the table would start with a fresh budget now; `also` are folders in which earlier releases may lie."""
        if self.ledger is None:
            return ()
        return fresh_budgets(self.ledger, self.name, [f for f in (self.folder, *also) if f is not None])


def kept(source: Any, *, table: Any, name: str | None, ledger: str | Path | None, private: bool) -> Kept:
    """Name and ledger of a table, as `sfumato.open` was told them or as its file says.

    `private` is whether releases will be; an experiment may forget what it spent.
    """
    folder, stem = _beside(source)
    if name is None:
        name = table if isinstance(table, str) else stem
    if ledger is None and folder is None and private:
        warn_of([UNNAMED])
    if ledger == MEMORY or (ledger is None and folder is None):
        return Kept(name or "table", None, folder)
    if name is None:
        raise InputError("say what this table is called in the ledger: sf.open(..., name='patients')")
    if ledger is None:
        assert folder is not None
        ledger = folder / f"{name}.ledger"
    return Kept(name, ledger, folder)


def _beside(source: Any) -> tuple[Path | None, str | None]:
    """The folder of a file, of the files of a glob or of a DuckDB database, and what to call the table there.

    >>> _beside("data/clinic-*.parquet") == (Path("data"), "clinic")
    True
    >>> _beside("duckdb:///data/wards.db") == (Path("data"), "wards")
    True
    >>> _beside("postgresql://db.example.org/clinic")
    (None, None)
    """
    if isinstance(source, str) and source.startswith("duckdb:///"):
        source = Path(source.removeprefix("duckdb:///"))
    if not isinstance(source, Path) and (not isinstance(source, str) or "://" in source):
        return None, None
    path = Path(source)
    wild = next((i for i, part in enumerate(path.parts) if any(c in part for c in _WILD)), None)
    if wild is None or path.exists():
        return path.parent, path.stem
    folder = Path(*path.parts[:wild])
    start = path.parts[wild]
    named = start[: min(start.index(c) for c in _WILD if c in start)].strip("-_. ")
    return folder, named or folder.resolve().name


def fresh_budgets(location: str | Path, dataset: str, near: Iterable[Path]) -> tuple[str, ...]:
    """Why `dataset` would start with a fresh budget in the ledger at `location`; nothing if it is registered there.

    The ledger is only looked at. `near` are the folders in which other ledgers and earlier releases may lie.
    """
    known = datasets_at(location)
    if dataset in known:
        return ()
    shown = without_secrets(str(location))
    if known:
        others = ", ".join(map(repr, known[:5])) + (" and others" if len(known) > 5 else "")
        said = [
            f"{dataset!r} is new in the ledger {shown}, which holds {others}: it starts with a fresh budget. If it is the "
            "same data under another name, use that name"
        ]
    else:
        said = [
            f"a new ledger is started at {shown}: nothing counts as spent before. If anything was ever released from this "
            "table, stop and find its ledger"
        ]
    folders = list(dict.fromkeys(folder.resolve() for folder in near))
    others = ", ".join(sorted({p.name for f in folders for p in f.glob("*.ledger") if p.name != Path(str(location)).name}))
    if others and not known:
        said.append(f"other ledgers lie beside the table: {others}. Is one of them its own?")
    if any(found.get("dataset") == dataset for folder in folders for found in _certificates(folder)):
        said.append(
            f"certificates of earlier releases of {dataset!r} lie beside it, and this ledger did not charge them: what they "
            "cost adds to what is spent now"
        )
    return tuple(said)


def warn_of(sentences: Iterable[str]) -> None:
    """A `PrivacyWarning` for each sentence, at the line that called Sfumato."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "sfumato":
        level, frame = level + 1, frame.f_back
    for sentence in sentences:
        warnings.warn(sentence, PrivacyWarning, stacklevel=level)


def _certificates(folder: Path) -> Iterator[dict[str, Any]]:
    """The certificates in the folders of a folder, and one level further down."""
    for depth in ("*", "*/*"):
        for path in islice(folder.glob(f"{depth}/certificate.json"), _MOST_CERTIFICATES):
            try:
                found = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if isinstance(found, dict):
                yield found
