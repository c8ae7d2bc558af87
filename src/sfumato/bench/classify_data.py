"""Tables for the classification bench: Adult, Bank and Census-Income from a folder, otherwise a census made up here.

The synthetic census has the traps of real ones: columns that repeat each other, a rare but telling column (gains), an
interaction (age with hours), columns without any signal, and labels that no rule predicts fully.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.bench.grids_data import SOURCES
from sfumato.errors import InputError
from sfumato.tables.domains import Categorical, Domain, Numeric
from sfumato.tables.schema import Schema


@dataclass(frozen=True, eq=False)
class Table:
    """A data frame with its public schema and target."""

    name: str
    frame: Any
    schema: Schema
    target: str

    @property
    def features(self) -> Any:
        return self.frame.drop(columns=self.target)

    @property
    def labels(self) -> Any:
        return self.frame[self.target].to_numpy(dtype=object)


def real_table(name: str, folder: Path, *, target: str | None = None) -> Table:
    """Adult, Bank or Census-Income; another categorical column may be the target (several classes), as in the paper."""
    import pandas as pd

    file, make_schema, usual = SOURCES[name]
    path = folder / file
    if not path.exists():
        raise InputError(f"the bench needs {path.name} in the data folder; give it with --data FOLDER")
    schema = make_schema()
    label = name if target is None else f"{name}, {target}"
    return Table(label, pd.read_parquet(path)[list(schema.names)], schema, target or usual)


def some_rows(table: Table, most: int) -> Table:
    """The table, or so many of its rows, always the same ones.

    >>> len(some_rows(census(100), 30).frame)
    30
    """
    if len(table.frame) <= most:
        return table
    return Table(table.name, table.frame.sample(most, random_state=0), table.schema, table.target)


def census_schema(*, classes: int = 2, extra: int = 0) -> Schema:
    """The public domains of the synthetic census; `extra` adds columns without signal."""
    columns: dict[str, Domain] = {
        "age": Numeric(16, 96, bins=16),
        "education": Categorical([f"level {i}" for i in range(8)]),
        "years_of_school": Numeric(0, 16, bins=16),
        "job": Categorical([f"job {i}" for i in range(12)]),
        "married": Categorical(["no", "yes"]),
        "sex": Categorical(["F", "M"]),
        "hours": Numeric(0, 80, bins=16),
        "gains": Numeric(0, 64_000, bins=32),
        "region": Categorical([f"region {i}" for i in range(10)]),
        "weight": Numeric(0, 1, bins=16),
    }
    columns |= {f"extra_{i}": Numeric(0, 1, bins=8) for i in range(extra)}
    columns["income"] = Categorical([f"band {i}" for i in range(classes)])
    return Schema(columns)


def census(rows: int, *, classes: int = 2, extra: int = 0, seed: int = 0) -> Table:
    """A synthetic census.

    >>> table = census(1000)
    >>> sorted(table.frame["income"].unique()), len(table.schema)
    (['band 0', 'band 1'], 11)
    """
    import pandas as pd

    draw = np.random.default_rng([seed, rows, classes, extra])
    age = np.clip(draw.gamma(6, 7, rows) + 16, 16, 95).astype(int)
    level = np.clip(draw.normal(3.5, 1.8, rows), 0, 7).astype(int)
    school = np.clip(2 * level + draw.integers(0, 2, rows), 0, 15)
    job = np.clip(level + draw.integers(0, 5, rows), 0, 11)
    married = draw.random(rows) < 1 / (1 + np.exp(-(age - 32) / 8))
    male = draw.random(rows) < 0.55
    hours = np.clip(draw.normal(38 + 3 * male, 9, rows), 1, 79)
    gains = np.where(draw.random(rows) < 0.05 + 0.02 * level, draw.gamma(2, 6000, rows), 0.0)
    score = (
        0.55 * (level - 3.5)
        + 0.25 * (job - 5) * (job < 10)
        + 1.5 * married
        + 0.03 * np.minimum(age - 40, 15)
        + 0.05 * (hours - 38) * (age > 25)
        + 2.5 * (gains > 7000)
        - 2.4
        + draw.logistic(size=rows) * 0.8
    )
    cuts = np.array([0.0]) if classes == 2 else np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1])
    frame = pd.DataFrame(
        {
            "age": age,
            "education": np.char.add("level ", level.astype(str)).astype(object),
            "years_of_school": school,
            "job": np.char.add("job ", job.astype(str)).astype(object),
            "married": np.where(married, "yes", "no").astype(object),
            "sex": np.where(male, "M", "F").astype(object),
            "hours": hours,
            "gains": gains,
            "region": np.char.add("region ", draw.integers(0, 10, rows).astype(str)).astype(object),
            "weight": draw.random(rows),
            **{f"extra_{i}": draw.random(rows) for i in range(extra)},
            "income": np.char.add("band ", np.searchsorted(cuts, score).astype(str)).astype(object),
        }
    )
    name = "census" if classes == 2 else f"census, {classes} classes"
    return Table(name, frame, census_schema(classes=classes, extra=extra), "income")
