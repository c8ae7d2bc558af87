"""Health, metrics and logs: useful to whoever runs the service, and silent about people, values and unfinished jobs."""

from __future__ import annotations

import io
import json
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import pytest
from fastapi import HTTPException
from fastapi.testclient import TestClient
from sqlalchemy import insert

from sfumato.cli.app import log_to_stderr
from sfumato.service.fresh import fresh_id
from sfumato.service.http.access import Caller, allowed
from sfumato.service.http.app import create_app
from sfumato.service.operations.health import LATE, SIGN, jobs_told, sign_of_life
from sfumato.service.operations.logs import log_json
from sfumato.service.operations.metrics import Metrics
from sfumato.service.store import schema
from sfumato.service.store.database import now

HERE = ("127.0.0.1", 4711)
AT = "http://127.0.0.1"


@pytest.fixture
def alone(service: Any) -> Any:
    """The application of a service that only this machine can reach."""
    return create_app(replace(service, settings=replace(service.settings, base_url=AT)))


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What the service logs."""
    names = ("", "sfumato", "sfumato.service", "uvicorn", "uvicorn.error", "uvicorn.access")
    before = [(logging.getLogger(n), list(logging.getLogger(n).handlers), logging.getLogger(n).level) for n in names]
    stream = io.StringIO()
    log_to_stderr(logging.DEBUG)  # as `sfumato -vv serve`
    log_json(stream)
    yield stream
    for logger, handlers, level in before:
        logger.handlers[:], logger.propagate = handlers, True
        logger.setLevel(level)


def test_alive_asks_nobody_and_ready_asks_everybody(app: Any, service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client = TestClient(app)
    assert client.get("/healthz").json() == {"alive": True}
    refused = client.get("/readyz")
    assert refused.status_code == 503
    assert refused.json()["parts"] == {"database": True, "ledger": True, "runner": False}
    sign_of_life(service.settings.state)
    assert client.get("/readyz").json() == {"database": True, "ledger": True, "runner": True}
    late = time.time() - LATE - 1
    os.utime(service.settings.state / SIGN, (late, late))
    assert client.get("/readyz").status_code == 503
    sign_of_life(service.settings.state)
    monkeypatch.setattr("sfumato.service.operations.health._look", lambda _: (_ for _ in ()).throw(OSError("gone")))
    assert client.get("/readyz").json()["parts"]["database"] is False
    assert client.get("/healthz").status_code == 200


def jobs_in(service: Any, *states: tuple[str, int | None]) -> None:
    with service.store.write() as connection:
        account = {"id": "account_1", "name": "ann", "role": "custodian", "state": "active", "created_at": 1}
        connection.execute(insert(schema.accounts).values(account))
        dataset = {"id": "d", "name": "clinic", "source": "s", "schema": "", "caps": "{}", "created_by": "account_1"}
        connection.execute(insert(schema.datasets).values(dataset | {"created_at": 1}))
        about = {"dataset_id": "d", "account_id": "account_1", "request": "{}", "created_at": 1}
        for state, deliver_at in states:
            job = about | {"id": fresh_id("job"), "state": state, "deliver_at": deliver_at}
            connection.execute(insert(schema.jobs).values(job))


def test_no_counter_moves_before_the_slot_of_a_job(alone: Any, service: Any) -> None:
    later = now() + 1000
    jobs_in(service, ("running", later), ("finished", later), ("failed", later), ("finished", now()), ("waiting", None))
    told = {"waiting": 1, "running": 3, "finished": 1, "failed": 0, "cancelled": 0}
    assert jobs_told(service) == told
    page = TestClient(alone, AT, client=HERE).get("/metrics").text
    assert [line for line in page.splitlines() if line.startswith("sfumato_jobs{")] == [
        f'sfumato_jobs{{state="{state}"}} {number}' for state, number in told.items()
    ]


def test_metrics_count_by_template_and_not_by_what_was_asked(alone: Any) -> None:
    client = TestClient(alone, AT, client=HERE, raise_server_exceptions=False)
    client.get("/v1/datasets/secret clinic?person=7")
    client.get("/nowhere/patient-7")
    client.get("/healthz")
    client.request("BREW", "/healthz")
    page = client.get("/metrics").text
    assert "secret" not in page
    assert "patient" not in page
    assert "person" not in page
    assert 'sfumato_requests_total{route="/healthz",method="GET",status="2xx"} 1' in page
    assert 'sfumato_requests_total{route="(none)",method="GET",status="4xx"}' in page
    assert "BREW" not in page
    for line in page.splitlines():
        assert line.startswith("#") or float(line.rpartition(" ")[2]) >= 0


def test_what_people_do_is_one_number_without_method_status_or_duration() -> None:
    metrics = Metrics()
    metrics.count("POST", "/v1/me/datasets/{dataset}/withdraw", 200, 0.1)
    metrics.count("GET", "/v1/me", 404, 3.0)
    metrics.count("POST", "/v1/datasets/{dataset}/people/invitations", 201, 0.1)
    lines = [line for line in metrics.lines() if not line.startswith("#")]
    assert lines == [
        'sfumato_requests_total{route="/v1/datasets/{dataset}/people/*",method="any",status="any"} 1',
        'sfumato_requests_total{route="/v1/me/*",method="any",status="any"} 2',
    ]


def test_buckets_add_up() -> None:
    metrics = Metrics()
    for seconds in (0.001, 0.05, 0.26, 99.0):
        metrics.count("GET", "/v1/plans", 200, seconds)
    lines = dict(line.rsplit(" ", 1) for line in metrics.lines() if not line.startswith("#"))
    assert lines['sfumato_request_seconds_bucket{route="/v1/plans",le="0.05"}'] == "2"
    assert lines['sfumato_request_seconds_bucket{route="/v1/plans",le="0.3"}'] == "3"
    assert lines['sfumato_request_seconds_bucket{route="/v1/plans",le="+Inf"}'] == "4"
    assert lines['sfumato_request_seconds_count{route="/v1/plans"}'] == "4"


@pytest.mark.parametrize(
    ("settings", "client", "headers", "may"),
    [
        ({}, HERE, {}, True),
        ({}, ("::1", 1), {}, True),
        ({}, ("10.0.0.8", 1), {}, False),
        ({}, HERE, {"X-Forwarded-For": "10.0.0.8"}, False),
        ({"base_url": "https://sfumato.example.org"}, HERE, {}, False),
        ({"host": "0.0.0.0"}, HERE, {}, False),
        ({"metrics_token": "right"}, ("10.0.0.8", 1), {"Authorization": "Bearer right"}, True),
        ({"metrics_token": "right"}, HERE, {"Authorization": "Bearer wrong"}, False),
        ({"metrics_token": "right"}, HERE, {}, False),
    ],
)
def test_metrics_are_for_this_machine_or_for_the_token(
    service: Any, settings: dict[str, Any], client: Any, headers: dict[str, str], may: bool
) -> None:
    app = create_app(replace(service, settings=replace(service.settings, **{"base_url": AT} | settings)))
    asked = TestClient(app, AT, client=client).get("/metrics", headers=headers)
    assert asked.status_code == (200 if may else 404)


def test_logs_hold_no_value(app: Any, client_as: Any, logged: io.StringIO) -> None:
    @app.get("/v1/fails/{what}")
    def fails(what: str) -> None:
        raise KeyError(what)

    @app.get("/v1/refuses/{what}")
    def refuses(what: str) -> None:
        raise HTTPException(418)

    client = client_as("officer")
    secrets = ["patient-7", "hush", "body-text"]
    client.get("/v1/refuses/patient-7?token=hush", headers={"X-Request-Id": "a" * 20})
    client.post("/v1/fails/patient-7?token=hush", json={"a": "body-text"})
    assert client.get("/v1/fails/patient-7").status_code == 500
    logging.getLogger("another.package").warning("connecting to patient-7 with hush")
    logging.getLogger("another.package").info("body-text")
    logging.getLogger("sfumato.releases").info("count where patient-7")
    lines = [json.loads(line) for line in logged.getvalue().splitlines()]
    assert not [secret for secret in secrets if secret in logged.getvalue()]
    first, _, failed, other = lines
    assert first["request"] == "a" * 20
    assert (first["route"], first["status"], first["method"]) == ("/v1/refuses/{what}", 418, "GET")
    assert len(first["minute"]) == len("2026-01-01T00:00Z")
    assert failed["error"] == "KeyError"
    assert any("fails" in place for place in failed["at"])
    assert (other["logger"], other["message"]) == ("another.package", "a message of another package")


def test_a_line_names_the_account_and_not_the_person(app: Any, client_as: Any, logged: io.StringIO) -> None:
    @app.get("/v1/probe")
    def probe(caller: Annotated[Caller, allowed("plans.decide")]) -> str:
        return caller.name

    officer = client_as("officer", "Ada Lovelace")
    assert officer.get("/v1/probe").json() == "Ada Lovelace"
    line = json.loads(logged.getvalue().splitlines()[-1])
    assert line["account"] == officer.caller.id
    assert "Ada" not in logged.getvalue()


@pytest.mark.parametrize("given", ["short", "x" * 65, "with space aaaaaaa", "a\tb-aaaaaaaaa", ""])
def test_a_request_number_is_plain_or_new(app: Any, given: str) -> None:
    found = TestClient(app).get("/healthz", headers={"X-Request-Id": given}).headers["X-Request-Id"]
    assert found.startswith("request_")
