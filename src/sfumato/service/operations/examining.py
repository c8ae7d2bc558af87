"""Whether what is there holds together: the ledger added up again, every release with its charge and its files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from sfumato.errors import SfumatoError
from sfumato.service.store import schema

if TYPE_CHECKING:
    from sfumato.service.context import Service


@dataclass(frozen=True)
class Examined:
    """What was found.

    Attributes
    ----------
    datasets : int
        How many datasets of the ledger were replayed.
    releases : int
        How many releases were looked at.
    wrong : tuple of str
        One sentence for each that does not hold.
    """

    datasets: int
    releases: int
    wrong: tuple[str, ...]


def examine(service: Service) -> Examined:
    """Look at everything that a service keeps; no private table is opened.

    Parameters
    ----------
    service : Service

    Returns
    -------
    Examined
    """
    wrong: list[str] = []
    names = service.ledger.datasets()
    for name in names:
        try:
            service.ledger.verify(name)
        except SfumatoError as error:
            wrong.append(f"dataset {name!r}: {error}")
    query = select(schema.artefacts, schema.datasets.c.name.label("dataset")).join(
        schema.datasets, schema.datasets.c.id == schema.artefacts.c.dataset_id
    )
    with service.store.read() as connection:
        rows = connection.execute(query.order_by(schema.artefacts.c.id)).all()
    for row in rows:
        wrong += [f"release {row.id}: {why}" for why in _faults(service, row)]
    return Examined(len(names), len(rows), tuple(wrong))


def _faults(service: Service, row: Any) -> list[str]:
    from sfumato.releases.verification import verify

    folder = service.settings.state / row.folder
    found = []
    if service.ledger.entry(row.dataset, row.entry) is None:
        found.append("the ledger has no charge for it")
    try:
        digest = hashlib.sha256((folder / "certificate.json").read_bytes()).hexdigest()
        if digest != row.digest:
            found.append("its certificate is another one than was written down")
        found += [
            f"{check.what}: {check.found}" for check in verify(folder, keys=service.keys.public()).checks if not check.holds
        ]
    except OSError:
        found.append("its folder is lost")
    except SfumatoError as error:
        found.append(str(error))
    return found
