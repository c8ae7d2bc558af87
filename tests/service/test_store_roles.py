"""Roles of a PostgreSQL database: tried with statements, and with a job that a runner makes as its role."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from sfumato.ledger import Ledger
from sfumato.service.context import Service
from sfumato.service.runner.loop import Runner
from sfumato.service.settings import Settings, SourceSettings
from sfumato.service.store import roles, schema
from sfumato.service.store.database import Store
from support import jobs
from support.jobs import Clock

PRIVATE = "private_of_the_clinic"


def test_every_table_of_the_service_is_given_to_the_web_by_name():
    names = {table.name for table in schema.metadata.sorted_tables}
    assert set(roles.WEB_MAY) == names
    assert set(roles.RUNNER_MAY) < names
    assert "UPDATE" not in roles.WEB_MAY["service_decisions"]
    assert all("INSERT" not in roles.RUNNER_MAY.get(f"service_{t}", "") for t in ("accounts", "decisions", "preapprovals"))


def test_a_schema_is_a_plain_name():
    assert roles.main(["--private", "a; DROP TABLE x"]) == 2


@pytest.fixture
def place(postgres_url: str) -> Iterator[Any]:
    """A database with a private table in it, and its address for each role."""
    plain = postgres_url.replace("postgresql+psycopg://", "postgresql://")
    name = f"roles_{uuid.uuid4().hex}"
    with psycopg.connect(plain, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
    head, _, query = plain.partition("?")
    base = f"{head.rpartition('/')[0]}/{name}" + (f"?{query}" if query else "")
    address = {role: f"{base}{'&' if query else '?'}options=-crole%3D{role}" for role in (roles.WEB, roles.RUNNER)}
    with psycopg.connect(base, autocommit=True) as owner:
        owner.execute(f"CREATE SCHEMA {PRIVATE}")
        owner.execute(f"CREATE TABLE {PRIVATE}.people AS SELECT i % 100 AS age FROM generate_series(1, 200) i")
    store = Store.opened(base)
    Ledger.open(base)
    for _ in range(2):  # again changes nothing
        with store.write() as connection:
            roles.apply(connection, [PRIVATE])
    yield SimpleNamespace(owner=base, **{role.removeprefix("sfumato_"): url for role, url in address.items()})
    del store
    with psycopg.connect(plain, autocommit=True) as server:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")
        for role in (roles.WEB, roles.RUNNER):
            server.execute(f"DROP ROLE {role}")


@pytest.mark.postgres
def test_the_web_reads_no_private_table_and_the_runner_approves_nothing(place, tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    jobs.inline(monkeypatch)
    source = {"clinic": SourceSettings(place.runner, table=[PRIVATE, "people"])}
    made = {"state": tmp_path, "sources": source, "slot": 10, "longest": 5, "secure_cookies": False}
    web = Service.opened(Settings.in_folder(**made, database=place.web, ledger=place.web))
    job_id = jobs.waiting(web)  # registers, plans and decides as the web
    runner = Runner(Service.opened(Settings.in_folder(**made, database=place.runner, ledger=place.runner)))
    jobs.until_told(runner, clock)
    assert jobs.job(web, job_id).state == "finished"
    assert len(jobs.artefacts(web, job_id)) == 1
    web.ledger.verify("clinic")

    decision = "INSERT INTO service_decisions SELECT id, digest, author_id, 'approved', '', 1 FROM service_plans"
    refused = {
        "web": (
            f"SELECT * FROM {PRIVATE}.people",
            f"COPY {PRIVATE}.people TO STDOUT",
            f"CREATE VIEW mine AS SELECT * FROM {PRIVATE}.people",
            "UPDATE service_decisions SET decision = 'refused'",
            "DELETE FROM service_decisions",
            "TRUNCATE service_decisions",
            "INSERT INTO service_artefacts SELECT * FROM service_artefacts",
            "UPDATE service_datasets SET source = 'another'",
            "DELETE FROM service_events",
            "ALTER TABLE service_plans DISABLE TRIGGER ALL",
        ),
        "runner": (
            decision,
            "UPDATE service_decisions SET decision = 'approved'",
            "INSERT INTO service_accounts SELECT * FROM service_accounts",
            "UPDATE service_accounts SET role = 'officer'",
            "UPDATE service_plans SET state = 'approved'",
            "INSERT INTO service_preapprovals SELECT * FROM service_preapprovals",
            "SELECT * FROM service_sessions",
            "SELECT * FROM service_tokens",
            f"INSERT INTO {PRIVATE}.people VALUES (1)",
        ),
    }
    with psycopg.connect(place.owner, autocommit=True) as owner:
        for role, statements in refused.items():
            owner.execute(f"SET ROLE sfumato_{role}")
            for statement in statements:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    owner.execute(statement)
