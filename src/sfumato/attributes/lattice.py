"""Weights on a lattice of whole units, rounded up: a price is never below that of the weights as written."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.privacy.units import Epsilon

MOST = 1 << 31  # lattice units per entry: sums over items, attributes and rates stay inside 64 bits


def step_of(step: Epsilon) -> Fraction:
    """The worth of one lattice unit.

    >>> step_of("0.25")
    Fraction(1, 4)
    """
    unit = step if isinstance(step, Fraction) else Fraction(str(step))
    if unit <= 0:
        raise InputError(f"step must be greater than 0, got {step!r}")
    return unit


def lattice(weight: Epsilon, unit: Fraction) -> int:
    """A weight in lattice units, rounded up.

    >>> lattice(0.31, Fraction(1, 10))
    4
    """
    if unit == 1 and type(weight) is int and weight >= 0:
        return weight
    try:
        value = weight if isinstance(weight, Fraction) else Fraction(str(weight))
    except (ValueError, ZeroDivisionError):
        raise InputError(f"a weight must be a finite number, got {weight!r}") from None
    if value < 0:
        raise InputError(f"a weight must not be negative, got {weight!r}")
    return int(-(-value // unit))


def lattice_array(weights: NDArray[Any], unit: Fraction) -> NDArray[np.int64]:
    """Weights in lattice units, rounded up.

    >>> lattice_array(np.array([0.3, 0.31]), Fraction(1, 10)).tolist()
    [3, 4]
    """
    _require_numbers(weights)
    if weights.dtype.kind in "iub" and unit == 1:
        units = weights
    else:
        scaled = weights.astype(np.float64) * (unit.denominator / unit.numerator)
        if not np.isfinite(scaled).all():
            raise InputError("weights must be finite numbers")
        nearest = np.rint(scaled)
        # 0.3 / 0.1 is a hair off 3 in binary; the person wrote three units.
        units = np.where(np.abs(scaled - nearest) <= 1e-9 * np.abs(scaled), nearest, np.ceil(scaled))
    if units.size and units.min() < 0:
        raise InputError("weights must not be negative")
    if units.size and units.max() > MOST:  # before the cast, which would wrap around
        raise InputError(f"weights must lie between 0 and {MOST} lattice units; choose a coarser step")
    return units.astype(np.int64)


def wide(weights: NDArray[Any]) -> NDArray[Any]:
    """Numbers of a kind in which a few of them can be added up without wrapping around.

    >>> wide(np.array([100, 100], dtype=np.int8)).sum()
    np.int64(200)
    """
    _require_numbers(weights)
    if weights.dtype.kind in "biu" and (not weights.size or -MOST <= int(weights.min()) <= int(weights.max()) <= MOST):
        return weights.astype(np.int64)
    return weights.astype(np.float64)


def whole(values: ArrayLike, what: str) -> NDArray[np.int64]:
    """Integers as a flat array of our own; fractions are refused and never cut off, and so is what 64 bits cannot hold.

    >>> whole([1, 2], "column numbers").tolist()
    [1, 2]
    >>> whole([1.9], "weights")
    Traceback (most recent call last):
    ...
    sfumato.errors.InputError: weights are whole numbers in one row, got an array of float64
    """
    given = np.asarray(values)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise InputError(f"{what} are whole numbers in one row, got an array of {given.dtype}")
    if given.dtype == np.uint64 and given.size and int(given.max()) >= 1 << 63:
        raise InputError(f"{what} do not fit in 64 bits")
    return np.array(given, dtype=np.int64)


def _require_numbers(weights: NDArray[Any]) -> None:
    if weights.dtype.kind not in "biufO":
        raise InputError(f"weights are numbers, got {weights.dtype}")
