"""Datasets: a source of the configuration with its schema, roster and caps, registered once and in the ledger too."""

from __future__ import annotations

import re
from typing import Any, Final

from sqlalchemy import Connection, Row, select

from sfumato.service.http.problems import missing
from sfumato.service.store import schema

DATASET_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,79}$"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,79}")


def dataset_of(connection: Connection, name: str) -> Row[Any]:
    """The dataset of a name in a path; a problem (404) if there is none."""
    if not _NAME.fullmatch(name):
        raise missing()
    found = connection.execute(select(schema.datasets).where(schema.datasets.c.name == name)).first()
    if found is None:
        raise missing()
    return found
