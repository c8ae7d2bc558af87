"""A clinic in a service, with a plan that an officer approved, and a runner that the test moves step by step."""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
from sqlalchemy import Row, insert, select

from sfumato.service.context import Service
from sfumato.service.fresh import fresh_id
from sfumato.service.jobs.queue import enqueue
from sfumato.service.planning.digests import plan_digest
from sfumato.service.runner.loop import Runner
from sfumato.service.runner.work import make
from sfumato.service.settings import Settings, SourceSettings
from sfumato.service.store import schema
from sfumato.service.store.database import now

SCHEMA = """
[columns.age]
type = "numeric"
low = 0
high = 100
integer = true
bins = 10
"""
ONE = ({"name": "old", "kind": "count", "where": "age >= 50", "epsilon": "0.1"},)
TWO = (*ONE, {"name": "ages", "kind": "histogram", "columns": ["age"], "mechanism": "identity", "epsilon": "0.2"})


def clinic(folder: Path, **settings: Any) -> Service:
    """A service whose source "clinic" has 200 people."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "private.parquet"
    pd.DataFrame({"age": [i % 100 for i in range(200)]}).to_parquet(source)
    given: dict[str, Any] = {"slot": 10, "longest": 5, "secure_cookies": False} | settings
    if "keys" not in given:
        shutil.copytree(_empty(), folder / "state")
    return Service.opened(Settings.in_folder(folder / "state", sources={"clinic": SourceSettings(str(source))}, **given))


@functools.cache
def _empty() -> Path:
    """The state of a service in which nothing happened yet, made once: making its tables takes longer than a test."""
    home = tempfile.TemporaryDirectory()
    atexit.register(home.cleanup)
    state = Path(home.name) / "state"
    Service.opened(Settings.in_folder(state))
    return state


def account(service: Service, role: str, name: str | None = None) -> str:
    """The account of a name, made if it is not there."""
    name = name or role
    with service.store.write() as connection:
        known = select(schema.accounts.c.id).where(schema.accounts.c.name == name)
        found = connection.execute(known).scalar_one_or_none() or fresh_id("account")
        if connection.execute(known).first() is None:
            row = {"id": found, "name": name, "role": role, "state": "active", "created_at": now()}
            connection.execute(insert(schema.accounts).values(row))
    return str(found)


def registered(service: Service, name: str = "clinic", epsilon: str = "10") -> str:
    """The dataset, in the service and in the ledger."""
    dataset = fresh_id("dataset")
    row = {
        "id": dataset,
        "name": name,
        "source": "clinic",
        "schema": SCHEMA,
        "caps": json.dumps({"epsilon": epsilon, "rows": 200}),
    }
    with service.store.write() as connection:
        known = connection.execute(select(schema.datasets.c.id).where(schema.datasets.c.name == name)).scalar_one_or_none()
        if known is not None:
            return str(known)
    custodian = account(service, "custodian")
    with service.store.write() as connection:
        connection.execute(insert(schema.datasets).values(**row, created_by=custodian, created_at=now()))
    service.ledger.register(name, epsilon=epsilon)
    return dataset


def approved_plan(service: Service, releases: Any = ONE, **changed: Any) -> str:
    """A plan of the custodian's that the officer approved; `changed` replaces columns of the decision."""
    dataset = registered(service)
    plan, digest = fresh_id("plan"), digest_of(service, dataset, releases)
    row = {"id": plan, "dataset_id": dataset, "name": "a plan", "releases": json.dumps(releases), "digest": digest}
    author = account(service, "custodian")
    decision = {"officer_id": account(service, "officer"), "plan_digest": digest, "decision": "approved"} | changed
    with service.store.write() as connection:
        connection.execute(
            insert(schema.plans).values(**row, author_id=author, state="submitted", created_at=now(), submitted_at=now())
        )
        if decision["decision"] is not None:
            connection.execute(
                insert(schema.decisions).values(plan_id=plan, reason="it is fine", decided_at=now(), **decision)
            )
        connection.execute(schema.plans.update().where(schema.plans.c.id == plan).values(state="approved"))
    return plan


def drafted_plan(service: Service, state: str) -> str:
    """A plan of the custodian's that nobody has decided about."""
    dataset = registered(service)
    plan, digest = fresh_id("plan"), digest_of(service, dataset, ONE)
    row = {"id": plan, "dataset_id": dataset, "name": "a plan", "releases": json.dumps(ONE), "digest": digest}
    author = account(service, "custodian")
    with service.store.write() as connection:
        connection.execute(insert(schema.plans).values(**row, author_id=author, state="draft", created_at=now()))
        connection.execute(schema.plans.update().where(schema.plans.c.id == plan).values(state=state))
    return plan


def digest_of(service: Service, dataset: str, releases: Any) -> str:
    """The digest that the plan has."""
    with service.store.read() as connection:
        row = connection.execute(select(schema.datasets).where(schema.datasets.c.id == dataset)).one()
    return plan_digest(row, list(releases))


def waiting(service: Service, releases: Any = ONE, **changed: Any) -> str:
    """A job that waits: a plan that was approved."""
    plan = approved_plan(service, releases, **changed)
    dataset, custodian = registered(service), account(service, "custodian")
    with service.store.write() as connection:
        return enqueue(connection, dataset_id=dataset, account_id=custodian, plan_id=plan)


def job(service: Service, job_id: str) -> Row[Any]:
    with service.store.read() as connection:
        return connection.execute(select(schema.jobs).where(schema.jobs.c.id == job_id)).one()


def artefacts(service: Service, job_id: str) -> list[Row[Any]]:
    with service.store.read() as connection:
        return list(
            connection.execute(select(schema.artefacts).where(schema.artefacts.c.job_id == job_id).order_by("entry"))
        )


class Over(BaseException):
    """The end of a release's process."""


class Clock:
    """The clock of the service and of its ledger, which the test moves."""

    def __init__(self, monkeypatch: Any, start: int = 1_900_000_000) -> None:
        self.now = start
        monkeypatch.setattr("sfumato.service.store.database.time", SimpleNamespace(time=lambda: self.now))
        monkeypatch.setattr("sfumato.ledger.clock.now", lambda: time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(self.now)))


def over() -> None:
    raise Over


def inline(monkeypatch: Any, work: Any = make) -> None:
    """Make releases in this process, with a report that takes no time."""
    monkeypatch.setattr("sfumato.releases.folder.report", lambda *_: "<script>alert(1)</script>")

    def begin(service: Service, runner: str, job_id: str, name: str | None, until: int) -> None:
        try:
            work(service, runner, job_id, name, over=over)
        except Over:
            pass
        except Exception:  # as in a process of its own: nobody hears why
            pass

    monkeypatch.setattr("sfumato.service.runner.loop.started", begin)


def until_told(runner: Runner, clock: Clock, seconds: int = 60) -> None:
    """Go round, a second at a time, until nothing is held."""
    for _ in range(seconds):
        runner.round()
        if not runner.held:
            return
        clock.now += 1
    raise AssertionError("a job does not end")
