"""Jobs and what was released, over HTTP: whose they are, what is told when, and how files are given out."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import Request
from fastapi.testclient import TestClient

from sfumato.releases import pipeline, verify
from sfumato.service.http.access import Caller, current_caller
from sfumato.service.http.app import create_app
from sfumato.service.runner.loop import Runner
from support import jobs
from support.jobs import ONE, TWO, Clock

As = Callable[..., TestClient]


def clients(service: Any) -> As:
    app = create_app(service)
    known: dict[str, Caller] = {}
    app.dependency_overrides[current_caller] = _by_header(known)

    def as_(role: str, name: str | None = None) -> TestClient:
        name = name or role
        known[name] = Caller(jobs.account(service, role, name), name, role)  # type: ignore[arg-type]
        return TestClient(
            app, raise_server_exceptions=False, headers={"X-Test-Caller": name}, base_url="http://127.0.0.1:8000"
        )

    return as_


def _by_header(known: dict[str, Caller]) -> Any:
    def found(request: Request) -> Caller | None:
        return known.get(request.headers.get("X-Test-Caller", ""))

    return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def clinic(tmp_path, monkeypatch, clock) -> Any:
    jobs.inline(monkeypatch)
    return jobs.clinic(tmp_path)


def test_a_plan_is_run_once_and_again_after_it_was_cancelled(clinic, clock):
    as_ = clients(clinic)
    custodian, plan = as_("custodian"), jobs.approved_plan(clinic)
    first = custodian.post(f"/v1/plans/{plan}/run")
    assert first.status_code == 202
    assert first.json() | {"state": "waiting", "plan": plan, "deliver_at": None, "progress": None} == first.json()
    assert custodian.post(f"/v1/plans/{plan}/run").json() == first.json()
    gone = custodian.delete(f"/v1/jobs/{first.json()['id']}")
    assert (gone.status_code, gone.json()["state"]) == (200, "cancelled")
    second = custodian.post(f"/v1/plans/{plan}/run").json()
    assert second["id"] != first.json()["id"]
    jobs.until_told(Runner(clinic), clock)
    assert custodian.get(f"/v1/jobs/{second['id']}").json()["state"] == "finished"
    assert custodian.delete(f"/v1/jobs/{second['id']}").status_code == 409
    assert custodian.post(f"/v1/plans/{plan}/run").json()["id"] == second["id"]
    pages = custodian.get("/v1/jobs?limit=1").json()
    assert len(pages["items"]) == 1
    rest = custodian.get("/v1/jobs", params={"before": pages["older"]}).json()
    assert {job["id"] for job in pages["items"] + rest["items"]} == {second["id"], first.json()["id"]}


@pytest.mark.parametrize("state", ["draft", "submitted", "withdrawn"])
def test_only_an_approved_plan_is_run(clinic, state):
    as_ = clients(clinic)
    plan = jobs.drafted_plan(clinic, state)
    refused = as_("custodian").post(f"/v1/plans/{plan}/run")
    assert refused.status_code == 409
    assert as_("custodian").get("/v1/jobs").json()["items"] == []


def test_what_is_anothers_is_answered_like_what_is_missing(clinic, clock):
    as_ = clients(clinic)
    job, plan = jobs.waiting(clinic, (ONE[0] | {"recipient": "ana"},)), jobs.approved_plan(clinic)
    jobs.until_told(Runner(clinic), clock)
    release = as_("officer").get("/v1/releases").json()["items"][0]["id"]
    for who, method, path in [
        *((who, m, "/v1/jobs/{}") for who in ("custodian", "analyst") for m in ("get", "delete")),
        ("custodian", "post", "/v1/plans/{}/run"),
        *(
            (w, "get", f"/v1/releases/{{}}{tail}")
            for w in ("custodian", "analyst")
            for tail in ("", "/bundle", "/files/data.csv")
        ),
    ]:
        real = {"j": job, "p": plan, "r": release}[path[4]]
        other = as_(who, "somebody else" if who == "custodian" else "bob")
        anothers, none = (getattr(other, method)(path.format(number)) for number in (real, "job_none"))
        assert (anothers.status_code, anothers.content) == (none.status_code, none.content), (who, path)
        assert anothers.status_code == 404
    assert as_("custodian", "somebody else").get("/v1/releases").json()["items"] == []
    assert as_("analyst", "bob").get("/v1/releases").json()["items"] == []
    assert len(as_("analyst", "ana").get("/v1/releases").json()["items"]) == 1
    assert as_("analyst", "ana").get(f"/v1/releases/{release}/files/data.csv").status_code == 200


def test_files_are_given_by_the_names_of_the_certificate_and_never_run_in_our_origin(clinic, clock):
    as_ = clients(clinic)
    jobs.waiting(clinic)
    jobs.until_told(Runner(clinic), clock)
    analyst = as_("analyst", "anybody")  # it is for everybody
    (listed,) = analyst.get("/v1/releases?dataset=clinic").json()["items"]
    assert analyst.get("/v1/releases?dataset=another").json()["items"] == []
    home = f"/v1/releases/{listed['id']}"
    shown = analyst.get(home).json()
    assert shown["certificate"]["reservation"] == listed["entry"]
    for name in [*shown["certificate"]["files"], "certificate.json"]:
        got = analyst.get(f"{home}/files/{name}")
        assert got.status_code == 200
        assert got.headers["content-disposition"].startswith("attachment;")
        assert got.headers["x-content-type-options"] == "nosniff"
        assert got.headers["content-security-policy"].startswith("sandbox;")
        assert len(got.content) == int(got.headers["content-length"])
    assert json.loads(analyst.get(f"{home}/files/certificate.json").content) == shown["certificate"]
    with zipfile.ZipFile(io.BytesIO(analyst.get(f"{home}/bundle").content)) as bundle:
        inside = {f"release/{name}" for name in (*shown["certificate"]["files"], "certificate.json")}
        assert set(bundle.namelist()) == inside | {"keys.json"}
        bundle.extractall(folder := clinic.settings.state / "unpacked")
    assert [check.what for check in verify(folder / "release", keys=folder / "keys.json").checks if not check.holds] == []
    for name in (
        "../certificate.json",
        "..%2f..%2fservice.db",
        "%2e%2e%2fservice.db",
        "report.html%2f..",
        ".",
        "service.db",
    ):
        assert analyst.get(f"{home}/files/{name}").status_code in (404, 405), name


@pytest.mark.parametrize("what", ["a file", "the certificate", "a link"])
def test_a_file_that_was_changed_is_not_given(clinic, clock, what):
    as_ = clients(clinic)
    job = jobs.waiting(clinic)
    jobs.until_told(Runner(clinic), clock)
    (made,) = jobs.artefacts(clinic, job)
    folder = clinic.settings.state / made.folder
    target = folder / ("certificate.json" if what == "the certificate" else "data.csv")
    before = target.read_bytes()
    if what == "a link":
        (folder / "moved").write_bytes(before)
        target.unlink()
        target.symlink_to(folder / "moved")
    else:
        target.write_bytes(before.replace(b"1", b"2").replace(b"0", b"1"))
    for path in ("/files/data.csv", "/bundle"):
        got = as_("officer").get(f"/v1/releases/{made.id}{path}")
        assert got.status_code == 503
        assert before not in got.content


# --- nothing of an end is seen before its slot -----------------------------------------------------------------------


def _fails(*_: Any, **__: Any) -> Any:
    raise ValueError("the value 17 of row 3")


def _killed(*_: Any, **__: Any) -> Any:
    raise jobs.Over


def _cannot_be_written(*_: Any, **__: Any) -> Any:
    raise OSError(28, "No space left on device")


KINDS: dict[str, Any] = {
    "it worked": lambda patch: None,
    "it failed": lambda patch: patch.setattr(pipeline, "run", _fails),
    "it was killed": lambda patch: patch.setattr(pipeline, "run", _killed),
    "it could not be written": lambda patch: patch.setattr("sfumato.releases.folder.write", _cannot_be_written),
}
_NUMBERS = re.compile(rb"\b(job|plan|release|account|dataset|event)_[A-Za-z0-9_-]{22}")
_HASHES = re.compile(rb'\b[0-9a-f]{64}\b|"ed25519":"[^"]{80,}"')  # salted, and signatures of them


def _one_after_the_other() -> Any:
    """Numbers in the order in which they are drawn: lists that are sorted by them come out the same."""
    numbers = itertools.count()
    return SimpleNamespace(token_urlsafe=lambda _: f"{next(numbers):022d}", token_bytes=os.urandom)


def _addresses(as_: As, job: str, plan: str) -> Iterator[tuple[str, str]]:
    """Who gets an answer where, of everybody who may have to do with a job, and of all that can be looked at."""
    given = {"job_id": job, "plan_id": plan, "dataset": "clinic"}
    described = as_("officer").get("/v1/openapi.json").json()["paths"]
    for path in sorted(path for path, methods in described.items() if "get" in methods):
        if set(re.findall(r"{(\w+)", path)) <= set(given):
            for role in ("custodian", "officer", "analyst", "administrator"):
                status = as_(role).get(path.format(**given)).status_code
                assert status != 500, path
                if status == 200:
                    yield role, path


def test_neither_how_long_it_took_nor_how_it_ended_changes_any_answer_before_its_slot(tmp_path, monkeypatch):
    seen: dict[str, dict[str, bytes]] = {}
    addresses: list[tuple[str, str]] = []
    for kind, change in KINDS.items():
        with monkeypatch.context() as patched:
            clock = Clock(patched)
            jobs.inline(patched)
            patched.setattr("sfumato.service.fresh.secrets", _one_after_the_other())
            change(patched)
            service = jobs.clinic(tmp_path / kind, keys=tmp_path / "keys")
            job, runner = jobs.waiting(service, TWO), Runner(service)
            plan, as_ = jobs.job(service, job).plan_id, clients(service)
            runner.round()
            told = jobs.job(service, job).deliver_at
            for role in ("custodian", "officer", "analyst", "administrator"):
                as_(role)
            addresses = addresses or list(_addresses(as_, job, plan))
            given = {"job_id": job, "plan_id": plan, "dataset": "clinic"}
            answers = seen.setdefault(kind, {})
            while clock.now < told + 1:
                runner.round()
                if clock.now == told - 1:  # when both releases are settled
                    for role, path in addresses:
                        body = as_(role).get(path.format(**given)).content
                        answers[f"{role} {path}"] = _HASHES.sub(b"hash", _NUMBERS.sub(rb"\1", body))
                clock.now += 1
            after = as_("custodian").get(f"/v1/jobs/{job}").json()
            assert after["state"] == ("finished" if kind == "it worked" else "failed")
            answers["afterwards"] = _NUMBERS.sub(rb"\1", json.dumps(after).encode())
    one = seen["it failed"]
    assert len(one) > 20
    for kind, answers in seen.items():
        same = {what for what, body in answers.items() if body == one[what]}
        assert set(one) - same <= ({"afterwards"} if kind == "it worked" else set()), kind
