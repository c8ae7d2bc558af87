"""Frames in memory as Arrow tables that DuckDB reads in place.

Arrow refuses a pandas column of mixed objects with a message that quotes them, so such columns are brought to a plain
type first: the one the schema asks for, by a rule that never fails. What does not fit is missing.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sfumato.errors import InputError

AsArrow: TypeAlias = Callable[[list[Any]], Any]  # Python objects as an Arrow array, what does not fit as NULL


def as_arrow(frame: Any, columns: Mapping[str, AsArrow]) -> Any:
    """Some columns of a pandas, Polars or Arrow frame as an Arrow table.

    `columns` gives their names, and how mixed Python objects in them are brought to one type.
    """
    import pyarrow as pa

    kind = type(frame).__module__.split(".")[0]
    if kind == "pyarrow" and not isinstance(frame, pa.Table):
        frame = pa.table(frame) if isinstance(frame, pa.RecordBatch) else frame
        if not isinstance(frame, pa.Table):
            raise InputError(f"cannot open a pyarrow {type(frame).__name__}; give a Table")
    names = [str(c) for c in (frame.column_names if kind == "pyarrow" else frame.columns)]
    if len(set(names)) < len(names):
        raise InputError("the frame has two columns of the same name; rename one")
    wanted = [i for i, n in enumerate(names) if n in columns]
    if kind == "pandas":
        arrays = [_pandas_array(frame.iloc[:, i], columns[names[i]]) for i in wanted]
    elif kind == "polars":
        arrays = [frame.to_series(i).to_arrow() for i in wanted]
    else:
        arrays = [frame.column(i) for i in wanted]
    return pa.table([_decoded(a) for a in arrays], names=[names[i] for i in wanted])


def _pandas_array(series: Any, make: AsArrow) -> Any:
    import pyarrow as pa

    if str(series.dtype) == "category":
        categories, codes = _pandas_array(series.cat.categories.to_series(), make), series.cat.codes.to_numpy()
        return categories.take(pa.array(codes, mask=codes < 0))
    return make(series.tolist()) if str(series.dtype) == "object" else pa.array(series, from_pandas=True)


def number_array(values: list[Any]) -> Any:
    """Python objects as doubles."""
    import pyarrow as pa

    return pa.array([_double(v) for v in values], pa.float64())


def text_array(values: list[Any]) -> Any:
    """Python objects as text."""
    import pyarrow as pa

    return pa.array([_text(v) if isinstance(v, str) else None for v in values], pa.string())


def truth_array(values: list[Any]) -> Any:
    """Python objects as true/false."""
    import pyarrow as pa

    return pa.array([v if isinstance(v, bool) else None for v in values], pa.bool_())


def person_array(values: list[Any]) -> Any:
    """Python objects as names of persons, in text."""
    import pyarrow as pa

    return pa.array([None if _is_missing(v) else _text(str(v)) for v in values], pa.string())


def _double(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, numbers.Real) or hasattr(value, "as_tuple") else None
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    except ValueError:  # a signalling NaN
        return None


def _text(value: str) -> str | None:
    try:
        value.encode()
    except UnicodeEncodeError:  # half a character: no engine can hold it
        return None
    return value


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # pandas.NA, a signalling NaN
        return True


def _decoded(array: Any) -> Any:
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array
