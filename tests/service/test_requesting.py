"""Allowances, approvals beforehand and requests, through HTTP: who may, what is refused, what is queued."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from sfumato.errors import BudgetError
from sfumato.privacy.budgets import PersonBudgets, RecipientBudgets
from sfumato.privacy.charge import Charge
from sfumato.service.context import Service
from sfumato.service.fresh import fresh_id
from sfumato.service.requesting import preapprovals
from sfumato.service.store import schema
from sfumato.service.store.database import now

SCHEMA = '[columns.age]\ntype = "numeric"\nlow = 0\nhigh = 100\nbins = 10\n'
COUNT = {"kind": "count", "epsilon": "0.2"}
CARE = {"purpose": "care", "kinds": ["count", "mean"], "most": "0.5"}


def make_dataset(service: Service, owner: Any, name: str = "clinic", **caps: Any) -> str:
    """A dataset of a custodian in the service's tables and in the ledger."""
    caps = {"epsilon": "2", "rows": 1000} | caps
    dataset_id = fresh_id("dataset")
    row = {"id": dataset_id, "name": name, "source": name, "schema": SCHEMA, "people": None, "caps": json.dumps(caps)}
    recipients = None if "recipients" not in caps else RecipientBudgets.of(caps["recipients"])
    service.ledger.register(name, epsilon=caps["epsilon"], recipients=recipients)
    with service.store.write() as connection:
        connection.execute(insert(schema.datasets).values(**row, created_by=owner.caller.id, created_at=now()))
    return dataset_id


@pytest.fixture
def clinic(service: Service, client_as: Callable[..., Any]) -> str:
    return make_dataset(service, client_as("custodian"))


@pytest.fixture
def ann(client_as: Callable[..., Any], clinic: str) -> Any:
    """An analyst with an allowance of 0.5 for care, 0.3 a day; an officer has approved counts and means up to 0.5."""
    analyst = client_as("analyst", "ann")
    officer = client_as("officer", "olga")
    assert officer.post("/v1/datasets/clinic/preapprovals", json=CARE).status_code == 201
    granted = {"analyst": "ann", "purpose": "care", "epsilon": "0.5", "per_day": "0.3"}
    assert officer.post("/v1/datasets/clinic/allowances", json=granted).status_code == 201
    return analyst


def ask(client: Any, release: dict[str, Any], purpose: str = "care", what: str = "requests") -> Any:
    return client.post(f"/v1/datasets/clinic/{what}", json={"purpose": purpose, "release": release})


def waiting(service: Service) -> list[Any]:
    with service.store.read() as connection:
        return list(connection.execute(select(schema.jobs).order_by(schema.jobs.c.created_at)))


def test_a_request_that_is_approved_and_paid_for_is_queued_for_its_analyst_alone(ann: Any, service: Service) -> None:
    reply = ask(ann, COUNT)
    assert reply.status_code == 202, reply.text
    (job,) = waiting(service)
    assert reply.json() == {"job": job.id, "price": "0.2", "already_paid": False}
    assert json.loads(job.request) == {"name": "count", "kind": "count", "epsilon": "0.2", "recipient": "ann"}
    assert (job.purpose, job.account_id, job.state) == ("care", ann.caller.id, "waiting")
    assert service.ledger.balance("clinic").total.spent == 0  # it is charged when its turn comes


REFUSED = [
    ({"kind": "histogram", "columns": ["age"], "epsilon": "0.1"}, "care", 409, "no officer has approved"),
    (COUNT, "research", 409, "no officer has approved"),
    (COUNT | {"epsilon": "0.6"}, "care", 409, "asked ε 0.6, approved beforehand"),
    (COUNT | {"epsilon": "0.4"}, "care", 409, "0.3 of 0.3 left for analyst 'ann' and purpose 'care'"),
    (COUNT | {"recipient": "bob"}, "care", 422, "leave `recipient` out"),
    (COUNT | {"epsilon": "-1"}, "care", 422, "epsilon"),
    (COUNT | {"where": "height > 3"}, "care", 422, "height"),
    ({"epsilon": "0.1"}, "care", 422, "kind"),
    ({"kind": "no such", "epsilon": "0.1"}, "care", 422, "no such"),
    ({"kind": ["count"], "epsilon": "0.1"}, "care", 422, "kind"),
    (COUNT | {"name": "../../etc"}, "care", 422, "folder name"),
    (COUNT | {"source": "/etc/passwd"}, "care", 422, "source"),
    (COUNT, " care", 422, "purpose"),
    (COUNT, "ca\u202ere", 422, "purpose"),
]


def test_what_public_facts_refuse_is_not_queued(ann: Any, service: Service) -> None:
    for release, purpose, status, says in REFUSED:
        reply = ask(ann, release, purpose)
        assert (reply.status_code, says in reply.json()["detail"]) == (status, True), reply.text
        seen = ask(ann, release, purpose, "requests/preview")
        if status == 409:
            assert (seen.status_code, seen.json()["fits"]) == (200, False)
            assert any(says in sentence for sentence in seen.json()["refusals"])
        else:
            assert seen.status_code == status
    assert waiting(service) == []


def test_every_cap_refuses_a_request_not_only_the_allowance(client_as: Callable[..., Any], service: Service) -> None:
    make_dataset(service, client_as("custodian"), epsilon="2", recipients={"bob": "1"})
    officer, analyst = client_as("officer"), client_as("analyst", "ann")
    officer.post("/v1/datasets/clinic/preapprovals", json=CARE)
    officer.post("/v1/datasets/clinic/allowances", json={"analyst": "ann", "purpose": "care", "epsilon": "9"})
    assert "recipient 'ann' has no budget" in ask(analyst, COUNT).json()["detail"]
    service.ledger.reserve("clinic", Charge.of("0.9"), request="before")
    bob = client_as("analyst", "bob")
    officer.post("/v1/datasets/clinic/allowances", json={"analyst": "bob", "purpose": "care", "epsilon": "9"})
    assert "0.1 of 1 left for recipient 'bob'" in ask(bob, COUNT).json()["detail"]
    assert ask(bob, COUNT | {"epsilon": "0.1"}).status_code == 202


def test_a_preview_tells_price_error_and_own_allowance_and_no_other_balance(ann: Any) -> None:
    told = ask(ann, COUNT, what="requests/preview").json()
    assert (told["price"], told["fits"], told["refusals"]) == ("0.2", True, [])
    assert told["release"]["expected_rmse"] > 0
    assert "0.2" in told["release"]["guarantee"]
    assert told["allowance"] | {"day": "", "granted_at": ""} == {
        "analyst": "ann", "purpose": "care", "cap": "0.5", "spent": "0", "left": "0.5", "per_day": "0.3",
        "spent_today": "0", "left_today": "0.3", "granted_by": "olga", "day": "", "granted_at": "",
    }  # fmt: skip
    assert set(told) == {"price", "fits", "refusals", "release", "allowance"}


def test_what_is_paid_for_costs_nothing_again(ann: Any, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.privacy.source import SECURE
    from sfumato.releases.batch import preview
    from sfumato.releases.pipeline import request_text
    from sfumato.service.planning.assembling import assembled

    with service.store.read() as connection:
        row = connection.execute(select(schema.datasets)).one()
    plan = assembled(service, row, [{"name": "count", **COUNT, "recipient": "ann"}], location=None)
    text = request_text(preview(plan)[0], dataset_name="clinic", source=SECURE)
    made = service.ledger.reserve("clinic", Charge.of("0.2"), request=text, recipient="ann", analyst="ann", purpose="care")
    service.ledger.commit(made.id, {"figure": 1})
    service.ledger.allow("clinic", analyst="ann", purpose="care", epsilon=0)
    assert ask(ann, COUNT).json()["already_paid"] is True
    assert ask(ann, COUNT | {"epsilon": "0.1"}).status_code == 409


def test_what_ended_or_was_revoked_covers_nothing(
    ann: Any, client_as: Callable[..., Any], clinic: str, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    officer = client_as("officer", "otto")
    (first,) = officer.get("/v1/datasets/clinic/preapprovals").json()["items"]
    soon = CARE | {"most": "0.25", "ends_at": now() + 100}
    assert officer.post("/v1/datasets/clinic/preapprovals", json=soon).status_code == 201
    revoked = officer.post(f"/v1/preapprovals/{first['id']}/revoke").json()
    assert (revoked["in_force"], revoked["officer"]) == (False, "olga")
    assert officer.post(f"/v1/preapprovals/{first['id']}/revoke").json() == revoked
    assert ask(ann, COUNT).status_code == 202
    assert ask(ann, COUNT | {"epsilon": "0.3"}).status_code == 409
    whose = {"dataset_id": clinic, "purpose": "care", "kind": "count", "nano": 10**8}
    with service.store.read() as connection:
        preapprovals.check(connection, **whose)
    later = now() + 100
    monkeypatch.setattr(preapprovals, "now", lambda: later)
    assert ask(ann, COUNT).status_code == 409
    with service.store.read() as connection, pytest.raises(BudgetError, match="no officer has approved"):
        preapprovals.check(connection, **whose)
    assert service.ledger.checkpoint("clinic").size >= 4  # registered, allowed, approved twice, revoked
    service.ledger.verify("clinic")


def test_what_was_approved_by_somebody_who_is_no_officer_covers_nothing(ann: Any, service: Service) -> None:
    with service.store.write() as connection:  # as by a stray statement
        connection.execute(update(schema.preapprovals).values(officer_id=ann.caller.id))
    assert ask(ann, COUNT).status_code == 409


def test_granting_again_through_the_interface_resets_nothing(
    ann: Any, client_as: Callable[..., Any], service: Service
) -> None:
    service.ledger.reserve("clinic", Charge.of("0.3"), request="r", analyst="ann", purpose="care")
    granted = {"analyst": "ann", "purpose": "care", "epsilon": "0.4"}
    told = client_as("officer").post("/v1/datasets/clinic/allowances", json=granted).json()
    assert (told["cap"], told["spent"], told["left"], told["per_day"]) == ("0.4", "0.3", "0.1", None)
    assert ask(ann, COUNT).status_code == 409
    with service.store.read() as connection:
        done = connection.execute(select(schema.events.c.action, schema.events.c.target)).all()
    assert done.count(("allowances.grant", ann.caller.id)) == 2


def test_an_analyst_sees_their_own_allowances_and_no_others(
    ann: Any, client_as: Callable[..., Any], service: Service
) -> None:
    make_dataset(service, client_as("custodian"), "second")
    bob, officer = client_as("analyst", "bob"), client_as("officer")
    for number, dataset in enumerate(("second", "clinic", "clinic")):
        granted = {"analyst": "bob", "purpose": f"purpose {number}", "epsilon": "1"}
        assert officer.post(f"/v1/datasets/{dataset}/allowances", json=granted).status_code == 201
    assert [a["purpose"] for a in ann.get("/v1/allowances").json()["items"]] == ["care"]
    assert [a["purpose"] for a in bob.get("/v1/allowances").json()["items"]] == ["purpose 2", "purpose 1", "purpose 0"]
    assert [a["purpose"] for a in bob.get("/v1/allowances?dataset=second").json()["items"]] == ["purpose 0"]
    assert len(officer.get("/v1/allowances").json()["items"]) == 4
    first = officer.get("/v1/allowances?dataset=clinic&limit=2").json()
    rest = officer.get(f"/v1/allowances?dataset=clinic&limit=2&before={first['older']}").json()
    found = [(a["analyst"], a["purpose"]) for a in first["items"] + rest["items"]]
    assert found == [("bob", "purpose 2"), ("bob", "purpose 1"), ("ann", "care")]
    assert rest["older"] is None
    assert ann.get("/v1/allowances?dataset=third").status_code == 404
    another = client_as("custodian", "another")  # of neither dataset
    assert another.get("/v1/allowances").json()["items"] == []
    for address in ("allowances?dataset=clinic", "datasets/clinic/balance", "datasets/clinic/history"):
        assert another.get(f"/v1/{address}").status_code == 404
    assert ann.get("/v1/allowances?dataset=second").status_code == 404  # which does not concern them


def test_what_is_not_right_grants_and_approves_nothing(ann: Any, client_as: Callable[..., Any], service: Service) -> None:
    officer = client_as("officer", "olga")
    for change, says in (
        ({"analyst": "olga"}, "active analyst"),
        ({"analyst": "nobody"}, "active analyst"),
        ({"purpose": "a\nb"}, "purpose"),
        ({"epsilon": 0.5}, "epsilon"),
        ({"epsilon": "1e9"}, "epsilon"),
        ({"epsilon": "999999999"}, "no privacy"),
        ({"per_day": "-1"}, "per_day"),
        ({"by": "somebody else"}, "by"),
    ):
        granted = {"analyst": "ann", "purpose": "other", "epsilon": "1"} | change
        reply = officer.post("/v1/datasets/clinic/allowances", json=granted)
        assert (reply.status_code, says in reply.json()["detail"]) == (422, True), reply.text
    assert len(service.ledger.allowances("clinic")) == 1
    wrong = [{"kinds": []}, {"kinds": ["head counts"]}, {"kinds": ["count", "x"]}, {"most": "0"}, {"most": 1}]
    for change in [*wrong, {"ends_at": 10**15}, {"ends_at": 5}, {"purpose": "care "}]:
        assert officer.post("/v1/datasets/clinic/preapprovals", json=CARE | change).status_code == 422
    assert len(officer.get("/v1/datasets/clinic/preapprovals").json()["items"]) == 1


def test_what_is_missing_is_missing(ann: Any, client_as: Callable[..., Any]) -> None:
    officer, custodian = client_as("officer"), client_as("custodian")
    body = {"purpose": "care", "release": COUNT}
    replies = [
        ann.post("/v1/datasets/other/requests", json=body),
        ann.post("/v1/datasets/other/requests/preview", json=body),
        ann.post("/v1/datasets/..%2Fclinic/requests", json=body),
        officer.post("/v1/datasets/other/preapprovals", json=CARE),
        officer.get("/v1/datasets/other/preapprovals"),
        officer.get("/v1/preapprovals/preapproval_x"),
        officer.post("/v1/preapprovals/preapproval_x/revoke"),
        officer.post("/v1/datasets/other/allowances", json={"analyst": "ann", "purpose": "care", "epsilon": "1"}),
        custodian.get("/v1/datasets/other/balance"),
        custodian.get("/v1/datasets/other/history"),
    ]
    assert [reply.status_code for reply in replies] == [404] * len(replies)


def test_balance_and_history_tell_every_digit_and_no_place(
    client_as: Callable[..., Any], clinic: str, service: Service
) -> None:
    ledger = service.ledger
    ledger.allow("clinic", analyst="ann", purpose="care", epsilon=1)
    asked = {"kind": "count", "where": "age > 3"}
    made = ledger.reserve("clinic", Charge.of("0.123456789"), request=asked, name="old", analyst="ann", purpose="care")
    ledger.commit(made.id, {"folder": "/somewhere/private"})
    for number in range(4):
        ledger.reserve("clinic", Charge.of("0.1"), request=f"{number}")
    officer = client_as("officer")
    told = officer.get("/v1/datasets/clinic/balance").json()
    assert told["total"] == {"cap": "2", "spent": "0.523456789", "left": "1.476543211"}
    seen: list[dict[str, Any]] = []
    before = ""
    while True:
        page = officer.get(f"/v1/datasets/clinic/history?limit=2{before}").json()
        seen += page["items"]
        if page["older"] is None:
            break
        before = f"&before={page['older']}"
    assert [entry["id"] for entry in seen] == [5, 4, 3, 2, 1]
    assert (seen[-1]["analyst"], seen[-1]["purpose"], seen[-1]["total"]) == ("ann", "care", "0.123456789")
    assert (seen[-1]["where"], seen[-1]["state"]) == ("age > 3", "committed")
    assert "somewhere" not in json.dumps(seen)
    assert officer.get("/v1/datasets/clinic/history?before=WyJhIl0").status_code == 422


def test_the_end_of_a_job_is_not_told_by_the_history_before_its_slot(
    ann: Any, client_as: Callable[..., Any], service: Service, clinic: str
) -> None:
    job = ask(ann, COUNT).json()["job"]
    made = service.ledger.reserve("clinic", Charge.of("0.2"), request="r", by=f"ann [{job}]")
    service.ledger.fail(made.id)
    officer = client_as("officer")

    def told() -> tuple[str, str | None, str]:
        (entry,) = officer.get("/v1/datasets/clinic/history").json()["items"]
        return entry["state"], entry["finished_at"], entry["by"]

    assert told() == ("reserved", None, "ann")
    with service.store.write() as connection:
        connection.execute(update(schema.jobs).values(state="failed", deliver_at=now() - 1))
    assert told()[0] == "failed"


def test_people_of_a_public_roster_are_told_by_tier(client_as: Callable[..., Any], service: Service) -> None:
    service.ledger.register("clinic", people=PersonBudgets.from_tiers({"strict": ("0.1", 4), "open": (1, 6)}))
    owner = client_as("custodian")
    row = {"id": "dataset_x", "name": "clinic", "source": "s", "schema": SCHEMA, "caps": "{}", "created_at": now()}
    with service.store.write() as connection:
        connection.execute(insert(schema.datasets).values(**row, people="{}", created_by=owner.caller.id))
    people = owner.get("/v1/datasets/clinic/balance").json()["people"]
    assert [(tier["name"], tier["people"], tier["left"]) for tier in people] == [
        ("strict", 4, ["0.1", "0.1"]),
        ("open", 6, ["1", "1"]),
    ]


def test_what_has_no_price_before_heads_are_counted_is_not_queued(client_as: Callable[..., Any], service: Service) -> None:
    menu = {"strict": ("0.1", 0), "open": (1, 0)}
    service.ledger.register("clinic", people=PersonBudgets.from_tiers(menu), private=True)
    people = {"column": "tier", "tiers": {"strict": "0.1", "open": "1"}, "roster": "private", "head_share": "0.1"}
    owner, officer, ann = client_as("custodian"), client_as("officer"), client_as("analyst", "ann")
    row = {"id": "dataset_x", "name": "clinic", "source": "s", "schema": SCHEMA, "caps": "{}", "created_at": now()}
    with service.store.write() as connection:
        made = row | {"people": json.dumps(people), "created_by": owner.caller.id}
        connection.execute(insert(schema.datasets).values(made))
    officer.post("/v1/datasets/clinic/preapprovals", json=CARE)
    officer.post("/v1/datasets/clinic/allowances", json={"analyst": "ann", "purpose": "care", "epsilon": "9"})
    shared = {"kind": "count", "share": "0.1"}
    told = ask(ann, shared, what="requests/preview").json()
    assert (told["price"], told["fits"], told["release"]) == (None, False, None)
    refused = ask(ann, shared)
    assert (refused.status_code, "heads have not been counted" in refused.json()["detail"]) == (409, True)
    named = ask(ann, shared | {"name": "head counts"})  # what the counting itself may be called
    assert named.status_code in (409, 422)
    assert waiting(service) == []
    assert client_as("officer").get("/v1/datasets/clinic/balance").json()["people"][0]["people"] is None
