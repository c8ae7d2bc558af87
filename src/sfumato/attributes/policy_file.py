"""The parts of a policy file, each refused unless it is of the kind it must be."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError


def typed(values: Any, kind: type) -> list[Any]:
    """A list of values of one kind; whole numbers must lie between 0 and 2^62."""
    typed = isinstance(values, list) and all(type(v) is kind for v in values)
    if not typed or (kind is int and any(not 0 <= v < 1 << 62 for v in values)):
        raise InputError(f"a field of this policy does not hold {kind.__name__} values in range")
    return list(values)


def fraction(text: str) -> Fraction:
    """A unit such as 1/100."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InputError("the unit of this policy is not a fraction such as 1/100") from None


def dense_rows(sparse: Any, columns: int) -> NDArray[np.int64]:
    """Rows that list column and weight in turn, each column once."""
    if not isinstance(sparse, list) or not sparse:
        raise InputError("a policy lists at least one row that an item may have")
    rows = np.zeros((len(sparse), columns), dtype=np.int64)
    for i, pairs in enumerate(sparse):
        flat = typed(pairs, int)
        if len(flat) % 2 or any(j >= columns for j in flat[::2]) or len(set(flat[::2])) * 2 != len(flat):
            raise InputError("a row of this policy does not list distinct columns and their weights in turn")
        rows[i, flat[::2]] = flat[1::2]
    return rows
