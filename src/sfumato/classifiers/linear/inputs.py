"""Tables of numbers without a schema, and their labels: public facts are checked, values are read one by one.

The columns, the container and the number of labels are public. What is in a cell is not: it becomes a number by itself, and
what is no number becomes a missing one, so that no record changes how another is read, or whether `fit` succeeds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d, validate_data

from sfumato.errors import InputError
from sfumato.privacy import Exact
from sfumato.records.records import Records
from sfumato.tables.values import category_codes, numbers

Floats = NDArray[np.float64]


def plain(values: Any) -> Any:
    """What only knows how to become an array, as that array; everything else as it is."""
    return np.asarray(values) if hasattr(values, "__array__") and not hasattr(values, "shape") else values


def check_table(estimator: Any, X: Any, *, reset: bool) -> None:
    """Refuse what is no table of numbers, by its container; set or check the columns of a scikit-learn estimator."""
    dtype = getattr(X, "dtype", None)
    if hasattr(X, "tocsr"):
        raise InputError("sparse data is not supported: give a dense array or a data frame")
    if getattr(dtype, "kind", "") == "c":
        raise InputError("Complex data not supported: give real numbers")
    shape = X.shape if hasattr(X, "shape") else (len(X), *np.shape(X[0] if len(X) else [0.0]))
    if len(shape) != 2:
        raise InputError(
            f"expected a table with rows and columns, got {len(shape)} dimension(s). Reshape your data: "
            "X.reshape(-1, 1) if it has one column, X.reshape(1, -1) if it is one row"
        )
    if shape[1] == 0:
        raise InputError("0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    validate_data(estimator, X, reset=reset, skip_check_array=True)


def number_matrix(X: Any) -> Floats:
    """Every cell as a number by itself, NaN where it is none.

    >>> number_matrix([[1, "2.5"], ["?", 10**400]]).tolist()
    [[1.0, 2.5], [nan, inf]]
    """
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        return X.astype(np.float64)
    if hasattr(X, "columns"):
        columns = (
            [X[name] for name in X.columns] if len(set(X.columns)) == len(X.columns) else list(_objects(X.to_numpy()).T)
        )
    else:
        columns = list(_objects(X).T)
    return np.column_stack([_real(column) for column in columns])


def _real(column: Any) -> Floats:
    """The numbers of a column; of a complex one, those that are real."""
    if getattr(getattr(column, "dtype", None), "kind", "") == "c":
        values = np.asarray(column)
        return np.where(values.imag == 0, values.real, np.nan)
    return numbers(column)


def _objects(X: Any) -> NDArray[Any]:
    """The cells of rows as they are; a row of another width than the first is missing as a whole."""
    if hasattr(X, "shape"):
        return np.asarray(X, dtype=object)
    table = np.full((len(X), len(X[0]) if len(X) else 0), None, dtype=object)
    for place, row in enumerate(X):
        if len(row) == table.shape[1]:
            table[place, :] = row
    return table


def flat_labels(y: Any) -> Any:
    """Labels in one line: a column of an array is unpacked, a list stays as it is."""
    y = plain(y)
    return y if isinstance(y, list | tuple) else column_or_1d(y, warn=True)


def label_codes(y: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """The place of every label among the sorted `classes`, -1 where it is none of them.

    >>> label_codes(["b", 3, "a"], np.array(["a", "b"])).tolist()
    [1, -1, 0]
    """
    if isinstance(y, np.ndarray) and y.dtype.kind in "biuf" and classes.dtype.kind in "biuf":
        place = np.minimum(np.searchsorted(classes, y), classes.size - 1)
        return np.where(classes[place] == y, place, -1)
    return category_codes(y, classes.tolist())


def as_exact(records: Any) -> Exact[Records]:
    """Coded records as a private value."""
    return records if isinstance(records, Exact) else Exact(records)
