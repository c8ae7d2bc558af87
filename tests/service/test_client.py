"""The client against the application in this process: the calls of a table, errors of our own, nothing sent twice."""

from __future__ import annotations

import inspect
import io
import json
import zipfile
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from sfumato.client import AccessError, Client, JobFailedError, Jobs, Releases, RemoteTable, ServiceError, connect
from sfumato.client.bundle import result_in, unpack
from sfumato.client.connection import Connection, place
from sfumato.client.table import exact
from sfumato.errors import BudgetError, InputError, LedgerError, PrivacyError
from sfumato.ledger.signing import Keys
from sfumato.people import Estimate
from sfumato.releases.session import Table
from sfumato.releases.verification import verify
from sfumato.service.accounts import passwords
from sfumato.service.http.access import Caller
from sfumato.service.http.app import create_app
from sfumato.service.requesting import granting, preapprovals
from sfumato.service.runner.loop import Runner
from sfumato.service.store import schema
from support.jobs import Clock, account, approved_plan, clinic, inline, registered

AT = "http://127.0.0.1"
PASSWORD = "a long sentence for testing"


class House:
    """A service with a clinic, a clock that the client's waiting moves, and a runner that goes round meanwhile."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.service = clinic(folder, base_url=AT, password_time=1, password_memory=8192)
        self.clock = Clock(monkeypatch)
        inline(monkeypatch)
        registered(self.service)
        self.app = create_app(self.service)
        self.runner = Runner(self.service)
        officer = Caller(account(self.service, "officer"), "officer", "officer")
        self.stored = passwords.hashed(self.service, PASSWORD)
        account(self.service, "analyst")
        granting.grant(self.service, officer, "clinic", analyst="analyst", purpose="research", epsilon="0.5", per_day=None)
        given = preapprovals.Given(purpose="research", kinds=["count", "histogram"], most="0.2", ends_at=None)
        preapprovals.give(self.service, officer, "clinic", given)

    def as_(self, name: str) -> Client:
        with self.service.store.write() as connection:
            mine = schema.accounts.c.name == name
            connection.execute(update(schema.accounts).where(mine).values(password=self.stored))
        client = connect(AT, name=name, password=PASSWORD, transport=TestClient(self.app, AT)._transport)
        client._connection.pause = self.pause
        return client

    def pause(self, seconds: float) -> None:
        self.runner.round()
        self.clock.now += 1


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    return House(tmp_path, monkeypatch)


def test_a_release_is_asked_charged_told_verified_and_of_the_same_type(house: House, tmp_path: Path) -> None:
    lines: list[str] = []
    with house.as_("analyst") as client:
        table = client.open("clinic", purpose="research")
        table._progress = lines.append
        assert table.schema.names == ("age",)
        seen = table.preview("count", where="age >= 50", epsilon=0.1)
        assert (seen.price, seen.fits, seen.refusals) == ("0.1", True, ())
        assert set(seen.to_frame()["mechanism"]) >= {seen.chosen}
        assert table.allowance()["left"] == "0.5"

        found = table.count(where="age >= 50", epsilon=0.1)
        assert isinstance(found, Estimate)
        assert (found.repeated, found.receipt.entry) == (False, 1)
        assert float(found.guarantee.epsilon) == 0.1
        assert table.balance()["spent"] == "0.1"
        again = table.count(where="age >= 50", epsilon="0.10")
        assert (again.repeated, again.value, table.allowance()["spent"]) == (True, found.value, "0.1")
        assert lines[-1].endswith("finished.")

        saved = found.save(tmp_path / "saved")
        assert verify(saved).holds
        (release, _) = client.releases
        assert client.releases.load(release["id"]).value == found.value
        assert [job["state"] for job in client.jobs] == ["finished", "finished"]
        _changed_bundles_are_refused(found, tmp_path / "keys")


def _changed_bundles_are_refused(made: Any, elsewhere: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(made.receipt.bundle)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    keys = json.loads(files.pop("keys.json"))["keys"]

    def read(files: dict[str, bytes], keys: Any, known: Any = None) -> Any:
        return result_in(bundle(files, keys), release="r", repeated=False, known=known)

    assert read(files, keys, keys).value == made.value
    data = json.dumps(json.loads(files["release/data.json"])).encode()
    for changed in (files | {"release/data.json": data}, files | {"release/more.json": b"{}"}):
        with pytest.raises(PrivacyError, match="does not verify"):
            read(changed, keys)
    other = Keys.opened(elsewhere).public()
    with pytest.raises(PrivacyError, match="does not verify"):
        read(files, other)  # signed by somebody else
    with pytest.raises(PrivacyError, match="not the ones that were given"):
        read(files, keys, other)
    for broken in (made.receipt.bundle[:200], b"", bundle(files, keys)[:-40]):
        with pytest.raises(InputError, match="not a whole bundle"):
            result_in(broken, release="r", repeated=False)


def test_refusals_are_the_errors_that_a_table_raises(house: House, tmp_path: Path) -> None:
    with house.as_("analyst") as client:
        table = client.open("clinic", purpose="research")
        with pytest.raises(InputError, match="no column 'agee'"):
            table.count(where="agee > 3", epsilon=0.1)
        with pytest.raises(InputError, match="unknown"):
            table.preview("count", wher="age > 3", epsilon=0.1)
        with pytest.raises(BudgetError, match=r"at most 0\.2"):
            table.count(epsilon=0.3)
        with pytest.raises(BudgetError, match="no officer has approved"):
            table.mean("age", epsilon=0.1)
        with pytest.raises(ServiceError, match="none of this name") as missing:
            client.open("elsewhere", purpose="research").preview("count", epsilon=0.1)
        assert missing.value.status == 404
        with pytest.raises(AccessError, match="another role"):
            list(client.plans)
        assert list(client.jobs) == []
        seen = table.preview("count", epsilon=0.3)
        assert not seen.fits
        assert "refused" in repr(seen)
        (tmp_path / "private.parquet").write_bytes(b"nothing")
        with pytest.raises(JobFailedError, match="Why is not told"):
            table.count(epsilon=0.1)


def test_a_price_is_found_by_previews() -> None:
    """With a service whose error is 2 / ε, and which has no price below ε 0.001."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        epsilon = json.loads(request.content)["release"]["epsilon"]
        asked.append(epsilon)
        offer = {"mechanism": "m", "expected_rmse": 2 / float(epsilon), "errors": None, "charge": {"epsilon": epsilon}}
        release = {"mechanism": "m", "offers": [offer], "guarantee": "", "notes": []}
        told = {"price": epsilon, "fits": True, "refusals": [], "release": release, "allowance": None}
        return (
            httpx.Response(422, json={"detail": "too small"}) if float(epsilon) < 0.001 else httpx.Response(200, json=told)
        )

    connection = Connection(httpx.Client(base_url=AT, transport=httpx.MockTransport(answer)))
    table = RemoteTable(connection, Jobs(connection), Releases(connection), "clinic", purpose="research")
    found = table.epsilon_for("count", error=20)
    assert found.price == {"epsilon": Decimal("0.1")}
    assert found.error == pytest.approx(20)
    assert table.epsilon_for("count", relative_error=0.1, size=100).epsilon == Decimal("0.2")
    assert len(asked) < 150
    with pytest.raises(InputError, match="looks for the price"):
        table.epsilon_for("count", error=20, epsilon=1)
    with pytest.raises(InputError, match="no epsilon reaches"):
        table.epsilon_for("count", error=0.001)


def test_a_custodian_runs_a_plan(house: House) -> None:
    plan = approved_plan(house.service)
    with house.as_("custodian") as client:
        assert client.plans[plan]["state"] == "approved"
        assert client.plans.preview(plan)["price"] == "0.1"
        (made,) = client.plans.run(plan)
        assert isinstance(made, Estimate)
        draft = client.plans.create("clinic", "more", [{"name": "n", "kind": "count", "epsilon": "0.1"}])
        assert client.plans.submit(draft["id"])["state"] == "submitted"
        assert {p["id"] for p in client.plans} == {plan, draft["id"]}


def test_every_question_of_a_table_is_a_question_of_a_remote_one() -> None:
    public = {n for n, m in inspect.getmembers(Table, inspect.isfunction) if not n.startswith("_")}
    absent = public - {n for n, m in inspect.getmembers(RemoteTable, inspect.isfunction)}
    assert absent == {"head_counts"}  # heads of a private roster are counted by a plan


def answering(*answers: Any) -> tuple[Connection, list[httpx.Request], list[float]]:
    """A connection whose service gives these answers, one after the other."""
    asked: list[httpx.Request] = []
    pauses: list[float] = []
    left = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    http = httpx.Client(base_url=AT, transport=httpx.MockTransport(answer))
    return Connection(http, pauses.append), asked, pauses


def problem(status: int, kind: str | None = None, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"detail": "words", "kind": kind}, headers=headers)


OK = {"items": [], "older": None}


def test_what_can_be_sent_again_is() -> None:
    lost = httpx.ReadError("gone")
    sending: list[Callable[[Connection], Any]] = [
        lambda c: c.get("/x"),
        lambda c: c.post("/x", {}),
        lambda c: c.put("/x", {}),
        lambda c: c.delete("/x"),
    ]
    for send in sending:
        connection, asked, pauses = answering(
            lost, problem(503), problem(429, **{"Retry-After": "7"}), httpx.Response(200, json=OK)
        )
        assert send(connection) == OK
        assert len(asked) == 4
        assert pauses[-1] == 7
        assert len({r.headers.get("Idempotency-Key") for r in asked}) == 1
    connection, asked, _ = answering(problem(409, **{"Retry-After": "1"}), httpx.Response(200, json=OK))
    assert connection.post("/x") == OK  # the same request is under way
    assert asked[0].headers["Idempotency-Key"] == asked[1].headers["Idempotency-Key"]


def test_what_cannot_be_sent_again_is_not() -> None:
    connection, asked, _ = answering(httpx.ReadError("gone"))
    with pytest.raises(ServiceError, match="cannot be reached"):
        connection.send("POST", "/sign-in", again=False, json={})
    for answer in (problem(409), problem(422), problem(404), problem(500)):
        connection, asked, _ = answering(answer)
        with pytest.raises((ServiceError, InputError)):
            connection.post("/x", {})
        assert len(asked) == 1
    connection, asked, _ = answering(*[httpx.ConnectError("no")] * 9)
    with pytest.raises(ServiceError):
        connection.get("/x")
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (problem(409, "BudgetError"), BudgetError),
        (problem(409, "PrivacyError"), PrivacyError),
        (problem(422, "InputError"), InputError),
        (problem(422), InputError),
        (problem(401), AccessError),
        (problem(403), AccessError),
        (problem(404), ServiceError),
        (problem(400, "KeyboardInterrupt"), ServiceError),
        (httpx.Response(500, text="<html>"), ServiceError),
        (httpx.Response(409, json=[1]), ServiceError),
    ],
)
def test_problems_become_errors(answer: httpx.Response, error: type[Exception]) -> None:
    connection, _, _ = answering(answer)
    with pytest.raises(error):
        connection.post("/x", {})


def test_a_ledger_that_is_away_is_asked_again_and_then_told() -> None:
    connection, asked, _ = answering(*[problem(503, "LedgerError")] * 4)
    with pytest.raises(LedgerError):
        connection.get("/x")
    assert len(asked) == 4


def test_lists_come_a_page_at_a_time() -> None:
    pages = [{"items": [1, 2], "older": "a"}, {"items": [3], "older": None}]
    connection, asked, _ = answering(*(httpx.Response(200, json=page) for page in pages))
    every = connection.pages("/x", dataset=None)
    assert next(every) == 1
    assert len(asked) == 1
    assert list(every) == [2, 3]
    assert [r.url.query for r in asked] == [b"", b"before=a"]


@pytest.mark.parametrize("url", ["http://sfumato.example.org", "ftp://127.0.0.1", "127.0.0.1:8000", "http://[", ""])
def test_nothing_is_sent_in_the_open(url: str) -> None:
    with pytest.raises(InputError, match="https://"):
        connect(url, token="t")


def test_one_way_to_be_known_is_given() -> None:
    for given in ({}, {"token": "t", "name": "n", "password": "p"}, {"name": "n"}, {"password": "p"}):
        with pytest.raises(InputError, match="connect by"):
            connect(AT, **given)


@pytest.mark.parametrize("answer", [{"text": "<html>"}, {"json": []}, {"json": {"account": None}}, {"json": {}}])
def test_another_server_is_told_from_a_service(answer: dict[str, Any]) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, **answer))
    if answer != {"json": {"account": None}}:
        with pytest.raises(ServiceError, match="not the answer of a Sfumato service"):
            connect(AT, token="t", transport=transport)
    with pytest.raises(ServiceError, match="not the answer of a Sfumato service"):
        connect(AT, name="n", password="p", transport=transport)


def test_a_token_is_sent_and_never_shown() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"account": {"id": "a", "name": "ana", "role": "analyst"}})

    client = connect("https://sfumato.example.org", token="hush-hush", transport=httpx.MockTransport(answer))
    assert seen[0].headers["Authorization"] == "Bearer hush-hush"
    assert "hush" not in repr(client) + repr(client.open("clinic", purpose="research"))


def test_a_name_leads_nowhere_else() -> None:
    assert place("datasets", "a/../b?c#d", "requests") == "/datasets/a%2F..%2Fb%3Fc%23d/requests"
    for name in ("", ".", ".."):
        with pytest.raises(InputError):
            place("datasets", name)


def bundle(files: dict[str, bytes], keys: Any = ()) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr("keys.json", json.dumps({"keys": list(keys)}))
    return made.getvalue()


@pytest.mark.parametrize(
    "name", ["release/../x", "/etc/x", "a/b", "release/..", "release/a\\b", "release/x\n", "x", "release/a/b"]
)
def test_a_bundle_writes_into_its_folder_only(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="leads elsewhere"):
        unpack(bundle({name: b"x"}), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_exact_decimals_are_sent() -> None:
    assert [exact(v) for v in (0.1, 1e-7, 3, "0.2", Fraction(1, 3))] == ["0.1", "0.0000001", "3", "0.2", "0.333333333"]
