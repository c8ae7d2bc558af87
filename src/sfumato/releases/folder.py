"""The artefact folder: data (Parquet, CSV and JSON), certificate.json and report.html, there whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.ledger.signing import Keys, signed_json
from sfumato.releases.report import report
from sfumato.results import Result, load_result

CERTIFICATE = "certificate.json"
DATA = "data.json"


@dataclass(frozen=True)
class LedgerReceipt:
    """What the ledger knows of a result; see `sfumato.results.Receipt`."""

    certificate: Mapping[str, Any]
    repeated: bool = False
    keys: Keys | None = None

    @property
    def entry(self) -> int | None:
        """The ledger's number for it."""
        found: int | None = self.certificate.get("reservation")
        return found

    def save(self, result: Result, folder: str | Path) -> Path:
        """Write the folder, or find that this very release is in it already."""
        target = Path(folder)
        earlier = prepare(target, str(self.certificate["fingerprint"]))
        if earlier is None:
            write(target, result, self.certificate, keys=self.keys)
        elif data_digest(result) != earlier.get("files", {}).get(DATA):
            raise InputError(f"{target} holds another release of the same request, with other noise; choose another folder")
        return target


def stored(result: Result, made: Mapping[str, Any]) -> dict[str, Any]:
    """What the ledger remembers of a release, from which `recalled` brings it back."""
    plain: dict[str, Any] = json.loads(_json_text({"result": result.to_dict(), "certificate": dict(made)}))
    return plain


def recalled(artefact: Mapping[str, Any] | None, name: str, *, keys: Keys | None = None) -> Result:
    """A release that was paid for before, as the same object."""
    kept = artefact or {}
    if "result" not in kept:
        raise InputError(
            f"release {name!r} was paid for before, by a version of Sfumato that kept no figures in the ledger; open its "
            "folder, or change the request (a new release is charged anew)"
        )
    return load_result(kept["result"]).with_receipt(LedgerReceipt(kept["certificate"], repeated=True, keys=keys))


def prepare(folder: Path, fingerprint: str) -> dict[str, Any] | None:
    """Before anything is charged: the folder must be writable and free. Returns the certificate of an earlier run.

    A certificate with the same fingerprint is the same release, finished by a run that may have crashed before it could
    tell the ledger.
    """
    earlier = held(folder, fingerprint)
    if earlier is not None:
        return earlier
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        probe = folder.parent / f".{folder.name}.probe"
        probe.write_bytes(b"\0" * 65536)
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write releases to {folder.parent}: {error.strerror}; nothing was spent") from None
    return None


def held(folder: Path, fingerprint: str) -> dict[str, Any] | None:
    """The certificate of an earlier run of the same release, None where the folder is free; anything else is refused."""
    check_place(folder)
    if not folder.exists():
        return None
    earlier = read_certificate(folder)
    if earlier is not None and earlier.get("fingerprint") == fingerprint:
        return earlier
    raise InputError(f"{folder} already holds something else; rename the release or choose another output folder")


def check_place(folder: Path) -> None:
    """Refuse a folder that is a link: whoever made the link would decide where a release is written."""
    if folder.is_symlink():
        raise InputError(f"{folder} is a link to another place; name that place itself as the folder, or remove the link")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, and releases need a folder there; rename one of them")


def read_certificate(folder: Path) -> dict[str, Any] | None:
    """The certificate in a folder, if there is a readable one."""
    try:
        found = json.loads((folder / CERTIFICATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def read_result(folder: Path) -> Result:
    """The result in a folder that a release was written to.

    Parameters
    ----------
    folder : Path
        The folder, as in `Outcome.folder`.

    Returns
    -------
    Result
        The same object that was released, marked as repeated.
    """
    try:
        data = json.loads((folder / DATA).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{folder} holds no readable {DATA} ({type(error).__name__})") from None
    made = read_certificate(folder)
    return load_result(data).with_receipt(LedgerReceipt(made or {}, repeated=True))


def intact(folder: Path, made: Mapping[str, Any]) -> bool:
    """Whether the files in a folder are the ones its certificate speaks of."""
    files = made.get("files")
    try:
        return isinstance(files, dict) and all(_digest(folder / name) == digest for name, digest in files.items())
    except OSError:
        return False


def write(folder: Path, result: Result, made: Mapping[str, Any], *, keys: Keys | None = None) -> dict[str, Any]:
    """Write everything to a hidden folder, flush it to the disk, then give it its name. Returns the certificate.

    With `keys` the certificate is signed, files and all.
    """
    made = {name: value for name, value in made.items() if name not in ("files", "signature")}  # they are made here
    # Two runs at once must not mix their files.
    partial = folder.parent / f".{folder.name}.{made.get('reservation')}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        frame = result.to_frame()
        frame.to_parquet(partial / "data.parquet", index=False)
        frame.to_csv(partial / "data.csv", index=False, lineterminator="\n")
        (partial / DATA).write_text(_data_text(result), encoding="utf-8", newline="\n")
        tables = getattr(result, "extra_tables", None)
        for name, frame in (tables() if callable(tables) else {}).items():
            frame.to_parquet(partial / f"{name}.parquet", index=False)
        files = getattr(result, "extra_files", None)
        for name, data in (files() if callable(files) else {}).items():
            (partial / name).write_bytes(data)
        whole: dict[str, Any] = json.loads(_json_text(made)) | {
            "files": {p.name: _digest(p) for p in sorted(partial.iterdir())}
        }
        (partial / "report.html").write_text(report(result, whole), encoding="utf-8", newline="\n")
        whole["files"]["report.html"] = _digest(partial / "report.html")
        if keys is not None:
            whole = signed_json(keys, whole)
        _write_json(partial / CERTIFICATE, whole)
        for path in partial.iterdir():
            _sync(path)
        _sync(partial)
        os.replace(partial, folder)
        _sync(folder.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return whole


def data_digest(result: Result) -> str:
    """The digest that data.json of this result has."""
    return hashlib.sha256(_data_text(result).encode()).hexdigest()


def _data_text(result: Result) -> str:
    # Sorted: a result that comes back from the ledger has its parameters in another order.
    return _json_text(result.to_dict(), sort_keys=True)


def plain_json(value: Any) -> Any:
    """NumPy scalars and arrays as plain JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def certificate_text(made: Mapping[str, Any]) -> str:
    """The one way in which a certificate is written."""
    return _json_text(made)


def _json_text(data: Any, *, sort_keys: bool = False) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False, default=plain_json, sort_keys=sort_keys) + "\n"


def _write_json(path: Path, data: Any) -> None:
    path.write_text(_json_text(data), encoding="utf-8", newline="\n")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
