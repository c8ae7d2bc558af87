"""The web, asked for everything by whoever may ask, never has the private table opened: the kernel says so.

Whichever library opens a file, in this process or in one that it started, inotify hears of it.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from sfumato.service.http.access import Caller, current_caller
from sfumato.service.http.app import create_app
from sfumato.service.roles import ACTIONS, ROLES
from sfumato.service.runner.loop import Runner
from support import jobs
from support.jobs import Clock
from support.service_routes import endpoints

IN_ACCESS, IN_OPEN = 0x1, 0x20


class Watch:
    """Whether a file was opened."""

    def __init__(self, path: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._handle = libc.inotify_init1(os.O_NONBLOCK)
        assert libc.inotify_add_watch(self._handle, os.fsencode(path), IN_ACCESS | IN_OPEN) >= 0

    def opened(self) -> bool:
        """Whether it was since the last call."""
        try:
            return bool(os.read(self._handle, 65536))
        except BlockingIOError:
            return False


def test_the_web_never_opens_the_source_and_the_runner_does(tmp_path, monkeypatch: pytest.MonkeyPatch):
    service = jobs.clinic(tmp_path)
    job = jobs.waiting(service)
    given = {"job_id": job, "plan_id": jobs.job(service, job).plan_id, "dataset": "clinic"}
    callers = {role: Caller(jobs.account(service, role), role, role) for role in ROLES}
    now: dict[str, Any] = {"caller": None}
    app = create_app(service)
    app.dependency_overrides[current_caller] = lambda: now["caller"]
    monkeypatch.setattr("sfumato.service.accounts.second_factor.confirm_code", lambda *_: None)
    client = TestClient(app, raise_server_exceptions=False, base_url="http://127.0.0.1:8000")
    watch, good = Watch(tmp_path / "private.parquet"), 0
    for endpoint in endpoints(app):
        roles = sorted(ACTIONS[endpoint.action]) if endpoint.action else ["custodian"]
        for role in roles[:1]:
            now["caller"] = callers[role]
            address = endpoint.path.format_map(_Or(given))
            more = {} if endpoint.method in ("GET", "DELETE") else {"json": {}}
            good += client.request(endpoint.method, address, **more).status_code < 300
    assert good > 15
    assert not watch.opened()
    jobs.inline(monkeypatch)
    clock = Clock(monkeypatch)
    again = jobs.waiting(service)
    jobs.until_told(Runner(service), clock)
    assert jobs.job(service, again).state == "finished"
    assert watch.opened()


class _Or(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "none"
