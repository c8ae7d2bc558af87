"""A request that is sent again is answered again and done once."""

import threading
from typing import Annotated

import pytest
from fastapi import Request
from sqlalchemy import select, update

from sfumato.service.http.access import Caller, allowed
from sfumato.service.http.idempotency import shown_once
from sfumato.service.http.problems import ProblemError
from sfumato.service.store import schema


@pytest.fixture
def made(app):
    """What a route has made; it fails when asked to, and waits when told to."""
    done: list[str] = []
    app.state.wait = None

    @app.post("/v1/things", status_code=201)
    def make(body: dict[str, str], caller: Annotated[Caller, allowed("session.read")], request: Request) -> dict[str, int]:
        if app.state.wait is not None:
            app.state.entered.set()
            assert app.state.wait.wait(10)
        if body.get("fail") == "4":
            raise ProblemError(409, "no")
        if body.get("fail") == "5":
            raise RuntimeError("no")
        if body.get("secret"):
            shown_once(request)
        done.append(caller.name)
        return {"number": len(done)}

    return done


def test_the_same_request_is_done_once(client_as, made):
    client = client_as("analyst")
    replies = [client.post("/v1/things", json={"a": "b"}, headers={"Idempotency-Key": "k1"}) for _ in range(3)]
    assert [reply.status_code for reply in replies] == [201] * 3
    assert [reply.json() for reply in replies] == [{"number": 1}] * 3
    assert made == ["analyst"]
    assert "idempotency-replayed" not in replies[0].headers
    assert replies[1].headers["idempotency-replayed"] == "true"


def test_without_a_key_it_is_done_each_time(client_as, made):
    for _ in range(2):
        assert client_as("analyst").post("/v1/things", json={}).status_code == 201
    assert len(made) == 2


def test_a_key_is_for_one_body_one_path_and_one_account(client_as, made):
    client, headers = client_as("analyst"), {"Idempotency-Key": "k1"}
    assert client.post("/v1/things", json={"a": "b"}, headers=headers).status_code == 201
    assert client.post("/v1/things", json={"a": "c"}, headers=headers).status_code == 422
    assert client.post("/v1/things?x=1", json={"a": "b"}, headers=headers).status_code == 422
    other = client_as("analyst", "another").post("/v1/things", json={"a": "b"}, headers=headers)
    assert other.json() == {"number": 2}
    assert made == ["analyst", "another"]


@pytest.mark.parametrize("fail", ["4", "5"])
def test_after_a_failure_the_key_is_free(client_as, made, fail):
    client, headers = client_as("analyst"), {"Idempotency-Key": "k1"}
    assert client.post("/v1/things", json={"fail": fail}, headers=headers).status_code in (409, 500)
    assert client.post("/v1/things", json={"a": "b"}, headers=headers).status_code == 201


def test_a_second_one_while_the_first_is_under_way_is_refused(app, client_as, made):
    app.state.wait, app.state.entered = threading.Event(), threading.Event()
    first, headers = [], {"Idempotency-Key": "k1"}
    client = client_as("analyst")
    thread = threading.Thread(target=lambda: first.append(client.post("/v1/things", json={"a": "b"}, headers=headers)))
    thread.start()
    assert app.state.entered.wait(10)
    second = client_as("analyst").post("/v1/things", json={"a": "b"}, headers=headers)
    app.state.wait.set()
    thread.join(10)
    assert (second.status_code, first[0].status_code, made) == (409, 201, ["analyst"])
    assert "under way" in second.json()["detail"]


def test_a_secret_is_not_kept_and_what_is_kept_is_sealed(client_as, made, service):
    client = client_as("analyst")
    for key in ("secret", "other"):
        client.post("/v1/things", json={key: "1"}, headers={"Idempotency-Key": key})
    again = client.post("/v1/things", json={"secret": "1"}, headers={"Idempotency-Key": "secret"})
    assert (again.status_code, len(made)) == (409, 2)
    with service.store.read() as connection:
        kept = [row.body for row in connection.execute(select(schema.replies))]
    assert sorted(body is None for body in kept) == [False, True]
    assert not any(body and "number" in body for body in kept)


def test_a_key_is_forgotten_after_a_day(client_as, made, service):
    client, headers = client_as("analyst"), {"Idempotency-Key": "k1"}
    client.post("/v1/things", json={"a": "b"}, headers=headers)
    with service.store.write() as connection:
        connection.execute(update(schema.replies).values(created_at=schema.replies.c.created_at - 86_402))
    assert client.post("/v1/things", json={"a": "b"}, headers=headers).json() == {"number": 2}


def test_a_key_is_short_and_printable(client_as, made):
    for key in ["", "a b", "x" * 201, "ä"]:
        reply = client_as("analyst").post("/v1/things", json={}, headers={"Idempotency-Key": key.encode("latin-1")})
        assert (reply.status_code, made) == (422, [])
