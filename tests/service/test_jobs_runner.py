"""Jobs from the queue to the artefact: told at their slot, taken again after a crash, charged once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from sfumato.releases import pipeline, verify
from sfumato.service.jobs import queue
from sfumato.service.jobs.slots import told_state
from sfumato.service.runner import loop, settling
from sfumato.service.runner.loop import Runner
from sfumato.service.runner.work import make
from sfumato.service.store import schema
from support import jobs
from support.jobs import TWO, Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_a_plan_of_two_is_released_charged_and_told_at_its_slot(tmp_path, monkeypatch, clock):
    service = jobs.clinic(tmp_path)
    jobs.inline(monkeypatch)
    job_id, runner = jobs.waiting(service, TWO), Runner(service)
    runner.round()
    taken = jobs.job(service, job_id)
    assert taken.deliver_at == clock.now + 20
    charged = []
    while clock.now < taken.deliver_at:
        runner.round()
        assert told_state(jobs.job(service, job_id), clock.now) == "running"
        charged.append(len(service.ledger.history("clinic")))
        clock.now += 1
    assert charged == [1] * 10 + [2] * 10  # at the beginning of each window
    runner.round()
    assert told_state(jobs.job(service, job_id), clock.now) == "finished"
    assert not runner.held
    assert [a.name for a in jobs.artefacts(service, job_id)] == ["old", "ages"]
    for made in jobs.artefacts(service, job_id):
        assert verify(service.settings.state / made.folder).holds
        entry = service.ledger.entry("clinic", made.entry)
        assert (entry.state, entry.name, entry.by) == ("committed", made.name, f"custodian [{job_id}]")
    service.ledger.verify("clinic")


def test_the_same_question_again_costs_nothing(tmp_path, monkeypatch, clock):
    service = jobs.clinic(tmp_path)
    jobs.inline(monkeypatch)
    runner, first = Runner(service), jobs.waiting(service)
    jobs.until_told(runner, clock)
    second = jobs.waiting(service)
    jobs.until_told(runner, clock)
    assert jobs.job(service, second).state == "finished"
    assert jobs.artefacts(service, second)[0].entry == jobs.artefacts(service, first)[0].entry
    assert len(service.ledger.history("clinic")) == 1


def test_a_place_is_kept_until_the_slot_so_that_the_next_job_does_not_tell_when_this_one_ended(tmp_path, monkeypatch, clock):
    service = jobs.clinic(tmp_path)
    jobs.inline(monkeypatch)
    runner = Runner(service, places=1)
    first = jobs.waiting(service)
    runner.round()
    second = jobs.waiting(service, TWO)
    while clock.now < jobs.job(service, first).deliver_at:
        runner.round()
        assert jobs.job(service, second).state == "waiting"
        clock.now += 1
    runner.round()
    assert jobs.job(service, second).state == "running"


def _refusing(monkeypatch: pytest.MonkeyPatch, service: Any, **decision: Any) -> None:
    """A plan gets into the queue without the approval that it needs: the database's own rules are put aside."""
    from sfumato.service.store import triggers

    with service.store.write() as connection:
        triggers.remove(connection)


@pytest.mark.parametrize(
    "wrong",
    [
        {"decision": None},
        {"decision": "refused"},
        {"plan_digest": "another plan's"},
        {"officer_id": "the author"},
        {"officer_id": "an administrator"},
        "releases changed after it was approved",
        "dataset changed after it was approved",
        "author disabled",
    ],
    ids=str,
)
def test_nothing_is_charged_without_every_approval(tmp_path, monkeypatch, clock, wrong):
    service = jobs.clinic(tmp_path)
    _refusing(monkeypatch, service)
    jobs.inline(monkeypatch)
    given = dict(wrong) if isinstance(wrong, dict) else {}
    if "officer_id" in given:
        role = "custodian" if given["officer_id"] == "the author" else "administrator"
        given["officer_id"] = jobs.account(service, role)
    job_id = jobs.waiting(service, **given)
    with service.store.write() as connection:
        if wrong == "releases changed after it was approved":
            connection.execute(text("UPDATE service_plans SET releases = replace(releases, '0.1', '0.9')"))
        if wrong == "dataset changed after it was approved":
            connection.execute(text("UPDATE service_datasets SET caps = replace(caps, '200', '300')"))
        if wrong == "author disabled":
            connection.execute(text("UPDATE service_accounts SET state = 'disabled' WHERE name = 'custodian'"))
    jobs.until_told(Runner(service), clock)
    assert jobs.job(service, job_id).state == "failed"
    assert not service.ledger.history("clinic")
    assert not jobs.artefacts(service, job_id)


def test_a_plan_that_cannot_be_paid_as_a_whole_is_not_begun(tmp_path, monkeypatch, clock):
    service = jobs.clinic(tmp_path)
    jobs.registered(service, epsilon="0.25")  # the first release alone would fit
    jobs.inline(monkeypatch)
    job_id = jobs.waiting(service, TWO)
    jobs.until_told(Runner(service), clock)
    assert jobs.job(service, job_id).state == "failed"
    assert not service.ledger.history("clinic")


@pytest.mark.parametrize("wrong", [None, "revoked", "dearer", "to somebody else", "no purpose", "no allowance"])
def test_an_analysts_request_is_charged_to_their_allowance_if_it_is_still_approved(tmp_path, monkeypatch, clock, wrong):
    service = jobs.clinic(tmp_path)
    jobs.inline(monkeypatch)
    about = {"dataset_id": jobs.registered(service), "purpose": "planning"}
    officer, analyst = jobs.account(service, "officer"), jobs.account(service, "analyst", "ana")
    if wrong != "no allowance":
        service.ledger.allow("clinic", analyst="ana", purpose="planning", epsilon="1")
    moments = {"created_at": clock.now, "revoked_at": clock.now if wrong == "revoked" else None}
    most = 10**8 - (wrong == "dearer")
    with service.store.write() as connection:
        row = {"id": "p", "kinds": '["count"]', "most": most, "officer_id": officer}
        connection.execute(schema.preapprovals.insert().values(**row, **about, **moments))
        asked = jobs.ONE[0] | {"recipient": "bob" if wrong == "to somebody else" else "ana"}
        about |= {"purpose": None} if wrong == "no purpose" else {}
        job_id = queue.enqueue(connection, account_id=analyst, request=asked, **about)
    jobs.until_told(Runner(service), clock)
    assert jobs.job(service, job_id).state == ("failed" if wrong else "finished")
    assert [entry.state for entry in service.ledger.history("clinic")] == ([] if wrong else ["committed"])
    assert [a.spent for a in service.ledger.allowances("clinic")] == (
        [] if wrong == "no allowance" else [0 if wrong else 10**8]
    )
    assert [a.recipient for a in jobs.artefacts(service, job_id)] == ([] if wrong else ["ana"])


def _dead_at_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: Any, **__: Any) -> None:
        raise jobs.Over

    monkeypatch.setattr(pipeline, "run", killed)


def test_a_release_that_fails_stays_spent_and_does_not_stop_the_next(tmp_path, monkeypatch, clock):
    service = jobs.clinic(tmp_path)
    whole = pipeline.run

    def first_fails(priced: Any, *given: Any, **named: Any) -> Any:
        if priced.request.name == "old":
            raise ValueError("the value 17 of row 3")
        return whole(priced, *given, **named)

    monkeypatch.setattr(pipeline, "run", first_fails)
    jobs.inline(monkeypatch)
    job_id = jobs.waiting(service, TWO)
    jobs.until_told(Runner(service), clock)
    assert jobs.job(service, job_id).state == "failed"
    assert [entry.state for entry in service.ledger.history("clinic")] == ["failed", "committed"]
    assert [a.name for a in jobs.artefacts(service, job_id)] == ["ages"]


# --- a runner that dies ----------------------------------------------------------------------------------------------


def _before_charging(service: Any, runner: str, job_id: str, name: str | None, *, over: Any) -> None:
    return


def _before_the_ledger(service: Any, runner: str, job_id: str, name: str | None, *, over: Any) -> None:
    assert queue.begin_charging(service.store, runner, job_id, 0)


class Died(BaseException):
    """A runner that is killed."""


def _dies(*_: Any, **__: Any) -> None:
    raise Died


@pytest.mark.parametrize(
    ("where", "state", "entries"),
    [
        ("before it charges", "finished", ["committed"]),
        ("when it may charge and did not", "finished", ["committed"]),
        ("after the charge", "failed", ["failed"]),
        ("after the folder", "finished", ["committed"]),
        ("after the commit", "finished", ["committed"]),
        ("after the artefact's line", "finished", ["committed"]),
    ],
)
def test_a_job_of_a_dead_runner_ends_and_is_charged_once(tmp_path, monkeypatch, clock, where, state, entries):
    service = jobs.clinic(tmp_path)
    job_id = jobs.waiting(service)
    dying, work = Runner(service), make
    with monkeypatch.context() as patched:
        if where == "before it charges":
            work = _before_charging
        if where == "when it may charge and did not":
            work = _before_the_ledger
        if where == "after the charge":
            _dead_at_its_work(patched)
        if where == "after the commit":
            patched.setattr(settling, "keep", _dies)
        if where == "after the artefact's line":
            patched.setattr(loop, "kept", _dies)
        jobs.inline(patched, work)
        dying.round()
        dying.round()
        if where in ("after the commit", "after the artefact's line"):
            clock.now = dying.held[0].windows[0].settled
            with pytest.raises(Died):
                dying.round()
    for held in dying.held:
        held.lock.free()
    jobs.inline(monkeypatch)
    clock.now += queue.LEASE + 1
    jobs.until_told(Runner(service), clock)
    assert jobs.job(service, job_id).state == state
    assert [entry.state for entry in service.ledger.history("clinic")] == entries
    assert len(jobs.artefacts(service, job_id)) == (state == "finished")
    service.ledger.verify("clinic")


def test_a_runner_that_lives_but_gave_no_sign_keeps_its_job(tmp_path, monkeypatch, clock):
    service = jobs.clinic(tmp_path)
    jobs.inline(monkeypatch)
    job_id, silent, other = jobs.waiting(service), Runner(service), Runner(service)
    silent.round()
    clock.now += queue.LEASE + 1
    other.round()
    assert not other.held
    assert len(service.ledger.history("clinic")) == 0
    silent.held[0].lock.free()
    clock.now += queue.LEASE + 1
    jobs.until_told(other, clock)
    assert jobs.job(service, job_id).state == "finished"


@pytest.mark.parametrize("begun", [False, True])
def test_a_runner_that_is_told_to_stop_leaves_what_it_has_not_charged(tmp_path, monkeypatch, clock, begun):
    service = jobs.clinic(tmp_path)
    jobs.inline(monkeypatch)
    job_id, stopped = jobs.waiting(service, TWO), Runner(service)
    for _ in range(1 + begun):
        stopped.round()
    stopped.stopping = True
    for _ in range(20):
        stopped.round()
        clock.now += 1
    assert not stopped.held
    assert [entry.state for entry in service.ledger.history("clinic")] == ["committed"] * begun
    jobs.until_told(Runner(service), clock)  # without waiting for a lease
    assert jobs.job(service, job_id).state == "finished"
    assert [entry.state for entry in service.ledger.history("clinic")] == ["committed"] * 2


def test_of_cancelling_and_charging_exactly_one_wins(tmp_path, monkeypatch, clock):
    service = jobs.clinic(tmp_path)
    jobs.inline(monkeypatch)
    first, second = jobs.waiting(service), jobs.waiting(service)

    def cancelled(job_id: str) -> bool:
        with service.store.write() as connection:
            return queue.cancelled(connection, job_id)

    runner = Runner(service)
    runner.round()
    assert cancelled(first)  # taken, not charged
    runner.round()
    runner.round()
    assert not cancelled(second)
    jobs.until_told(runner, clock)
    assert jobs.job(service, first).state == "cancelled"
    assert jobs.job(service, second).state == "finished"
    assert [jobs_of(entry) for entry in service.ledger.history("clinic")] == [second]


def jobs_of(entry: Any) -> str | None:
    from sfumato.service.jobs.slots import job_of

    return job_of(entry.by)


def test_two_runners_share_a_queue_and_no_job_is_taken_twice(tmp_path, clock):
    service = jobs.clinic(tmp_path)
    waiting = {jobs.waiting(service) for _ in range(4)}
    taken: list[str] = []
    take: Callable[[str], Any] = lambda runner: queue.take(service.store, runner)  # noqa: E731
    while (found := take("one") or take("two")) is not None:
        taken.append(found.id)
    assert len(taken) == 4
    assert set(taken) == waiting
    with service.store.read() as connection:
        assert {row.state for row in connection.execute(schema.jobs.select())} == {"running"}
