"""Rosters and tables for the experiments on personal budgets: made here, or read from a folder of real sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy import NANO, PersonBudgets

Floats = NDArray[np.float64]
PROFILES = ("uniform", "normal clipped", "normal truncated", "three tiers", "lognormal")
SIZES = (10_000, 190_000, 370_000)
# Values per attribute of the census of the paper, marital status as two yes/no columns: 14 dimensions.
CENSUS = (96, 2, 2, 2, 17, 2, 2, 100, 30, 2, 12, 8, 7, 1000)


def draw_budgets(profile: str, n: int, rng: np.random.Generator) -> Floats:
    """One ε per person. The paper's Normal(.1, 1) "on [.01, 1]" is read both ways: clipped and truncated."""
    if profile == "uniform":
        return rng.uniform(0.01, 0.1, n)
    if profile == "normal clipped":
        return np.clip(rng.normal(0.1, 1, n), 0.01, 1)
    if profile == "normal truncated":
        draws = rng.normal(0.1, 1, 8 * n)
        inside = draws[(draws >= 0.01) & (draws <= 1)]
        return inside[:n] if inside.size >= n else np.resize(inside, n)
    if profile == "three tiers":
        return rng.choice([0.01, 0.2, 1.0], n, p=[0.54, 0.37, 0.09])
    if profile == "lognormal":
        return np.clip(rng.lognormal(np.log(0.05), 1, n), 0.001, 5)
    raise InputError(f"unknown budget profile {profile!r}; known: {', '.join(PROFILES)}")


def roster(epsilons: Floats, decimals: int | None = None) -> tuple[PersonBudgets, NDArray[np.int64]]:
    """The roster and each person's group."""
    budgets = PersonBudgets.of(epsilons, decimals=decimals)
    place = np.searchsorted(budgets.levels, np.floor(epsilons * NANO + 1e-6).astype(np.int64), side="right") - 1
    return budgets, np.maximum(place, 0)


def draw_selectivity(rng: np.random.Generator) -> float:
    """Share of people that a random range query over one to three independent uniform attributes selects."""
    sides = rng.integers(1, 4)
    return max(1e-4, float(np.prod(np.abs(rng.uniform(size=sides) - rng.uniform(size=sides)))))


def census(n: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """A synthetic census: 14 columns that depend on a common factor (wealth and age go together with the rest)."""
    factor = rng.beta(2, 3, n)
    columns = []
    for values in CENSUS:
        own = rng.beta(1.5, 2.5, n)
        columns.append(np.minimum((0.5 * factor + 0.5 * own) * values, values - 1).astype(np.int32))
    return np.stack(columns, axis=1)


def range_query(table: NDArray[np.int32], attributes: int, rng: np.random.Generator) -> tuple[NDArray[np.bool_], float]:
    """People inside a random interval of each of some random attributes, and the share of the domain that it covers."""
    chosen = rng.choice(table.shape[1], attributes, replace=False)
    inside, covered = np.ones(table.shape[0], dtype=bool), 1.0
    for j in chosen:
        low, high = np.sort(rng.integers(0, CENSUS[j], 2))
        inside &= (table[:, j] >= low) & (table[:, j] <= high)
        covered *= (high - low + 1) / CENSUS[j]
    return inside, float(covered)


def adult_like(n: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
    """Thirteen features in [-1, 1], the label from a logistic model with the class balance of Adult (a quarter)."""
    X = rng.uniform(-1, 1, (n, 3))
    share = (0.05, 0.05, 0.67, 0.47, 0.33, 0.9, 0.25, 0.11, 0.13, 0.15)
    X = np.hstack([X, np.where(rng.random((n, 10)) < np.array(share), 1.0, -1.0)])
    truth = np.array([1.0, 2.4, 1.2, 1.1, 0.3, 0.2, 0.9, -0.5, 0.1, 0.4, 0.1, 0.0, -0.6])
    score = X @ truth
    chance = 1 / (1 + np.exp(-(score - np.quantile(score, 0.76))))
    return X, (rng.random(n) < chance).astype(np.int64)


def real_adult(folder: Path) -> tuple[Floats, NDArray[np.int64]] | None:
    """The same thirteen features from the real Adult, if the folder holds adult.parquet."""
    path = folder / "adult.parquet"
    if not path.exists():
        return None
    import pandas as pd

    return adult_features(pd.read_parquet(path))


def adult_features(frame: Any) -> tuple[Floats, NDArray[np.int64]]:
    """Numbers scaled from public bounds, yes/no features as ±1."""
    import pandas as pd

    f = pd.DataFrame(frame)

    def yes(condition: object) -> Floats:
        return np.where(np.asarray(condition, dtype=bool), 1.0, -1.0)

    columns = [
        (f["age"].to_numpy() - 17) / 73 * 2 - 1,
        (f["education_num"].to_numpy() - 1) / 15 * 2 - 1,
        np.clip(f["hours_per_week"].to_numpy(), 0, 80) / 80 * 2 - 1,
        yes(f["capital_gain"] > 5000),
        yes(f["capital_loss"] > 0),
        yes(f["sex"] == "Male"),
        yes(f["marital_status"].str.startswith("Married")),
        yes(f["marital_status"] == "Never-married"),
        yes(f["native_country"] == "United-States"),
        yes(f["occupation"].isin(["Exec-managerial", "Prof-specialty"])),
        yes(f["workclass"].str.contains("Self")),
        yes(f["workclass"].str.contains("gov")),
        yes(f["relationship"] == "Own-child"),
    ]
    return np.stack(columns, axis=1), f["income"].str.contains(">50K").to_numpy().astype(np.int64)
