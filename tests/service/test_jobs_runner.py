"""Jobs from the queue to the artefact, and that nothing of their end is seen before the slot."""

from __future__ import annotations

import pytest

from sfumato.releases import verify
from sfumato.service.jobs.slots import told_state
from sfumato.service.runner.loop import Runner
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
    runner.round()
    taken = jobs.job(service, job_id)
    assert taken.deliver_at == clock.now + 20
    while clock.now < taken.deliver_at - 1:
        clock.now += 1
        runner.round()
        assert told_state(jobs.job(service, job_id), clock.now) == "running"
        assert jobs.job(service, job_id).deliver_at == taken.deliver_at
    clock.now += 1
    runner.round()
    assert told_state(jobs.job(service, job_id), clock.now) == "finished"
    assert not runner.held
    assert [a.name for a in jobs.artefacts(service, job_id)] == ["old", "ages"]
    for made in jobs.artefacts(service, job_id):
        assert verify(service.settings.state / made.folder, ledger=service.ledger).ok
        entry = service.ledger.entry("clinic", made.entry)
        assert (entry.state, entry.name) == ("committed", made.name)
    service.ledger.verify("clinic")
