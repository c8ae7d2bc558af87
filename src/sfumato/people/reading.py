"""How a mechanism reads the table: a few integer sums, never rows.

A `Reader` answers two questions about one measure (an integer between public bounds per record): its sum with a public
integer weight per person group, and its sum per person group. The mechanisms see nothing else, so they run unchanged on
an array in a test and on ten million rows in a database.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.privacy import PersonBudgets
from sfumato.privacy.integers import as_int64
from sfumato.tables.personal import PersonalTable

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset

Integers = NDArray[np.int64]


class Reader(Protocol):
    """Exact integer sums of one measure."""

    def weighted_sum(self, weights: Integers) -> int:
        """``Σ over records of weights[group of the record] * measure``, with integer `weights` per person group."""

    def group_sums(self) -> Integers:
        """The measure summed per person group."""

    def group_values(self) -> Integers:
        """Number of records per person group (rows) and value of the measure from `low` to `high` (columns)."""


@dataclass(frozen=True, eq=False)
class ArrayReader(Reader):
    """A table that fits in memory: the group and the measure of each record.

    Attributes
    ----------
    table : int64 array
        Number of records per person group (rows) and value of the measure (columns); `of` makes it.
    low : int
        The value of the first column.

    Examples
    --------
    >>> reader = ArrayReader.of(groups=[0, 0, 1, 1, 1], values=[1, 0, 1, 1, 0])
    >>> reader.weighted_sum(np.array([3, 10])), reader.group_sums().tolist()
    (23, [1, 2])
    """

    table: Integers
    low: int = 0

    @classmethod
    def of(
        cls, groups: ArrayLike, values: ArrayLike, *, low: int = 0, high: int = 1, group_count: int | None = None
    ) -> ArrayReader:
        """Make a reader of one group number and one value per record.

        Parameters
        ----------
        groups : integers
            The person group of each record, from 0.
        values : integers
            The measure of each record, clamped to the bounds.
        low, high : int
            Public bounds of the measure.
        group_count : int, optional
            How many person groups there are; by default as many as the records show.

        Returns
        -------
        ArrayReader
        """
        g = np.asarray(groups, dtype=np.int64)
        v = np.asarray(values)
        if g.ndim != 1 or g.shape != v.shape:
            raise InputError("groups and values must be flat arrays of equal length")
        if v.dtype.kind not in "iub":
            raise InputError(f"a measure is a whole number, got {v.dtype}: put it on a lattice first")
        width = high - low + 1
        size = int(g.max(initial=-1)) + 1 if group_count is None else group_count
        if g.size and (int(g.min()) < 0 or int(g.max()) >= size):
            raise InputError(f"group numbers must lie between 0 and {size - 1}")
        cell = g * width + (np.clip(v.astype(np.int64), low, high) - low)
        return cls(np.bincount(cell, minlength=size * width).reshape(size, width).astype(np.int64), low)

    def group_sums(self) -> Integers:
        return np.asarray(self.table @ np.arange(self.low, self.low + self.table.shape[1], dtype=np.int64))

    def weighted_sum(self, weights: Integers) -> int:
        return sum(s * int(w) for s, w in zip(self.group_sums().tolist(), weights, strict=True))

    def group_values(self) -> Integers:
        return self.table


@dataclass(frozen=True)
class SumReader:
    """Sums that are known already, one per person group: for a lattice with too many points to count each of them.

    Attributes
    ----------
    sums : tuple of int
        The sum of the measure in each person group.

    Examples
    --------
    >>> SumReader.of(groups=[0, 0, 1], values=[250_000_000, 1, 7]).group_sums().tolist()
    [250000001, 7]
    """

    sums: tuple[int, ...]

    @classmethod
    def of(cls, groups: ArrayLike, values: ArrayLike, *, group_count: int | None = None) -> SumReader:
        """Make a reader of one group number and one value per record.

        Parameters
        ----------
        groups : integers
            The person group of each record, from 0.
        values : integers
            The measure of each record; clamp it to its bounds first.
        group_count : int, optional
            How many person groups there are; by default as many as the records show.

        Returns
        -------
        SumReader
        """
        g, v = np.asarray(groups, dtype=np.int64), as_int64(values)
        size = int(g.max(initial=-1)) + 1 if group_count is None else group_count
        found = np.zeros(size, dtype=np.int64)
        np.add.at(found, g, v)
        return cls(tuple(found.tolist()))

    def group_sums(self) -> Integers:
        """The measure summed per person group, held at the ends of 64 bits."""
        return as_int64(np.array(self.sums, dtype=object))

    def weighted_sum(self, weights: Integers) -> int:
        """The sums, each times the integer in `weights` of its person group, added up."""
        return sum(s * int(w) for s, w in zip(self.sums, weights, strict=True))

    def group_values(self) -> Integers:
        """Refused: how often each value of the measure occurs is not known."""
        raise InputError("sampling needs one count per value of the measure, and only sums are known here")


@dataclass(frozen=True, eq=False)
class DatasetReader(Reader):
    """A table anywhere: the engine adds up, weights meet the sums as exact integers.

    Parameters
    ----------
    dataset : tables.Dataset
        Opened with a roster.
    levels : PersonBudgets, optional
        The budgets of the roster that the dataset was opened with (a share of it: `Roster.share`); without them everybody
        is in one group.
    where : predicate, optional
        On public schema columns.
    measure : str, optional
        A numeric column on the lattice ``base + 0..steps``, 0 where it is missing; without it every row counts 1.
    steps : int, optional
        Size of the lattice between the column's bounds.
    base : int
        The lattice value at the lower bound.

    Notes
    -----
    See `tables.PersonalTable`: who belongs to which group, and why a measure is never put together from two queries.
    """

    dataset: Dataset
    levels: PersonBudgets | None = None
    where: Any = None
    measure: str | None = None
    steps: int | None = None
    base: int = 0

    @classmethod
    def centred(
        cls, dataset: Dataset, levels: PersonBudgets | None, *, measure: str, steps: int, where: Any = None
    ) -> DatasetReader:
        """The measure around the middle of its range, between -`steps` and `steps` half units: what a mean reads.

        `dataset`, `levels`, `measure` and `where` are as for the class.
        """
        return cls(dataset, levels, where, measure, 2 * steps, -steps)

    def group_sums(self) -> Integers:
        return self._table.group_sums(where=self.where, measure=self.measure, steps=self.steps, base=self.base)

    def weighted_sum(self, weights: Integers) -> int:
        return self._table.weighted_sum(weights, where=self.where, measure=self.measure, steps=self.steps, base=self.base)

    @property
    def _table(self) -> PersonalTable:
        return PersonalTable(self.dataset, self.levels)

    def group_values(self) -> Integers:
        if self.measure is not None:
            raise InputError("sampling a sum needs one count per value of the measure; choose another mechanism for tables")
        ones = self.group_sums()
        return np.stack([np.zeros_like(ones), ones], axis=1)


@dataclass(frozen=True, eq=False)
class PairReader:
    """What a mean reads.

    Attributes
    ----------
    centred : Reader
        Of the centred measure, ``2 v - steps``.
    ones : Reader
        Of the records themselves.
    """

    centred: Reader
    ones: Reader
