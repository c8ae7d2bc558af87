"""Four eyes: through the interface, and through SQL on both databases, whatever the service's code says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import insert, select, text, update
from sqlalchemy.exc import IntegrityError

from sfumato.errors import LedgerError
from sfumato.service.context import Service
from sfumato.service.fresh import fresh_id
from sfumato.service.planning import decisions
from sfumato.service.planning.digests import digest_of
from sfumato.service.store import schema, triggers
from sfumato.service.store.database import Store, now
from support.planning import REASON, RELEASES, decision, drafted, planning_service, schema_on, submitted

STORES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture
def service(request, tmp_path) -> Iterator[Service]:
    """On SQLite, unless a test asks for both."""
    if getattr(request, "param", "sqlite") == "sqlite":
        yield planning_service(tmp_path)
        return
    with schema_on(request.getfixturevalue("postgres_url")) as url:
        yield planning_service(tmp_path, database=url, ledger=url)


def approve(officer: TestClient, plan: dict[str, Any], **given: Any) -> Any:
    return officer.post(f"/v1/approvals/{plan['id']}", json=decision(plan, **given))


def test_an_officer_approves_and_says_why(client_as):
    custodian, officer = client_as("custodian"), client_as("officer")
    plan = submitted(custodian)
    assert [p["id"] for p in officer.get("/v1/approvals").json()["items"]] == [plan["id"]]
    shown = officer.get(f"/v1/approvals/{plan['id']}").json()
    assert shown["preview"]["guarantee"].startswith("Whoever sees all of these releases")
    assert shown["preview"]["releases"][0]["errors"]["worst"] > shown["preview"]["releases"][0]["errors"]["independent"]
    assert [t["people"] for t in shown["preview"]["people"]] == [100, 50, 50, 50, 50]
    assert [t["left_after"] for t in shown["preview"]["people"]][-1] == ["0.25", "0.25"]
    assert shown["differences"] is None
    done = approve(officer, plan)
    assert done.status_code == 200, done.text
    assert done.json()["plan"]["state"] == "approved"
    assert done.json()["decision"]["reason"] == REASON
    assert officer.get("/v1/approvals").json()["items"] == []
    assert custodian.get(f"/v1/plans/{plan['id']}").json()["state"] == "approved"
    assert custodian.post(f"/v1/plans/{plan['id']}/withdraw").status_code == 409


def test_each_decision_is_in_the_log_before_it_is_kept(client_as, service, monkeypatch):
    """Where the ledger cannot be written nothing is decided; where the process ends after it, the officer decides again."""
    plan = submitted(client_as("custodian"))
    before = service.ledger.checkpoint("clinic").size
    with monkeypatch.context() as patched:
        patched.setattr(type(service.ledger), "note", _broken)
        assert approve(client_as("officer"), plan).status_code == 503
    shown = client_as("officer").get(f"/v1/approvals/{plan['id']}").json()
    assert (shown["plan"]["state"], shown["decision"]) == ("submitted", None)
    assert service.ledger.checkpoint("clinic").size == before
    with monkeypatch.context() as patched:
        answers = iter([None])  # nothing was decided yet; when it is asked again the process ends
        patched.setattr(decisions, "decision_of", lambda *_: next(answers))
        assert approve(client_as("officer"), plan).status_code == 500
    assert service.ledger.checkpoint("clinic").size == before + 1
    assert client_as("officer").get(f"/v1/plans/{plan['id']}").json()["state"] == "submitted"
    assert approve(client_as("officer"), plan).status_code == 200
    assert service.ledger.checkpoint("clinic").size == before + 2


def _broken(*_: Any) -> None:
    raise LedgerError("the disk is full")


def test_a_replayed_decision_says_what_was_decided(client_as):
    plan = submitted(client_as("custodian"))
    assert approve(client_as("officer"), plan, what="refused").status_code == 200
    for officer in (client_as("officer"), client_as("officer", "another")):
        again = approve(officer, plan)
        assert again.status_code == 409
        assert "refused by officer" in again.json()["detail"]
    assert client_as("officer").get(f"/v1/plans/{plan['id']}").json()["state"] == "refused"


def test_decisions_that_are_not_whole_are_refused(client_as):
    custodian, officer = client_as("custodian"), client_as("officer")
    plan = submitted(custodian)
    for wrong, status in (
        ({"digest": "0" * 64}, 409),
        ({"reason": "  "}, 422),
        ({"reason": "x" * 4001}, 422),
        ({"decision": "run"}, 422),
        ({"officer": "somebody else"}, 422),
    ):
        assert officer.post(f"/v1/approvals/{plan['id']}", json=decision(plan) | wrong).status_code == status, wrong
    draft = drafted(custodian)
    assert approve(officer, draft).status_code == 404  # an officer sees no draft
    assert approve(officer, {"id": "plan_none", "digest": "0" * 64}).status_code == 404
    assert approve(custodian, plan).status_code == 403
    assert client_as("administrator").post(f"/v1/approvals/{plan['id']}", json=decision(plan)).status_code == 403


def test_nobody_decides_on_their_own_plan(client_as, service):
    """Not even a custodian who became an officer since."""
    custodian = client_as("custodian")
    plan = submitted(custodian)
    with service.store.write() as connection:
        mine = schema.accounts.c.id == custodian.caller.id
        connection.execute(update(schema.accounts).where(mine).values(role="officer"))
    object.__setattr__(custodian.caller, "role", "officer")
    own = approve(custodian, plan)
    assert own.status_code == 403
    assert "own plan" in own.json()["detail"]


def test_what_differs_from_the_last_plan(client_as):
    custodian, officer = client_as("custodian"), client_as("officer")
    approve(officer, submitted(custodian))
    changed = [RELEASES[0] | {"share": "0.1"}, {"name": "new", "kind": "count", "share": "0.1"}]
    second = submitted(custodian, name="second", releases=changed)
    shown = officer.get(f"/v1/approvals/{second['id']}").json()["differences"]
    assert (shown["new"], shown["gone"], shown["price"]) == (["new"], ["ages"], "0.75")
    assert shown["changed"] == [{"name": "over65", "keys": {"share": {"was": "0.5", "is": "0.1"}}}]


def test_a_plan_that_was_changed_in_the_database_is_not_approved(client_as, service):
    """Whoever can drop a trigger changes the releases: the digest does not fit any more, and the officer is told."""
    plan = submitted(client_as("custodian"))
    with service.store.write() as connection:
        triggers.remove(connection)
        more = '[{"name":"over65","kind":"count","share":"1"}]'
        connection.execute(update(schema.plans).values(releases=more))
    refused = approve(client_as("officer"), plan)
    assert refused.status_code == 409
    assert "digest" in refused.json()["detail"]


@pytest.mark.parametrize("service", STORES, indirect=True)
def test_of_two_who_race_one_wins(client_as, service):
    """Approve, refuse and withdraw at once: one of them happened, whole, and the others are told."""
    custodian = client_as("custodian")
    plans = [submitted(custodian, name=str(i), releases=[RELEASES[0] | {"share": f"0.0{i + 1}"}]) for i in range(3)]
    for plan in plans:
        start, answers = threading.Barrier(3), []

        def go(send: Any, start: Any = start, answers: list[int] = answers) -> None:
            start.wait()
            answers.append(send().status_code)

        each = [
            lambda plan=plan: approve(client_as("officer"), plan),
            lambda plan=plan: approve(client_as("officer", "another"), plan, what="refused"),
            lambda plan=plan: custodian.post(f"/v1/plans/{plan['id']}/withdraw"),
        ]
        client_as("officer"), client_as("officer", "another")
        threads = [threading.Thread(target=go, args=(send,)) for send in each]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == [200, 409, 409]
        with service.store.read() as connection:
            state = connection.execute(select(schema.plans.c.state).where(schema.plans.c.id == plan["id"])).scalar_one()
            decided = decisions.decision_of(connection, plan["id"])
        assert (None if decided is None else decided.decision) == (None if state == "withdrawn" else state)


# --- the database by itself ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=STORES)
def store(request, tmp_path_factory) -> Iterator[Store]:
    if request.param == "sqlite":
        yield Store.opened(tmp_path_factory.mktemp("store") / "service.db")
        return
    with schema_on(request.getfixturevalue("postgres_url")) as url:
        yield Store.opened(url)


class Written:
    """A dataset, a custodian, two officers, and a plan in each state, by SQL alone."""

    def __init__(self, store: Store) -> None:
        self.store = store
        roles = {"author": "custodian", "other": "custodian", "officer": "officer", "analyst": "analyst"}
        self.id = {name: fresh_id("account") for name in [*roles, "gone"]}
        accounts = [
            {"id": self.id[name], "name": self.id[name], "role": role, "state": "active", "created_at": now()}
            for name, role in roles.items()
        ]
        gone = accounts[2] | {"id": self.id["gone"], "name": self.id["gone"], "state": "disabled"}
        self.dataset = fresh_id("dataset")
        row = {"id": self.dataset, "name": self.dataset, "source": self.dataset, "schema": "", "caps": "{}"}
        with store.write() as connection:
            connection.execute(insert(schema.accounts), [*accounts, gone])
            connection.execute(insert(schema.datasets).values(**row, created_by=self.id["author"], created_at=now()))

    def plan(self, state: str = "submitted") -> str:
        plan = fresh_id("plan")
        row = {"id": plan, "dataset_id": self.dataset, "name": "p", "releases": "[]", "digest": "d", "created_at": now()}
        with self.store.write() as connection:
            connection.execute(insert(schema.plans).values(**row, author_id=self.id["author"], state="draft"))
            if state != "draft":
                connection.execute(self.of(plan).values(state="submitted", submitted_at=now()))
        if state in ("approved", "refused"):
            self.decide(plan, decision=state)
            self.run(self.of(plan).values(state=state))
        return plan

    @staticmethod
    def of(plan: str) -> Any:
        return update(schema.plans).where(schema.plans.c.id == plan)

    def decide(self, plan: str, **given: Any) -> None:
        row = {"plan_id": plan, "plan_digest": "d", "officer_id": self.id["officer"], "decision": "approved"}
        self.run(insert(schema.decisions).values(row | {"reason": "r", "decided_at": now()} | given))

    def run(self, statement: Any) -> None:
        with self.store.write() as connection:
            connection.execute(statement)


@pytest.fixture(scope="module")
def written(store: Store) -> Written:
    return Written(store)


@contextmanager
def refused(why: str) -> Iterator[None]:
    with pytest.raises(IntegrityError, match=why):
        yield


def test_sql_knows_whose_eyes(written):
    plan = written.plan()
    for who in ("author", "other", "analyst", "gone"):
        with refused("active officer who is not its author"):
            written.decide(plan, officer_id=written.id[who])
    with refused("active officer"):
        written.decide(plan, plan_digest="another")
    with refused("active officer"):
        written.decide(written.plan("draft"))
    written.decide(plan)
    with refused("active officer"):
        written.decide(plan, decision="refused")


def test_sql_knows_an_officer_who_wrote_the_plan(written):
    plan = written.plan()
    mine = schema.accounts.c.id == written.id["author"]
    written.run(update(schema.accounts).where(mine).values(role="officer"))
    with refused("not its author"):
        written.decide(plan, officer_id=written.id["author"])
    written.run(update(schema.accounts).where(mine).values(role="custodian"))


def test_sql_is_not_fooled_by_a_table_of_the_same_name(written):
    """Anybody may make a temporary table, and an unqualified name finds it first."""
    plan = written.plan()
    row = {"plan_id": plan, "plan_digest": "d", "officer_id": written.id["author"], "decision": "approved"}
    with refused("not its author"), written.store.write() as connection:
        connection.execute(text("CREATE TEMPORARY TABLE service_accounts (id TEXT, role TEXT, state TEXT)"))
        officer = {"id": written.id["author"]}
        connection.execute(text("INSERT INTO service_accounts VALUES (:id, 'officer', 'active')"), officer)
        made = "CREATE TEMPORARY TABLE service_plans (id TEXT, state TEXT, digest TEXT, author_id TEXT)"
        connection.execute(text(made))
        connection.execute(text("INSERT INTO service_plans VALUES (:id, 'submitted', 'd', 'nobody')"), {"id": plan})
        connection.execute(insert(schema.decisions).values(row | {"reason": "r", "decided_at": now()}))


def test_sql_keeps_decisions(written):
    plan = written.plan("refused")
    table = schema.decisions
    with refused("never changes"):
        written.run(update(table).where(table.c.plan_id == plan).values(decision="approved"))
    with refused("never deleted"):
        written.run(table.delete().where(table.c.plan_id == plan))
    if written.store.is_sqlite:
        with refused("decided once"):
            written.run(
                text(
                    "INSERT OR REPLACE INTO service_decisions SELECT plan_id, plan_digest, officer_id, 'approved', reason, "
                    "decided_at FROM service_decisions"
                )
            )
    else:
        with refused("never deleted"):
            written.run(text("TRUNCATE service_decisions"))


def test_sql_approves_nothing_by_itself(written):
    table = schema.plans
    for state in ("approved", "run", "refused", "withdrawn"):
        row = {"id": fresh_id("plan"), "dataset_id": written.dataset, "name": "p", "releases": "[]", "digest": "d"}
        with refused("begins as a draft"):
            written.run(insert(table).values(**row, author_id=written.id["author"], state=state, created_at=now()))
    with refused("begins as a draft"):
        written.run(insert(table).values(**row, author_id=written.id["officer"], state="draft", created_at=now()))
    for begins in ("draft", "submitted", "refused"):
        plan = written.plan(begins)
        for state in ("approved", "run"):
            with refused("in this order"):
                written.run(written.of(plan).values(state=state))
    decided = written.plan()
    written.decide(decided, decision="refused")
    with refused("in this order"):
        written.run(written.of(decided).values(state="approved"))


def test_sql_lets_a_submitted_plan_be(written):
    for state in ("submitted", "approved"):
        plan = written.plan(state)
        for change in ({"releases": "[1]"}, {"digest": "e"}, {"author_id": written.id["other"]}, {"name": "q"}):
            with refused("never changes"):
                written.run(written.of(plan).values(change))
        with refused("in this order"):
            written.run(written.of(plan).values(state="draft"))
        with refused("never deleted"):
            written.run(schema.plans.delete().where(schema.plans.c.id == plan))
    with refused("never changes"):
        written.run(written.of(written.plan("draft")).values(author_id=written.id["other"]))
    written.run(written.of(plan).values(state="run"))
    written.run(written.of(plan).values(state="approved"))


def test_sql_lets_a_dataset_be(written):
    table = schema.datasets
    for change in ({"caps": '{"epsilon": "9"}'}, {"source": "x"}, {"schema": "x"}, {"people": "{}"}, {"name": "x"}):
        with refused("never changes"):
            written.run(update(table).where(table.c.id == written.dataset).values(change))
    row = {"id": fresh_id("dataset"), "name": "second", "source": written.dataset, "schema": "", "caps": "{}"}
    with refused("registered once"):
        written.run(insert(table).values(**row, created_by=written.id["author"], created_at=now()))


def test_triggers_are_there_once(written):
    """Opening the database again changes nothing, and removing them removes all."""
    with written.store.write() as connection:
        triggers.install(connection)
        there = triggers._there(connection)
    assert {rule.name for rule in triggers.RULES} <= there


def test_a_digest_covers_what_the_dataset_is(client_as, service):
    plan = submitted(client_as("custodian"))
    with service.store.write() as connection:
        row = connection.execute(select(schema.plans).where(schema.plans.c.id == plan["id"])).one()
        assert digest_of(connection, row) == plan["digest"]
        triggers.remove(connection)
        of = connection.execute(select(schema.datasets)).one()
        for change in ({"caps": '{"epsilon":"9"}'}, {"schema": "[columns.x]"}, {"people": None}, {"source": "visits"}):
            connection.execute(update(schema.datasets).values(change))
            assert digest_of(connection, row) != plan["digest"], change
            connection.execute(update(schema.datasets).values({key: getattr(of, key) for key in change}))
            assert digest_of(connection, row) == plan["digest"]
