"""64-bit integers that stop at the ends of their range: wrapping around would tear neighbouring values apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError

_INT64 = np.iinfo(np.int64)


def as_int64(values: Any) -> NDArray[np.int64]:
    """Integer values as int64; larger ones are held at the ends of the range, which moves no two values further apart.

    >>> as_int64([10**20, -5]).tolist()
    [9223372036854775807, -5]
    """
    exact = np.asarray(values)
    if exact.dtype == object and all(isinstance(v, int) for v in exact.flat):  # Python integers beyond 64 bits
        exact = np.clip(exact, int(_INT64.min), int(_INT64.max)).astype(np.int64)
    if exact.dtype.kind not in "iu":
        raise InputError(f"noise goes on integer sums, got {exact.dtype}: put weights and values on a lattice first")
    if exact.dtype == np.uint64:
        exact = np.minimum(exact, np.uint64(_INT64.max))
    return exact.astype(np.int64, copy=False)


def whole_numbers(values: Any, what: str) -> NDArray[np.int64]:
    """Whole numbers in any container as int64, held as `as_int64` does; no value changes how another one is read.

    `what` they are is for the words of a refusal, which only their types decide.

    >>> whole_numbers([2**63, -(2**63), 7], "counts").tolist()  # NumPy would make floats of these
    [9223372036854775807, -9223372036854775808, 7]
    """
    array = np.asarray(values)
    if array.dtype.kind == "f" and not isinstance(values, np.ndarray):
        array = np.asarray(values, dtype=object)
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind in "iu":
        return as_int64(array)
    if not all(isinstance(value, int | np.integer) for value in array.flat):
        raise InputError(f"{what} must be integers, got {array.dtype}: put them on a lattice first")
    each = np.array([int(value) for value in array.flat] + [0], dtype=object)[:-1]
    return as_int64(each).astype(np.int64).reshape(array.shape)


def exact_dot(left: NDArray[np.int64], right: NDArray[np.int64]) -> int:
    """``Σ left right`` of whole numbers that are not negative, exactly, however large it is.

    >>> exact_dot(np.array([2**62, 3]), np.array([4, 5])) == 2**64 + 15
    True
    """
    if float(np.dot(left.astype(np.float64), right.astype(np.float64))) < 2.0**62:  # the rounding is far below that
        return int(np.dot(left, right))
    low, high = left & 0xFFFFFFFF, left >> 32
    # Halves of 32 bits: their products with halves of 32 bits, added up in pieces, stay within 64.
    total = 0
    for shift, half in ((0, low), (32, high)):
        for more, other in ((0, right & 0xFFFFFFFF), (32, right >> 32)):
            products = half.astype(np.uint64) * other.astype(np.uint64)
            summed = int((products & np.uint64(0xFFFFFFFF)).sum()) + (int((products >> np.uint64(32)).sum()) << 32)
            total += summed << (shift + more)
    return total


def add_held(exact: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """``exact + noise``, held at the ends of the range: a function of the noisy sum, so it costs no privacy.

    >>> add_held(np.array([5, 2**63 - 1]), np.array([-7, 3])).tolist()
    [-2, 9223372036854775807]
    """
    total = exact + noise
    wrapped = ((exact ^ total) & (noise ^ total)) < 0
    return np.where(wrapped, np.where(noise > 0, _INT64.max, _INT64.min), total)


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """A copy that nobody can write to, or the array itself if it is one: what was priced must not change afterwards.

    >>> ours = np.array([1, 2])
    >>> kept = read_only(ours)
    >>> ours[0] = 50
    >>> kept.tolist(), read_only(kept) is kept
    ([1, 2], True)
    """
    if values.base is None and not values.flags.writeable:
        return values
    kept = np.array(values)
    kept.setflags(write=False)
    return kept


def narrow(size: int) -> type[np.integer[Any]]:
    """The narrowest type that holds the numbers up to `size`.

    >>> [narrow(n).__name__ for n in (255, 256, 65535, 65536, 1 << 31)]
    ['uint8', 'uint16', 'uint16', 'int32', 'int64']
    """
    return np.uint8 if size < 1 << 8 else np.uint16 if size < 1 << 16 else np.int32 if size < 1 << 31 else np.int64
