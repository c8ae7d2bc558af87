"""Rows per point of a lattice, the same on every engine."""

from __future__ import annotations

import collections
import math

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import SchemaError
from sfumato.privacy import PersonBudgets
from sfumato.tables import Categorical, Numeric, Roster, Schema, open
from sfumato.testing import reveal

SCHEMA = Schema(
    {"age": Numeric(0, 9, bins=2, integer=True), "weight": Numeric(0, 1, bins=2), "sex": Categorical(["F", "M"])}
)
TABLE = pa.table(
    {
        "age": pa.array([3, 3, None, 12, -5, 7, 7, 7], pa.int64()),
        "weight": pa.array([0.0, 0.26, math.nan, math.inf, -1.0, None, 0.74, 1.0], pa.float64()),
        "sex": pa.array(["F", "M", "F", None, "M", "F", "F", "M"], pa.string()),
        "epsilon": pa.array([0.1, 1.0, 1.0, 0.1, 1.0, 0.05, 2.0, 1.0], pa.float64()),
    }
)
GROUPS = PersonBudgets.of([0.1, 1.0])


def seen(found, *, by=False, groups=False):
    """Rows by point, and by cell and person group."""
    parts = [found.points, *([found.cells[:, 0]] if by else []), *([found.groups] if groups else [])]
    rows = collections.Counter()
    for key, count in zip(zip(*(p.tolist() for p in parts), strict=True), found.counts.tolist(), strict=True):
        rows[key] += count
    return dict(rows)


def opened(**given):
    return open(**given, schema=SCHEMA, budgets=Roster.column("epsilon", people=GROUPS))


def test_points_on_every_engine(put):
    """Whole numbers are counted before they are put on the lattice, others after: one query of each."""
    clinic = opened(**put(TABLE))
    found = reveal(clinic.points("age", by=["sex"], budgets=GROUPS, where="age >= 1"))
    assert seen(found, by=True, groups=True) == {(3, 0, 0): 1, (3, 1, 1): 1, (7, 0, 1): 1, (7, 1, 1): 1}
    assert seen(reveal(clinic.points("weight", steps=4))) == {(0,): 2, (1,): 1, (3,): 1, (4,): 2}


def test_points_by_what_is_asked():
    clinic = opened(source=TABLE)
    assert seen(reveal(clinic.points("age"))) == {(0,): 1, (3,): 2, (7,): 3, (9,): 1}
    assert seen(reveal(clinic.points("age", steps=3))) == {(0,): 1, (1,): 2, (2,): 3, (3,): 1}
    assert seen(reveal(clinic.points("age", by=["sex"])), by=True) == {(0, 1): 1, (3, 0): 1, (3, 1): 1, (7, 0): 2, (7, 1): 1}
    budgets = {(0, 1): 1, (3, 0): 1, (3, 1): 1, (7, 1): 2, (9, 0): 1}  # who granted less than a group grants is in none
    assert seen(reveal(clinic.points("age", budgets=GROUPS)), groups=True) == budgets


def test_a_text_has_no_points():
    with pytest.raises(SchemaError, match="numeric"):
        open(TABLE, schema=SCHEMA).points("sex", steps=3)


def test_nothing_is_read_of_an_empty_table():
    found = reveal(open(TABLE.slice(0, 0), schema=SCHEMA).points("age"))
    assert found.counts.sum() == 0
    assert found.cells.shape == (0, 0)
    assert found.points.dtype == np.int64
