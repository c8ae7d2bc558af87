"""Random public schemas, and random private tables under them with odd values in odd places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import sfumato as sf
from sfumato.privacy import PersonBudgets
from sfumato.tables.schema import PrivacyUnit
from sfumato.testing import Rows

ODD_NUMBERS = (np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, -0.0, 2.0**63)
ODD_TEXTS = (None, "", "nowhere", "A", " a", 7, np.nan, True)
CLASSES = ("no", "yes", "maybe")


@dataclass(frozen=True)
class Asked:
    """A table with its public schema, and the ε that is asked for."""

    schema: sf.Schema
    frame: pd.DataFrame
    epsilon: float
    budgets: Any = None


def owners_of(random: np.random.Generator, rows_per_person: int) -> np.ndarray:
    """Whose each of 1 to about 60 rows is, nobody having more than their share; in no order."""
    people = int(random.choice([1, 2, 3, 8, 20, 40]))
    owners = np.repeat(np.arange(people), random.integers(1, rows_per_person + 1, size=people))
    return random.permutation(owners)


def tables(random: np.random.Generator, most_classes: int = 3, most_rows: int = 3, odd: bool = True) -> Rows[Asked]:
    """Two to four columns and a class of two or three labels; up to three rows per person."""
    rows_per_person = int(random.integers(1, most_rows + 1))
    owners = owners_of(random, rows_per_person)
    columns: dict[str, Any] = {}
    domains: dict[str, Any] = {}
    for name in ("age", "job", "town", "visits")[: int(random.integers(2, 5))]:
        if name in ("age", "visits"):
            low, high = sorted(random.choice([-10, 0, 1, 50, 80], size=2, replace=False).tolist())
            domains[name] = sf.Numeric(low, high, bins=int(random.integers(2, 6)))
            columns[name] = _odd(random, random.uniform(low - 1, high + 1, size=owners.size), ODD_NUMBERS * odd)
        else:
            known = list("abcde")[: int(random.integers(2, 6))]
            domains[name] = sf.Categorical(known)
            columns[name] = _odd(random, random.choice(known, size=owners.size).astype(object), ODD_TEXTS * odd)
    labels = CLASSES[: int(random.integers(2, most_classes + 1))]
    domains["ill"] = sf.Categorical(list(labels))
    columns["ill"] = random.choice(labels, size=owners.size).astype(object)
    unit = PrivacyUnit() if rows_per_person == 1 else PrivacyUnit(person="who", rows_per_person=rows_per_person)
    if rows_per_person > 1:
        columns["who"] = np.array([f"p{i}" for i in owners], dtype=object)
    schema, frame = sf.Schema(domains, unit=unit), pd.DataFrame(columns)
    epsilon = float(random.choice([0.1, 1, 50]))  # with so much of it what follows from the number of records varies
    return Rows(owners, lambda mask: Asked(schema, frame[mask].reset_index(drop=True), epsilon))


def rostered(random: np.random.Generator) -> Rows[Asked]:
    """The same with a budget for everybody: the roster stays, and a person who is left out says nothing in their rows."""
    whole = tables(random)
    everybody = whole.keeping(np.ones(len(whole.owners), dtype=bool))
    levels = np.sort(random.choice([0.05, 0.3, 1.0, 5.0, 50.0], size=int(random.integers(1, 4)), replace=False))
    groups = random.integers(0, levels.size, size=int(np.max(whole.owners)) + 1)[np.asarray(whole.owners)]
    _, present = np.unique(groups, return_inverse=True)  # the groups that anybody is in

    def keeping(mask: np.ndarray) -> Asked:
        frame = everybody.frame.assign(ill=everybody.frame["ill"].where(mask, "blank"))
        return Asked(everybody.schema, frame, everybody.epsilon, levels[groups])

    return Rows(whole.owners, keeping, present)


def two_classes(random: np.random.Generator) -> Rows[Asked]:
    """The same with two labels, for models that know no more."""
    return tables(random, most_classes=2)


def plain(random: np.random.Generator) -> Rows[Asked]:
    """Without odd values, so that every row is a record: records are dealt by their places."""
    return tables(random, odd=False)


def one_row_each(random: np.random.Generator) -> Rows[Asked]:
    """Two labels and one row per person, for models that ask for that."""
    return tables(random, most_classes=2, most_rows=1)


def _odd(random: np.random.Generator, values: Any, odd: tuple[Any, ...]) -> Any:
    out = np.asarray(values, dtype=object)
    if not odd:
        return values
    for i in np.flatnonzero(random.random(out.size) < random.choice([0, 0.05, 0.5])):
        out[i] = odd[int(random.integers(len(odd)))]
    return pd.Series(list(out), dtype=np.float64 if isinstance(odd[0], float) else object)


@dataclass(frozen=True)
class Counted:
    """Counts per bin, and how many of them one person may own."""

    counts: np.ndarray
    rows_per_person: int


def counted(random: np.random.Generator, sizes: tuple[int, ...] = (2, 3, 7, 16, 40)) -> Rows[Counted]:
    """A histogram of 2 to 40 bins, lopsided or even."""
    rows_per_person = int(random.integers(1, 4))
    owners = owners_of(random, rows_per_person)
    bins = int(random.choice(sizes))
    where = np.minimum((random.random(owners.size) ** random.choice([1, 4]) * bins).astype(int), bins - 1)
    return Rows(owners, lambda mask: Counted(np.bincount(where[mask], minlength=bins), rows_per_person))


def many_bins(random: np.random.Generator) -> Rows[Counted]:
    """So many bins that the default asks which mechanism to take."""
    return counted(random, sizes=(512, 700))


@dataclass(frozen=True)
class Granted:
    """Records of people with budgets of their own: the public roster, and each record's group and value."""

    budgets: PersonBudgets
    groups: np.ndarray
    values: np.ndarray
    rows_per_person: int


def granted(random: np.random.Generator, most: int = 3) -> Rows[Granted]:
    """One to four tiers; the roster counts everybody, whoever is in the table."""
    rows_per_person = int(random.integers(1, most + 1))
    owners = owners_of(random, rows_per_person)
    tiers = int(random.integers(1, 5))
    tier = random.integers(0, tiers, size=int(owners.max()) + 1)
    levels = np.sort(random.choice([0.05, 0.1, 0.3, 0.8, 1.5, 3.0], size=tiers, replace=False))
    heads = np.bincount(tier, minlength=tiers)
    budgets = PersonBudgets.from_tiers(
        {f"t{i}": (float(e), max(1, int(n))) for i, (e, n) in enumerate(zip(levels, heads, strict=True))}
    )
    groups, values = tier[owners], random.integers(0, 5, size=owners.size)
    return Rows(owners, lambda mask: Granted(budgets, groups[mask], values[mask], rows_per_person), groups)


def granted_once(random: np.random.Generator) -> Rows[Granted]:
    """One row per person, for mechanisms that ask for that."""
    return granted(random, most=1)
