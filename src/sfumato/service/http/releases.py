"""What was released: lists, certificates, files by the names that the certificate gives them, all of it in one bundle."""

from __future__ import annotations

from typing import IO, Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Path, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict
from sqlalchemy import Row

from sfumato.service.http.access import Caller, Here, allowed
from sfumato.service.http.paging import Listed, Page, page
from sfumato.service.jobs import released
from sfumato.service.store import schema

router = APIRouter(tags=["releases"])
ReleaseId = Annotated[str, Path(max_length=80, description="the number of a release")]
Reader = Annotated[Caller, allowed("releases.read")]

_TYPES: Final = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "html": "text/html; charset=utf-8",
    "zip": "application/zip",
}
_SANDBOX: Final = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_ANY: Final[dict[str, Any]] = {"schema": {"type": "string", "format": "binary"}}
_KINDS: Final = {*(kind.partition(";")[0] for kind in _TYPES.values()), "application/octet-stream"}
_FILE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {kind: {"schema": {}} if kind == "application/json" else _ANY for kind in sorted(_KINDS)}}
}
_ZIP: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {"application/zip": _ANY}}}


class ReleaseSummary(BaseModel):
    """A release in a list.

    Attributes
    ----------
    id, dataset, name : str
    job : str
        What it came of.
    recipient : str or None
        Whom it is for; ``None`` is everybody.
    entry : int
        The ledger's number for it.
    released_at : int
        The slot at which it was told.
    """

    model_config = ConfigDict(extra="forbid")
    id: str
    dataset: str
    name: str
    job: str
    recipient: str | None
    entry: int
    released_at: int


class ReleaseDetail(ReleaseSummary):
    """A release with its certificate.

    Attributes
    ----------
    certificate : dict
        As in the file; ``files`` names the files that can be downloaded.
    """

    certificate: dict[str, Any]


@router.get("/releases")
def list_releases(
    service: Here,
    caller: Reader,
    wanted: Page,
    dataset: Annotated[str | None, Query(max_length=80, description="only of this dataset")] = None,
) -> Listed[ReleaseSummary]:
    """What was released to you, or from your datasets, newest first."""
    query = released.due_to(caller)
    if dataset is not None:
        query = query.where(schema.datasets.c.name == dataset)
    with service.store.read() as connection:
        rows, older = page(connection, query, wanted, schema.artefacts.c.deliver_at, schema.artefacts.c.id)
    return Listed(items=[ReleaseSummary(**_told(row)) for row in rows], older=older)


@router.get("/releases/{release_id}")
def one_release(service: Here, caller: Reader, release_id: ReleaseId) -> ReleaseDetail:
    """A release and its certificate."""
    row = released.found(service, caller, release_id)
    return ReleaseDetail(**_told(row), certificate=released.certificate_of(service, row))


@router.get("/releases/{release_id}/files/{name}", response_class=StreamingResponse, responses=_FILE)
def one_file(
    service: Here,
    caller: Reader,
    release_id: ReleaseId,
    name: Annotated[str, Path(max_length=200, description="a name of the certificate's files, or certificate.json")],
) -> StreamingResponse:
    """A file of a release."""
    row = released.found(service, caller, release_id)
    return _download(released.file_of(service, row, name), name)


@router.get("/releases/{release_id}/bundle", response_class=StreamingResponse, responses=_ZIP)
def bundle(service: Here, caller: Reader, release_id: ReleaseId) -> StreamingResponse:
    """All files of a release with its certificate, and the public keys to check it with, as a ZIP file."""
    row = released.found(service, caller, release_id)
    return _download(released.bundle_of(service, row, {"keys.json": {"keys": service.keys.public()}}), f"{row.name}.zip")


def _told(row: Row[Any]) -> dict[str, Any]:
    return {
        "id": row.id,
        "dataset": row.dataset,
        "name": row.name,
        "job": row.job_id,
        "recipient": row.recipient,
        "entry": row.entry,
        "released_at": row.deliver_at,
    }


def _download(file: IO[bytes], name: str) -> StreamingResponse:
    """A file to save: a browser neither shows it in our origin nor takes it for something else."""
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Length": str(released.size_of(file)),
        "Content-Security-Policy": _SANDBOX,
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-store",
    }
    kind = _TYPES.get(name.rpartition(".")[2].lower(), "application/octet-stream")
    return StreamingResponse(released.pieces(file), media_type=kind, headers=headers)
