"""What a plan is: the SHA-256 of its dataset, schema, people, caps and releases. What is approved is exactly what is run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from sfumato.service.planning.assembling import DatasetRow
from sfumato.service.planning.given import canonical
from sfumato.service.store import schema


def plan_digest(dataset: DatasetRow, releases: Sequence[Any]) -> str:
    """The digest of releases from a dataset; the name and the author of a plan are no part of it."""
    told = {
        "dataset": dataset.name,
        "source": dataset.source,
        "schema": dataset.schema,
        "people": None if dataset.people is None else json.loads(dataset.people),
        "caps": json.loads(dataset.caps),
        "releases": list(releases),
    }
    return hashlib.sha256(canonical(told).encode()).hexdigest()


def digest_of(connection: Connection, plan: Any) -> str:
    """The digest that a line of ``service_plans`` must have, computed anew: whoever runs it compares the two."""
    dataset = connection.execute(select(schema.datasets).where(schema.datasets.c.id == plan.dataset_id)).one()
    return plan_digest(dataset, json.loads(plan.releases))
