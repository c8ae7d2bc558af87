"""Previews, receipts and choices over HTTP, at a service that runs as a process of its own.

The dataset has a living roster of five tiers. Its people are brought through the interface; the charges on their receipts
are made in the ledger itself, because what they would be released from does not matter here. A person who is measured has
joined with an invitation, and every call goes through everything that stands before a route.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sfumato.bench.service_server import Person, Served, serving
from sfumato.ledger import Ledger
from sfumato.privacy.charge import Charge

TIERS = {"strict": "0.1", "careful": "0.5", "standard": "1", "open": "2", "generous": "4"}
SCHEMA = """
[unit]
person = "patient"
rows_per_person = 1

[columns.age]
type = "numeric"
low = 0
high = 100
integer = true
bins = 10
"""
PREVIEW, CALL = 200.0, 300.0  # milliseconds of the 95th percentile
PEOPLE, BATCH, CHARGES, MEASURED = 1_000_000, 10_000, 12, 20
_DATASET = "nation"


def run_previews(quick: bool, progress: Callable[[str], None]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Figures and claims; `quick` asks 20 times instead of 100."""
    progress("previews of a plan for 5 tiers over HTTP")
    with serving() as served:
        custodian = _registered(served, 2_000, progress)
        _release(age=0, custodian=custodian)  # the first one starts the processes that preview
        seconds = [_release(age, custodian) for age in range(1, 21 if quick else 101)]
    figures = _figures(seconds)
    slow = figures["milliseconds_p95"]
    claim = {"name": "a preview for 5 tiers, ms, 95th percentile (under)", "figure": slow, "limit": PREVIEW}
    return figures, [{**claim, "holds": slow < PREVIEW}]


def _release(age: int, custodian: Person) -> float:
    asked = {"name": "over", "kind": "count", "where": f"age >= {age % 100}", "share": f"0.{1 + age % 9}"}
    return custodian.timed("POST", "/v1/previews", {"dataset": _DATASET, "releases": [asked]})


def run_persons(quick: bool, progress: Callable[[str], None]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Figures and claims; `quick` has 20,000 people instead of a million."""
    people = 20_000 if quick else PEOPLE
    with serving() as served:
        custodian = _registered(served, people, progress)
        progress(f"{CHARGES} charges on {people:,} people")
        _charged(served)
        names = [str(number * (people // MEASURED)) for number in range(MEASURED)]
        invited = custodian.call("POST", f"/v1/datasets/{_DATASET}/invitations", {"people": names, "days": 1})
        somebody = [served.joined(one["code"], f"person {number}") for number, one in enumerate(invited["items"])]
        progress("receipts and choices over HTTP")
        for person in somebody[:2]:
            person.call("GET", f"/v1/me/{_DATASET}/receipt")
        calls = {
            "receipt": [person.timed("GET", f"/v1/me/{_DATASET}/receipt") for person in somebody for _ in range(5)],
            "overview": [person.timed("GET", f"/v1/me/{_DATASET}") for person in somebody for _ in range(5)],
            "choice": [
                person.timed("PUT", f"/v1/me/{_DATASET}/grant", {"tier": tier})
                for tier in ("careful", "open", "standard")
                for person in somebody
            ],
        }
    figures: dict[str, Any] = {"people": people} | {what: _figures(seconds) for what, seconds in calls.items()}
    claims = []
    for what in ("receipt", "choice"):
        slow = figures[what]["milliseconds_p95"]
        name = f"a {what} among {people:,} people over HTTP, ms, 95th percentile (under)"
        claims.append({"name": name, "figure": slow, "limit": CALL, "holds": slow < CALL})
    return figures, claims


def _registered(served: Served, people: int, progress: Callable[[str], None]) -> Person:
    """The custodian of a dataset with so many people, whose first epoch is closed."""
    custodian = served.account("custodian", "custodian")
    roster = {"living": True, "person": "patient", "tiers": TIERS}
    about = {"name": _DATASET, "source": "nation", "schema": SCHEMA, "people": roster, "caps": {"rows": people}}
    custodian.call("POST", "/v1/datasets", about)
    tiers, begun = list(TIERS), time.perf_counter()
    for first in range(0, people, BATCH):
        numbers = range(first, min(first + BATCH, people))
        listed = [{"person": str(number), "grant": tiers[number % len(tiers)]} for number in numbers]
        custodian.call("POST", f"/v1/datasets/{_DATASET}/people", {"people": listed})
    custodian.call("POST", f"/v1/datasets/{_DATASET}/epochs", {})
    progress(f"{people:,} people brought in {time.perf_counter() - begun:.0f} s")
    return custodian


def _charged(served: Served) -> None:
    """Charges on everybody, which receipts then show."""
    state = served.folder / "state"
    ledger = Ledger.open(state / "ledger.db", key=state / "people.key", create=False)
    for number in range(CHARGES):
        standing = ledger.people(_DATASET).standing()
        charge = Charge.of_people(standing.left // 100)
        made = ledger.reserve(_DATASET, charge, request={"kind": "count", "turn": number}, standing=standing)
        ledger.commit(made.id, {"digest": "0" * 64})


def _figures(seconds: Sequence[float]) -> dict[str, Any]:
    taken = 1e3 * np.array(seconds)
    return {
        "calls": len(seconds),
        "milliseconds": float(np.median(taken)),
        "milliseconds_p95": float(np.quantile(taken, 0.95)),
        "milliseconds_worst": float(taken.max()),
    }
