"""A second table of the demo, with a column of every type, and a plan with a release of every kind.

One visit per patient. Nothing here is anybody's data; `write_everything` puts the files beside the clinic.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np

VISITS = 4_000
CODES = 5_000
WARD_NAMES = ("cardiology", "oncology", "orthopaedics", "neurology", "general")

SCHEMA = """\
# One column of every type. Nothing of it is read off the data.

[table]
title = "Visits to the clinic"
description = "One made-up visit for each of the patients"

[unit]
person = "patient"
rows_per_person = 1

[columns.age]
title = "Age"
unit = "years"
type = "numeric"
low = 0
high = 105
integer = true
bins = 21

[columns.weight]
title = "Weight"
unit = "kg"
type = "numeric"
low = 30
high = 150
bins = 12
missing = true                 # who was not weighed is a cell of its own

[columns.bill]
title = "Bill"
unit = "€"
type = "decimal"
low = 0
high = 5000
places = 2
bins = 10

[columns.admitted]
title = "Day of admission"
type = "date"
first = "2024-01-01"
last = "2024-12-31"
by = "month"

[columns.arrived]
title = "Time of arrival"
type = "timestamp"
first = "2024-01-01"
last = "2024-12-31"
zone = "Europe/Vienna"
by = "hour of day"

[columns.insured]
title = "Insured"
type = "boolean"
true = "insured"
false = "not insured"

[columns.housing]
title = "Housing"
type = "categorical"
values = [0, 1, 2]
labels = { 0 = "owned", 1 = "rented", 2 = "shared" }

[columns.diagnosis]
title = "Diagnosis"
type = "categorical"
values_file = "codes.csv"      # 5,000 codes with their names
other = "not in the list"
missing = "not coded"

[columns.ward]
title = "Ward"
type = "categorical"
values = ["cardiology", "oncology", "orthopaedics", "neurology", "general"]

[columns.readmitted]
title = "Came back within a month"
type = "categorical"
values = ["no", "yes"]
"""

PLAN = """\
# sfumato check every.toml      tells all mistakes at once
# sfumato preview every.toml    what each release costs and how well it will do
# sfumato release every.toml    a folder for each; then: sfumato verify every/ages

[dataset]
name = "visits"
source = "visits.parquet"
schema = "visits.toml"
rows = 4000

[ledger]
location = "visits.ledger"
epsilon = 30

[ledger.attributes]             # what all releases together may tell of one column
diagnosis = 12

[ledger.recipients]
ministry = 25
insurer = 25

[output]
folder = "every"

[[release]]
name = "in spring"
kind = "count"
where = "admitted >= '2024-03-01' and admitted < '2024-06-01'"
epsilon = 1

[[release]]
name = "bills"
kind = "sum"
column = "bill"
epsilon = 1

[[release]]
name = "mean bill by ward"
kind = "mean"
column = "bill"
by = ["ward", "insured"]
epsilon = 1

[[release]]
name = "spread of age"
kind = "variance"
column = "age"
epsilon = 1

[[release]]
name = "insured over 65"
kind = "proportion"
where = "insured = true"
of = "age >= 65"
epsilon = 1

[[release]]
name = "ages"
kind = "quantile"
column = "age"
quantiles = [0.1, 0.25, 0.5, 0.75, 0.9]
epsilon = 1

[[release]]
name = "median bill by ward"
kind = "median"
column = "bill"
by = ["ward"]
epsilon = 1

[[release]]
name = "first arrivals"
kind = "min"
column = "arrived"
epsilon = 1

[[release]]
name = "largest bills"
kind = "max"
column = "bill"
risk = 0.01
epsilon = 1

[[release]]
name = "admissions by month"
kind = "histogram"
columns = ["admitted"]
epsilon = 1

[[release]]
name = "arrivals by hour and ward"
kind = "histogram"
columns = ["arrived", "ward"]
epsilon = 1

[[release]]
name = "housing, ward and weight"
kind = "table"
columns = ["housing", "ward", "weight"]
epsilon = 1

[[release]]
name = "commonest diagnoses"
kind = "top"
column = "diagnosis"
k = 5
epsilon = 2
recipient = "ministry"

[[release]]
name = "who comes back"
kind = "model"
target = "readmitted"
attributes = ["age", "ward", "weight", "insured"]
epsilon = 2

[[release]]
name = "made-up visits"
kind = "synthesize"
target = "readmitted"
attributes = ["age", "ward", "housing", "insured"]
epsilon = 2

[[release]]
name = "what wards use"
kind = "profile"
column = "ward"
catalogue = "wards.csv"
budgets = { surgery = 0.2, imaging = 0.5, pharmacy = 0.5 }
epsilon = 1
recipient = "insurer"
"""

WARDS = """\
item,surgery,imaging,pharmacy
cardiology,1,1,1
oncology,1,1,1
orthopaedics,1,1,0
neurology,0,1,1
general,0,0,1
"""


def _codes() -> list[str]:
    """5,000 codes in the manner of a classification of diseases: A00.0 to Z19.9 or so."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return [f"{letters[i // 200]}{i // 10 % 20:02d}.{i % 10}" for i in range(CODES)]


def write_everything(folder: Path, *, visits: int = VISITS, seed: int = 20240502) -> Path:
    """Write visits.parquet, its schema with the list of codes, wards.csv and every.toml; what is there stays as it is."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    plan = folder / "every.toml"
    if plan.exists():
        return plan
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    codes = _codes()
    age = np.floor(105 * rng.beta(2.6, 2.2, visits)).astype(np.int16)
    ward = rng.choice(5, visits, p=[0.24, 0.16, 0.2, 0.12, 0.28])
    weight = np.where(rng.random(visits) < 0.05, np.nan, np.clip(rng.normal(76, 14, visits), 30, 150))
    bill = np.clip(np.exp(rng.normal(6.2 + 0.3 * (ward == 1), 0.9, visits)), 0, 5000)
    day = rng.integers(0, 366, visits)
    minute = np.clip(rng.normal(11 * 60, 200, visits), 0, 24 * 60 - 1).astype(int)
    new_year = datetime.datetime(2024, 1, 1)
    common = rng.integers(0, CODES, 6)  # a few diagnoses are frequent, the rest are everybody's own
    which = np.where(rng.random(visits) < 0.6, rng.choice(common, visits), rng.integers(0, CODES, visits))
    written = np.array([*codes, "U99.9"])[np.where(rng.random(visits) < 0.02, CODES, which)].tolist()
    uncoded = rng.random(visits) < 0.03
    back = rng.random(visits) < 1 / (1 + np.exp(3.2 - 0.025 * age - 0.5 * (ward == 0)))
    moments = [new_year + datetime.timedelta(days=int(d), minutes=int(m)) for d, m in zip(day, minute, strict=True)]
    table = pa.table(
        {
            "patient": rng.permutation(visits).astype(np.int32),
            "age": age,
            "weight": pa.array(weight, from_pandas=True),
            "bill": pa.array([Decimal(f"{b:.2f}") for b in bill], type=pa.decimal128(8, 2)),
            "admitted": pa.array([moment.date() for moment in moments]),
            "arrived": pa.array(moments, type=pa.timestamp("us")),
            "insured": pa.array((rng.random(visits) < 0.85).tolist()),
            "housing": rng.choice(3, visits, p=[0.4, 0.5, 0.1]).astype(np.int8),
            "diagnosis": pa.array([None if lost else code for lost, code in zip(uncoded, written, strict=True)]),
            "ward": pa.array(np.array(WARD_NAMES)[ward].tolist()),
            "readmitted": pa.array(np.where(back, "yes", "no").tolist()),
        }
    )
    pq.write_table(table, folder / "visits.parquet")
    lines = "".join(f"{code},diagnosis {number}\n" for number, code in enumerate(codes))
    (folder / "codes.csv").write_text("code,label\n" + lines, encoding="utf-8")
    (folder / "wards.csv").write_text(WARDS, encoding="utf-8")
    (folder / "visits.toml").write_text(SCHEMA, encoding="utf-8")
    plan.write_text(PLAN, encoding="utf-8")
    return plan
