"""What became of the releases of a job, told to the ledger when their time is over.

The ledger knows what was charged for a job, and a folder is there whole or not at all. So each entry that is only reserved
is committed if its folder is there, and has failed otherwise: its budget stays spent, because nobody can tell whether its
noise was seen. The same holds for a job whose runner died, which is why a release is never charged twice, and nothing is
delivered that was not charged.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from sqlalchemy import Row, select, update

from sfumato.errors import InputError
from sfumato.ledger import Release
from sfumato.releases.folder import CERTIFICATE, read_certificate
from sfumato.releases.outcomes import Outcome
from sfumato.releases.repeated import settle
from sfumato.service.context import Service
from sfumato.service.jobs.slots import job_of
from sfumato.service.runner.work import folder_of, keep
from sfumato.service.store import schema

_log = logging.getLogger("sfumato.service.runner")


def charged(service: Service, job: Row[Any], dataset: str) -> list[Release]:
    """The entries of the ledger that were charged for a job; none for one that never began to charge."""
    found: list[Release] = []
    after = None if job.charging_at is None else int(job.mark)
    while after is not None:
        page = service.ledger.history(dataset, after=after)
        found += [entry for entry in page if job_of(entry.by) == job.id]
        after = page.newer
    return found


def settled(service: Service, job: Row[Any], dataset: Row[Any]) -> set[str]:
    """Commit what was released and fail the rest; returns the names of all releases that were begun or are there."""
    entries = charged(service, job, dataset.name)
    folders = _folders(folder_of(service.settings, job.id))
    for entry in entries:
        folder = folders.get(entry.id)
        certificate = None if folder is None else read_certificate(folder)
        state = entry.state
        if state == "reserved":
            try:
                if folder is None or certificate is None:
                    raise InputError("nothing was written")
                settle(service.ledger, dataset.name, entry.recipient, entry.request, certificate, folder)
                state = "committed"
            except InputError:
                service.ledger.fail(entry.id)
        if state == "committed" and folder is not None and certificate is not None:
            outcome = Outcome(entry.name or "", folder, certificate, repeated=False)
            keep(service.store, service.settings, job.id, dataset.id, outcome, entry=entry.id)
    return {entry.name or "" for entry in entries} | kept(service, job.id)


def kept(service: Service, job_id: str) -> set[str]:
    """The names of what a job has released."""
    table = schema.artefacts
    with service.store.read() as connection:
        return set(connection.execute(select(table.c.name).where(table.c.job_id == job_id)).scalars())


def redated(service: Service, job_id: str, deliver_at: int) -> None:
    """What was released by a job that is taken again is told when the job is."""
    table = schema.artefacts
    with service.store.write() as connection:
        connection.execute(update(table).where(table.c.job_id == job_id).values(deliver_at=deliver_at))


def _folders(home: Path) -> dict[int, Path]:
    """The folders of a job by the number of their entry; folders that are being written have a dot before their name."""
    found: dict[int, Path] = {}
    for pattern in (f"*/{CERTIFICATE}", f"*/*/{CERTIFICATE}"):
        for path in home.glob(pattern):
            folder = path.parent
            if any(part.startswith(".") for part in folder.relative_to(home).parts):
                continue
            number = (read_certificate(folder) or {}).get("reservation")
            if isinstance(number, int):
                found[number] = folder
    return found
