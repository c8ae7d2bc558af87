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
from sfumato.records.numbers import number_matrix
from sfumato.tables.values import category_codes

Floats = NDArray[np.float64]


def plain(values: Any) -> Any:
    """What only knows how to become an array, as that array; everything else as it is."""
    return np.asarray(values) if hasattr(values, "__array__") and not hasattr(values, "shape") else values


def check_table(estimator: Any, X: Any, *, reset: bool, width: int | None = None) -> None:
    """Refuse what is no table of numbers, by its container; set or check the columns of a scikit-learn estimator.

    A list of rows does not state its columns: there are `width` of them, or as many as in the first row.
    """
    if hasattr(X, "tocsr"):
        raise InputError("sparse data is not supported: give a dense array or a data frame")
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise InputError("Complex data not supported: give real numbers")
    shape = X.shape if hasattr(X, "shape") else (0, width) if width else (0, *np.shape(X[0] if len(X) else []))
    if len(shape) != 2:
        raise InputError(
            f"expected a table with rows and columns, got {len(shape)} dimension(s). Reshape your data: "
            "X.reshape(-1, 1) if it has one column, X.reshape(1, -1) if it is one row"
        )
    if shape[1] == 0:
        raise InputError("0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    if hasattr(X, "shape"):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    elif reset:
        vars(estimator).pop("feature_names_in_", None)
        estimator.n_features_in_ = shape[1]


def stated_width(bounds: Any) -> int | None:
    """The number of features that public bounds have a number for each of.

    >>> stated_width((0, [1, 2, 3])), stated_width((0, 1)), stated_width(None)
    (3, None, None)
    """
    ends = [np.asarray(end) for end in bounds or ()]
    return next((end.size for end in ends if end.ndim == 1), None)


def number_rows(X: Any, width: int) -> Floats:
    """Every cell as a number by itself, NaN where it is none; a row of another width has none.

    >>> number_rows([[1, "2.5"], ["?", 10**400], [3]], 2).tolist()
    [[1.0, 2.5], [nan, inf], [nan, nan]]
    """
    found = number_matrix(X, width)
    for j, dtype in enumerate(getattr(X, "dtypes", ())):
        if getattr(dtype, "kind", "") == "c":  # one complex number makes a column of a frame complex
            values = np.asarray(X.iloc[:, j])
            found[:, j] = np.where(values.imag == 0, values.real, np.nan)
    return found


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
