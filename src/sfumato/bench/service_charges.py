"""What the service asks of its ledger: many analysts charge several datasets at once, and thousands race for the last ε.

A step of a client is what a release costs the ledger: a charge under the dataset's cap and the analyst's allowance, and the
record that the release is finished. The yardstick is the least that anything durable can do for the same two steps: a row of
the same size inserted in one transaction, and marked as finished in a second one.

In the race every request asks for a thousandth, as fast as all processes can, of a budget that fits a few hundred of them:
once the dataset's cap is what runs out, once an analyst's allowance. What was charged is then read from the books.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from sfumato.bench import not_measured
from sfumato.bench.ledger_crowd import measured
from sfumato.bench.ledger_places import DATABASES, Place, fresh, missing
from sfumato.errors import BudgetError
from sfumato.ledger import Ledger
from sfumato.privacy.charge import Charge

DATASETS, CLIENTS, EACH = 8, 32, 20
RATE, SLOWEST = 100.0, 300.0  # steps a second and milliseconds of the 95th percentile, both on PostgreSQL
RACING, FITTING = 10_000, 250
PURPOSE = "research"
_STEP = "0.001"
_NANO = 10**6  # of one step


def settling(where: str) -> Callable[[str], None]:
    """Charges a release and records that it is finished."""
    ledger = Ledger.open(where, create=False)

    def settle(asked: str) -> None:
        number = json.loads(asked)["by"]
        reserved = ledger.reserve(
            _dataset(number), Charge.of("0.000001"), request=asked, analyst=f"analyst {number}", purpose=PURPOSE
        )
        ledger.commit(reserved.id, {"digest": "0" * 64})

    return settle


def bare(where: str) -> Callable[[str], None]:
    """Inserts a row of the same size and marks it, in a transaction each."""
    if "://" not in where:
        file = sqlite3.connect(where, timeout=60, isolation_level=None)
        file.execute("PRAGMA synchronous = FULL")

        def insert(asked: str) -> None:
            file.execute("BEGIN IMMEDIATE")
            row = file.execute("INSERT INTO bare (request) VALUES (?)", (asked,)).lastrowid
            file.execute("COMMIT")
            file.execute("BEGIN IMMEDIATE")
            file.execute("UPDATE bare SET finished = ? WHERE id = ?", ("0" * 64, row))
            file.execute("COMMIT")

        return insert
    import psycopg

    server = psycopg.connect(where)

    def insert_there(asked: str) -> None:
        row = server.execute("INSERT INTO bare (request) VALUES (%s) RETURNING id", (asked,)).fetchone()
        server.commit()
        assert row is not None
        server.execute("UPDATE bare SET finished = %s WHERE id = %s", ("0" * 64, row[0]))
        server.commit()

    return insert_there


def racing_for_the_cap(where: str) -> Callable[[str], None]:
    """Asks for a step of the dataset's budget, as one of several analysts who may each spend all of it."""
    return _racing(where, lambda number: f"analyst {number}")


def racing_for_the_allowance(where: str) -> Callable[[str], None]:
    """Asks for a step of one analyst's allowance, of a dataset that has plenty."""
    return _racing(where, lambda _: "analyst 0")


def _racing(where: str, who: Callable[[int], str]) -> Callable[[str], None]:
    ledger = Ledger.open(where, create=False)

    def ask(asked: str) -> None:
        try:
            ledger.reserve(
                _dataset(0), Charge.of(_STEP), request=asked, analyst=who(json.loads(asked)["by"]), purpose=PURPOSE
            )
        except BudgetError:
            return

    return ask


def prepared(place: Place, clients: int, *, epsilon: str, allowance: str) -> Ledger:
    """A ledger with the datasets and everybody's allowances, and beside it the table for bare rows."""
    ledger = Ledger.open(place.where)
    for number in range(DATASETS):
        ledger.register(_dataset(number), epsilon=epsilon)
    for number in range(clients):
        for dataset in {_dataset(number), _dataset(0)}:
            ledger.allow(dataset, analyst=f"analyst {number}", purpose=PURPOSE, epsilon=allowance)
    columns = "request TEXT, finished TEXT"
    if place.schema:
        import psycopg

        with psycopg.connect(place.where) as server:
            server.execute(f"CREATE TABLE bare (id BIGSERIAL PRIMARY KEY, {columns})")
    else:
        file = sqlite3.connect(place.where)
        file.execute(f"CREATE TABLE bare (id INTEGER PRIMARY KEY, {columns})")
        file.close()
    return ledger


def run_charges(quick: bool, progress: Callable[[str], None]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Figures and claims; `quick` is 8 clients and 5 steps each."""
    clients, each = (8, 5) if quick else (CLIENTS, EACH)
    figures: dict[str, Any] = {}
    claims = []
    for database in DATABASES:
        told = f"{clients} clients on {DATASETS} datasets on {database}"
        why = missing(database)
        if why:
            claims.append(not_measured(told, f"{RATE:.0f} a second, p95 {SLOWEST:.0f} ms", why))
            continue
        progress(told)
        with fresh(database) as place:
            ledger = prepared(place, clients, epsilon="1000", allowance="1000")
            least = measured(place, bare, clients, each)
            steps = measured(place, settling, clients, each)
            spent = 0
            for number in range(DATASETS):
                spent += int(ledger.balance(_dataset(number), releases=0).total.spent)
                ledger.verify(_dataset(number))
        figures[database] = {"steps": steps, "bare": least, "ratio": least["per_second"] / steps["per_second"]}
        lost = steps["done"] + clients - spent // 1000  # one more each, before the start
        claims.append(_claim(f"{told}: steps that are not in the books", lost, 0, lost == 0))
        if database == "postgres":
            rate, slow = steps["per_second"], steps["milliseconds_p95"]
            claims += [
                _claim(f"{told}: reserve + commit a second (at least)", rate, RATE, rate >= RATE),
                _claim(f"{told}: reserve + commit, ms, 95th percentile (under)", slow, SLOWEST, slow < SLOWEST),
            ]
    return figures, claims


def run_race(quick: bool, progress: Callable[[str], None]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Figures and claims; `quick` is 400 requests of 8 processes for 100 places."""
    clients, wanted, fitting = (8, 400, 100) if quick else (CLIENTS, RACING, FITTING)
    each = -(-wanted // clients)
    plenty, little = "1000", f"{fitting * _NANO / 10**9:f}"
    figures: dict[str, Any] = {}
    claims = []
    for database in DATABASES:
        for what, work, epsilon, allowance in (
            ("cap", racing_for_the_cap, little, plenty),
            ("allowance", racing_for_the_allowance, plenty, little),
        ):
            told = f"{clients * each:,} requests race for the last ε of the {what} on {database}"
            why = missing(database)
            if why:
                claims.append(not_measured(told, f"{fitting} fit, overspent 0", why))
                continue
            progress(told)
            with fresh(database) as place:
                ledger = prepared(place, clients, epsilon=epsilon, allowance=allowance)
                raced = measured(place, work, clients, each)
                spent = int(ledger.balance(_dataset(0), releases=0).total.spent)
                ledger.verify(_dataset(0))
            over = max(0, spent - fitting * _NANO)
            figures[f"{database}, {what}"] = raced | {"fit": fitting, "charged": spent // _NANO, "overspent": over}
            claims += [
                _claim(f"{told}: overspent, nano-ε", over, 0, over == 0),
                _claim(f"{told}: charged (exactly)", spent // _NANO, fitting, spent == fitting * _NANO),
            ]
    return figures, claims


def _dataset(number: int) -> str:
    return f"clinic {number % DATASETS}"


def _claim(name: str, figure: float, limit: float, holds: bool) -> dict[str, Any]:
    return {"name": name, "figure": figure, "limit": limit, "holds": holds}
