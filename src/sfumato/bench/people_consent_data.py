"""Tables of people whose consent goes with what they are: real ones from a folder, or made-up ones of the same kind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy import PersonBudgets

Integers = NDArray[np.int64]
# (tier, ε, share of the people)
TIERS = (("strict", 0.01, 0.54), ("standard", 0.2, 0.37), ("open", 1.0, 0.09))
FILES = {"Adult": "adult.parquet", "census": "census_income_kdd.parquet"}
# Shares of (over 40, man, counted) for want of the real ones. Counted are incomes above 50,000 in Adult, and who works in
# the census, which has the columns of the American Community Survey.
_MADE_UP = {
    "Adult-like": (45_222, (0.17, 0.015, 0.26, 0.085, 0.125, 0.02, 0.2, 0.125)),
    "census-like": (299_285, (0.15, 0.14, 0.14, 0.16, 0.14, 0.08, 0.08, 0.11)),
}


@dataclass(frozen=True, eq=False)
class TwoKinds:
    """People of two kinds by one column: how many there are of each, and how many of these count."""

    heads: Integers
    positives: Integers


def people_by(data: Path | None) -> dict[str, dict[str, TwoKinds]]:
    """For each table and each column that consent may go with, its two kinds of people."""
    found: dict[str, dict[str, TwoKinds]] = {}
    for name, (n, shares) in _MADE_UP.items():
        path = None if data is None else data / FILES[name.split("-")[0]]
        if path is not None and path.exists():
            found[name.split("-")[0]] = _kinds(*_columns(path))
            continue
        cells = np.floor(np.array(shares) / sum(shares) * n).astype(np.int64)
        bits = np.array([(c >> 2 & 1, c >> 1 & 1, c & 1) for c in range(8)])
        found[name] = _kinds(*(np.repeat(bits[:, j], cells) for j in range(3)))
    return found


def _columns(path: Path) -> tuple[Any, Any, Any]:
    """Over 40, man, and what is counted."""
    import pandas as pd

    frame = pd.read_parquet(path)
    asked = frame["income"] == ">50K" if "adult" in path.name else frame["weeks_worked_in_year"] > 0
    return frame["age"].to_numpy() >= 40, frame["sex"].eq("Male").to_numpy(), asked.to_numpy()


def _kinds(old: Any, man: Any, asked: Any) -> dict[str, TwoKinds]:
    by = {"age": old, "sex": man, "the answer itself": asked}
    counted = np.asarray(asked, dtype=np.int64)
    return {
        name: TwoKinds(np.bincount(kind, minlength=2), np.bincount(kind, weights=counted, minlength=2).astype(np.int64))
        for name, kind in ((name, np.asarray(kind, dtype=np.int64)) for name, kind in by.items())
    }


def dealt_tiers(people: TwoKinds, odds: float) -> tuple[PersonBudgets, Integers, float]:
    """Tiers in which the second kind is `odds` times as likely to be strict: the roster, heads per kind and tier, the gap.

    Shares of the tiers stay as they are: rows and columns are scaled in turn until both fit.
    """
    shares = np.array([share for _, _, share in TIERS])
    table = people.heads[:, None] * shares[None, :]
    table[1, 0] *= odds
    for _ in range(200):
        table *= (people.heads.sum() * shares / table.sum(axis=0))[None, :]
        table *= (people.heads / table.sum(axis=1))[:, None]
    heads = np.floor(table).astype(np.int64)
    heads[:, 1] += people.heads - heads.sum(axis=1)
    budgets = PersonBudgets.from_tiers(
        {name: (epsilon, int(n)) for (name, epsilon, _), n in zip(TIERS, heads.sum(axis=0), strict=True)}
    )
    rate = people.positives / people.heads
    means = (heads * rate[:, None]).sum(axis=0) / heads.sum(axis=0)
    return budgets, heads, float(means[0] - (means[1:] * heads.sum(axis=0)[1:]).sum() / heads[:, 1:].sum())
