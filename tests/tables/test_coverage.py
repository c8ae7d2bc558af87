"""The share of the domain that a condition covers, against counting every combination of values."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.tables import Categorical, Numeric, Schema, coverage
from sfumato.tables.predicates import Both, Either, Not, parse_where

SCHEMA = Schema(
    {
        "age": Numeric(0, 9, bins=3, integer=True),
        "sex": Categorical(["F", "M"]),
        "place": Categorical(["a", "b", "c"]),
    }
)
ATOMS = (
    "age >= 4",
    "age < 7.5",
    "age = 3",
    "age != 9",
    "age < -1",
    "age <= 20",
    "sex = 'F'",
    "place in ('a', 'c')",
    "place != 'b'",
)
conditions = st.recursive(
    st.sampled_from(ATOMS).map(lambda text: parse_where(text, SCHEMA)),
    lambda inner: (
        inner.map(Not)
        | st.lists(inner, max_size=3).map(lambda parts: Both(tuple(parts)))
        | st.lists(inner, max_size=3).map(lambda parts: Either(tuple(parts)))
    ),
    max_leaves=8,
)


def holds(predicate, row):
    if isinstance(predicate, Not):
        return not holds(predicate.part, row)
    if isinstance(predicate, Both | Either):
        return (all if isinstance(predicate, Both) else any)(holds(part, row) for part in predicate.parts)
    return SCHEMA[predicate.column].may_hold(predicate, row[predicate.column])


@given(conditions)
@settings(max_examples=150, deadline=None)
def test_every_combination_counted(predicate):
    rows = [dict(zip(SCHEMA, row, strict=True)) for row in itertools.product(range(10), range(2), range(3))]
    counted = np.mean([holds(predicate, row) for row in rows])
    assert coverage(SCHEMA, predicate) == pytest.approx(counted, abs=1e-12)


def test_lengths_of_intervals():
    schema = Schema({"weight": Numeric(0, 200, bins=10), "dose": Numeric(edges=[0, 1, 10, 1000])})
    assert coverage(schema, "weight between 50 and 80") == pytest.approx(0.15)
    assert coverage(schema, "weight = 50") == 0.0
    assert coverage(schema, "weight != 50") == 1.0
    assert coverage(schema, "dose < 1 or weight >= 100") == pytest.approx(0.001 + 0.999 * 0.5)
    assert coverage(schema, None) == 1.0
    # A predicate of cells, as a program makes it, covers their lengths and not their number.
    from sfumato.tables.predicates import InCells

    assert coverage(schema, InCells("dose", (1, 2), ("1 to 10", "10 to 1000"))) == pytest.approx(0.999)


def test_missing_values_are_anybodys_guess():
    assert coverage(SCHEMA, "age is missing") == 0.5
    assert coverage(SCHEMA, "age is not missing and sex = 'F'") == 0.25
    other = Schema({"job": Categorical(["a", "b"], other=True)})
    assert coverage(other, "job = 'a'") == 0.5
    assert coverage(other, "job = 'other'") == 0.5


def test_a_long_condition_is_answered():
    schema = Schema({f"x{i}": Numeric(0, 1, bins=2) for i in range(60)})
    parts = [f"(x{i} > 0.{i + 10} or x{(i + 1) % 60} < 0.5)" for i in range(60)]
    assert 0 <= coverage(schema, " and ".join(parts)) <= 1
    assert coverage(schema, " and ".join(f"x{i} < 0.5" for i in range(60))) == pytest.approx(2.0**-60)
