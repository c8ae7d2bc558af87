"""How a mechanism reads the table: a few integer sums, never rows.

A `Reader` answers two questions about one measure (an integer between public bounds per record): its sum with a public
integer weight per person group, and its sum per person group. The mechanisms see nothing else, so they run unchanged on
an array in a test and on ten million rows in a database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.privacy import PersonBudgets
from sfumato.privacy.integers import as_int64

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset

Integers = NDArray[np.int64]


class Reader(Protocol):
    """Exact integer sums of one measure."""

    def weighted_sum(self, weights: Integers) -> int:
        """``Σ over records of weights[group of the record] * measure``."""

    def group_sums(self) -> Integers:
        """The measure summed per person group."""

    def group_values(self) -> Integers:
        """Number of records per person group (rows) and value of the measure from `low` to `high` (columns)."""


@dataclass(frozen=True, eq=False)
class ArrayReader:
    """A table that fits in memory: the group and the measure of each record.

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
        """From one group number and one integer value per record; values are clamped to the bounds."""
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

    >>> SumReader.of(groups=[0, 0, 1], values=[250_000_000, 1, 7]).group_sums().tolist()
    [250000001, 7]
    """

    sums: tuple[int, ...]

    @classmethod
    def of(cls, groups: ArrayLike, values: ArrayLike, *, group_count: int | None = None) -> SumReader:
        """From one group number and one integer value per record; clamp the values to their bounds first."""
        g, v = np.asarray(groups, dtype=np.int64), as_int64(values)
        size = int(g.max(initial=-1)) + 1 if group_count is None else group_count
        found = np.zeros(size, dtype=np.int64)
        np.add.at(found, g, v)
        return cls(tuple(found.tolist()))

    def group_sums(self) -> Integers:
        return as_int64(np.array(self.sums, dtype=object))

    def weighted_sum(self, weights: Integers) -> int:
        return sum(s * int(w) for s, w in zip(self.sums, weights, strict=True))

    def group_values(self) -> Integers:
        raise InputError("sampling needs one count per value of the measure, and only sums are known here")


@dataclass(frozen=True, eq=False)
class DatasetReader:
    """A table anywhere: the engine adds up, weights meet the sums as exact integers.

    Parameters
    ----------
    dataset : tables.Dataset
        Opened with a roster.
    levels : PersonBudgets
        The budgets of the roster that the dataset was opened with (a share of it: `Roster.share`).
    where : predicate, optional
        On public schema columns.
    measure : str, optional
        A numeric column on the lattice ``base + 0..steps``, 0 where it is missing; without it every row counts 1.
    exact : bool
        Every budget of the roster *is* one of the levels (they were read from it, neither stated nor rounded). Then a cap
        is one expression in the engine. Never say so of stated levels: whoever granted more than their level would enter
        with more weight than they are charged for.

    Notes
    -----
    Each method is one query. Where the engine keeps a random few of a person's rows, two queries see different rows, so a
    measure must never be put together from two of them: `base` shifts the lattice inside the engine.
    """

    dataset: Dataset
    levels: PersonBudgets
    where: Any = None
    measure: str | None = None
    steps: int | None = None
    base: int = 0
    exact: bool = False

    @classmethod
    def centred(
        cls, dataset: Dataset, levels: PersonBudgets, *, measure: str, steps: int, where: Any = None
    ) -> DatasetReader:
        """The measure around the middle of its range, between -steps and steps half units: what a mean reads."""
        return cls(dataset, levels, where, measure, 2 * steps, -steps)

    def group_sums(self) -> Integers:
        return self.dataset.level_counts(
            self.levels, where=self.where, measure=self.measure, steps=self.steps, base=self.base
        )

    def weighted_sum(self, weights: Integers) -> int:
        cap = int(weights.max(initial=0))
        if self.exact and self.base == 0 and cap >= 1 and bool((weights == np.minimum(self.levels.levels, cap)).all()):
            # min(budget, cap) is one expression in the engine, however many levels there are
            return int(self.dataset.weighted_sums(cap, measure=self.measure, steps=self.steps, where=self.where))
        return sum(s * w for s, w in zip(self.group_sums().tolist(), weights.tolist(), strict=True) if s and w)

    def group_values(self) -> Integers:
        if self.measure is not None:
            raise InputError("sampling a sum needs one count per value of the measure; choose another mechanism for tables")
        ones = self.group_sums()
        return np.stack([np.zeros_like(ones), ones], axis=1)


@dataclass(frozen=True, eq=False)
class TableReader:
    """What a release reads: per person group where budgets differ, else the one sum over everybody."""

    dataset: Dataset
    budgets: PersonBudgets | None
    where: Any = None
    measure: str | None = None
    steps: int | None = None
    base: int = 0

    def group_sums(self) -> Integers:
        if self.budgets is not None:
            return self._by_group().group_sums()
        if self.measure is None:
            return np.array([self.dataset.count(self.where)], dtype=np.int64)
        return np.array([self.dataset.sum(self.measure, steps=self.steps, base=self.base, where=self.where)], dtype=np.int64)

    def weighted_sum(self, weights: Integers) -> int:
        if self.budgets is not None:
            return self._by_group().weighted_sum(weights)
        return int(self.group_sums()[0]) * int(weights[0])

    def group_values(self) -> Integers:
        if self.budgets is None:
            raise InputError("sampling needs budgets that differ")
        return self._by_group().group_values()

    def _by_group(self) -> DatasetReader:
        assert self.budgets is not None
        return DatasetReader(self.dataset, self.budgets, self.where, self.measure, self.steps, self.base)


@dataclass(frozen=True, eq=False)
class PairReader:
    """What a mean reads: the centred measure (``2 v - steps``) and the records themselves."""

    centred: Reader
    ones: Reader


def weighted_cells(
    dataset: Dataset, weights: Integers, columns: Sequence[str], where: Any, budgets: PersonBudgets | None
) -> Integers:
    """Weighted sum of every cell of `columns`, with a weight per person group of the roster."""
    assert budgets is not None
    exact = dataset.budgets is not None and not dataset.budgets.states_levels
    found = np.asarray(dataset.weighted_sums(engine_weights(budgets.levels, weights, exact), by=columns, where=where))
    return as_int64(found.reshape(-1)).reshape(found.shape)  # held at the ends: to fail here would tell of the data


def engine_weights(levels: Integers, weights: Integers, exact: bool) -> int | tuple[Any, Any]:
    """The weights in the cheapest form: ``min(budget, cap)`` is one expression, anything else a table of levels.

    Only where every budget of the table is `exact`ly one of the levels: whoever granted something in between, or less than
    the first level, is charged as the level below and must not weigh more than it.
    """
    cap = int(weights.max())
    if exact and cap >= 1 and bool((weights == np.minimum(levels, cap)).all()):
        return cap
    keep = np.concatenate([np.diff(levels) > 0, [True]])  # tiers of equal budget have equal weights
    return levels[keep], weights[keep]
