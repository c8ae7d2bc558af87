"""How a mechanism reads the table: a few integer sums, never rows.

A `Reader` answers two questions about one measure (an integer between public bounds per record): its sum with a public
integer weight per person group, and its sum per person group. Both are `Exact`. The mechanisms see nothing else, so they
run unchanged on an array in a test and on ten million rows in a database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.people.array_sums import add_up, per_part, records_of, tally, weighted
from sfumato.privacy import Exact, PersonBudgets
from sfumato.privacy.integers import as_int64
from sfumato.tables.personal import PersonalTable

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset

Integers = NDArray[np.int64]


class Reader(Protocol):
    """Exact integer sums of one measure."""

    def weighted_sum(self, weights: Integers) -> Exact[int]:
        """``Σ over records of weights[group of the record] * measure``, with integer `weights` per person group."""

    def group_sums(self) -> Exact[Integers]:
        """The measure summed per person group."""

    def group_values(self) -> Exact[Integers]:
        """Number of records per person group (rows) and value of the measure from `low` to `high` (columns)."""

    def weighted_sums(self, weights: Sequence[Integers]) -> Exact[tuple[int, ...]]:
        """`weighted_sum` for each of several `weights`; over the same records."""
        first, *rest = (self.weighted_sum(each) for each in weights)
        return first.zip(*rest)

    def part_sums(self, parts: Integers, weights: Integers) -> Exact[list[int]]:
        """``Σ weights[group] * measure`` per part; `parts` numbers the part of each group (-1: none), `weights` weigh it."""
        return self.group_sums().map(lambda found: per_part(fitted(found, parts.size), parts, weights))


@dataclass(frozen=True, eq=False)
class ArrayReader(Reader):
    """A table that fits in memory: the group and the measure of each record.

    Attributes
    ----------
    table : Exact of an int64 array
        Number of records per person group (rows) and value of the measure (columns); `of` makes it.
    low : int
        The value of the first column.

    Examples
    --------
    >>> from sfumato.privacy import Meter
    >>> reader = ArrayReader.of(groups=[0, 0, 1, 1, 1], values=[1, 0, 1, 1, 0])
    >>> reader.weighted_sum(np.array([3, 10]))
    <Exact: a private value>
    >>> Meter().laplace(reader.group_sums(), rate=50 * 10**9).tolist()
    [1, 2]
    """

    table: Exact[Integers]
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
            How many person groups there are; by default as many as the records show. A record of any other group counts
            in none.

        Returns
        -------
        ArrayReader
        """
        records = records_of(groups, values)
        return cls(records.map(lambda both: tally(*both, low, high, group_count)), low)

    def group_sums(self) -> Exact[Integers]:
        return self.table.map(lambda table: table @ np.arange(self.low, self.low + table.shape[1], dtype=np.int64))

    def weighted_sum(self, weights: Integers) -> Exact[int]:
        return self.group_sums().map(lambda sums: weighted(sums.tolist(), weights))

    def group_values(self) -> Exact[Integers]:
        return self.table


@dataclass(frozen=True, eq=False)
class SumReader(Reader):
    """Sums that are known already, one per person group: for a lattice with too many points to count each of them.

    Attributes
    ----------
    sums : Exact of a tuple of int
        The sum of the measure in each person group.

    Examples
    --------
    >>> from sfumato.privacy import Meter
    >>> reader = SumReader.of(groups=[0, 0, 1], values=[250_000_000, 1, 7])
    >>> Meter().laplace(reader.group_sums(), rate=50 * 10**9).tolist()
    [250000001, 7]
    """

    sums: Exact[tuple[int, ...]]

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
            How many person groups there are; by default as many as the records show. A record of any other group counts
            in none.

        Returns
        -------
        SumReader
        """
        return cls(records_of(groups, values).map(lambda both: add_up(*both, group_count)))

    def group_sums(self) -> Exact[Integers]:
        """The measure summed per person group, held at the ends of 64 bits."""
        return self.sums.map(lambda sums: as_int64(np.array(sums, dtype=object)))

    def weighted_sum(self, weights: Integers) -> Exact[int]:
        """The sums, each times the integer in `weights` of its person group, added up."""
        return self.sums.map(lambda sums: weighted(sums, weights))

    def group_values(self) -> Exact[Integers]:
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

    def group_sums(self) -> Exact[Integers]:
        return self._table.group_sums(where=self.where, measure=self.measure, steps=self.steps, base=self.base)

    def weighted_sum(self, weights: Integers) -> Exact[int]:
        return self.weighted_sums([weights])[0]

    def weighted_sums(self, weights: Sequence[Integers]) -> Exact[tuple[int, ...]]:
        return self._table.weighted_sums(weights, where=self.where, measure=self.measure, steps=self.steps, base=self.base)

    def part_sums(self, parts: Integers, weights: Integers) -> Exact[list[int]]:
        people = self.levels
        if people is None or people.names is not None:
            return super().part_sums(parts, weights)
        # Neighbours in one part with one weight are one group: their sums are asked for, not those of every budget.
        starts = np.flatnonzero(np.append(True, (np.diff(parts) != 0) | (np.diff(weights) != 0)))
        few = PersonBudgets(people.levels[starts], np.zeros_like(starts))
        found = replace(self, levels=few).group_sums()
        return found.map(lambda sums: per_part(sums, parts[starts], weights[starts]))

    @property
    def _table(self) -> PersonalTable:
        return PersonalTable(self.dataset, self.levels)

    def group_values(self) -> Exact[Integers]:
        if self.measure is not None:
            raise InputError("sampling a sum needs one count per value of the measure; choose another mechanism for tables")
        return self.group_sums().map(lambda ones: np.stack([np.zeros_like(ones), ones], axis=1))


@dataclass(frozen=True, eq=False)
class Together(Reader):
    """A reader whose sums with some public weights come from one query, for a mechanism that asks for several.

    Parameters
    ----------
    reader : Reader
        Whom to ask.
    weights : tuple of int64 arrays
        What will be asked for.

    Examples
    --------
    >>> one, ten = np.array([1]), np.array([10])
    >>> both = Together(ArrayReader.of(groups=[0, 0], values=[1, 1]), (one, ten))
    >>> from sfumato.privacy import Meter
    >>> Meter().laplace(both.weighted_sum(ten).map(lambda total: [total]), rate=50 * 10**9).tolist()
    [20]
    """

    reader: Reader
    weights: tuple[Integers, ...]

    @cached_property
    def _found(self) -> Exact[tuple[int, ...]]:
        return weighted_sums(self.reader, self.weights)

    def weighted_sum(self, weights: Integers) -> Exact[int]:
        for place, known in enumerate(self.weights):
            if known is weights:
                return self._found[place]
        return self.reader.weighted_sum(weights)

    def weighted_sums(self, weights: Sequence[Integers]) -> Exact[tuple[int, ...]]:
        return weighted_sums(self.reader, weights)

    def part_sums(self, parts: Integers, weights: Integers) -> Exact[list[int]]:
        return part_sums(self.reader, parts, weights)

    def group_sums(self) -> Exact[Integers]:
        return self.reader.group_sums()

    def group_values(self) -> Exact[Integers]:
        return self.reader.group_values()


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


def weighted_sums(reader: Reader, weights: Sequence[Integers]) -> Exact[tuple[int, ...]]:
    """`Reader.weighted_sums`, also of a reader that knows `weighted_sum` alone."""
    return getattr(reader, "weighted_sums", partial(Reader.weighted_sums, reader))(weights)


def part_sums(reader: Reader, parts: Integers, weights: Integers) -> Exact[list[int]]:
    """`Reader.part_sums`, also of a reader that knows `group_sums` alone."""
    return getattr(reader, "part_sums", partial(Reader.part_sums, reader))(parts, weights)


def fitted(groups: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Rows for exactly `count` person groups: what public facts say, whatever groups the records show.

    >>> fitted(np.array([[1, 2], [3, 4]]), 3).tolist(), fitted(np.array([5, 6]), 1).tolist()
    ([[1, 2], [3, 4], [0, 0]], [5])
    """
    if len(groups) == count:
        return groups
    return np.concatenate([groups[:count], np.zeros((max(0, count - len(groups)), *groups.shape[1:]), dtype=np.int64)])
