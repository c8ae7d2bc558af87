"""Many processes charge one dataset at once: how many charges a second, how long the slowest wait, beside bare INSERTs.

Every process charges a release after the other, as fast as it may; how long each `Ledger.reserve` took is what counts. The
yardstick is the least that anything durable can do: the same processes, each with a connection that it keeps, insert one row
of the same size in a transaction of its own, and wait for the disk as a charge does.

Processes are forked from a small one that was started fresh: it has no connection, no thread and no lock to inherit.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np

from sfumato.bench import not_measured
from sfumato.bench.ledger_places import DATABASES, Place, fresh, missing
from sfumato.ledger import Ledger
from sfumato.privacy.charge import Charge

DATASET = "clinic"
PROCESSES, EACH = 32, 20
SLOWEST, RATE = 1.0, 100.0  # seconds of the 99th percentile; charges a second on PostgreSQL


def request(number: int, turn: int) -> str:
    """What process `number` asks in its turn: as long as a request of the release of a count."""
    return json.dumps({"kind": "count", "where": f"age >= {turn}", "by": number, "notes": "x" * 400})


def charging(where: str) -> Callable[[str], None]:
    """Charges a release to the ledger."""
    ledger = Ledger.open(where, create=False)

    def charge(asked: str) -> None:
        ledger.reserve(DATASET, Charge.of("0.000001"), request=asked)

    return charge


def inserting(where: str) -> Callable[[str], None]:
    """Inserts a row of the same size, in a transaction of its own."""
    if "://" not in where:
        file = sqlite3.connect(where, timeout=60, isolation_level=None)
        file.execute("PRAGMA synchronous = FULL")

        def insert(asked: str) -> None:
            file.execute("BEGIN IMMEDIATE")
            file.execute("INSERT INTO bare (request) VALUES (?)", (asked,))
            file.execute("COMMIT")

        return insert
    import psycopg

    server = psycopg.connect(where)

    def insert_there(asked: str) -> None:
        server.execute("INSERT INTO bare (request) VALUES (%s)", (asked,))
        server.commit()

    return insert_there


def crowd(where: str, out: str, how_many: str, what: str) -> None:
    """Fork the processes, let them go at once, write how long each step of each of them took to a file in folder `out`.

    `what` names the function that makes a process ready: ``module:function``, of the ledger's address.
    """
    processes, each = map(int, how_many.split("x"))
    Ledger.open(where, create=False).datasets()  # loads what the processes share
    ready, go = os.pipe(), os.pipe()
    for number in range(processes):
        if os.fork():
            continue
        try:
            os.close(go[1])
            work = resolve_name(what)(where)
            work(request(number, -1))  # the first of a process also prepares its statements
            os.write(ready[1], b".")
            os.read(go[0], 1)  # nothing comes: the pipe is closed for all at once
            seconds = []
            for turn in range(each):
                begun = time.perf_counter()
                work(request(number, turn))
                seconds.append(time.perf_counter() - begun)
            (Path(out) / f"{number}.json").write_text(json.dumps([time.time(), seconds]))
        finally:
            os._exit(0)
    for _ in range(processes):
        os.read(ready[0], 1)
    (Path(out) / "begun").write_text(str(time.time()))
    os.close(go[1])
    for _ in range(processes):
        os.wait()


def measured(place: Place, what: Callable[[str], Callable[[str], None]], processes: int, each: int) -> dict[str, float]:
    """Run a crowd of processes, each made ready by `what`; the rate, and how long they waited."""
    out = place.key.parent / what.__name__
    out.mkdir()
    code = "import sys; from sfumato.bench.ledger_crowd import crowd; crowd(*sys.argv[1:])"
    name = f"{what.__module__}:{what.__name__}"
    subprocess.run([sys.executable, "-c", code, place.where, str(out), f"{processes}x{each}", name], check=True)
    told = [json.loads(file.read_text()) for file in sorted(out.glob("*.json"))]
    if len(told) != processes:
        raise AssertionError(f"{processes - len(told)} of {processes} processes did not finish: {what.__name__}")
    seconds = np.concatenate([each_one for _, each_one in told])
    whole = max(ended for ended, _ in told) - float((out / "begun").read_text())
    return {
        "processes": processes,
        "done": int(seconds.size),
        "per_second": seconds.size / whole,
        "milliseconds": float(1e3 * np.median(seconds)),
        "milliseconds_p95": float(1e3 * np.quantile(seconds, 0.95)),
        "milliseconds_p99": float(1e3 * np.quantile(seconds, 0.99)),
        "milliseconds_worst": float(1e3 * seconds.max()),
    }


def prepared(place: Place) -> Ledger:
    """A ledger, and beside it the table for bare rows."""
    ledger = Ledger.open(place.where)
    ledger.register(DATASET, epsilon=1000)
    if place.schema:
        import psycopg

        with psycopg.connect(place.where) as server:
            server.execute("CREATE TABLE bare (id BIGSERIAL PRIMARY KEY, request TEXT)")
    else:
        file = sqlite3.connect(place.where)
        file.execute("CREATE TABLE bare (id INTEGER PRIMARY KEY, request TEXT)")
        file.close()
    return ledger


def run_crowd(quick: bool, progress: Callable[[str], None]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Figures and claims; `quick` is 8 processes and 5 charges each."""
    processes, each = (8, 5) if quick else (PROCESSES, EACH)
    figures: dict[str, Any] = {}
    claims = []
    for database in DATABASES:
        told = f"{processes} processes charge one dataset on {database}"
        why = missing(database)
        if why:
            claims.append(not_measured(told, f"p99 {SLOWEST} s, {RATE:.0f} a second", why))
            continue
        progress(told)
        with fresh(database) as place:
            ledger = prepared(place)
            bare = measured(place, inserting, processes, each)
            charges = measured(place, charging, processes, each)
            spent = int(ledger.balance(DATASET, releases=0).total.spent)
            ledger.verify(DATASET)
        figures[database] = {"charges": charges, "inserts": bare, "ratio": bare["per_second"] / charges["per_second"]}
        slowest = charges["milliseconds_p99"] / 1e3
        claims += [
            {
                "name": f"{told}: seconds of a charge, 99th percentile (under)",
                "figure": slowest,
                "limit": SLOWEST,
                "holds": slowest < SLOWEST,
            },
            {
                "name": f"{told}: charges that are not in the books",
                "figure": charges["done"] + processes - spent // 1000,  # one more each, before the start
                "limit": 0,
                "holds": spent == 1000 * (charges["done"] + processes),
            },
        ]
        if database == "postgres":
            rate = charges["per_second"]
            claims.append({"name": f"{told}: a second (at least)", "figure": rate, "limit": RATE, "holds": rate >= RATE})
    return figures, claims
