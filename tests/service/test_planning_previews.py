"""Previews: what they say, and that none of them can take the service's time, memory or processes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import replace

import pytest

from sfumato.errors import BudgetError
from sfumato.service.context import Service
from sfumato.service.http.problems import ProblemError
from sfumato.service.planning.datasets import dataset_of, row_of
from sfumato.service.planning.plans import previewed
from sfumato.service.planning.previewing import Workers, workers
from sfumato.service.settings import Limits, Settings
from sfumato.tables import Schema
from support.planning import CLINIC, RELEASES, VISITS, planning_service

WIDE = '[columns.x]\ntype = "numeric"\nlow = 0\nhigh = 1\nbins = 1000000\n'

# Answers each message with its `do`; "sleep" takes for ever, "die" ends it, "budget" is an error of the library.
FAKE = """
import os, sys, time
sys.path[:0] = {path!r}
from sfumato.service.planning.worker import packed, read
def say(what): os.write(1, packed(what))
say({{"ok": "ready"}})
while (message := read(sys.stdin.buffer)) is not None:
    what = message["do"]
    if what == "sleep": time.sleep(600)
    if what == "die": os._exit(1)
    if what == "memory": say({{"error": "memory"}})
    elif what == "budget": say({{"error": "BudgetError", "why": "no"}})
    elif what == "long": say({{"ok": "x" * 1_000_000}})
    else: say({{"ok": [what, os.getpid()]}})
"""


@pytest.fixture
def service(tmp_path) -> Service:
    return planning_service(tmp_path)


@pytest.fixture
def swift(tmp_path) -> Settings:
    return Settings.in_folder(tmp_path, limits=Limits(preview_seconds=1))


@pytest.fixture
def fakes():
    made = Workers(most=1, waiting=0, command=(sys.executable, "-c", FAKE.format(path=sys.path)))
    yield made
    made.close()


def refusal(made: Workers, settings: Settings, what: str) -> ProblemError:
    with pytest.raises(ProblemError) as found:
        made.do(settings, what)
    return found.value


def test_whatever_a_question_does_to_its_process_the_next_one_is_answered(fakes, swift):
    first = fakes.do(swift, "a")[1]
    assert fakes.do(swift, "b") == ["b", first]
    for what, words in (("sleep", "longer than 1 s"), ("die", "ended by itself"), ("memory", "more than 1 GB")):
        wrong = refusal(fakes, swift, what)
        assert (wrong.status, words in wrong.detail) == (422, True), wrong.detail
        assert fakes.do(swift, "c")[1] != first
    with pytest.raises(BudgetError, match="no"):
        fakes.do(swift, "budget")
    assert len(fakes.do(swift, "long", much="y" * 1_000_000)) == 1_000_000


def test_a_process_that_died_while_nobody_asked_is_nobodys_fault(fakes, swift):
    pid = fakes.do(swift, "a")[1]
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.2)
    assert fakes.do(swift, "b")[1] != pid


def test_who_comes_when_all_are_busy_is_told_to_come_again(fakes, swift):
    fakes.do(swift, "a")
    waits = threading.Thread(target=lambda: refusal(fakes, swift, "sleep"))
    waits.start()
    time.sleep(0.2)
    busy = refusal(fakes, swift, "a")
    assert (busy.status, busy.headers) == (429, {"Retry-After": "1"})
    waits.join()
    assert fakes.do(swift, "a")[0] == "a"


def test_closing_ends_every_process_also_one_that_answers(fakes, swift):
    slow = replace(swift, limits=Limits(preview_seconds=60))
    pid = fakes.do(slow, "a")[1]
    waits = threading.Thread(target=lambda: refusal(fakes, slow, "sleep"))
    waits.start()
    time.sleep(0.2)
    fakes.close()
    waits.join(5)
    assert not waits.is_alive()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not fakes._idle
    assert fakes.do(slow, "a")[1] != pid


def test_a_preview_that_takes_too_much_is_refused_and_the_next_one_is_not(client_as, service):
    """By a real plan: a histogram of a million cells, within 32 MB."""
    client_as("custodian").post("/v1/datasets", json=VISITS | {"schema": WIDE})
    with service.store.read() as connection:
        wide = dataset_of(connection, "visits")
    many = [{"name": "h", "kind": "histogram", "columns": ["x"], "epsilon": "1"}]
    small = replace(service, settings=replace(service.settings, limits=Limits(preview_seconds=60, preview_bytes=32 << 20)))
    with pytest.raises(ProblemError) as much:
        previewed(small, wide, many)
    assert (much.value.status, "more than 0.031 GB" in much.value.detail) == (422, True), much.value.detail
    asked = {"dataset": "visits", "releases": [{"name": "c", "kind": "count", "epsilon": "0.1"}]}
    answer = client_as("officer").post("/v1/previews", json=asked)
    assert (answer.status_code, answer.json()["price"]) == (200, "0.1"), answer.text


def test_a_preview_says_what_an_officer_asks(client_as):
    custodian = client_as("custodian")
    capped = {"attributes": {"age": "3"}, "recipients": {"ana": "1", "bo": "1"}, "together": "1.5"}
    made = custodian.post("/v1/datasets", json=CLINIC | {"caps": capped})
    assert made.status_code == 201, made.text
    to_ana = [RELEASES[0] | {"recipient": "ana"}]
    found = custodian.post("/v1/previews", json={"dataset": "clinic", "releases": to_ana}).json()
    left = {(cap["kind"], cap["name"]): (cap["left"], cap["left_after"]) for cap in found["left"]}
    assert left[("recipient", "ana")] == ("1", "0.5")
    assert left[("recipient", "bo")] == ("1", "1")
    assert left[("together", "")] == ("1.5", "1")
    assert left[("attribute", "age")] == ("3", "2.5")
    assert [tier["loses"] for tier in found["people"]] == [[x, x] for x in ("0.005", "0.025", "0.1", "0.25", "0.5")]
    (release,) = found["releases"]
    assert release["guarantee"].startswith("Whoever sees this release may guess somewhat better")
    assert "a: 0.005 of 0.005 of 0.01" in release["guarantee"]
    assert {offer["mechanism"] for offer in release["offers"]} > {"adaptive", "minimum"}
    assert all(isinstance(offer["charge"]["epsilon"], str) for offer in release["offers"])
    stranger = custodian.post("/v1/previews", json={"dataset": "clinic", "releases": [RELEASES[0] | {"recipient": "eve"}]})
    assert "eve" in stranger.json()["releases"][0]["refusal"]
    assert stranger.json()["fits"] is False


def test_a_private_roster_shows_no_heads(client_as):
    private = {"column": "consent", "roster": "private", "tiers": CLINIC["people"]["tiers"]}
    custodian = client_as("custodian")
    assert custodian.post("/v1/datasets", json=CLINIC | {"people": private}).status_code == 201
    found = custodian.post("/v1/previews", json={"dataset": "clinic", "releases": RELEASES}).json()
    assert found["waits_for_head_counts"] is True
    assert [tier["people"] for tier in found["people"]] == [None] * 5


def test_people_who_change_are_shown_as_they_stand(client_as, service):
    living = {"living": True, "tiers": {"strict": "0.1", "open": "1"}}
    custodian = client_as("custodian")
    made = custodian.post("/v1/datasets", json=CLINIC | {"people": living})
    assert made.status_code == 201, made.text
    life = service.ledger.people("clinic")
    for person in range(30):
        life.join(person, "open" if person < 10 else "strict")
    life.epoch()
    found = custodian.post("/v1/previews", json={"dataset": "clinic", "releases": RELEASES}).json()
    shown = {tier["tier"]: (tier["people"], tier["loses"], tier["left_after"]) for tier in found["people"]}
    assert shown["open"] == (10, ["0.75", "0.75"], ["0.25", "0.25"])
    assert shown["strict"] == (20, ["0.075", "0.075"], ["0.025", "0.025"])


def test_what_crosses_the_pipe_is_where_nothing_private_lies(client_as, service, monkeypatch):
    """A worker is told the ledger and public rosters, never where a source lies."""
    told = []
    real = Workers.do
    monkeypatch.setattr(
        Workers, "do", lambda self, settings, what, **given: told.append(given) or real(self, settings, what, **given)
    )
    client_as("custodian").post("/v1/datasets", json=CLINIC)
    client_as("custodian").post("/v1/previews", json={"dataset": "clinic", "releases": RELEASES})
    from sfumato.service.planning.trying import plain_settings

    assert len(told) == 2
    assert "nowhere" not in repr((told, plain_settings(service.settings)))
    with service.store.read() as connection:
        row = row_of(dataset_of(connection, "clinic"))
    assert Schema.from_toml(row["schema"]) == Schema.from_toml(CLINIC["schema"])
    assert workers().do(service.settings, "preview", row=row, given=RELEASES)["price"] == "0.75"
