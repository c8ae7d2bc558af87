"""A small clinic for the tests of the release layer."""

from __future__ import annotations

from pathlib import Path

from sfumato.demo import write_clinic

PATIENTS = 2000


def make(folder: Path, plan: str | None = None) -> Path:
    path = write_clinic(folder, patients=PATIENTS)
    if plan is not None:
        path.write_text(plan, encoding="utf-8")
    return path


UNIFORM = """
[dataset]
name = "clinic"
source = "clinic.parquet"
schema = "clinic.toml"
rows = 2000

[ledger]
location = "clinic.ledger"
epsilon = 1.0

[[release]]
name = "over65"
kind = "count"
where = "age >= 65"
epsilon = 0.4

[[release]]
name = "wards"
kind = "histogram"
columns = ["ward"]
mechanism = "identity"
epsilon = 0.4
"""
