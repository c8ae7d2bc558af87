"""Text, categories and plain objects are coded alike, missing and unlisted values included."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.classifiers.coding import category_codes


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
