"""Runners that are killed at random moments: every job ends, nothing is charged twice or delivered without a charge."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from sfumato.releases.folder import read_certificate
from sfumato.releases.kinds import all_kinds
from sfumato.service.context import Service
from sfumato.service.jobs.slots import job_of
from sfumato.service.runner.__main__ import READY
from sfumato.service.runner.loop import Runner
from sfumato.service.store import schema
from support import jobs

KILLS = 12


def _runner(service: Service) -> int:
    """A runner in a process and a group of its own, with everything imported already."""
    process = os.fork()
    if process:
        return process
    try:
        os.setpgid(0, 0)
        Runner(service, lease=1).run(0.02)
    finally:
        os._exit(1)


def _states(service: Service) -> Counter[str]:
    with service.store.read() as connection:
        return Counter(connection.execute(select(schema.jobs.c.state)).scalars())


def test_runners_that_are_killed_at_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    chance = random.Random()  # any moment will do: what must hold, holds for all of them
    for module in READY:
        import_module(module)
    all_kinds()
    service = jobs.clinic(tmp_path, slot=1, longest=6)
    monkeypatch.setattr("sfumato.releases.folder.report", lambda *_: "<p>no time for it</p>")
    asked = [
        jobs.waiting(service, [{"name": f"old {i}", "kind": "count", "where": f"age >= {i}", "epsilon": "0.1"}])
        for i in range(10, 14)
    ]
    for _ in range(KILLS):
        runner = _runner(service)
        time.sleep(chance.uniform(0.01, 0.9))
        everything = chance.random() < 0.5  # as when the machine stops; otherwise a release may go on without its runner
        (os.killpg if everything else os.kill)(runner, signal.SIGKILL)
        os.waitpid(runner, 0)
    runner = _runner(service)
    try:
        until = time.monotonic() + 60
        while set(_states(service)) & {"waiting", "running"}:
            assert time.monotonic() < until, "a job does not end"
            time.sleep(0.05)
    finally:
        os.killpg(runner, signal.SIGKILL)
        os.waitpid(runner, 0)
    _is_sound(service, asked)


def _is_sound(service: Service, asked: list[str]) -> None:
    entries = list(service.ledger.releases("clinic"))
    state = {entry.id: entry.state for entry in entries}
    assert entries, "no runner lived long enough to charge anything"
    assert set(state.values()) <= {"committed", "failed"}
    assert max(Counter((job_of(entry.by), entry.name) for entry in entries).values()) == 1  # nothing is charged twice
    for path in (service.settings.state / "artefacts").glob("*/*/certificate.json"):
        if not path.parent.name.startswith("."):
            made: Any = read_certificate(path.parent)
            assert state[made["reservation"]] == "committed"
    for job_id in asked:
        job, made = jobs.job(service, job_id), jobs.artefacts(service, job_id)
        assert all(state[a.entry] == "committed" for a in made)
        with service.store.read() as connection:
            plan = connection.execute(select(schema.plans).where(schema.plans.c.id == job.plan_id)).one()
            decided = connection.execute(select(schema.decisions).where(schema.decisions.c.plan_id == plan.id)).one()
        assert (plan.state, decided.decision, decided.plan_digest) == ("approved", "approved", plan.digest)
        names = {release["name"] for release in json.loads(plan.releases)}
        assert job.state == ("finished" if {a.name for a in made} == names else "failed")
    service.ledger.verify("clinic")
