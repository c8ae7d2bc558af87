"""Values in memory as numbers, or as places in a public list: the rule of the engines for data frames and arrays.

Nothing here raises because of a value: an error would tell that the value is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def category_codes(column: Any, values: Sequence[Any]) -> NDArray[np.int64]:
    """Place of each value in a public list, -1 where it is not listed.

    >>> category_codes(["M", "F", None, 3], ["F", "M"]).tolist()
    [1, 0, -1, -1]
    """
    import pandas as pd

    if isinstance(getattr(column, "dtype", None), pd.StringDtype | pd.CategoricalDtype):
        # Stored as text or codes already: only the different values have to become Python objects.
        number, different = pd.factorize(column, use_na_sentinel=False)
        return category_codes(np.asarray(different, dtype=object), values)[number]
    plain = _objects(column)
    listed = pd.Index(list(values), dtype=object)
    try:
        return np.array(listed.get_indexer(pd.Index(plain, dtype=object)), dtype=np.int64)
    except TypeError:  # lists or other values without a hash: no category is one
        place = {value: i for i, value in enumerate(values)}
        return np.array([place.get(v, -1) if _has_hash(v) else -1 for v in plain], dtype=np.int64)


def _objects(column: Any) -> NDArray[Any]:
    if hasattr(column, "to_numpy"):
        return np.asarray(column.to_numpy(dtype=object)).reshape(-1)
    if isinstance(column, np.ndarray):
        return column.astype(object).reshape(-1)
    return np.fromiter(column, dtype=object, count=len(column))  # one by one: lists inside a list are values, not rows


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:  # a list, or a tuple with one inside
        return False
    return True


def numbers(column: Any) -> NDArray[np.float64]:
    """Each value as a double, NaN where it is no number.

    >>> numbers([1, "2.5", "x", None, 10**400]).tolist()
    [1.0, 2.5, nan, nan, inf]
    """
    import pandas as pd

    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    if kind in "biuf" and isinstance(column, np.ndarray):
        return column.astype(np.float64)
    series = column if isinstance(column, pd.Series) else pd.Series(list(column), dtype=object)
    try:
        found = pd.to_numeric(series, errors="coerce")
        if found.dtype.kind != "c":
            return np.array(found.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError, OverflowError):
        pass
    return np.array([_number(v) for v in series], dtype=np.float64)  # a value that is no float64: each by itself


def _number(value: Any) -> float:
    import pandas as pd

    if isinstance(value, complex | np.complexfloating):
        return float("nan")
    try:
        return float(pd.to_numeric(pd.Series([value], dtype=object), errors="coerce").iloc[0])
    except OverflowError:  # a whole number beyond float64
        return float("inf") if value > 0 else float("-inf")
    except (TypeError, ValueError):
        return float("nan")
