"""A service of the test's own, and clients that are whoever the test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from fastapi import Request
from fastapi.testclient import TestClient
from sqlalchemy import insert

from sfumato.service.context import Service
from sfumato.service.fresh import fresh_id
from sfumato.service.http.access import Caller, current_caller
from sfumato.service.http.app import create_app
from sfumato.service.settings import Settings
from sfumato.service.store import schema
from sfumato.service.store.database import now
from support.service_accounts import Clock, World


def _settings(state: Path) -> Settings:
    """With passwords that cost next to nothing."""
    given = {"slot": 1, "secure_cookies": False, "base_url": "http://testserver"}
    return Settings.in_folder(state, **given, password_time=1, password_memory=64)


@pytest.fixture(scope="session")
def empty_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state of a new service: making its tables takes ten times as long as copying them."""
    state = tmp_path_factory.mktemp("empty") / "state"
    Service.opened(_settings(state))
    return state


@pytest.fixture
def service(tmp_path: Path, empty_state: Path) -> Service:
    copytree(empty_state, tmp_path / "state")
    return Service.opened(_settings(tmp_path / "state"))


@pytest.fixture
def app(service: Service) -> Any:
    return create_app(service)


def make_account(service: Service, role: str, name: str) -> Caller:
    """An account without a password."""
    caller = Caller(fresh_id("account"), name, role)  # type: ignore[arg-type]
    with service.store.write() as connection:
        connection.execute(
            insert(schema.accounts).values(id=caller.id, name=name, role=role, state="active", created_at=now())
        )
    return caller


@pytest.fixture
def client_as(app: Any, service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., TestClient]]:
    """`client_as("officer")`, `client_as("officer", "another one")`, `client_as(None)`: a client signed in as such."""
    known: dict[str, Caller] = {}

    def as_(role: str | None, name: str | None = None) -> TestClient:
        if role is None:
            return TestClient(app, raise_server_exceptions=False)
        name = name or role
        caller = known.get(name) or known.setdefault(name, make_account(service, role, name))
        client = TestClient(app, raise_server_exceptions=False, headers={"X-Test-Caller": name})
        client.caller = caller  # type: ignore[attr-defined]
        return client

    def found(request: Request) -> Caller | None:
        return known.get(request.headers.get("X-Test-Caller", ""))

    app.dependency_overrides[current_caller] = found
    monkeypatch.setattr("sfumato.service.accounts.second_factor.confirm_code", lambda *_: None)
    yield as_
    app.dependency_overrides.clear()


@pytest.fixture
def world(app: Any, service: Service, monkeypatch: pytest.MonkeyPatch) -> World:
    """People who really sign in, against a clock that the test turns."""
    clock = Clock()
    monkeypatch.setattr("sfumato.service.store.database.now", clock)
    return World(app, service, clock)
