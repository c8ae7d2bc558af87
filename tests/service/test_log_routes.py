"""The log over HTTP: checkpoints and proofs for whom the dataset concerns, bodies for whom they are due to."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import insert

from sfumato.ledger import Ledger
from sfumato.ledger.merkle import leaf_hash
from sfumato.ledger.proofs import Checkpoint, consistent, included
from sfumato.ledger.signing import trusted, verify_signed
from sfumato.privacy.charge import Charge
from sfumato.service.context import Service
from sfumato.service.jobs.slots import asked_by
from sfumato.service.store import schema
from sfumato.service.store.database import now

Clients = Callable[..., TestClient]


@pytest.fixture
def clients(service: Service, client_as: Clients) -> dict[str, TestClient]:
    """Everybody, with a dataset that the custodian registered, that is released to an analyst, and that a person is in."""
    made = {role: client_as(role) for role in ("custodian", "officer", "analyst", "person", "administrator")}
    made |= {"another person": client_as("person", "zoe"), "another custodian": client_as("custodian", "cleo")}
    made["another analyst"] = client_as("analyst", "ann")
    ids = {name: client.caller.id for name, client in made.items()}  # type: ignore[attr-defined]
    ledger = service.ledger
    ledger.register("clinic", epsilon=3)
    ledger.allow("clinic", analyst="analyst", purpose="care", epsilon=1)
    about = {"source": "s", "schema": "{}", "caps": "{}", "created_at": now()}
    with service.store.write() as connection:
        row = {"id": "d1", "name": "clinic", "created_by": ids["custodian"], **about}
        connection.execute(insert(schema.datasets).values(row))
        subject = {"account_id": ids["person"], "dataset_id": "d1", "person": "sealed", "digest": "d"}
        connection.execute(insert(schema.subjects).values(subject))
    charged(service, "job_1", "analyst", now() - 1, ids["analyst"])
    charged(service, "job_2", "somebody", now() - 1, ids["custodian"])
    charged(service, "job_3", None, now() + 1000, ids["custodian"])
    return made


def charged(service: Service, job: str, recipient: str | None, deliver_at: int, account: str) -> None:
    ledger: Ledger = service.ledger
    made = ledger.reserve("clinic", Charge(10**7), request=job, name=job, by=asked_by("x", job))
    ledger.commit(made.id, {"folder": job})
    with service.store.write() as connection:
        row = {"id": job, "dataset_id": "d1", "account_id": account, "request": "{}", "state": "finished", "attempts": 1}
        connection.execute(insert(schema.jobs).values(**row, created_at=1, deliver_at=deliver_at))
        told = {"id": f"release_{job}", "job_id": job, "dataset_id": "d1", "name": job, "recipient": recipient}
        row = {**told, "entry": made.id, "folder": job, "digest": "0", "deliver_at": deliver_at}
        connection.execute(insert(schema.artefacts).values(row))


def test_everybody_whom_it_concerns_can_check_the_log(clients: dict[str, TestClient]) -> None:
    keys = trusted(clients["person"].get("/v1/keys").json())
    for name in ("custodian", "officer", "analyst", "person"):
        client = clients[name]
        answer = client.get("/v1/log/clinic/checkpoint")
        assert answer.status_code == 200, (name, answer.text)
        verify_signed(answer.json(), keys)
        state = Checkpoint.from_dict(answer.json())
        items = client.get("/v1/log/clinic/entries").json()["items"]
        assert [item["number"] for item in items] == list(range(state.size - 1, -1, -1))
        for number in (0, state.size - 1):
            proof = client.get(f"/v1/log/clinic/entries/{number}/proof", params={"size": state.size}).json()
            assert included(proof["leaf"], number, state, proof["path"])
            assert proof["leaf"] == items[state.size - 1 - number]["leaf"]
        proof = client.get("/v1/log/clinic/consistency", params={"old": 2}).json()
        assert consistent(Checkpoint.from_dict(proof["old"]), state, proof["path"])


def test_what_is_anothers_looks_like_what_is_missing(clients: dict[str, TestClient]) -> None:
    for path in ("checkpoint", "entries", "entries/0/proof", "consistency?old=1"):
        for name in ("another person", "another custodian", "another analyst"):
            found = [clients[name].get(f"/v1/log/{dataset}/{path}") for dataset in ("clinic", "nowhere", "a%2Fb")]
            assert [answer.status_code for answer in found] == [404] * 3
            assert found[0].json() == found[1].json()
        assert clients["administrator"].get(f"/v1/log/clinic/{path}").status_code == 403


def shown(client: TestClient) -> dict[int, Any]:
    items = client.get("/v1/log/clinic/entries", params={"limit": 200}).json()["items"]
    out = {item["number"]: json.loads(item["body"]) for item in items if item["body"] is not None}
    assert all(item["kind"] is not None for item in items if item["body"] is not None)
    for item in items:
        if item["body"] is not None:
            assert leaf_hash(item["body"].encode()).hex() == item["leaf"]
        proof = client.get(f"/v1/log/clinic/entries/{item['number']}/proof").json()
        assert (proof["body"] is None) == (item["body"] is None)
    return out


def test_bodies_are_for_whom_they_are_due_to(clients: dict[str, TestClient]) -> None:
    assert shown(clients["person"]) == {}
    assert [(b["kind"], b.get("name")) for b in shown(clients["analyst"]).values()] == [
        ("finished", None),
        ("reserved", "job_1"),
    ]
    hidden = clients["analyst"].get("/v1/log/clinic/entries").json()["items"]
    assert {item["kind"] for item in hidden if item["body"] is None} == {None}
    for name in ("custodian", "officer"):
        found = shown(clients[name])
        kinds = [body["kind"] for body in found.values()]
        assert kinds.count("reserved") == 3
        assert kinds.count("finished") == 2  # the end of job_3 is not told yet
        assert {"registered", "allowance"} <= set(kinds)


def test_pages_of_the_log_join(clients: dict[str, TestClient]) -> None:
    seen, before = [], None
    while True:
        asked = {"limit": 3} | ({} if before is None else {"before": before})
        page = clients["officer"].get("/v1/log/clinic/entries", params=asked).json()
        seen += [item["number"] for item in page["items"]]
        before = page["older"]
        if before is None:
            break
    assert seen == list(range(7, -1, -1))


def test_what_is_not_there_is_refused(clients: dict[str, TestClient]) -> None:
    for path, status in {
        "entries/99/proof": 404,
        "entries/-1/proof": 422,
        "entries/99999999999999999999/proof": 422,
        "entries/0/proof?size=99": 404,
        "consistency?old=9&new=2": 422,
        "consistency?old=99": 422,
        "consistency": 422,
        "entries?before=xx": 422,
        "entries?before=WyJhIl0": 422,
    }.items():
        assert clients["officer"].get(f"/v1/log/clinic/{path}").status_code == status, path


def test_an_administrator_changes_the_key_and_the_old_ones_stay(service: Service, clients: dict[str, TestClient]) -> None:
    before = clients["officer"].get("/v1/log/clinic/checkpoint").json()
    for name in ("officer", "custodian", "analyst", "person"):
        assert clients[name].post("/v1/keys/rotate").status_code == 403
    answer = clients["administrator"].post("/v1/keys/rotate")
    assert answer.status_code == 201, answer.text
    keys = trusted(answer.json())
    assert len(keys) == 2
    after = clients["officer"].get("/v1/log/clinic/checkpoint").json()
    assert verify_signed(before, keys) != verify_signed(after, keys)
    assert "private" not in answer.text
    assert Service.opened(service.settings).witness.kept()  # what the first key signed is still read


def test_nobody_gets_nothing(client_as: Clients) -> None:
    for path in ("/v1/keys", "/v1/log/clinic/checkpoint"):
        assert client_as(None).get(path).status_code == 401
