"""Columns in whatever container they come: lists, NumPy arrays, pandas, Polars and Arrow, taken value by value.

What decides is the value and `sfumato.tables.one_value`. Where the container states one plain type for the whole column,
such as 64-bit integers, the column is converted at once, to what each value would become by itself: the type is a short
cut, never a rule of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.tables.one_value import BEYOND, NAN, WHOLE, Places, number_of

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def numbers(column: Any) -> Floats:
    """Each value as a double, NaN where it is no number.

    >>> numbers([1, "2.5", "x", None, 10**400]).tolist()
    [1.0, 2.5, nan, nan, inf]
    """
    plain = of_one_type(column)
    if plain is not None:
        values, missing = plain
        found = _doubles(values)
        return found if missing is None else np.where(missing, NAN, found)
    coded = _dictionary(column)
    if coded is not None:
        codes, different = coded
        return np.append(numbers(different), NAN)[codes]
    return numbers_of_all(elements(column))


def numbers_of_all(values: list[Any]) -> Floats:
    """Each value as a double: the same as `number_of`, faster where all are plain numbers."""
    if set(map(type, values)) <= {int, float, bool}:
        with suppress(OverflowError):
            found = np.array(values, dtype=np.float64)
            if not (np.abs(found) >= WHOLE).any():  # where whole numbers and doubles part
                return found
    return np.fromiter(map(number_of, values), dtype=np.float64, count=len(values))


def category_codes(column: Any, values: Sequence[Any]) -> Codes:
    """Place of each value in a public list, -1 where it is not listed.

    >>> category_codes(["M", "F", None, 3], ["F", "M"]).tolist()
    [1, 0, -1, -1]
    """
    places = Places(values)
    if places.numbers is not None and of_one_type(column) is not None:
        return places.of_numbers(numbers(column))
    coded = _dictionary(column)
    if coded is None:
        return places.of_all(elements(column))
    codes, different = coded
    return np.append(places.of_all(elements(different)), -1)[codes]


def elements(column: Any) -> list[Any]:
    """The values as Python objects; None for one that its own container cannot give."""
    kind = type(column).__module__.split(".")[0]
    if isinstance(column, np.ndarray):
        flat = column.reshape(-1)
        return list(flat) if flat.dtype.kind in "mM" else list(flat.tolist())
    if kind == "pandas":
        flat = column.iloc[:, 0] if getattr(column, "ndim", 1) == 2 else column
        return _guarded(flat.tolist, lambda i: flat.iloc[i] if hasattr(flat, "iloc") else flat[i], len(flat))
    if kind == "polars":
        column = column.to_series(0) if type(column).__name__ == "DataFrame" else column
        return list(column.to_list()) if str(column.dtype) == "Object" else elements(column.to_arrow())
    if kind == "pyarrow":
        return _guarded(column.to_pylist, lambda i: column[i].as_py(), len(column))
    if hasattr(column, "__array__") and not isinstance(column, Sequence):
        return elements(np.asarray(column))
    return list(column)


def _guarded(at_once: Callable[[], Iterable[Any]], one: Callable[[int], Any], length: int) -> list[Any]:
    try:
        return list(at_once())
    except Exception:  # a date no calendar has, text that is none: each by itself
        return [_quiet(one, i) for i in range(length)]


def _quiet(one: Callable[[int], Any], i: int) -> Any:
    try:
        return one(i)
    except Exception:
        return None


# ----------------------------------------------------------------------------------------- short cuts by type


def _doubles(values: NDArray[Any]) -> Floats:
    """Numbers of one NumPy type, as `number_of` makes each of them."""
    with np.errstate(all="ignore"):  # a warning would tell of a value, too
        found = values.astype(np.float64)
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        found = np.where(values > WHOLE, np.maximum(found, BEYOND), found)
        if values.dtype.kind == "i":
            found = np.where(values < -WHOLE, np.minimum(found, -BEYOND), found)
    return found


def of_one_type(column: Any) -> tuple[NDArray[Any], NDArray[np.bool_] | None] | None:
    """A column whose container states a type of numbers: the raw numbers, and where they are missing."""
    kind = type(column).__module__.split(".")[0]
    if isinstance(column, np.ndarray):
        return (column.reshape(-1), None) if column.dtype.kind in "biuf" else None
    if kind == "pandas" and getattr(column, "ndim", 1) == 1:
        stated = column.dtype
        if isinstance(stated, np.dtype):
            return (np.asarray(column), None) if stated.kind in "biuf" else None
        if _is_masked(stated):
            return np.asarray(column.fillna(stated.type(0)), dtype=stated.numpy_dtype), np.asarray(column.isna())
        return of_one_type(column.array.__arrow_array__()) if _is_arrow(stated) else None
    if kind == "polars" and hasattr(column, "dtype"):
        return of_one_type(column.to_arrow()) if column.dtype.is_numeric() or str(column.dtype) == "Boolean" else None
    if kind == "pyarrow":
        import pyarrow as pa

        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type):
            missing = np.asarray(column.is_null())
            return np.asarray(column.fill_null(pa.scalar(0).cast(column.type))), missing
    return None


def _dictionary(column: Any) -> tuple[Codes, Any] | None:
    """Text and categories are stored once per different value: the number of each row's, -1 for none, and the values."""
    import pandas as pd

    if not isinstance(column, pd.Series | pd.Index | pd.Categorical):
        return None
    stored: Any = column if isinstance(column, pd.Categorical) else column.array
    if isinstance(stored, pd.Categorical):
        return np.asarray(stored.codes, dtype=np.int64), stored.categories
    if isinstance(stored.dtype, pd.StringDtype):
        number, different = pd.factorize(stored)
        return np.asarray(number, dtype=np.int64), np.asarray(different, dtype=object)
    return None


def _is_masked(dtype: Any) -> bool:
    import pandas as pd

    names = ("Int", "UInt", "Float", "boolean")
    return (
        isinstance(dtype, pd.api.extensions.ExtensionDtype)
        and str(dtype).startswith(names)
        and hasattr(dtype, "numpy_dtype")
    )


def _is_arrow(dtype: Any) -> bool:
    import pandas as pd

    return isinstance(dtype, pd.ArrowDtype)


# -------------------------------------------------------------------------------------------- tables of columns


def columns_of(X: Any, names: Sequence[str]) -> list[Any]:
    """The columns `names` of a table in memory: by name from a frame, otherwise in this order.

    Names and shapes that the container states are checked. In a list of rows nothing is stated: a row that is none, or has
    another number of values, is one whose values are all missing.

    >>> columns_of([[31, "F"], "?", [77, "M", 3]], ["age", "sex"])
    [[31, None, None], ['F', None, None]]
    """
    stated = stated_names(X)
    if stated is not None:
        missing = [name for name in names if name not in stated]
        if missing:
            raise InputError(f"the table has no column {missing[0]!r}, which the schema names")
        return [X[name] for name in names]
    table = rows_or_array(X)
    if isinstance(table, list):
        return split_rows(table, len(names))
    if table.ndim != 2 or table.shape[1] != len(names):
        got = f"{table.shape[1]} columns" if table.ndim == 2 else f"an array with {table.ndim} axes"
        raise InputError(f"expected a table with the {len(names)} columns {', '.join(names)}, got {got}")
    return [table[:, j] for j in range(table.shape[1])]


def stated_names(X: Any) -> list[str] | None:
    """The names of a frame's columns (pandas, Polars, Arrow, NumPy records); None if it has none."""
    kind = type(X).__module__.split(".")[0]
    if kind == "pyarrow" and hasattr(X, "column_names"):
        return list(X.column_names)
    if isinstance(X, np.ndarray):
        return list(X.dtype.names) if X.dtype.names else None
    return list(X.columns) if hasattr(X, "columns") else None


def rows_or_array(X: Any) -> list[Any] | NDArray[Any]:
    """A table without names: a list of rows, or an array."""
    if isinstance(X, list | tuple):
        return list(X)
    if isinstance(X, str | bytes | Mapping) or not hasattr(X, "__array__"):
        raise InputError(f"expected rows: a data frame, an array or a list of rows, got a {type(X).__name__}")
    table = np.asarray(X)
    return list(table) if table.ndim == 1 and table.dtype.kind == "O" else table


def split_rows(rows: list[Any], width: int) -> list[list[Any]]:
    """Rows as columns; a row that does not have `width` values has none."""
    if set(map(type, rows)) <= {list, tuple} and set(map(len, rows)) <= {width}:
        return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
    nothing = [None] * width
    whole = [_row(row, width) or nothing for row in rows]
    return [[row[j] for row in whole] for j in range(width)]


def _row(row: Any, width: int) -> list[Any] | None:
    try:
        if issubclass(type(row), list | tuple):
            values = list(row)
        elif (isinstance(row, np.ndarray) and row.ndim == 1) or type(row).__module__.startswith("pandas."):
            values = elements(row)
        else:
            return None
    except Exception:  # a list of a kind of its own
        return None
    return values if len(values) == width else None
