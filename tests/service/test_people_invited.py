"""From an invitation to one's own receipt: codes, accounts, links, as people really use them."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from sfumato.service.store import database, schema
from support.service_people import make_dataset, spend

PASSWORD = "a long sentence that nobody guesses"


@pytest.fixture
def custodian(service, client_as):
    custodian = client_as("custodian")
    for name in ("clinic", "registry"):
        make_dataset(service, custodian.caller, name)
    return custodian


def codes_for(custodian, *people, dataset="clinic", **more):
    said = custodian.post(f"/v1/datasets/{dataset}/invitations", json={"people": list(people), **more})
    assert said.status_code == 201, said.text
    return {item["person"]: item["code"] for item in said.json()["items"]}


def test_a_code_is_shown_once_and_kept_as_a_digest(service, custodian):
    key = {"Idempotency-Key": "letters-of-monday"}
    body = {"people": ["ann", 7], "days": 10}
    first = custodian.post("/v1/datasets/clinic/invitations", json=body, headers=key)
    second = custodian.post("/v1/datasets/clinic/invitations", json=body, headers=key)
    assert (first.status_code, second.status_code) == (201, 409)
    codes = [item["code"] for item in first.json()["items"]]
    with service.store.read() as connection:
        rows = connection.execute(select(schema.invitations)).all()
    assert len(rows) == 2
    assert not any(code in str(row) for code in codes for row in rows)
    assert "ann" not in str([row.person for row in rows])


def test_odd_invitations_are_refused(custodian):
    odd = [{"people": []}, {"people": ["ann", "ann"]}, {"people": [7, "7"]}, {"people": ["ann"], "days": 0}]
    odd += [{"people": [f"p{i}" for i in range(501)]}, {"people": ["ann"], "role": "officer"}, {"people": [""]}]
    said = [custodian.post("/v1/datasets/clinic/invitations", json=body).status_code for body in odd]
    assert said == [422] * len(odd)


def test_one_account_for_two_datasets(service, client_as, custodian):
    custodian.post("/v1/datasets/clinic/people", json={"people": [{"person": "ann", "grant": "open"}]})
    custodian.post("/v1/datasets/clinic/epochs", json={})
    spend(service)
    ann = client_as("person", "ann")
    clinic = codes_for(custodian, "ann", "ben")
    used = ann.post("/v1/me/invitations", json={"code": clinic["ann"].lower()})
    assert used.status_code == 200
    assert used.json()["mine"]["spent"] == "0.1"
    registry = codes_for(custodian, "ann of the registry", dataset="registry")["ann of the registry"]
    assert ann.post("/v1/me/invitations", json={"code": registry}).json()["dataset"] == "registry"
    assert [place["dataset"] for place in ann.get("/v1/me").json()["items"]] == ["registry", "clinic"]
    refused = [clinic["ann"], clinic["ben"], registry, "AAAA-AAAA-AAAA-AAAA-AAAA", "x"]  # used, another person, used, none
    said = [ann.post("/v1/me/invitations", json={"code": code}).status_code for code in refused]
    assert said == [403, 409, 403, 403, 403]
    # What was refused was not used up: Ben still comes in with his.
    assert client_as("person", "ben").post("/v1/me/invitations", json={"code": clinic["ben"]}).status_code == 200


def test_somebody_elses_place_stays_theirs(client_as, custodian):
    first, second = codes_for(custodian, "ann")["ann"], codes_for(custodian, "ann")["ann"]
    ann, eve = client_as("person", "ann"), client_as("person", "eve")
    assert ann.post("/v1/me/invitations", json={"code": first}).status_code == 200
    late = eve.post("/v1/me/invitations", json={"code": second})
    assert late.status_code == 409
    assert eve.get("/v1/me").json()["items"] == []


def test_an_invitation_ends(client_as, custodian, monkeypatch):
    code = codes_for(custodian, "ann", days=1)["ann"]
    later = database.now() + 86_401
    monkeypatch.setattr(database, "now", lambda: later)
    assert client_as("person", "ann").post("/v1/me/invitations", json={"code": code}).status_code == 403


def test_a_new_account_by_an_invitation(app, service, client_as, custodian):
    code = codes_for(custodian, "ann")["ann"]
    app.dependency_overrides.clear()  # really signed in from here on
    browser = TestClient(app, raise_server_exceptions=False)
    joined = browser.post("/v1/join", json={"code": code, "name": "ann.smith", "password": PASSWORD})
    assert joined.status_code in (200, 201), joined.text
    assert [place["dataset"] for place in browser.get("/v1/me").json()["items"]] == ["clinic"]
