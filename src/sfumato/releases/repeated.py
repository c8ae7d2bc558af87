"""A release that was made before: settled with the ledger, or written again from what the ledger kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.ledger import Ledger
from sfumato.ledger.signing import Keys
from sfumato.releases import folder as folders


def settle(ledger: Ledger, dataset: str, recipient: str | None, asked: str, earlier: dict[str, Any], folder: Path) -> None:
    """Commit a release whose folder was finished by a run that died before it could tell the ledger.

    A certificate is a file that anybody can write: only the ledger knows what was charged. Its entry must be the same
    request, for this recipient or for everybody, and, once committed, the very same release.
    """
    number = earlier.get("reservation")
    entry = ledger.entry(dataset, number) if isinstance(number, int) else None
    if entry is None or entry.request != asked:
        raise InputError(
            f"{folder} holds a certificate that this ledger has never charged; it belongs to another ledger: "
            "choose another output folder"
        )
    if entry.recipient not in (None, recipient):
        raise InputError(
            f"{folder} holds this release for recipient {entry.recipient!r}; what {recipient or 'everybody'} may see is "
            "charged apart: rename the release or choose another output folder"
        )
    if not folders.intact(folder, earlier):
        raise InputError(f"the files in {folder} are not those of its certificate; restore them or choose another folder")
    if entry.state == "reserved":
        ledger.commit(entry.id, {**folders.stored(folders.read_result(folder), earlier), "folder": str(folder)})
    elif entry.state == "committed" and not _same_release((entry.artefact or {}).get("certificate", {}), earlier):
        raise InputError(f"{folder} is not what the ledger recorded as entry {entry.id}; restore it")


def _same_release(recorded: dict[str, Any], found: dict[str, Any]) -> bool:
    """Whether a folder's certificate is the recorded one; a release made in Python was recorded before it had files."""
    return recorded == found or _bare(recorded) == _bare(found)


def _bare(made: dict[str, Any]) -> dict[str, Any]:
    """A certificate as it is before it has files."""
    return {k: v for k, v in made.items() if k not in ("files", "signature")}


def again(name: str, folder: Path, kept: dict[str, Any], *, keys: Keys | None) -> tuple[Path, dict[str, Any]]:
    """Folder and certificate of a release that was paid for before: where it was, or written now from what was kept."""
    home = Path(str(kept["folder"])) if kept.get("folder") else folder
    found = folders.read_certificate(home)
    if found is not None and _same_release(kept.get("certificate", {}), found):
        return home, found
    result = folders.recalled(kept, name)
    return folder, folders.write(folder, result, _bare(kept["certificate"]), keys=keys)
