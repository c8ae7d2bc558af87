"""A table of plain numbers, for models that take features with public bounds instead of a schema.

Each value becomes a number by itself (`sfumato.tables.one_value`); what is none is missing. So no record changes how another
is read, and none makes a fit fail.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.tables.values import numbers, rows_or_array, split_rows, stated_names


def number_matrix(X: Any, width: int | None = None) -> NDArray[np.float64]:
    """The rows of `X` as doubles, NaN where a value is no number.

    Parameters
    ----------
    X : data frame, array or list of rows
        One row per record.
    width : int, optional
        The public number of features. A frame or an array states it; a list of rows does not, so it must be given: read off
        the rows it would be a fact about them. A row of another length has no numbers at all.

    Returns
    -------
    float64 array, rows by features

    Examples
    --------
    >>> number_matrix([[1, "2.5"], ["?", None], [3, 4, 5], "x"], width=2).tolist()
    [[1.0, 2.5], [nan, nan], [nan, nan], [nan, nan]]
    >>> number_matrix(np.array([[1, 2], [3, 4]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    columns = _columns(X, width)
    if width is not None and len(columns) != width:
        raise InputError(f"the table has {len(columns)} columns where {width} features are stated")
    if not columns:
        raise InputError("the table has no columns: at least one feature is needed")
    found = np.empty((len(columns[0]), len(columns)))
    for j, column in enumerate(columns):
        found[:, j] = numbers(column)
    return found


def _columns(X: Any, width: int | None) -> list[Any]:
    names = stated_names(X)
    if names is not None:
        if type(X).__module__.split(".")[0] == "pandas":
            return [X.iloc[:, j] for j in range(len(names))]  # names may be numbers, or the same twice
        return [X[name] for name in names]
    table = rows_or_array(X)
    if isinstance(table, list):
        if width is None:
            raise InputError(
                "a list of rows does not state how many features it has, and to count them in a row would tell of it: "
                "give an array or a data frame, or bounds with one number per feature"
            )
        return list(split_rows(table, width))
    if table.ndim != 2:
        raise InputError(f"expected a table of rows and columns, got an array with {table.ndim} axes; reshape it")
    return [table[:, j] for j in range(table.shape[1])]
