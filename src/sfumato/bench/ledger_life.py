"""A million people who change their minds: epochs, receipts, charges and the size on disk, on SQLite and PostgreSQL.

Everybody grants an amount of their own, so that nobody shares a cohort. In each epoch one in fifty changes what they grant,
one in a thousand joins and ten withdraw; then a release is charged, by turns ``min(grant, step)`` and an amount per person.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sfumato.bench import not_measured
from sfumato.bench.ledger_places import DATABASES, fresh, missing
from sfumato.ledger import Ledger
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge

LIMITS = {"epoch_seconds_worst": 10, "receipt_milliseconds_p99": 50, "charge_seconds_worst": 1, "megabytes": 500}
WORDS = {
    "epoch_seconds_worst": "an epoch, seconds, worst (at most)",
    "receipt_milliseconds_p99": "a receipt, milliseconds, 99th percentile (at most)",
    "charge_seconds_worst": "the charge of a release, seconds, worst (at most)",
    "megabytes": "the ledger on disk, MB (at most)",
}


def run_life(quick: bool, progress: Callable[[str], None]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Figures and claims; `quick` is 20,000 people and 6 epochs."""
    people, epochs = (20_000, 6) if quick else (1_000_000, 50)
    figures: dict[str, Any] = {}
    claims = []
    for database in DATABASES:
        told = f"{people:,} people over {epochs} epochs on {database}"
        why = missing(database)
        if why:
            claims.append(not_measured(told, "10 s, 50 ms, 1 s, 500 MB", why))
            continue
        quarter = live(database, people // 4, epochs, progress)
        whole = live(database, people, epochs, progress)
        growth = {name: whole[name] / quarter[name] for name in LIMITS}
        figures[database] = {"quarter": quarter, "whole": whole, "growth": growth}
        claims += [
            {"name": f"{told}: {WORDS[name]}", "figure": whole[name], "limit": limit, "holds": whole[name] <= limit}
            for name, limit in LIMITS.items()
        ]
    return figures, claims


def live(database: str, people: int, epochs: int, progress: Callable[[str], None]) -> dict[str, float]:
    """One life on a fresh ledger, which is removed afterwards."""
    with fresh(database) as place:
        ledger = Ledger.open(place.where, key=place.key)
        found = _live(ledger, people, epochs, progress)
        return found | {"megabytes": place.megabytes()}


def _live(ledger: Ledger, people: int, epochs: int, progress: Callable[[str], None]) -> dict[str, float]:
    draw = np.random.default_rng(people)
    menu = PersonBudgets.from_tiers({"open": (100, 1)})
    ledger.register("nation", people=menu, living=True)
    life = ledger.people("nation")
    taken = people  # names handed out so far
    there = np.arange(people)
    life.bring(there.tolist(), 50 + there / 1e6)
    seconds: dict[str, list[float]] = {what: [] for what in ("first", "choices", "epoch", "charge", "receipt", "verify")}
    busy: dict[str, list[float]] = {what: [] for what in seconds}  # of this process alone, whatever else the machine does

    def timed(what: str, work: Callable[[], Any]) -> Any:
        begun, own = time.perf_counter(), time.process_time()
        found = work()
        seconds[what].append(time.perf_counter() - begun)
        busy[what].append(time.process_time() - own)
        return found

    timed("first", life.epoch)
    for number in range(epochs):
        progress(f"{people:,} people, epoch {number + 1} of {epochs}")
        leaving, changing = np.split(draw.choice(there, size=people // 50 + 10, replace=False), [10])
        joining = np.arange(taken, taken + people // 1000)
        taken += joining.size
        names = np.concatenate([changing, joining])
        grants = 50 + names / 1e6 + (number + 1) / 1e8  # nobody ever grants what anybody else does
        timed("choices", partial(life.bring, names.tolist(), grants))
        for person in leaving.tolist():
            life.withdraw(person)
        there = np.concatenate([np.setdiff1d(there, leaving), joining])
        timed("epoch", life.epoch)
        standing = life.standing()
        charge = Charge.of_people(np.minimum(standing.grants, 10**7) if number % 2 else standing.left // 200)
        timed("charge", partial(ledger.reserve, "nation", charge, request=f"release {number}", standing=standing))
    for person in draw.choice(there, size=200).tolist():
        receipt = timed("receipt", partial(life.receipt, person))
        assert receipt.spent == sum(line.charged for line in receipt.lines)
    timed("verify", partial(ledger.verify, "nation"))
    receipts = 1e3 * np.array(seconds["receipt"])
    return {
        "people": people,
        "cohorts": len(life.standing().grants),
        "epochs": epochs,
        "first_epoch_seconds": seconds["first"][0],
        "choices_seconds": statistics.median(seconds["choices"]),
        "epoch_seconds": statistics.median(seconds["epoch"]),
        "epoch_seconds_worst": max(seconds["epoch"] + seconds["first"]),
        "epoch_busy_seconds_worst": max(busy["epoch"] + busy["first"]),
        "charge_seconds": statistics.median(seconds["charge"]),
        "charge_seconds_worst": max(seconds["charge"]),
        "charge_busy_seconds_worst": max(busy["charge"]),
        "receipt_milliseconds": float(np.median(receipts)),
        "receipt_milliseconds_p99": float(np.quantile(receipts, 0.99)),
        "receipt_busy_milliseconds_p99": float(np.quantile(1e3 * np.array(busy["receipt"]), 0.99)),
        "verify_seconds": seconds["verify"][0],
    }
