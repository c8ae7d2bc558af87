"""The price of one call, from public facts alone: noise rates, weights and what one record can touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError

Touches = Literal["one", "all"]


def per_unit(rates: NDArray[np.int64], touches: Touches | NDArray[np.int64]) -> int:
    """Loss of a record of weight one, in nano-ε.

    >>> rates = np.array([3, 5, 4])
    >>> per_unit(rates, "one"), per_unit(rates, "all"), per_unit(rates, np.array([[2, 0, 0], [0, 1, 1]]))
    (5, 12, 9)
    """
    if isinstance(touches, str):
        if touches == "one":
            return int(rates.max(initial=0))
        if touches != "all":
            raise InputError(f"touches must be 'one', 'all' or a non-negative integer matrix, got {touches!r}")
        if rates.ndim == 0:
            raise InputError("touches='all' needs one rate per coordinate")
        return sum(rates.reshape(-1).tolist())
    return _largest_row(_checked(touches, rates), rates)


def per_attribute(rates: NDArray[np.int64], touches: Touches | NDArray[np.int64], names: Sequence[str]) -> Mapping[str, int]:
    """Loss of each attribute for a record of weight one: only the coordinates that carry its name count.

    >>> per_attribute(np.array([3, 5, 4]), "all", ["a", "b", "a"])
    {'a': 7, 'b': 5}
    """
    if rates.ndim != 1 or len(names) != rates.size:
        raise InputError(f"{len(names)} attribute names for {rates.size} rates: give one of each per coordinate")
    losses = {}
    for name in dict.fromkeys(names):
        mine = np.array([n == name for n in names])
        part = touches if isinstance(touches, str) else _checked(touches, rates)[:, mine]
        losses[name] = per_unit(rates[mine], part)
    return losses


def _checked(touches: ArrayLike, rates: NDArray[np.int64]) -> NDArray[np.int64]:
    matrix = np.asarray(touches)
    if matrix.dtype.kind not in "iu" or matrix.ndim != 2 or matrix.size == 0 or int(matrix.min()) < 0:
        raise InputError("touches must be 'one', 'all' or a non-negative integer matrix with at least one row")
    if rates.ndim != 1 or matrix.shape[1] != rates.size:
        raise InputError(f"the matrix has {matrix.shape[1]} columns for {rates.size} rates")
    return matrix


def _largest_row(matrix: NDArray[np.int64], rates: NDArray[np.int64]) -> int:
    """The largest entry of ``matrix @ rates``, exactly: in 64 bits where nothing can overflow, else in Python integers."""
    if int(matrix.max()) * int(rates.max()) * rates.size < 1 << 62:
        return int((matrix.astype(np.int64, copy=False) @ rates).max())
    rate_list: list[int] = rates.tolist()
    return max(sum(int(a) * r for a, r in zip(row, rate_list, strict=True)) for row in matrix.tolist())
