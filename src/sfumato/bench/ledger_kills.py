"""kill -9 in the middle of epochs, imports, bindings and charges: is anything lost, or half done?

A worker runs an endless script of steps against a ledger: people join, change, withdraw, come in bulk, epochs close,
releases are charged and committed. It says each step that is done. It is killed, at a random moment or just before a
random statement of a kind of step that is due reaches the database, and a new worker goes on from where the ledger stands.

The same script runs on a *twin*, a ledger that nobody kills. Each step depends only on its number and on what the ledger
says of the people, so after every kill the ledger must stand where the twin stands after the last step that was announced,
or after the one that was under way: nothing in between, nothing before.

Workers are forked from a small process of its own, started fresh: it has no connection, no thread and no lock to inherit.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import event, text

from sfumato.bench import not_measured
from sfumato.bench.ledger_places import DATABASES, fresh, missing
from sfumato.ledger import Ledger
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge

DATASET, PEOPLE, BULK = "clinic", 600, 200
MENU = {"strict": "0.5", "middle": "5", "open": "40"}
STEPS = ("bring", "choose", "choose", "epoch", "reserve", "commit", "bind", "reserve", "commit")


def begin(where: str, key: Path) -> Ledger:
    """A ledger with a living roster and nobody in it."""
    ledger = Ledger.open(where, key=key)
    menu = PersonBudgets.from_tiers({name: (epsilon, 1) for name, epsilon in MENU.items()})
    ledger.register(DATASET, people=menu, living=True)
    return ledger


def step(ledger: Ledger, number: int) -> None:
    """Step `number` of the script; the same on every ledger that stands alike."""
    draw = random.Random(number)
    life = ledger.people(DATASET)
    kind = STEPS[number % len(STEPS)]
    if kind == "bring":
        names = draw.sample(range(PEOPLE), BULK)
        life.bring([f"p{n}" for n in names], [draw.choice(list(MENU)) for _ in names])
    elif kind == "choose":
        if life.knows(name := f"p{draw.randrange(PEOPLE)}") and draw.random() < 0.5:
            life.withdraw(name)
        else:
            life.join(name, draw.choice(list(MENU)))
    elif kind == "epoch":
        life.epoch()
    elif kind == "bind":
        life.bind()
    elif kind == "reserve":
        life.bind()
        standing = life.standing()
        asked = np.minimum(standing.left // 7, 10**7 * (1 + number % 5))
        ledger.reserve(DATASET, Charge.of_people(asked), request=f"step {number}", standing=standing)
    elif kind == "commit":
        for release in ledger.history(DATASET):  # the newest: a step commits what the last one left
            if release.state == "reserved":
                ledger.commit(release.id, {"step": number})


def state(ledger: Ledger) -> str:
    """All that the ledger says of its people and releases, whatever the order of its cohorts."""
    life = ledger.people(DATASET)
    standing = life.standing()
    cohorts = sorted(
        zip(
            map(str, standing.tiers),
            standing.grants.tolist(),
            standing.spent.tolist(),
            standing.left.tolist(),
            standing.heads.tolist(),
            strict=True,
        )
    )
    releases = [(r.request, r.state, r.total) for r in ledger.releases(DATASET)]
    return json.dumps([standing.epoch, life.pending().to_dict(), cohorts, releases])


def nursery(where: str, key: str) -> None:
    """Read orders, one JSON line each; fork a worker for each, kill it, say so."""
    out = sys.stdout.fileno()
    for line in sys.stdin:
        order = json.loads(line)
        ready, says = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                _work(where, key, order["start"], order["kind"], order["statement"], says, out)
            finally:
                os._exit(17)
        os.close(says)
        os.read(ready, 1)
        os.close(ready)
        if order["statement"] is None:
            time.sleep(order["seconds"])
        else:  # it kills itself
            late = time.monotonic() + 20
            while os.waitpid(child, os.WNOHANG)[0] == 0:
                if time.monotonic() > late:
                    break
                time.sleep(0.001)
            else:
                child = 0
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os.write(out, b"killed\n")


def _work(where: str, key: str, start: int, kind: str, statement: int | None, ready: int, out: int) -> None:
    """Go on from step `start`; die before statement `statement`, counted from the first step of that `kind`."""
    ledger = Ledger.open(where, create=False, key=key)
    number = start
    if statement is not None:
        left, counting = statement, False

        def count(*_: Any) -> None:
            nonlocal left, counting
            counting = counting or STEPS[number % len(STEPS)] == kind
            left -= counting
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        event.listen(ledger._store.engine, "before_cursor_execute", count)
    os.close(ready)
    while True:
        step(ledger, number)
        os.write(out, f"{number}\n".encode())
        number += 1


def settle(ledger: Ledger) -> None:
    """Wait until a server has ended what the killed client had sent; SQLite has nothing to wait for."""
    store = ledger._store
    if store.is_sqlite:
        return
    query = text(
        "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'sfumato-kills'"
    )
    while True:
        with store.read() as connection:
            if not connection.execute(query).scalar():
                return
        time.sleep(0.01)


def kills(where: str, key: Path, number: int) -> dict[str, Any]:
    """Kill a worker `number` times; what was found, or an AssertionError that says what was lost."""
    draw = random.Random()
    ledger = begin(where, key)
    hit: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        twin = begin(str(Path(folder) / "twin.ledger"), Path(folder) / "twin.key")
        code = "import sys; from sfumato.bench.ledger_kills import nursery; nursery(*sys.argv[1:])"
        process = subprocess.Popen(
            [sys.executable, "-c", code, where, str(key)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PGAPPNAME": "sfumato-kills"},
        )
        try:
            begun = time.perf_counter()
            for done in range(len(STEPS)):  # the first round is not disturbed, and says how long a step takes here
                step(twin, done)
                step(ledger, done)
            longest = (time.perf_counter() - begun) / len(STEPS)
            done, expected = len(STEPS), state(twin)
            for kill in range(number):
                # Every kind of step has its turn, however long the others take on this machine.
                aim = STEPS[kill // 2 % len(STEPS)] if kill % 2 else None
                done, expected, where_hit = _one_kill(process, ledger, twin, done, expected, longest, aim, draw)
                hit[where_hit] = hit.get(where_hit, 0) + 1
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(30)
    after = Ledger.open(where, create=False, key=key)
    after.verify(DATASET)
    after.people(DATASET).epoch()
    after.verify(DATASET)
    return {"kills": number, "steps": done, "hit": dict(sorted(hit.items()))}


def _one_kill(
    process: subprocess.Popen[str],
    ledger: Ledger,
    twin: Ledger,
    done: int,
    expected: str,
    longest: float,
    aim: str | None,
    draw: random.Random,
) -> tuple[int, str, str]:
    assert process.stdin is not None
    assert process.stdout is not None
    order = {
        "start": done,
        "kind": aim,
        "seconds": draw.uniform(0, 3 * longest),
        "statement": int(10 ** draw.uniform(0, 1.8)) if aim else None,
    }
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    for line in process.stdout:
        if line.strip() == "killed":
            break
        assert int(line) == done
        step(twin, done)
        done += 1
        expected = ""
    expected = expected or state(twin)
    settle(ledger)
    ledger.verify(DATASET)
    found, kind = state(ledger), STEPS[done % len(STEPS)]
    if found != expected:
        step(twin, done)  # the step under way had reached the disk
        expected, done = state(twin), done + 1
        if found != expected:
            raise AssertionError(f"a kill during step {done - 1} ({kind}) left the ledger between two states")
    return done, expected, kind


def run_kills(quick: bool, progress: Callable[[str], None]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """200 kills on SQLite, and as many on the PostgreSQL server if one is named; `quick` is 20."""
    number = 20 if quick else 200
    figures: dict[str, Any] = {}
    claims = []
    for database in DATABASES:
        told = f"{number} kills during epochs, imports, bindings and charges on {database}: states lost or half done"
        why = missing(database)
        if why:
            claims.append(not_measured(told, "0", why))
            continue
        progress(told)
        with fresh(database) as place:
            try:
                figures[database] = kills(place.where, place.key, number)
                wrong = 0
            except AssertionError as lost:
                figures[database], wrong = {"lost": str(lost)}, 1
        claims.append({"name": told, "figure": wrong, "limit": 0, "holds": wrong == 0})
    return figures, claims
