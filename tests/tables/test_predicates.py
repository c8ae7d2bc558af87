"""The where language: what it accepts, what it means, and where its errors point."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import SchemaError
from sfumato.tables import Categorical, Numeric, Schema, is_empty, open, parse_where
from sfumato.tables.predicates import Both, Compare, Either, InCells, Missing, Not
from sfumato.testing import reveal
from support import plain_reference as plain

SCHEMA = Schema(
    {
        "a": Numeric(-2, 5, bins=3, integer=True),
        "b": Numeric(0.5, 3.5, bins=33),
        "c": Numeric(edges=[-1, 0, 2.5], outside="other"),
        "i": Numeric(0.5, 4.5, bins=2, outside="other", other=True),
        "s": Categorical(["x", "y", "and"], other="rest"),
        "k": Categorical([4, -2, 7, 1, 3, 5]),
        "two words": Categorical([True, False]),
    }
)
_floats = st.one_of(
    st.sampled_from([None, math.nan, math.inf, -math.inf, -0.0, 0.5, 1.0, 2.5, 3.5, 4.5, 5.0, 5.5, -2.0, -1.0, 1e300]),
    st.floats(-6, 6),
)
_ints = st.one_of(st.none(), st.integers(-8, 8), st.sampled_from([2**63 - 1, -(2**63)]))
_rows = st.fixed_dictionaries(
    {
        "a": _floats,
        "b": _floats,
        "c": _floats,
        "i": _ints,
        "s": st.sampled_from([None, "x", "y", "and", "", "X", "rest"]),
        "k": _ints,
        "two words": st.sampled_from([None, True, False]),
    }
)
_ops = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
_limits = st.one_of(st.integers(-7, 7), st.sampled_from([0.5, 2.5, 3.5, 4.5, -1.5, 1e300, -1e300]), st.floats(-6, 6))
_atoms = st.one_of(
    st.builds(Compare, st.sampled_from(["a", "b", "c", "i"]), _ops, _limits),
    st.builds(Missing, st.sampled_from(SCHEMA.names)),
    st.sets(st.integers(0, 3)).map(lambda c: InCells("s", tuple(sorted(c)), ())),
    st.sets(st.integers(0, 5)).map(lambda c: InCells("k", tuple(sorted(c)), ())),
    st.sets(st.integers(0, 1)).map(lambda c: InCells("two words", tuple(sorted(c)), ())),
)
_predicates = st.recursive(
    _atoms,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=1, max_size=3).map(lambda p: Both(tuple(p))),
        st.lists(inner, min_size=1, max_size=3).map(lambda p: Either(tuple(p))),
    ),
    max_leaves=6,
)
TYPES = pa.schema(
    {
        **dict.fromkeys("abc", pa.float64()),
        "i": pa.int64(),
        "s": pa.string(),
        "k": pa.int64(),
        "two words": pa.bool_(),
    }
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(_rows, max_size=25), st.lists(_predicates, min_size=1, max_size=3))
def test_duckdb_does_what_the_reference_says(rows, predicates):
    data = open(pa.Table.from_pylist(rows, TYPES), schema=SCHEMA)
    for predicate in predicates:
        assert reveal(data.count(predicate)) == sum(plain.holds(predicate, r, SCHEMA) for r in rows), str(predicate)
    wanted = [["a", "b"], ["c", "i"], ["s", "k", "two words"]]
    for columns, found in zip(wanted, reveal(data.marginals(wanted, where=predicates[0])), strict=True):
        assert np.array_equal(found, plain.counts(rows, columns, SCHEMA, predicates[0]))


@settings(max_examples=110, deadline=None)
@given(st.lists(_rows, min_size=1, max_size=20), _predicates)
def test_what_is_said_to_be_empty_is_empty(rows, predicate):
    if is_empty(predicate, SCHEMA):
        assert not any(plain.holds(predicate, row, SCHEMA) for row in rows)


@settings(max_examples=110, deadline=None)
@given(
    st.recursive(
        st.builds(Compare, st.just("n"), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), st.integers(-2, 7)),
        lambda inner: st.one_of(
            inner.map(Not),
            st.lists(inner, min_size=1, max_size=3).map(lambda p: Both(tuple(p))),
            st.lists(inner, min_size=1, max_size=3).map(lambda p: Either(tuple(p))),
        ),
        max_leaves=8,
    )
)
def test_over_one_column_every_empty_condition_is_found(predicate):
    schema = Schema({"n": Numeric(0, 5, bins=2, integer=True)})
    possible = any(plain.holds(predicate, {"n": n}, schema) for n in [None, *range(6)])
    assert is_empty(predicate, schema) == (not possible)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a>=1", Compare("a", ">=", 1)),
        ("a = -1.5e0", Compare("a", "=", -1.5)),
        ("a <> 2 AND b == .5", Both((Compare("a", "!=", 2), Compare("b", "=", 0.5)))),
        ("a between 1 and 2 and b < 3", Both((Both((Compare("a", ">=", 1), Compare("a", "<=", 2))), Compare("b", "<", 3)))),
        ("not a < 1 or b > 2", Either((Not(Compare("a", "<", 1)), Compare("b", ">", 2)))),
        ("s in ('x', 'rest')", InCells("s", (0, 3), ("'x'", "'rest'"))),
        ('s = "and"', InCells("s", (2,), ("'and'",))),
        ("s not in ('x')", Not(InCells("s", (0,), ("'x'",)))),
        ("k >= 4", InCells("k", (0, 2, 5), ("4", "7", "5"))),
        ('"two words" = TRUE', InCells("two words", (0,), ("true",))),
        ("`two words` is not missing", Not(Missing("two words"))),
    ],
)
def test_parsing(text, meaning):
    assert parse_where(text, SCHEMA) == meaning
    assert parse_where(str(meaning), SCHEMA) == meaning or "between" in text or "not" in str(meaning)


def test_mappings_and_nothing():
    assert parse_where({"s": ["x", "y"], "a": 3}, SCHEMA) == Both(
        (InCells("s", (0, 1), ("'x'", "'y'")), Either((Compare("a", "=", 3),)))
    )
    assert parse_where(None, SCHEMA) == Both(())


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("aa = 1", "no column 'aa' in the schema; did you mean 'a'", 0),
        ("a = 1 and q > 2", "no column 'q'.*Known: a, b, c", 10),
        ("A = 1", "no column 'A'", 0),
        ("a = x", "text goes in quotes: 'x'", 4),
        ("a = 'x'", "compare it with a number", 0),
        ("s = 'z'", "'z' is not a value of column 's'", 0),
        ("s = 1", "1 is not a value", 0),
        ("k = '4'", "write it as 4", 0),
        ("s < 'x'", "have no order", 0),
        ("a", "expected an operator", 1),
        ("a =", "expected a number", 3),
        ("(a = 1", "close the parenthesis", 6),
        ("a = 1 b = 2", "expected 'and', 'or' or the end", 6),
        ("a = 1; drop table t", "cannot read this", 5),
        ("a + 1 = 2", "cannot read this", 2),
        ("a / 0 = 1", "cannot read this", 2),
        ("1 = 1", "expected a column name", 0),
        ("s = 'x", "never closed", 4),
        ("a is null", "expected 'missing'", 5),
        ("", "empty", 0),
        ("a = 1 or\nb = nope", "text goes in quotes", 4),
        ("a between 1", "expected 'and'", 11),
        ("a in ()", "expected a number", 6),
        ("a = 0x10", "", 4),
        ("select(a) = 1", "no column 'select'", 0),
    ],
)
def test_errors_point_to_the_place(text, message, column):
    with pytest.raises(SchemaError, match=message) as caught:
        parse_where(text, SCHEMA)
    assert str(caught.value).splitlines()[-1] == " " * (4 + column) + "^"


@pytest.mark.parametrize("where", [3, ["a = 1"], {"a": "x"}, {"zz": 1}, {"s": "zz"}, "(" * 5000 + "a = 1"])
def test_other_refusals(where):
    with pytest.raises(SchemaError):
        parse_where(where, SCHEMA)
