"""Frames in memory as Arrow tables that DuckDB reads in place.

Names and types come first, from the frame's declaration; values are converted when an aggregate is asked for, by rules that
never fail (`sfumato.tables.one_value`): Arrow itself refuses a column of mixed objects, with a message that quotes them.
What does not fit is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from sfumato.errors import InputError
from sfumato.tables.one_value import person_of, text_of, truth_of
from sfumato.tables.values import elements, numbers_of_all

AsArrow: TypeAlias = Callable[[list[Any]], Any]  # Python objects as an Arrow array, what does not fit as NULL


def as_arrow(frame: Any, columns: Mapping[str, AsArrow], *, types_only: bool = False) -> Any:
    """Some columns of a pandas, Polars or Arrow frame as an Arrow table; without its rows if `types_only`.

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
    take = {"pandas": _pandas_array, "polars": _polars_array}.get(kind, _arrow_array)
    arrays = []
    for i in wanted:
        column = frame.iloc[:, i] if kind == "pandas" else frame.to_series(i) if kind == "polars" else frame.column(i)
        try:
            empty = take(column[:0], columns[names[i]])
            if isinstance(empty.type, pa.ExtensionType):  # periods and intervals would be taken for what they are made of
                raise TypeError
        except Exception as error:
            raise InputError(
                f"column {names[i]!r} has a type that no engine holds ({type(error).__name__}); convert it"
            ) from None
        arrays.append(empty if types_only else take(column, columns[names[i]]))
    return pa.table(arrays, names=[names[i] for i in wanted])


def _pandas_array(series: Any, make: AsArrow) -> Any:
    import pandas as pd
    import pyarrow as pa

    if isinstance(series.dtype, pd.CategoricalDtype):
        different, codes = series.cat.categories.to_series(), series.cat.codes.to_numpy()
        values = _pandas_array(different, make)
        return values.take(pa.array(codes, pa.int64(), mask=codes < 0))
    if isinstance(series.dtype, pd.SparseDtype):
        return _pandas_array(series.sparse.to_dense(), make)
    if str(series.dtype) == "object" or isinstance(series.dtype, pd.StringDtype) or series.dtype.kind == "c":
        return make(elements(series))  # alike: one stray value makes pandas speak of objects, or of complex numbers
    if isinstance(series.dtype, pd.ArrowDtype):
        return _arrow_array(series.array.__arrow_array__(), make)
    return _arrow_array(pa.array(series, from_pandas=True, safe=False), make)


def _polars_array(series: Any, make: AsArrow) -> Any:
    return make(series.to_list()) if str(series.dtype) == "Object" else _arrow_array(series.to_arrow(), make)


def _arrow_array(array: Any, make: AsArrow) -> Any:
    import pyarrow as pa

    if pa.types.is_null(array.type):  # a column with no value at all has no type of its own
        return make([None] * len(array))
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # too much text for one array
        return pa.chunked_array([_arrow_array(chunk, make) for chunk in array.chunks])
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    return valid_text(array) if pa.types.is_string(array.type) or pa.types.is_large_string(array.type) else array


def valid_text(array: Any) -> Any:
    """The same text, NULL where it is not UTF-8."""
    import pyarrow as pa

    try:
        array.validate(full=True)
        return array
    except pa.ArrowInvalid:
        return pa.array(elements(array), array.type)


def number_array(values: list[Any]) -> Any:
    """Python objects as doubles."""
    import pyarrow as pa

    return pa.array(numbers_of_all(values), from_pandas=True)


def text_array(values: list[Any]) -> Any:
    """Python objects as text."""
    import pyarrow as pa

    # A column of text and missing values is converted at once, to what each value would become by itself; one that holds
    # anything else, half a character included, value by value.
    if set(map(type, values)) <= {str, float, type(None)}:
        with suppress(pa.ArrowException, UnicodeError):
            return pa.array(values, pa.string(), from_pandas=True)
    return pa.array([text_of(v) for v in values], pa.string())


def truth_array(values: list[Any]) -> Any:
    """Python objects as true/false."""
    import pyarrow as pa

    return pa.array([truth_of(v) for v in values], pa.bool_())


def person_array(values: list[Any]) -> Any:
    """Python objects as names of persons, in text."""
    import pyarrow as pa

    return pa.array([person_of(v) for v in values], pa.string())
