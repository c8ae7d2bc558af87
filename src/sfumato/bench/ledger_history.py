"""A ledger with a hundred thousand releases: what a page of its history, its balance and one more charge take; and what a
release to a thousand recipients takes.

Releases are written straight into the tables, as `Ledger.reserve` and `Ledger.commit` would have written them, and `verify`
adds them up.
"""

from __future__ import annotations

import json
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import insert, text

from sfumato.bench import not_measured
from sfumato.bench.ledger_places import DATABASES, fresh, missing
from sfumato.ledger import Ledger, log, log_leaves, schema
from sfumato.ledger.requests import fingerprint_of
from sfumato.privacy.budgets import RecipientBudgets
from sfumato.privacy.charge import Charge

DATASET, COST = "clinic", 1000
PAGE, MEMORY, EVERYBODY, FLAT = 50.0, 50.0, 15.0, 2.0  # ms of a page, MB of it, ms more for 1,000 recipients, growth
RECIPIENTS = 1000


def run_history(quick: bool, progress: Callable[[str], None]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Figures and claims; `quick` is 2,000 releases."""
    releases, repeats = (2_000, 5) if quick else (100_000, 21)
    figures: dict[str, Any] = {}
    claims: list[dict[str, Any]] = []
    for database in DATABASES:
        told = f"{releases:,} releases on {database}"
        why = missing(database)
        if why:
            claims.append(not_measured(told, f"{PAGE:.0f} ms a page", why))
            continue
        progress(told)
        with fresh(database) as place:
            found = _history(Ledger.open(place.where), releases, repeats)
        with fresh(database) as place:
            found["more_for_recipients"] = _recipients(Ledger.open(place.where), repeats)
        figures[database] = found
        everybody = f"a charge to everybody with {RECIPIENTS:,} recipients on {database}"
        claims += [
            _claim(f"{told}: the slowest page, milliseconds (at most)", found["slowest"], PAGE),
            _claim(f"{told}: memory of a page and a balance, MB (at most)", found["megabytes"], MEMORY),
            _claim(f"{told}: a charge, times what the first ones took (at most)", found["charge_growth"], FLAT),
            _claim(f"{everybody}, milliseconds more than with 1 (at most)", found["more_for_recipients"], EVERYBODY),
        ]
    return figures, claims


def _history(ledger: Ledger, releases: int, repeats: int) -> dict[str, float]:
    ledger.register(DATASET, epsilon=1000)
    _charge(ledger, 2)  # prepares statements
    first = _charge(ledger, repeats)
    filled(ledger, releases)
    found = {name: _milliseconds(work, repeats) for name, work in _reading(ledger, releases).items()}
    found["slowest"] = max(found.values())
    # Of this process alone, whatever else the machine does.
    busy = [_milliseconds(work, repeats, time.process_time) for work in _reading(ledger, releases).values()]
    found["slowest_busy"] = max(busy)
    found["megabytes"] = _megabytes(lambda: (ledger.history(DATASET), ledger.balance(DATASET)))
    found["charge"] = _charge(ledger, repeats)
    found["charge_growth"] = found["charge"] / first
    ledger.verify(DATASET)
    return found


def _claim(name: str, figure: float, limit: float) -> dict[str, Any]:
    return {"name": name, "figure": figure, "limit": limit, "holds": figure <= limit}


def _reading(ledger: Ledger, releases: int) -> dict[str, Callable[[], Any]]:
    """What people look at, by what it is called in the figures."""
    return {
        "history": lambda: ledger.history(DATASET),
        "page_of_20": lambda: ledger.history(DATASET, limit=20),
        "page_in_the_middle": lambda: ledger.history(DATASET, limit=20, before=releases // 2),
        "page_at_the_beginning": lambda: ledger.history(DATASET, limit=20, after=0),
        "balance": lambda: ledger.balance(DATASET),
    }


def _milliseconds(work: Callable[[], Any], repeats: int, clock: Callable[[], float] = time.perf_counter) -> float:
    seconds = []
    for _ in range(repeats):
        begun = clock()
        work()
        seconds.append(clock() - begun)
    return 1e3 * statistics.median(seconds)


def _megabytes(work: Callable[[], Any]) -> float:
    """What Python holds at most while something is done."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def _charge(ledger: Ledger, repeats: int, dataset: str = DATASET) -> float:
    begun = time.perf_counter_ns()
    asked = iter(range(repeats))
    return _milliseconds(
        lambda: ledger.reserve(dataset, Charge.of("0.000001"), request=f"{dataset} {begun} {next(asked)}"), repeats
    )


def _recipients(ledger: Ledger, repeats: int) -> float:
    """How much longer a charge to everybody takes with a thousand recipients than with one, in turns."""
    for name, many in (("one", 1), ("many", RECIPIENTS)):
        ledger.register(name, recipients=RecipientBudgets.of({f"recipient {n}": 1000 for n in range(many)}))
        _charge(ledger, 2, name)
    more = [_charge(ledger, 1, "many") - _charge(ledger, 1, "one") for _ in range(repeats)]
    ledger.verify("many")
    return statistics.median(more)


def _leaves(rows: list[dict[str, Any]]) -> Iterator[log.Leaf]:
    """What the log says of releases with one line each."""
    for row in rows:
        yield log_leaves.reserved(row, [{"release_id": row["id"], "kind": "total", "name": "", "nano": COST}], [])
        yield log_leaves.finished(row)


def filled(ledger: Ledger, releases: int) -> None:
    """Write releases that were charged and committed, as many as are asked for."""
    with ledger._store.write() as connection:
        first = int(connection.execute(text("SELECT coalesce(max(id), 0) + 1 FROM ledger_releases")).scalar_one())
        artefact = json.dumps({"result": "y" * 2000})
        for start in range(0, releases, 5000):
            rows = []
            for number in range(start, min(start + 5000, releases)):
                asked = json.dumps({"kind": "count", "where": f"age >= {number}", "notes": "x" * 400})
                rows.append(
                    {
                        "id": first + number,
                        "dataset_id": 1,
                        "fingerprint": fingerprint_of(asked),
                        "request": asked,
                        "total": COST,
                        "state": "committed",
                        "artefact": artefact,
                        "reserved_at": "2026-11-16T10:00Z",
                        "finished_at": "2026-11-16T10:00Z",
                    }
                )
            connection.execute(insert(schema.releases), rows)
            log.append_all(connection, 1, _leaves(rows))
        line = f"INSERT INTO ledger_charges SELECT id, 'total', '', {COST} FROM ledger_releases WHERE id >= {first}"
        connection.execute(text(line))
        raised = f"UPDATE ledger_limits SET spent = spent + {COST * releases} WHERE kind = 'total'"
        connection.execute(text(raised))
        if not ledger._store.is_sqlite:
            connection.execute(text(f"SELECT setval(pg_get_serial_sequence('ledger_releases', 'id'), {first + releases})"))
