"""What the service carries: charges of many clients, races for the last ε, previews and receipts over HTTP.

sfumato bench service [--json] [--quick] [--part charges|race|previews|persons]

`charges` and `race` are the ledger's, with allowances as the service charges them: on SQLite in a temporary folder, and on
the PostgreSQL server that SFUMATO_BENCH_POSTGRES names. `previews` and `persons` start ``sfumato serve`` as a process on a
configuration of their own and call it as a browser would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato.bench.service_calls import run_persons, run_previews
from sfumato.bench.service_charges import run_charges, run_race

PARTS = ("charges", "race", "previews", "persons")


def _silent(_: str) -> None:
    """No progress."""


def run(quick: bool, part: str | None = None, progress: Callable[[str], None] = _silent) -> dict[str, Any]:
    """Figures and claims of the service, all or one `part`; `quick` has fewer clients, requests and persons."""
    figures: dict[str, Any] = {}
    claims: list[dict[str, Any]] = []
    for name, measure in zip(PARTS, (run_charges, run_race, run_previews, run_persons), strict=True):
        if part in (None, name):
            figures[name], claimed = measure(quick, progress)
            claims += claimed
    return {"figures": figures, "claims": claims}
