"""What is downloaded: a ZIP file with a release, unpacked, verified and read as the result that it is."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sfumato.errors import InputError, PrivacyError
from sfumato.releases.folder import check_place, read_certificate, read_result
from sfumato.releases.verification import verify
from sfumato.results import Result

MOST_BYTES: Final = 2_000_000_000
MOST_FILES: Final = 200
FOLDER: Final = "release"
KEYS: Final = "keys.json"


@dataclass(frozen=True)
class RemoteReceipt:
    """What the service's ledger knows of a result; see `sfumato.results.Receipt`."""

    certificate: Mapping[str, Any]
    repeated: bool
    release: str
    bundle: bytes = field(repr=False)

    @property
    def entry(self) -> int | None:
        """The ledger's number for it."""
        found: int | None = self.certificate.get("reservation")
        return found

    def save(self, result: Result, folder: str | Path) -> Path:
        """Write the files of `result` to a new `folder`, byte for byte as they were downloaded."""
        target = Path(folder)
        check_place(target)
        if target.exists():
            raise InputError(f"{target} is there already; choose another folder")
        target.mkdir(parents=True)
        unpack(self.bundle, target)
        return target


def result_in(bundle: bytes, *, release: str, repeated: bool, known: Sequence[Mapping[str, Any]] | None = None) -> Result:
    """The result in a bundle, after everything about it that can be checked was.

    Parameters
    ----------
    bundle : bytes
        The ZIP file: a folder ``release`` with the files, and ``keys.json`` beside it.
    release : str
        The service's number for it.
    repeated : bool
        Whether it was paid for before.
    known : sequence of mapping, optional
        Public keys that are known from elsewhere; those of the bundle must be these, or go on from them.

    Returns
    -------
    Result
    """
    with tempfile.TemporaryDirectory(prefix="sfumato-") as folder:
        place = Path(folder)
        keys = unpack(bundle, place)
        check_keys(keys, known)
        checked = verify(place, keys=keys)
        if not checked.holds:
            wrong = "; ".join(f"{c.what}: {c.found}" for c in checked.checks if not c.holds)
            raise PrivacyError(f"what was downloaded does not verify ({wrong}); do not use it, and tell the custodian")
        made = read_certificate(place)
        assert made is not None
        return read_result(place).with_receipt(RemoteReceipt(made, repeated, release, bundle))


def check_keys(found: Sequence[Mapping[str, Any]], known: Sequence[Mapping[str, Any]] | None) -> None:
    """Refuse keys that do not begin with the ones that are `known`."""
    expected = [key["ed25519"] for key in known or ()]
    if [key.get("ed25519") for key in found[: len(expected)]] != expected:
        raise PrivacyError("the service's keys are not the ones that were given to connect; ask the custodian why")


def unpack(bundle: bytes, folder: Path) -> list[dict[str, Any]]:
    """Write the files of a release to a folder, and give the keys beside them.

    Names that lead elsewhere, and bundles that are no bundles, are refused.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
            files = {file.filename: file for file in archive.infolist()}
            if len(files) > MOST_FILES or sum(f.file_size for f in files.values()) > MOST_BYTES:
                raise InputError("what was downloaded is larger than any release; it is not unpacked")
            keys = json.loads(archive.read(files.pop(KEYS)))["keys"]
            for path, file in files.items():
                inside, _, name = path.partition("/")
                if (
                    inside != FOLDER
                    or Path(name).name != name
                    or name in ("", "..")
                    or not name.isprintable()
                    or "\\" in name
                ):
                    raise InputError("what was downloaded has a file whose name leads elsewhere; it is not unpacked")
                (folder / name).write_bytes(archive.read(file))
            return [dict(key) for key in keys]
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, RuntimeError, zlib.error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("what was downloaded is not a whole bundle of a release; download it again") from None
