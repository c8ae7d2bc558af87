"""How long a person's own calls take with a million people: ``python tests/support/measure_people.py [--postgres]``.

One application in this process, with its middleware, SQLite files or a PostgreSQL server of its own; 40 releases in the
ledger; 10,000 single choices that wait for the next epoch, as they do where people choose for themselves.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fastapi import Request
from fastapi.testclient import TestClient
from sqlalchemy import insert

from sfumato.ledger import choices, persons
from sfumato.ledger.reserve import lock
from sfumato.service.context import Service
from sfumato.service.fresh import fresh_id
from sfumato.service.http.access import Caller, current_caller
from sfumato.service.http.app import create_app
from sfumato.service.settings import Limits, Settings
from sfumato.service.store import schema
from sfumato.service.store.database import now
from support.service_people import linked, make_dataset, spend

RELEASES, CALLERS = 40, 300


def build(service: Service, people: int, waiting: int) -> list[Caller]:
    """A dataset of so many people, and accounts for some of them."""
    made = [Caller(fresh_id("account"), f"person {i}", "person") for i in range(CALLERS)]
    boss = Caller(fresh_id("account"), "custodian", "custodian")
    with service.store.write() as connection:
        rows = [{"id": c.id, "name": c.name, "role": c.role, "state": "active", "created_at": now()} for c in (*made, boss)]
        connection.execute(insert(schema.accounts), rows)
    dataset = make_dataset(service, boss, caps={})
    life = service.ledger.people("clinic")
    grants = np.array(["strict", "standard", "open"])[np.arange(people) % 3]
    life.bring(np.arange(people), grants)
    life.epoch()
    for _ in range(RELEASES):
        spend(service, share=100)
    for number, caller in enumerate(made):
        linked(service, caller, dataset, number * (people // CALLERS))
    wait(service, people, waiting)
    return made


def wait(service: Service, people: int, waiting: int) -> None:
    """Single choices of people who have no account here, each a line of its own as if they had been made one by one."""
    store = service.ledger._store
    with store.write() as connection:
        dataset_id = lock(connection, "clinic")
        key = persons.key_of(connection, store.key, make=False)
        names = np.arange(1, people, max(1, people // waiting))
        hashed = persons.hashes(key, "clinic", names.tolist())
        hashed["place"] = persons.places(connection, dataset_id, hashed)
        for one in np.split(hashed, len(hashed)):
            nano = np.array([200_000_000])
            chosen = choices.Choices(one, np.array([True]), nano, np.array([1]), np.array([2**62]))
            choices.write(connection, dataset_id, chosen, np.array([False]))


def measured(name: str, calls: int, call: Callable[[int], Any]) -> None:
    """Print how long calls take, one after the other."""
    took, worked = [], []
    for number in range(calls):
        begun, busy = time.perf_counter(), time.process_time()
        answer = call(number)
        took.append(time.perf_counter() - begun)
        worked.append(time.process_time() - busy)
        assert answer.status_code == 200, answer.text
    p50, p95, p99 = (1000 * float(q) for q in np.quantile(took, [0.5, 0.95, 0.99]))
    busy = 1000 * float(np.quantile(worked, 0.95))
    print(
        f"{name:24} p50 {p50:6.1f}  p95 {p95:6.1f}  p99 {p99:6.1f} ms; processor p95 {busy:6.1f} ms ({calls} calls)",
        flush=True,
    )


def main() -> None:
    """Build, measure, print."""
    told = argparse.ArgumentParser(description=__doc__)
    told.add_argument("people", nargs="?", type=int, default=1_000_000)
    told.add_argument("--postgres", action="store_true")
    told.add_argument("--waiting", type=int, default=10_000, help="single choices that wait for the next epoch")
    asked = told.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.postgres:
            from support.postgres import running_server

            with running_server() as url:
                run(Path(folder), asked.people, asked.waiting, database=url, ledger=url)
        else:
            run(Path(folder), asked.people, asked.waiting)


def run(folder: Path, people: int, waiting: int, **places: str) -> None:
    """Measure in one folder."""
    settings = Settings.in_folder(
        folder / "state", base_url="http://testserver", secure_cookies=False, limits=Limits(requests=10**6), **places
    )
    service = Service.opened(settings)
    begun = time.perf_counter()
    callers = build(service, people, waiting)
    print(
        f"{people:,} people, {RELEASES} releases, {waiting:,} choices waiting: built in {time.perf_counter() - begun:.0f} s"
    )
    app = create_app(service)

    def caller(request: Request) -> Caller:
        return callers[int(request.headers["x-number"])]

    app.dependency_overrides[current_caller] = caller
    client = TestClient(app)

    def of(number: int) -> dict[str, str]:
        return {"x-number": str(number % CALLERS)}

    tiers = ("strict", "open", "standard")
    client.get("/v1/me", headers=of(0))
    measured("GET /v1/me", 200, lambda i: client.get("/v1/me", headers=of(i)))
    measured("GET receipt, 40 lines", 200, lambda i: client.get("/v1/me/clinic/receipt", headers=of(i)))
    measured("GET receipt as a page", 50, lambda i: client.get("/v1/me/clinic/receipt?format=html", headers=of(i)))
    grant = "/v1/me/clinic/grant"
    measured("PUT grant", 300, lambda i: client.put(grant, json={"tier": tiers[i % 3]}, headers=of(i)))
    gone = {"confirm": "clinic"}
    measured("POST withdraw", 100, lambda i: client.post("/v1/me/clinic/withdraw", json=gone, headers=of(i)))
    measured("GET statement", 50, lambda i: client.get("/v1/me/clinic/statement", headers=of(i)))


if __name__ == "__main__":
    main()
