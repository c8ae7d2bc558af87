"""The artefact folder: data (Parquet and JSON), certificate.json and report.html, there whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.releases.certificate import certificate
from sfumato.releases.kinds.base import Result
from sfumato.releases.pipeline import Priced
from sfumato.releases.report import report

CERTIFICATE = "certificate.json"
DATA = "data.json"


def prepare(folder: Path, fingerprint: str) -> dict[str, Any] | None:
    """Before anything is charged: the folder must be writable and free. Returns the certificate of an earlier run.

    A certificate with the same fingerprint is the same release, finished by a run that may have crashed before it could
    tell the ledger.
    """
    if folder.exists():
        earlier = read_certificate(folder)
        if earlier is not None and earlier.get("fingerprint") == fingerprint:
            return earlier
        raise InputError(f"{folder} already holds something else; rename the release or choose another output folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        probe = folder.parent / f".{folder.name}.probe"
        probe.write_bytes(b"\0" * 65536)
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write releases to {folder.parent}: {error.strerror}; nothing was spent") from None
    return None


def read_certificate(folder: Path) -> dict[str, Any] | None:
    """The certificate in a folder, if there is a readable one."""
    try:
        found = json.loads((folder / CERTIFICATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def intact(folder: Path, made: dict[str, Any]) -> bool:
    """Whether the files in a folder are the ones its certificate speaks of."""
    files = made.get("files")
    try:
        return isinstance(files, dict) and all(_digest(folder / name) == digest for name, digest in files.items())
    except OSError:
        return False


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write(
    folder: Path, priced: Priced, result: Result, *, dataset: str, reservation: int | None, fingerprint: str
) -> dict[str, Any]:
    """Write everything to a hidden folder, flush it to the disk, then give it its name."""
    partial = folder.parent / f".{folder.name}.{reservation}.partial"  # two runs at once must not mix their files
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        result.to_frame().to_parquet(partial / "data.parquet", index=False)
        _write_json(partial / DATA, result.to_dict())
        tables = getattr(result, "extra_tables", None)
        for name, frame in (tables() if callable(tables) else {}).items():
            frame.to_parquet(partial / f"{name}.parquet", index=False)
        files = {p.name: _digest(p) for p in sorted(partial.iterdir())}
        made = certificate(priced, result, dataset=dataset, reservation=reservation, fingerprint=fingerprint, files=files)
        (partial / "report.html").write_text(report(priced, result, made), encoding="utf-8")
        _write_json(partial / CERTIFICATE, made)
        for path in partial.iterdir():
            _sync(path)
        _sync(partial)
        os.replace(partial, folder)
        _sync(folder.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return made


def data_digest(result: Result) -> str:
    """The digest that data.json of this result has."""
    return hashlib.sha256(_json_text(result.to_dict()).encode()).hexdigest()


def _json_text(data: Any) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False, default=plain_json) + "\n"


def _write_json(path: Path, data: Any) -> None:
    path.write_text(_json_text(data), encoding="utf-8", newline="\n")


def plain_json(value: Any) -> Any:
    """NumPy scalars and arrays as plain JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
