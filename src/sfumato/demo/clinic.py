"""The patients of the demo, their consent, a schema and a plan.

Who grants what depends on the person, as in life. Each patient has a *reluctance* that grows with age, with the days they
stayed and in oncology, and chooses `strict`, `standard` or `open` by an ordered logistic draw on it:

    reluctance = 0.015 (age - 57) + 0.05 (stay - 6) + 0.8 [oncology]
    P(strict) = 1 / (1 + e^-(0.06 + reluctance)),      P(strict or standard) = 1 / (1 + e^-(2.32 + reluctance))

Over all patients that makes 54% strict, 37% standard and 9% open. Of the strict 45% are 65 or older, of the others 30%: a
gap of 15 percentage points. Region and sex have nothing to do with consent. The numbers are invented; that older and
sicker people grant less is a plausible direction, not a finding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.demo.everything import write_everything
from sfumato.demo.life import write_living
from sfumato.errors import InputError

Numbers = NDArray[Any]

PATIENTS = 50_000
TIERS = {"strict": (0.01, 0.54), "standard": (0.2, 0.37), "open": (1.0, 0.09)}
WARDS = ("cardiology", "oncology", "orthopaedics", "neurology", "general")
REGIONS = ("north", "east", "south", "west")
_STRICT, _NOT_OPEN = 0.06, 2.32  # where the tiers are cut; they make the shares of TIERS

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

[people]                       # the roster: who granted which budget. docs/consent.md says what each key assumes
source = "roster.parquet"
person = "patient"
tier = "consent"
tiers = { strict = 0.01, standard = 0.2, open = 1.0 }
# independent = true           # only if you know that what people grant has nothing to do with what you count: here
                               # it has, and answers would be off by thousands. Without it nothing is assumed
# roster = "private"           # who chose what is part of their record: the tiers are counted with noise first,
# head_share = 0.05            # at this share of everyone's own budget
# living = true                # people join, change and withdraw: living.toml beside this plan does it

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


def chosen_tier(age: Numbers, stay: Numbers, oncology: Numbers, draw: Numbers) -> Numbers:
    """Which tier each patient chooses: its place in TIERS. `draw` is uniform between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> young, old = np.array([25, 85]), np.array([2, 12])
    >>> chosen_tier(young, old, np.array([False, True]), np.array([0.6, 0.6])).tolist()
    [1, 0]
    """
    reluctance = 0.015 * (age - 57.0) + 0.05 * (stay - 6.0) + 0.8 * oncology
    strict, not_open = (1 / (1 + np.exp(-(cut + reluctance))) for cut in (_STRICT, _NOT_OPEN))
    return (draw >= strict).astype(int) + (draw >= not_open)


def write_clinic(folder: Path, *, patients: int = PATIENTS, seed: int = 20240501) -> Path:
    """Write the clinic, its roster, schema and plan, and the files of `life` and `everything`; what is there stays."""
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
    consent = chosen_tier(age, stay, ward == WARDS.index("oncology"), rng.random(patients))
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
    write_living(folder)
    write_everything(folder)
    plan.write_text(PLAN, encoding="utf-8")
    return plan
