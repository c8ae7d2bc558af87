"""Rows of indicators, kept as codes: one small whole number for several columns of a table, no matrix at all.

A column of a table puts one number into a row: its code c puts ``values[c]`` at the place of c (an indicator), or all codes
at one place (a line). So ``x·f`` is a sum of one looked-up number per column, and a sum of rows is counting with weights.
Columns with few values share a code of up to `_PACK` values, whose table is looked up or counted once for all of them.

**How far sums are off.** Let u be half a unit in the last place. A product ``values[c] f_j`` is rounded once, and then goes
through at most as many additions as a pack has columns, and as there are packs: with k of all three together, ``x·f`` is off
by at most ``u k Σ_j |x_j f_j|``. A sum of rows times numbers s over a block of at most 2**14 rows is made of two: where all
|s| < 2**e, each s is a multiple h of ``q = 2**(e - 38)`` and a rest l, |l| <= q/2. Sums of h in a block stay below
``2**(e + 15) = 2**53 q``: float64 has them exactly, in any order. Those of l are off by at most ``2**-53 2**14 Σ|l|`` times
rows of norm at most one, hence by ``2**-53 2**(e - 11)``: at most 2 u of the sum of all |s|, also where u is 2**-64. Then
come one rounding for h + l, one for the value, and along a line of L codes a pairwise sum: 21 + log2 L. Blocks are added
pairwise: 21 + log2 of their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.integers import narrow
from sfumato.privacy.rows import BLOCK, Floats, Sides, blocks

Codes = NDArray[np.integer]
_PACK = 1 << 12  # codes that share a table: it stays in the nearest cache
_FINE = 38  # binary digits that a block adds up exactly; see above


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """What the codes of one column put into a row.

    Attributes
    ----------
    values : float64 array
        The number for each code. The last code stands for what is not known; its number is 0.
    start : int
        The first place of the column in a row.
    line : bool
        Whether all codes share that place, instead of one place each.
    """

    values: Floats
    start: int
    line: bool

    @property
    def places(self) -> slice:
        """The places of the column in a row."""
        return slice(self.start, self.start + (1 if self.line else self.values.size - 1))

    def products(self, f: NDArray[Any]) -> NDArray[Any]:
        """What each code adds to ``x·f``."""
        there = np.full(self.values.size, f[self.start]) if self.line else np.append(f[self.places], 0.0)
        return np.asarray(self.values.astype(f.dtype) * there.astype(f.dtype))

    def placed(self, sums: NDArray[Any]) -> NDArray[Any]:
        """From numbers per code (on the first axis) to numbers per place."""
        weighed = (self.values.reshape(-1, *[1] * (sums.ndim - 1)) * sums).astype(sums.dtype)
        if not self.line:
            return np.asarray(weighed[:-1])
        # Along a contiguous axis NumPy adds in pairs.
        return np.asarray(np.ascontiguousarray(np.moveaxis(weighed, 0, -1)).sum(axis=-1))[None]


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows ``z = side * x`` of coded columns.

    Parameters
    ----------
    columns : tuple of CodedColumn
        What the columns put into a row, of Euclidean norm at most one in all.
    packs : tuple of tuples of int
        The columns that share a code.
    codes : tuple of integer arrays
        One for each pack: the code of its first column is the most significant.
    sides : int8 array, optional
        +1, -1, or 0 for a row that adds nothing; all +1 if left out.

    Examples
    --------
    >>> age = CodedColumn(np.array([-0.5, 0.5, 0.0]), 0, line=True)
    >>> sex = CodedColumn(np.array([0.7, 0.7, 0.0]), 1, line=False)
    >>> rows = CodedRows.of((age, sex), [np.array([0, 1, 2]), np.array([1, 0, 0])])
    >>> rows.matrix().tolist()
    [[-0.5, 0.0, 0.7], [0.5, 0.7, 0.0], [0.0, 0.7, 0.0]]
    >>> (rows @ np.array([1.0, 10.0, 100.0])).tolist()
    [69.5, 7.5, 7.0]
    """

    columns: tuple[CodedColumn, ...]
    packs: tuple[tuple[int, ...], ...]
    codes: tuple[Codes, ...]
    sides: Sides | None = None

    @classmethod
    def of(cls, columns: Sequence[CodedColumn], codes: Iterable[Codes]) -> CodedRows:
        """From one array of codes per column, taken one after the other."""
        sizes = [column.values.size for column in columns]
        packs: list[list[int]] = []
        for j, size in enumerate(sizes):
            fits = (pack for pack in packs if prod(sizes[i] for i in pack) * size <= _PACK)
            found = next(fits, None)
            if found is None:
                packs.append([j])
            else:
                found.append(j)
        kinds = [narrow(prod(sizes[j] for j in pack)) for pack in packs]
        made: list[Codes] = [np.zeros(0, dtype=kind) for kind in kinds]
        for j, own in enumerate(codes):
            p = next(i for i, pack in enumerate(packs) if j in pack)
            if j == packs[p][0]:
                made[p] = own.astype(kinds[p])
            else:
                made[p] *= kinds[p](sizes[j])
                made[p] += own.astype(kinds[p], copy=False)
        return cls(tuple(columns), tuple(map(tuple, packs)), tuple(made))

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and places."""
        return self.codes[0].size, max(column.places.stop for column in self.columns)

    def __getitem__(self, index: slice | NDArray[np.integer]) -> CodedRows:
        """Some of the rows."""
        sides = None if self.sides is None else self.sides[index]
        return replace(self, codes=tuple(code[index] for code in self.codes), sides=sides)

    def beside(self, sides: Sides) -> CodedRows:
        """The same rows, on these sides."""
        return replace(self, sides=sides)

    def matrix(self) -> Floats:
        """The rows x as a plain matrix."""
        return self @ np.eye(self.shape[1])

    def __matmul__(self, coefficients: Floats) -> Floats:
        """``x·f`` for every row, without sides: for one vector, or for the columns of a matrix."""
        by_column = np.atleast_2d(coefficients.T)
        found = np.empty((self.shape[0], len(by_column)))
        for i, f in enumerate(by_column):
            margin = self.margins(f)
            for part in blocks(len(found)):
                found[part, i] = margin(part)
        return found if coefficients.ndim == 2 else found[:, 0]

    def margins(self, f: NDArray[Any]) -> Callable[[slice], NDArray[Any]]:
        """``x·f`` for the rows of a block, without their sides."""
        return self._looked_up([column.products(f) for column in self.columns])

    def collected(self, part: slice, numbers: Floats) -> list[Floats]:
        """The sum of rows times numbers, over a block, in pieces that may be added up with those of other blocks."""
        sizes = (prod(shape) for shape in self._shapes)
        return [
            np.bincount(code[part], numbers, size).astype(np.float64, copy=False)
            for code, size in zip(self.codes, sizes, strict=True)
        ]

    def unpacked(self, pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The vector that added pieces stand for."""
        found = np.zeros(self.shape[1], dtype=pieces[0].dtype)
        for j, sums in self._by_column(pieces):
            found[self.columns[j].places] = self.columns[j].placed(sums)
        return found

    def careful_margins(self, f: NDArray[Any]) -> Callable[[slice], tuple[NDArray[Any], NDArray[Any]]]:
        """``x·f``, and by how many half units in the last place it may be off."""
        products = [column.products(f) for column in self.columns]
        margin, reach = self._looked_up(products), self._looked_up([np.abs(each) for each in products])
        most = len(self.packs) + max(map(len, self.packs)) + 1
        return lambda part: (margin(part), reach(part) * most)

    def careful_sum(self, part: slice, numbers: NDArray[Any]) -> NDArray[Any]:
        """The sum of rows times numbers over a block: exact up to the last roundings."""
        if part.stop - part.start > BLOCK:
            raise ValueError(f"at most {BLOCK} rows at a time")
        step = 2.0 ** (math.frexp(max(float(np.abs(numbers).max(initial=0.0)), 2.0**-900))[1] - _FINE)
        high = np.rint(numbers / step) * step
        rest = np.asarray(numbers - high, dtype=np.float64)
        found = np.zeros(self.shape[1], dtype=numbers.dtype)
        pieces = (self.collected(part, np.asarray(n, dtype=np.float64)) for n in (high, rest))
        for (j, whole), (_, left) in zip(*map(self._by_column, pieces), strict=True):
            found[self.columns[j].places] = self.columns[j].placed(whole.astype(numbers.dtype) + left)
        return found

    @property
    def roundings(self) -> float:
        """By how many half units a sum of `careful_sum` over all blocks may be off."""
        longest = max((column.values.size for column in self.columns if column.line), default=1)
        return 46 + math.log2(longest) + math.log2(1 + self.shape[0] / BLOCK)

    def gram(self, weights: Floats) -> Floats:
        """``Σ weight x xᵀ``, column by column: lines as numbers, indicators counted, two of them together."""
        total = np.zeros((self.shape[1], self.shape[1]))
        codes = [self._column(j) for j in range(len(self.columns))]
        for i, (first, own) in enumerate(zip(self.columns, codes, strict=True)):
            alone = first.placed(first.values * np.bincount(own, weights, first.values.size))
            total[first.places, first.places] = np.diag(alone)
            weighed = weights * first.values.take(own) if first.line else weights
            wide = own.astype(np.intp)
            for second, other in zip(self.columns[:i], codes, strict=False):
                if first.line:
                    sums = np.bincount(other, weighed, second.values.size)[:, None]
                elif second.line:
                    sums = first.placed(np.bincount(own, weights * second.values.take(other), first.values.size))[None]
                else:
                    sums = first.placed(_together(wide, other, first.values.size, second.values.size, weights)).T
                placed = sums if second.line and not first.line else second.placed(sums)
                total[second.places, first.places] = placed
                total[first.places, second.places] = placed.T
        return total

    def squares(self, weights: Floats) -> Floats:
        """The diagonal of the same."""
        squared = replace(self, columns=tuple(replace(c, values=c.values**2) for c in self.columns))
        pieces = [np.zeros(prod(shape)) for shape in self._shapes]
        for part in blocks(len(weights)):
            for sum_, more in zip(pieces, self.collected(part, weights[part]), strict=True):
                sum_ += more
        return squared.unpacked(pieces)

    @cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        return [tuple(self.columns[j].values.size for j in pack) for pack in self.packs]

    def _looked_up(self, each: Sequence[NDArray[Any]]) -> Callable[[slice], NDArray[Any]]:
        """The sum over the columns of what their codes stand for, for the rows of a block."""
        tables = [_outer_sums([each[j] for j in pack]) for pack in self.packs]

        def of(part: slice) -> NDArray[Any]:
            found = tables[0].take(self.codes[0][part])
            for table, code in zip(tables[1:], self.codes[1:], strict=True):
                found += table.take(code[part])
            return found

        return of

    def _by_column(self, pieces: Sequence[NDArray[Any]]) -> list[tuple[int, NDArray[Any]]]:
        """Sums per code of each column, from sums per code of the packs."""
        found = []
        for pack, shape, sums in zip(self.packs, self._shapes, pieces, strict=True):
            cube = sums.reshape(shape)
            for i, j in enumerate(pack):
                found.append((j, cube.sum(axis=tuple(a for a in range(len(shape)) if a != i))))
        return found

    def _column(self, j: int) -> Codes:
        """The codes of one column."""
        p = next(i for i, pack in enumerate(self.packs) if j in pack)
        shape, axis = self._shapes[p], self.packs[p].index(j)
        digit = np.arange(prod(shape)) // prod(shape[axis + 1 :]) % shape[axis]
        return np.asarray(digit.astype(narrow(shape[axis])).take(self.codes[p]))


def _outer_sums(each: Sequence[NDArray[Any]]) -> NDArray[Any]:
    total = each[0]
    for more in each[1:]:
        total = (total[:, None] + more).reshape(-1)
    return total


def _together(first: Codes, second: Codes, rows: int, columns: int, weights: Floats) -> Floats:
    """Sums of weights by the codes of two columns; block by block where the table of sums stays in the cache."""
    both = np.zeros(rows * columns)
    for part in blocks(weights.size) if both.size <= BLOCK else (slice(None),):
        both += np.bincount(first[part] * columns + second[part], weights[part], both.size)
    return both.reshape(rows, columns)
