"""A clinic to try things on: 50,000 made-up patients, their consent tiers, a schema and a plan.

The patients come from a random generator, not from anybody's data, so nothing here needs protection; the releases made
from them are protected all the same.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sfumato.errors import InputError

PATIENTS = 50_000
TIERS = {"strict": (0.01, 0.54), "standard": (0.2, 0.37), "open": (1.0, 0.09)}
WARDS = ("cardiology", "oncology", "orthopaedics", "neurology", "general")
REGIONS = ("north", "east", "south", "west")

SCHEMA = """\
# The public schema: which columns there are and which values they can take. It is never read off the data.

[unit]
person = "patient"
rows_per_person = 1

[columns.age]
type = "numeric"
low = 0
high = 105
integer = true
bins = 21

[columns.stay]
type = "numeric"
low = 0
high = 60
integer = true
bins = 20

[columns.ward]
type = "categorical"
values = ["cardiology", "oncology", "orthopaedics", "neurology", "general"]

[columns.region]
type = "categorical"
values = ["north", "east", "south", "west"]

[columns.sex]
type = "categorical"
values = ["f", "m"]

[columns.readmitted]
type = "categorical"
values = ["no", "yes"]
"""

PLAN = """\
# sfumato preview plan.toml   shows what this costs and how well it will do; it does not open clinic.parquet
# sfumato release plan.toml   charges the ledger, then makes the releases

[dataset]
name = "clinic"
source = "clinic.parquet"
schema = "clinic.toml"

[people]                       # the public roster: who granted which budget
source = "roster.parquet"
person = "patient"
tier = "consent"
tiers = { strict = 0.01, standard = 0.2, open = 1.0 }

[ledger]
location = "clinic.ledger"

[output]
folder = "releases"

[[release]]
name = "over65"
kind = "count"
where = "age >= 65"
share = 0.5                    # half of everyone's own budget

[[release]]
name = "ages"
kind = "histogram"
columns = ["age"]
share = 0.5
"""


def write_clinic(folder: Path, *, patients: int = PATIENTS, seed: int = 20240501) -> Path:
    """Write clinic.parquet, roster.parquet, clinic.toml and plan.toml; what is already there stays as it is."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}") from None
    plan = folder / "plan.toml"
    if plan.exists():
        return plan
    rng = np.random.default_rng(seed)
    age = np.floor(105 * rng.beta(2.6, 2.2, patients)).astype(np.int16)
    ward = rng.choice(len(WARDS), patients, p=[0.24, 0.16, 0.2, 0.12, 0.28])
    stay = np.clip(rng.gamma(1.6, 2.0 + age / 30 + (ward == 1)), 0, 60).astype(np.int16)
    odds = -3.2 + 0.025 * age + 0.05 * stay + 0.5 * (ward == 0)
    readmitted = rng.random(patients) < 1 / (1 + np.exp(-odds))
    number = rng.permutation(patients).astype(np.int32)
    consent = rng.choice(len(TIERS), patients, p=[share for _, share in TIERS.values()])
    table = pa.table(
        {
            "patient": number,
            "age": age,
            "stay": stay,
            "ward": pa.array(np.array(WARDS)[ward].tolist()),
            "region": pa.array(rng.choice(np.array(REGIONS), patients).tolist()),
            "sex": pa.array(rng.choice(np.array(["f", "m"]), patients, p=[0.52, 0.48]).tolist()),
            "readmitted": pa.array(np.where(readmitted, "yes", "no").tolist()),
        }
    )
    roster = pa.table({"patient": number, "consent": pa.array(np.array(list(TIERS))[consent].tolist())})
    pq.write_table(table, folder / "clinic.parquet")
    pq.write_table(roster, folder / "roster.parquet")
    (folder / "clinic.toml").write_text(SCHEMA, encoding="utf-8")
    plan.write_text(PLAN, encoding="utf-8")
    return plan
