"""Rows of numbers for an objective, and on which side each of them lies: added up block by block.

A block and what is made of it stay in the cache, so an objective needs little more memory than its rows, and signs are kept
beside the rows instead of a second copy with the signs in it. `coded_rows` has rows of indicators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Sides = NDArray[np.int8]
BLOCK = 1 << 14


def blocks(n: int) -> Iterator[slice]:
    """The parts of n rows.

    >>> [(part.start, part.stop) for part in blocks(20_000)]
    [(0, 16384), (16384, 20000)]
    """
    return (slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK))


@dataclass(frozen=True, eq=False)
class NumberRows:
    """Rows ``z = side * x`` of plain numbers.

    Parameters
    ----------
    matrix : float64 array, rows by features
        The rows x, each of Euclidean norm at most one.
    sides : int8 array, optional
        +1, -1, or 0 for a row that adds nothing; all +1 if left out.

    Examples
    --------
    >>> rows = NumberRows(np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([1, -1], dtype=np.int8))
    >>> rows.margins(np.array([2.0, 1.0]))(slice(0, 2)).tolist()
    [2.0, 2.0]
    """

    matrix: Floats
    sides: Sides | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and features."""
        return self.matrix.shape[0], self.matrix.shape[1]

    def __getitem__(self, index: slice | NDArray[np.integer]) -> NumberRows:
        """Some of the rows."""
        sides = None if self.sides is None else self.sides[index]
        return NumberRows(np.ascontiguousarray(self.matrix[index]), sides)

    def beside(self, sides: Sides) -> NumberRows:
        """The same rows, on these sides."""
        return replace(self, sides=sides)

    def margins(self, f: Floats) -> Callable[[slice], Floats]:
        """``x·f`` for the rows of a block, without their sides."""
        return lambda part: np.asarray(self.matrix[part] @ f)

    def collected(self, part: slice, numbers: Floats) -> list[Floats]:
        """The sum of rows times numbers, over a block, in pieces that may be added up with those of other blocks."""
        return [numbers @ self.matrix[part]]

    def unpacked(self, pieces: Sequence[Floats]) -> Floats:
        """The vector that added pieces stand for."""
        return pieces[0]

    def careful_margins(self, f: NDArray[Any]) -> Callable[[slice], tuple[NDArray[Any], NDArray[Any]]]:
        """``x·f``, and by how many half units in the last place it may be off: pairwise sums, or short ones in any order."""
        k = f.size
        terms = min(k, k / 8 + 11, 21 + math.log2(k))

        def of(part: slice) -> tuple[NDArray[Any], NDArray[Any]]:
            each = self.matrix[part].astype(f.dtype) * f
            margin = each.sum(axis=1)
            return margin, np.abs(each, out=each).sum(axis=1) * terms

        return of

    def careful_sum(self, part: slice, numbers: NDArray[Any]) -> NDArray[Any]:
        """The sum of rows times numbers over a block, pairwise."""
        rows = self.matrix[part].astype(numbers.dtype, copy=False)
        return np.asarray(np.multiply(rows.T, numbers, order="C").sum(axis=1))

    @property
    def roundings(self) -> float:
        """By how many half units a sum of `careful_sum` over all blocks may be off: 21 + log2 of the terms, twice."""
        return 42 + math.log2(1 + self.shape[0])

    def gram(self, weights: Floats) -> Floats:
        """``Σ weight x xᵀ``."""
        total = np.zeros((self.shape[1], self.shape[1]))
        for part in blocks(len(weights)):
            rows = self.matrix[part]
            total += (rows * weights[part, None]).T @ rows
        return total

    def squares(self, weights: Floats) -> Floats:
        """The diagonal of the same."""
        return sum((weights[part] @ self.matrix[part] ** 2 for part in blocks(len(weights))), np.zeros(self.shape[1]))
