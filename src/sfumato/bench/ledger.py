"""How long a charge takes, alone and in a crowd, a long history, a race for the last budget, kill -9, a million lives.

sfumato bench ledger [--json] [--quick] [--part charges|history|crowd|life|kills]

On SQLite in a temporary folder; all but ``charges`` also on the PostgreSQL server that SFUMATO_BENCH_POSTGRES names.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.bench.ledger_crowd import run_crowd
from sfumato.bench.ledger_history import run_history
from sfumato.bench.ledger_kills import run_kills
from sfumato.bench.ledger_life import run_life
from sfumato.errors import BudgetError
from sfumato.ledger import Ledger
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge

PARTS = ("charges", "history", "crowd", "life", "kills")
PROCESSES, FIT = 32, 10


def _silent(_: str) -> None:
    """No progress."""


def run(quick: bool, part: str | None = None, progress: Callable[[str], None] = _silent) -> dict[str, Any]:
    """Figures and claims of the ledger, all or one `part`; `quick` repeats less often, and lives with fewer people."""
    figures: dict[str, Any] = {}
    claims: list[dict[str, Any]] = []
    for name, measure in zip(PARTS, (run_charges, run_history, run_crowd, run_life, run_kills), strict=True):
        if part in (None, name):
            figures[name], claimed = measure(quick, progress)
            claims += claimed
    return {"figures": figures, "claims": claims}


def run_charges(quick: bool, _progress: Callable[[str], None]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Charges to a fixed roster, and the race."""
    repeats = 4 if quick else 20
    with tempfile.TemporaryDirectory() as folder:
        million = charge_seconds(Path(folder) / "million.ledger", people=1_000_000, repeats=repeats)
        thousand = charge_seconds(Path(folder) / "thousand.ledger", people=1_000, repeats=5 * repeats)
        won, refused, seconds = race(Path(folder) / "race.ledger")
    figures = {
        "million_people_seconds": statistics.median(million),
        "million_people_seconds_worst": max(million),
        "thousand_cohorts_milliseconds": 1e3 * statistics.median(thousand),
        "thousand_cohorts_milliseconds_worst": 1e3 * max(thousand),
        "race_succeeded": won,
        "race_refused": refused,
        "race_seconds": seconds,
    }
    claims = [
        {
            "name": "a charge for one million people with distinct budgets, seconds, worst run (under)",
            "figure": max(million),
            "limit": 1.0,
            "holds": max(million) < 1,
        },
        {
            "name": f"{PROCESSES} processes race for a budget that fits {FIT} releases: successes on SQLite (exactly)",
            "figure": won,
            "limit": FIT,
            "holds": (won, refused) == (FIT, PROCESSES - FIT),
        },
    ]
    return figures, claims


def charge_seconds(where: Path, *, people: int, repeats: int) -> list[float]:
    """Seconds of each durable charge to people who all have budgets of their own.

    Charges alternate between the two ways they are stored: min(budget, step), and a free amount per person.
    """
    levels = 10**9 + 977 * np.arange(people)
    ledger = Ledger.open(where)
    ledger.register("nation", people=PersonBudgets(levels, np.ones_like(levels)))
    seconds = []
    for number in range(repeats):
        each = levels // (3 * repeats) if number % 2 else np.minimum(levels, 10**9 // (3 * repeats))
        charge = Charge.of_people(each)
        start = time.perf_counter()
        ledger.reserve("nation", charge, request=f"charge {number}")
        seconds.append(time.perf_counter() - start)
    ledger.verify("nation")
    return seconds


def race(where: Path) -> tuple[int, int, float]:
    """Start separate processes, let them all go at once; how many succeed, how many are refused, and the seconds."""
    Ledger.open(where).register("clinic", epsilon=1)
    code = "import sys; from sfumato.bench.ledger import racer; racer(sys.argv[1], int(sys.argv[2]))"
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(where), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    for contestant in racers:
        assert contestant.stdout is not None
        contestant.stdout.readline()  # says that it is ready
    start = time.perf_counter()
    for contestant in racers:
        assert contestant.stdin is not None
        contestant.stdin.write("go\n")
        contestant.stdin.flush()
    said = [contestant.communicate()[0].strip() for contestant in racers]
    return said.count("spent"), said.count("refused"), time.perf_counter() - start


def racer(where: str, number: int) -> None:
    """One contestant: gets ready, waits for the signal, asks for a tenth of the budget."""
    ledger = Ledger.open(where, create=False)
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        reserved = ledger.reserve("clinic", Charge.of("0.1"), request=f"racer {number}")
    except BudgetError:
        print("refused")
        return
    ledger.commit(reserved.id, {"racer": number})
    print("spent")
