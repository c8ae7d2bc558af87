"""Text, categories and plain objects are coded alike; no value raises, warns, or changes the code of another."""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.records.coding import cells_of
from sfumato.tables import Numeric
from sfumato.tables.values import category_codes


@given(st.lists(st.sampled_from(["a", "b", "c", "d", None]), max_size=12), st.permutations(["a", "b", "e"]))
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("dtype", ["object", "string", "str", "category"])
def test_the_type_of_a_column_does_not_change_its_codes(dtype, column, values):
    expected = [values.index(v) if v in values else -1 for v in column]
    codes = category_codes(pd.Series(column, dtype=dtype), values)
    assert codes.dtype == np.int64
    assert codes.tolist() == expected
    assert category_codes(np.array(column, dtype=object), values).tolist() == expected


def test_numbers_in_categories_keep_their_codes():
    assert category_codes(pd.Series([3, 1, 3, 7], dtype="category"), [1, 3]).tolist() == [1, 0, 1, -1]


@pytest.mark.parametrize("odd", [["a"], ("a", ["b"]), {}, 1j, float("nan")], ids=repr)
def test_a_value_that_is_no_category_is_unknown_and_nothing_else(odd):
    column = np.empty(3, dtype=object)
    column[:] = ["b", odd, "a"]
    assert category_codes(column, ["a", "b"]).tolist() == [1, -1, 0]


@pytest.mark.parametrize(
    ("odd", "cell"),
    [
        (10**400, 3),
        (-(10**400), 0),
        (2j, -1),
        (np.complex64(2), 2),
        (Decimal("sNaN"), -1),
        (Fraction(10**400), 3),
        ([2], -1),
    ],
    ids=lambda v: str(v)[:9],
)
@pytest.mark.parametrize("kind", [list, pd.Series])
def test_a_value_that_is_no_number_is_unknown_and_nothing_else(odd, cell, kind):
    plain = ["2", 3, None, "x", True, 0.5]
    domain = Numeric(0, 4, bins=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cells_of(domain, kind([*plain, odd])).tolist() == [*cells_of(domain, kind(plain)).tolist(), cell]
