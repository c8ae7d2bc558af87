"""Backups of a service on SQLite, and what an order has to do with privacy.

There are three things to copy while people go on working: the service's database, the folders of what was released, and
the ledger. They cannot be copied at one moment. In the service things happen in this order: a job is written down, the
ledger is charged, the folder is written, the folder is written down in the database. So they are copied in this order:

1. the service's database, by SQLite's online backup (a whole state of one moment);
2. the folders that the *copy* names: each was complete before it was named;
3. the ledger, by the online backup, **last**.

Whatever is in 1 or 2 was charged before it was there, so its charge is in 3: no copy shows a release without its charge.
What happens between 1 and 3 leaves a charge without a release in the copy, which is on the safe side: the budget stays
spent, and the job, which the copy shows as waiting or running, is found paid for when it runs again. With the ledger
first, a release made in between would be in the copy for free.

The keys are left out unless they are asked for: whoever finds a copy with them can read who the people are, and sign in
the service's name. Without them a copy is of no use, so they are kept too, elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sfumato import __version__
from sfumato.errors import InputError
from sfumato.ledger.clock import now
from sfumato.service.settings import Settings

MANIFEST: Final = "backup.json"
SERVICE, LEDGER, KEYS = "service.db", "ledger.db", "keys"
_FORMAT = 1


@dataclass(frozen=True)
class Backup:
    """A backup that was made or read.

    Attributes
    ----------
    folder : Path
    manifest : mapping
        What is in it: its minute, and every file with its digest.
    """

    folder: Path
    manifest: dict[str, Any]

    @property
    def with_keys(self) -> bool:
        """Whether the keys are in it."""
        return any(name.startswith(f"{KEYS}/") for name in self.manifest["files"])


def make(settings: Settings, folder: Path, *, with_keys: bool = False) -> Backup:
    """Copy a service that may be at work.

    Parameters
    ----------
    settings : Settings
        Of the service; its databases are SQLite files.
    folder : Path
        A new folder; it is there whole or not at all.
    with_keys : bool
        Whether to copy the keys too.

    Returns
    -------
    Backup
    """
    database, ledger = (on_sqlite(place) for place in (settings.database, settings.ledger))
    for place in (database, ledger):
        if not place.is_file():
            raise InputError(f"there is no {place.name} in {place.parent}: nothing to back up; check [service] state")
    if folder.exists() or folder.is_symlink():
        raise InputError(f"{folder} is there already; give a new folder for each backup")
    partial = folder.parent / f".{folder.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True, mode=0o700)
    try:
        _copy_database(database, partial / SERVICE)
        for name in _folders_in(partial / SERVICE):
            shutil.copytree(settings.state / name, partial / "state" / name)
        _copy_database(ledger, partial / LEDGER)
        if with_keys:
            shutil.copytree(settings.keys, partial / KEYS, copy_function=shutil.copy2)
        files = {str(p.relative_to(partial)): _digest(p) for p in sorted(partial.rglob("*")) if p.is_file()}
        manifest = {"sfumato_backup": _FORMAT, "version": __version__, "minute": now(), "files": files}
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        for path in (*partial.rglob("*"), partial):
            path.chmod(0o700 if path.is_dir() else 0o600)
            _sync(path)
        os.replace(partial, folder)
        _sync(folder.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return Backup(folder, manifest)


def read(folder: Path) -> Backup:
    """A backup whose files are all there as they were written.

    Parameters
    ----------
    folder : Path
        As `make` wrote it.

    Returns
    -------
    Backup
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = dict(manifest["files"])
        known = manifest["sfumato_backup"] == _FORMAT and {SERVICE, LEDGER} <= set(files)
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{folder} is not a backup: it has no readable {MANIFEST}") from None
    if not known:
        raise InputError(f"{folder} is a backup of a form that this version does not know; install a newer one")
    found = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()}
    wrong = sorted(
        name for name in set(files) | set(found) - {MANIFEST} if not _as_written(found.get(name), files.get(name))
    )
    if wrong:
        raise InputError(
            f"{len(wrong)} files of the backup are lost, changed or not its own ({', '.join(wrong[:5])}): use another one"
        )
    return Backup(folder, manifest)


def restore(settings: Settings, backup: Backup) -> None:
    """Put a backup where the settings say. The ledger comes first: there is never a service without its charges.

    Parameters
    ----------
    settings : Settings
        Where to; its databases are SQLite files that are not there yet.
    backup : Backup
        What `read` gave.
    """
    database, ledger = (on_sqlite(place) for place in (settings.database, settings.ledger))
    for place, name in ((database, SERVICE), (ledger, LEDGER)):
        same = place.exists() and _digest(place) == backup.manifest["files"][name]  # a restore that was interrupted
        if not same and any(place.with_name(place.name + end).exists() for end in ("", "-wal", "-shm", "-journal")):
            raise InputError(f"{place} is there already; stop the service and move its files away before you restore")
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    if backup.with_keys:
        if settings.keys.exists() and any(settings.keys.iterdir()):
            raise InputError(f"{settings.keys} holds keys already; move them away, or take a backup without keys")
        shutil.copytree(backup.folder / KEYS, settings.keys, dirs_exist_ok=True)
        settings.keys.chmod(0o700)
    elif not settings.keys.is_dir() or not any(settings.keys.iterdir()):
        raise InputError(
            f"the backup is without keys, and {settings.keys} holds none: put their copy there first. With new keys nobody "
            "of the ledger could be found again"
        )
    _check_witness(settings, backup)
    _put(backup.folder / LEDGER, ledger)
    kept = backup.folder / "state"
    for path in sorted(p for p in kept.rglob("*") if p.is_file()):
        target = settings.state / path.relative_to(kept)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _put(path, target)
    _put(backup.folder / SERVICE, database)


def _check_witness(settings: Settings, backup: Backup) -> None:
    """Refuse a ledger that is older than the checkpoints in the state folder, before anything is put back."""
    from sfumato.ledger import Ledger
    from sfumato.ledger.signing import Keys
    from sfumato.service.witness import Witness

    with tempfile.TemporaryDirectory(prefix="sfumato-") as folder:
        copy, signing = Path(folder) / LEDGER, settings.keys / "signing"
        shutil.copyfile(backup.folder / LEDGER, copy)
        ledger = Ledger.open(copy, create=False, key=settings.keys / "people.key", keys=signing)
        Witness.opened(settings.state, Keys.opened(signing)).check(ledger)


def on_sqlite(place: str) -> Path:
    """The file of a database; one on a server is backed up by the server."""
    if "://" in place:
        raise InputError(
            "this service is on PostgreSQL, which makes its own backups (docs/service.md): pg_dump the service's database "
            "first and the ledger last, or restore both to one moment with point-in-time recovery"
        )
    return Path(place)


def _copy_database(source: Path, target: Path) -> None:
    """A whole state of one moment, also while others write; it is checked page by page."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)
        other.execute("PRAGMA journal_mode=DELETE")  # one file, without companions
        found = other.execute("PRAGMA integrity_check").fetchall()
    if found != [("ok",)]:
        raise InputError(f"{source.name} is damaged (SQLite's integrity check): restore an earlier backup")


def _folders_in(database: Path) -> list[str]:
    """The artefact folders that a copy of the service's database names."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT DISTINCT folder FROM service_artefacts ORDER BY folder").fetchall()
    for (name,) in rows:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise InputError("the database names a folder outside the state folder; it was tampered with")
    return [name for (name,) in rows]


def _put(source: Path, target: Path) -> None:
    """A copy that is there whole or not at all."""
    partial = target.with_name(f".{target.name}.partial")
    shutil.copyfile(source, partial)
    partial.chmod(0o600)
    _sync(partial)
    os.replace(partial, target)
    _sync(target.parent)


def _as_written(path: Path | None, digest: Any) -> bool:
    return path is not None and _digest(path) == digest


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
