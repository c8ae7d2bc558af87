"""A small world: two of each kind of people, two clinics, plans in every state, a release that was made and told.

Everything is made by the functions that the interface calls. Whoever sends a request is told by a header, so that a test can
be anybody without signing in; tests of signing in are elsewhere. Texts that only some may see are planted, and the world
knows who may.
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fastapi import Request
from fastapi.testclient import TestClient

from sfumato.service.accounts import keeping, tokens
from sfumato.service.context import Service
from sfumato.service.http.access import Caller, current_caller
from sfumato.service.http.app import create_app
from sfumato.service.jobs.running import run_plan
from sfumato.service.people import bringing
from sfumato.service.planning import datasets, decisions, plans
from sfumato.service.requesting import granting, preapprovals
from sfumato.service.requesting.asking import ask
from sfumato.service.roles import ROLES
from sfumato.service.runner.loop import Runner
from sfumato.service.settings import Settings, SourceSettings
from support import jobs
from support.service_kinds import Call
from support.service_people import linked

PEOPLE = {"living": True, "person": "patient", "tiers": {"strict": "0.1", "open": "2"}}
PURPOSE = "research"
COUNT = {"name": "old", "kind": "count", "where": "age >= 50", "epsilon": "0.01"}
SCHEMA = (
    jobs.SCHEMA
    + """
[unit]
person = "patient"
rows_per_person = 1
"""
)
_NEEDED = ("draft", "submitted", "approved", "run")
VOLATILE = ("service_attempts", "service_replies", "sqlite_sequence")


@dataclass
class World:
    """What there is, by name: `things["custodian"]["plan"]` is that of the first custodian, `"custodian 2"` the other."""

    service: Service
    app: Any
    callers: dict[str, Caller] = field(default_factory=dict)
    things: dict[str, dict[str, str]] = field(default_factory=dict)
    planted: dict[str, set[str]] = field(default_factory=dict)
    """Text -> the names of those who may see it."""

    @classmethod
    def made(cls, folder: Path) -> World:
        """The world in a folder."""
        sources = {}
        for number in (1, 2, 3, 4):
            place = folder / f"private{number}.parquet"
            pd.DataFrame({"patient": [str(p) for p in range(60)], "age": [i % 100 for i in range(60)]}).to_parquet(place)
            sources[f"source {number}"] = SourceSettings(str(place))
        service = Service.opened(
            Settings.in_folder(
                folder / "state",
                base_url="http://testserver",
                sources=sources,
                slot=2,
                longest=1,
                secure_cookies=False,
                password_time=1,
                password_memory=64,
            )
        )
        world = cls(service, create_app(service))
        world._hear()
        with pytest.MonkeyPatch.context() as patch:
            world._furnish(jobs.Clock(patch, int(time.time()) - 86_400), patch)
        return world

    def _hear(self) -> None:
        def found(request: Request) -> Caller | None:
            return self.callers.get(request.headers.get("X-Test-Caller", ""))

        self.app.dependency_overrides[current_caller] = found

    def _furnish(self, clock: jobs.Clock, patch: Any) -> None:
        service = self.service
        root = Caller("root", "root", "administrator")
        root = replace(root, id=jobs.account(service, "administrator", "administrator"), name="administrator")
        self.callers["administrator"] = root
        for role in ROLES:
            for number in (1, 2):
                name = role if number == 1 else f"{role} 2"
                if name != "administrator":
                    row, _ = keeping.create(service, root, name, role)
                    self.callers[name] = Caller(row.id, row.name, row.role)
        jobs.inline(patch)
        made = [self._clinic(number, suffix) for number, suffix in ((1, ""), (2, " 2"))]
        runner = Runner(service)
        while any(jobs.job(service, job).state in ("waiting", "running") for _, job in made):
            jobs.until_told(runner, clock)
        for number, suffix in ((1, ""), (2, " 2")):
            of, asked = made[number - 1]
            waiting = ask(service, self.callers[f"analyst{suffix}"], of["dataset"], PURPOSE, {**COUNT, "where": "age >= 20"})
            self._note(number, suffix, of, asked, waiting["job"])

    def _clinic(self, number: int, suffix: str) -> tuple[dict[str, str], str]:
        service = self.service
        who = {role: self.callers.get(role + suffix, self.callers[role]) for role in ROLES}
        custodian, officer, analyst, person = who["custodian"], who["officer"], who["analyst"], who["person"]
        name, mine = f"clinic{number}", f"planted-by-custodian-{number}"
        caps = {"epsilon": "10", "rows": 60}
        datasets.register(service, custodian, datasets.Wanted(name, f"source {number}", SCHEMA, PEOPLE, caps))
        with service.store.read() as connection:
            dataset = datasets.dataset_of(connection, name)
        listed = [(str(p), "open" if p % 2 else "strict") for p in range(60)]
        bringing.bring(service, custodian.id, name, listed)
        bringing.close_epoch(service, custodian.id, name, None)
        linked(service, person, dataset.id, str(number))
        granting.grant(service, officer, name, analyst=analyst.name, purpose=PURPOSE, epsilon="1", per_day=None)
        given = preapprovals.Given(PURPOSE, ["count"], "0.5", None)
        preapproval = preapprovals.give(service, officer, name, given)
        of: dict[str, str] = {}
        states = ("draft", "submitted", "withdrawn", "refused", "approved", "run") if number == 1 else _NEEDED
        for state in states:
            made = plans.create(service, custodian, dataset=name, name=f"{mine} {state}", releases=[COUNT])
            of[f"{state} plan"], of["digest"] = made.id, made.digest
            if state not in ("draft", "withdrawn"):
                plans.submit(service, custodian, made.id, digest=made.digest)
            if state == "withdrawn":
                plans.withdraw(service, custodian, made.id)
            if state in ("refused", "approved", "run"):
                word = "refused" if state == "refused" else "approved"
                about: dict[str, Any] = {"decision": word, "reason": f"planted-by-officer-{number}", "digest": made.digest}
                decisions.decide(service, officer, made.id, **about)
            if state == "run":
                of["job"] = run_plan(service, custodian, made.id)
        # Another question than the plan's: that one was released to everybody, and would be the same release.
        asked = ask(service, analyst, name, PURPOSE, {**COUNT, "name": f"planted-by-analyst-{number}", "where": "age >= 40"})
        return of | {"dataset": name, "preapproval": preapproval["id"]}, asked["job"]

    def _note(self, number: int, suffix: str, of: dict[str, str], asked: str, waiting: str) -> None:
        """Where everybody's things are, and who may see what was planted."""
        service = self.service
        release = {
            "custodian": jobs.artefacts(service, of["job"])[0],
            "officer": jobs.artefacts(service, of["job"])[0],
            "analyst": jobs.artefacts(service, asked)[0],
        }
        for role in ROLES:
            name = role + suffix
            if name not in self.callers:
                continue
            things = dict(of)
            things["entry"] = "1"
            things["account"] = self.callers[name].id
            things["token"] = tokens.make(service, self.callers[name], f"planted-token-{name}-", ["session.read"], 1)[0]
            self.planted[f"planted-token-{name}-"] = {name}
            if role == "analyst":
                things["job"], things["waiting job"] = asked, waiting
            if role in release:
                things["release"] = release[role].id
            self.things[name] = things
        both = {"officer", "officer 2"}
        self.planted[f"planted-by-custodian-{number}"] = {f"custodian{suffix}", *both}
        self.planted[f"planted-by-officer-{number}"] = {f"custodian{suffix}", *both}
        self.planted[f"planted-by-analyst-{number}"] = {f"analyst{suffix}", f"custodian{suffix}", f"person{suffix}", *both}

    def hidden_from(self, name: str | None) -> set[str]:
        """The planted texts that somebody must never see."""
        return {text for text, due in self.planted.items() if name not in due}

    def client(self, name: str | None) -> TestClient:
        """Somebody's client; ``None`` is nobody."""
        headers = {} if name is None else {"X-Test-Caller": name}
        return TestClient(self.app, raise_server_exceptions=False, headers=headers)

    def send(self, name: str | None, call: Call) -> Any:
        """The answer to a call of somebody."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sfumato.service.accounts.second_factor.confirm_code", lambda *_: None)
            return self.client(name).request(
                call.method,
                call.url,
                params=dict(call.query) or None,
                headers=dict(call.headers),
                **({} if call.body is None else {"json": call.body}),
            )

    @contextmanager
    def copied(self) -> Iterator[World]:
        """A copy of the world, to be changed."""
        with tempfile.TemporaryDirectory() as folder:
            state = Path(folder) / "state"
            shutil.copytree(self.service.settings.state, state)
            old = self.service.settings
            places = {
                key: value.replace(str(old.state), str(state))
                if isinstance(value, str)
                else state / value.relative_to(old.state)
                for key, value in (("database", old.database), ("ledger", old.ledger), ("keys", old.keys))
            }
            service = Service.opened(replace(old, state=state, **places))
            copy = World(service, create_app(service), self.callers, self.things, self.planted)
            copy._hear()
            yield copy

    def tables(self) -> list[str]:
        """The tables of the service and of the ledger."""
        return sorted(self.written())

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table of the service."""
        with sqlite3.connect(self.service.settings.database) as file:
            file.row_factory = sqlite3.Row
            return [dict(row) for row in file.execute(f'SELECT * FROM "{table}"')]

    def written(self) -> dict[str, str]:
        """What every table holds, as a digest; without counts of attempts, which refusals are for."""
        found = {}
        for place in (self.service.settings.database, self.service.settings.ledger):
            file = sqlite3.connect(place)
            names = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
            for name in names:
                if name not in VOLATILE:
                    rows = sorted(map(repr, file.execute(f'SELECT * FROM "{name}"')))
                    found[name] = f"{len(rows)} {hashlib.sha256(repr(rows).encode()).hexdigest()}"
            file.close()
        return found


def stripped(answer: Any) -> tuple[int, bytes, tuple[str, ...]]:
    """What of an answer must be the same where nothing may be told: status, body, names of headers."""
    return answer.status_code, answer.content, tuple(sorted(name.lower() for name in answer.headers))
