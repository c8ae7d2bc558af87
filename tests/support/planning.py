"""A clinic to make plans for: five tiers with public head counts, a source that nobody may open, and a few plans."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from sfumato.demo.clinic import SCHEMA
from sfumato.service.context import Service
from sfumato.service.settings import Limits, Settings, SourceSettings

TIERS = {"a": "0.01", "b": "0.05", "c": "0.2", "d": "0.5", "e": "1"}
PEOPLE = {"column": "consent", "tiers": TIERS, "counts": {"a": 100, "b": 50, "c": 50, "d": 50, "e": 50}}
RELEASES = [
    {"name": "over65", "kind": "count", "where": "age >= 65", "share": "0.5"},
    {"name": "ages", "kind": "histogram", "columns": ["age"], "share": "0.25"},
]
CLINIC: dict[str, Any] = {"name": "clinic", "source": "patients", "schema": SCHEMA, "people": PEOPLE, "caps": {}}
VISITS: dict[str, Any] = {"name": "visits", "source": "visits", "schema": SCHEMA, "caps": {"epsilon": "1", "rows": 300}}
REASON = "the figures are needed for the yearly report"


@contextmanager
def schema_on(server: str) -> Iterator[str]:
    """A schema of its own on a PostgreSQL server, as an address."""
    name = f"planning_{uuid.uuid4().hex}"
    plain = server.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        yield f"{plain}{'&' if '?' in plain else '?'}options=-csearch_path%3D{name}"
        connection.execute(f"DROP SCHEMA {name} CASCADE")


def planning_service(folder: Path, **given: Any) -> Service:
    """A service with three sources, none of which is there: whoever opened one would fail."""
    nowhere = folder / "nowhere"
    sources = {name: SourceSettings(str(nowhere / f"{name}.parquet")) for name in ("patients", "visits", "third")}
    sources["patients again"] = SourceSettings(str(folder / "." / "nowhere" / "patients.parquet"))
    about: dict[str, Any] = {"sources": sources, "slot": 1, "secure_cookies": False, "base_url": "http://testserver"}
    about |= {"limits": Limits(preview_seconds=60)} | given  # a busy machine is no reason to fail
    return Service.opened(Settings.in_folder(folder / "state", **about))


def drafted(custodian: Any, **given: Any) -> dict[str, Any]:
    """A draft of the clinic's, whose dataset is registered if it is not."""
    made = custodian.post("/v1/datasets", json=CLINIC)
    assert made.status_code == 201, made.text
    made = custodian.post("/v1/plans", json={"dataset": "clinic", "name": "yearly", "releases": RELEASES} | given)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


def submitted(custodian: Any, **given: Any) -> dict[str, Any]:
    """A plan that waits for an officer."""
    plan = drafted(custodian, **given)
    made = custodian.post(f"/v1/plans/{plan['id']}/submit", json={"digest": plan["digest"]})
    assert made.status_code == 200, made.text
    found: dict[str, Any] = made.json()
    return found


def decision(plan: dict[str, Any], what: str = "approved", **given: Any) -> dict[str, Any]:
    return {"decision": what, "reason": REASON, "digest": plan["digest"]} | given
