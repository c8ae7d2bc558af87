"""What is downloaded: a ZIP file with a release, unpacked, verified and read as the result that it is."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sfumato.errors import InputError, PrivacyError
from sfumato.releases.folder import check_place, read_certificate, read_result
from sfumato.releases.verification import verify
from sfumato.results import Result

MOST_BYTES: Final = 2_000_000_000
MOST_FILES: Final = 200


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


def result_in(bundle: bytes, *, release: str, repeated: bool) -> Result:
    """The result in a bundle, after everything about it that can be checked was.

    Parameters
    ----------
    bundle : bytes
        The ZIP file.
    release : str
        The service's number for it.
    repeated : bool
        Whether it was paid for before.

    Returns
    -------
    Result
    """
    with tempfile.TemporaryDirectory(prefix="sfumato-") as folder:
        place = Path(folder)
        unpack(bundle, place)
        checked = verify(place)
        if not checked.holds:
            wrong = "; ".join(f"{c.what}: {c.found}" for c in checked.checks if not c.holds)
            raise PrivacyError(f"what was downloaded does not verify ({wrong}); do not use it, and tell the custodian")
        made = read_certificate(place)
        assert made is not None
        return read_result(place).with_receipt(RemoteReceipt(made, repeated, release, bundle))


def unpack(bundle: bytes, folder: Path) -> None:
    """Write the files of a bundle to a folder; names that lead elsewhere, and bundles that are no bundles, are refused."""
    try:
        with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
            files = archive.infolist()
            if len(files) > MOST_FILES or sum(f.file_size for f in files) > MOST_BYTES:
                raise InputError("what was downloaded is larger than any release; it is not unpacked")
            for file in files:
                name = file.filename
                if Path(name).name != name or name in ("", "..") or not name.isprintable() or "\\" in name:
                    raise InputError("what was downloaded has a file whose name leads elsewhere; it is not unpacked")
                (folder / name).write_bytes(archive.read(file))
    except zipfile.BadZipFile:
        raise InputError("what was downloaded is not a whole ZIP file; download it again") from None
