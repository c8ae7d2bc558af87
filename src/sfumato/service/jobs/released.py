"""What was released, to whom it is due, and its files: found by name in the certificate, never by a path.

A file is given only as the certificate describes it, and the certificate only as it was when the job ended: whoever changes
something in the folder makes it unavailable, not different.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from sqlalchemy import Row, Select, or_, select

from sfumato.service.context import Service
from sfumato.service.http.access import Caller
from sfumato.service.http.problems import ProblemError, missing
from sfumato.service.jobs.slots import HELD
from sfumato.service.store import schema
from sfumato.service.store.database import now

CERTIFICATE: Final = "certificate.json"
_PIECE: Final = 1 << 20
_IN_MEMORY: Final = 8 << 20
_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)  # the same bundle is the same bytes

_artefacts, _jobs, _datasets = schema.artefacts, schema.jobs, schema.datasets


def due_to(caller: Caller) -> Select[Any]:
    """What a caller may see of all that was released and may be told by now.

    Analysts see what is for them or for everybody, custodians what is of their datasets or came of their jobs.
    """
    query = (
        select(_artefacts, _datasets.c.name.label("dataset"))
        .join(_jobs, _jobs.c.id == _artefacts.c.job_id)
        .join(_datasets, _datasets.c.id == _artefacts.c.dataset_id)
        # The job itself says when: one that is run again after a crash is told later than it was first meant to be.
        .where(_jobs.c.state.in_(HELD), _jobs.c.deliver_at <= now(), _artefacts.c.deliver_at <= now())
    )
    if caller.role == "analyst":
        return query.where(or_(_artefacts.c.recipient.is_(None), _artefacts.c.recipient == caller.name))
    if caller.role == "custodian":
        return query.where(or_(_datasets.c.created_by == caller.id, _jobs.c.account_id == caller.id))
    if caller.role == "officer":
        return query
    raise missing()


def found(service: Service, caller: Caller, release_id: str) -> Row[Any]:
    """A release that is due to the caller."""
    with service.store.read() as connection:
        row = connection.execute(due_to(caller).where(_artefacts.c.id == release_id)).one_or_none()
    if row is None:
        raise missing()
    return row


def certificate_of(service: Service, row: Row[Any]) -> dict[str, Any]:
    """The certificate of a release, as it was when its job ended."""
    with _opened(service, row, CERTIFICATE) as file:
        raw = file.read()
    if hashlib.sha256(raw).hexdigest() != row.digest:
        raise _changed()
    certificate: dict[str, Any] = json.loads(raw)
    return certificate


def file_of(service: Service, row: Row[Any], name: str) -> IO[bytes]:
    """A file of a release, open at its beginning, if the certificate names it and it is as the certificate says."""
    certificate = certificate_of(service, row)
    files: Mapping[str, str] = {CERTIFICATE: row.digest, **certificate["files"]}
    if name not in files:
        raise missing()
    file = _opened(service, row, name)
    told = hashlib.sha256()
    while piece := file.read(_PIECE):
        told.update(piece)
    if told.hexdigest() != files[name]:
        file.close()
        raise _changed()
    file.seek(0)
    return file


def bundle_of(service: Service, row: Row[Any], beside: Mapping[str, Any]) -> IO[bytes]:
    """All files of a release with its certificate in a folder of a ZIP file, and JSON texts `beside` that folder."""
    names = [CERTIFICATE, *sorted(certificate_of(service, row)["files"])]
    made: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - whoever sends it closes it
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            with file_of(service, row, name) as file, archive.open(_entry(f"release/{name}"), "w") as into:
                while piece := file.read(_PIECE):
                    into.write(piece)
        for name, value in beside.items():
            archive.writestr(_entry(name), json.dumps(value, indent=1, ensure_ascii=False) + "\n")
    made.seek(0)
    return made


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """An open file in pieces; closed afterwards."""
    with file:
        while piece := file.read(_PIECE):
            yield piece


def size_of(file: IO[bytes]) -> int:
    """The bytes of an open file, which stays at its beginning."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    return size


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _LONG_AGO)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
    return entry


def _opened(service: Service, row: Row[Any], name: str) -> IO[bytes]:
    """A file in the folder of a release; no link is followed, and no name leads out of it."""
    if PurePosixPath(name).name != name or name in ("", ".", ".."):
        raise missing()
    folder = Path(service.settings.state, row.folder)
    if not folder.resolve().is_relative_to(service.settings.state.resolve()):
        raise _changed()
    try:
        return os.fdopen(os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
    except OSError:
        raise _changed() from None


def _changed() -> ProblemError:
    return ProblemError(503, "the files of this release are not there as its certificate says; ask whoever runs the service")
