"""Rows, sums and squares per person group and cell: one query, the same on every engine, and the plain reference."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import InputError
from sfumato.privacy import PersonBudgets
from sfumato.tables import Categorical, Numeric, PersonalTable, PrivacyUnit, Schema, open
from sfumato.tables.engines import Engine
from sfumato.testing import reveal

SCHEMA = Schema({"x": Numeric(0, 4, bins=5, integer=True), "y": Numeric(-1, 1, bins=4), "s": Categorical(["a", "b"])})
DRAW = np.random.default_rng(7)
N = 80
X = [None if i % 11 == 0 else int(v) for i, v in enumerate(DRAW.integers(-2, 8, N))]
Y = [None if i % 13 == 0 else float("nan") if i % 17 == 0 else float(v) for i, v in enumerate(DRAW.uniform(-1.5, 1.5, N))]
S = [str(v) for v in DRAW.choice(["a", "b", "c"], N)]
E = DRAW.choice([0.05, 0.1, 1.0], N)
TABLE = pa.table({"x": pa.array(X, pa.int64()), "y": pa.array(Y, pa.float64()), "s": S, "epsilon": E})
GROUPS = PersonBudgets(np.array([10**8, 5 * 10**8]), np.array([40, 20]))


def reference(value, *, cell=True, groups=True):
    """What each row adds, by group and cell: a row counts if it has a cell, a group and a value."""
    found = {}
    for x, y, s, e in zip(X, Y, S, E, strict=True):
        group = 0 if not groups else -1 if e < 0.1 else 0 if e < 0.5 else 1
        v = value(x, y)
        if (cell and s == "c") or group < 0 or v is None:
            continue
        place = (group, "ab".index(s)) if cell else (group,)
        found[place] = found.get(place, np.zeros(3, dtype=int)) + np.array([1, v, v * v])
    return {k: v.tolist() for k, v in found.items()}


def as_mapping(moments):
    groups, cells, totals = moments
    lines = zip(groups.tolist(), cells.tolist(), totals.tolist(), strict=True)
    return {(g, *c): t for g, c, t in lines if any(t)}


def test_powers_of_a_measure_per_group_and_cell(put):
    opened = open(**put(TABLE), schema=SCHEMA, budgets="epsilon")
    table = PersonalTable(opened, GROUPS)
    clamped = lambda x, y: None if x is None else min(max(x, 0), 4)  # noqa: E731
    assert as_mapping(reveal(table.moments(["s"], measure="x", powers=2))) == reference(clamped)
    lattice = lambda x, y: None if y is None or y != y else int(np.floor((min(max(y, -1), 1) + 1) * 50 + 0.5))  # noqa: E731
    assert as_mapping(reveal(table.moments(["s"], measure="y", steps=100, powers=2))) == reference(lattice)
    holds = lambda x, y: int(x is not None and x >= 3)  # noqa: E731
    kept = {k: v[:2] for k, v in reference(holds).items()}
    assert as_mapping(reveal(table.moments(["s"], holds="x >= 3", powers=1))) == kept
    everybody = {k: v[:1] for k, v in reference(lambda x, y: 1, groups=False).items()}
    assert as_mapping(reveal(PersonalTable(opened).moments(["s"]))) == everybody
    assert as_mapping(reveal(PersonalTable(opened).moments(measure="x", powers=2))) == reference(
        clamped, cell=False, groups=False
    )


def test_one_query_sees_one_choice_of_a_persons_rows(monkeypatch):
    """Capped at one of each person's two rows, hits and misses must be those of the same row."""
    frame = pa.table({"who": np.repeat(np.arange(200), 2), "x": np.tile([0, 4], 200)})
    schema = Schema({"x": Numeric(0, 4, bins=5, integer=True)}, unit=PrivacyUnit("who", 1))
    reads = []
    fetch = Engine.fetch
    monkeypatch.setattr(Engine, "fetch", lambda self, expr: reads.append(1) or fetch(self, expr))
    found = reveal(PersonalTable(open(frame, schema=schema)).moments(holds="x >= 2", powers=1))
    assert len(reads) == 1
    assert found[2][0, 0] == 200
    assert 50 < found[2][0, 1] < 150
    squares = reveal(PersonalTable(open(frame, schema=schema)).moments(measure="x", powers=2))
    assert squares[2][0, 2] == 4 * squares[2][0, 1]


def test_what_does_not_fit_is_refused():
    table = PersonalTable(open(TABLE, schema=SCHEMA, budgets="epsilon"))
    with pytest.raises(InputError, match="do not fit 64 bits"):
        table.moments(measure="y", steps=2**20, powers=2)
    with pytest.raises(InputError, match="a measure, or a condition"):
        table.moments(powers=1)
    with pytest.raises(InputError, match="a measure, or a condition"):
        table.moments(measure="x", holds="x > 1", powers=1)
