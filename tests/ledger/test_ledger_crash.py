"""kill -9 at random moments: no artefact without a durable charge, and the ledger opens and works afterwards."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from sfumato.ledger import Ledger
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge

COST = 1000
KILLS = 36


def _killed(work: Callable[[], None], seconds: float) -> None:
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(17)  # only reached when the work stops by itself
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the worker ended before it was killed"


def _seconds_in_a_child(work: Callable[[], None]) -> float:
    """How long work takes in a process of its own, which connects first."""
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return time.perf_counter() - start


@pytest.mark.slow
def test_kill_at_random_moments_of_a_release(where: str, tmp_path: Path) -> None:
    out = tmp_path / "artefacts"
    out.mkdir()
    ledger = Ledger.open(where)
    levels = 10**12 + np.arange(1000)
    ledger.register("clinic", epsilon=1000, people=PersonBudgets(levels, np.ones_like(levels)))
    charge = Charge(COST, people=COST - np.arange(1000) % 7)

    def release_for_ever() -> None:
        for number in count():
            reserved = ledger.reserve("clinic", charge, request=f"{os.getpid()} {number}")
            (out / str(reserved.id)).write_text("an artefact")  # stands for reading the table and releasing
            ledger.commit(reserved.id, {"number": number})

    start = time.perf_counter()
    for number in range(5):
        ledger.commit(ledger.reserve("clinic", charge, request=f"timing {number}").id, "none")
    one_release = (time.perf_counter() - start) / 5
    first = _seconds_in_a_child(lambda: ledger.commit(ledger.reserve("clinic", charge, request="timing 5").id, "none"))
    for _ in range(KILLS):
        _killed(release_for_ever, random.uniform(0, first + 3 * one_release))

    # One balance is one snapshot: a server may still be finishing what a killed client had sent.
    after = Ledger.open(where, create=False)
    balance = after.balance("clinic", releases=10_000)
    assert balance.releases.older is None
    releases = {r.id: r.state for r in balance.releases if not r.request.startswith("timing")}
    artefacts = {int(path.name) for path in out.iterdir()}
    assert artefacts <= set(releases), "an artefact that was never charged"
    assert {number for number, state in releases.items() if state == "committed"} <= artefacts
    assert balance.total.spent == COST * len(balance.releases)
    assert balance.people is not None
    assert charge.people is not None
    assert np.array_equal(balance.people.spent, charge.people * len(balance.releases))
    after.verify("clinic")

    # The kills must have hit releases that were under way, or this test shows nothing.
    assert set(releases.values()) == {"reserved", "committed"}
    assert list(releases.values()).count("reserved") <= KILLS  # a crash costs one release at most

    more = after.reserve("clinic", charge, request="after all that")
    after.commit(more.id, "works")
    balance = after.balance("clinic", releases=10_000)
    assert {release.id: release.state for release in balance.releases}[more.id] == "committed"
    assert balance.total.spent == COST * len(balance.releases)


@pytest.mark.slow
def test_kill_while_the_ledger_is_being_made(swift: Path) -> None:
    for number in range(15):
        where = swift / f"{number}.ledger"

        def make(where: Path = where) -> None:
            Ledger.open(where).register("clinic", epsilon=1)
            time.sleep(10)

        _killed(make, random.uniform(0, 0.03))
        ledger = Ledger.open(where)
        ledger.register("clinic", epsilon=1)
        ledger.reserve("clinic", Charge.of(1), request="a")
        assert ledger.balance("clinic").total.left == 0
