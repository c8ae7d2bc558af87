"""How a family reads a table in which people weigh differently: integer sums per person group, never rows.

One rule, whatever the roster: a record belongs to the group with the largest budget that its person's own budget reaches,
and weighs what that group weighs; below the first group it weighs nothing. So nobody enters with more weight than the
group they are charged as, whether the budgets were read from a roster, stated by hand or rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.exact import Exact
from sfumato.privacy.integers import as_int64
from sfumato.tables import moments, sums
from sfumato.tables.counting import dense
from sfumato.tables.moments import WeighedMoments
from sfumato.tables.predicates import Where
from sfumato.tables.weighted import read_weighted

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PersonalTable:
    """A table read by person group.

    Parameters
    ----------
    dataset : Dataset
        Opened with a roster, if budgets differ.
    budgets : PersonBudgets, optional
        The groups; without them everybody is in one.

    Examples
    --------
    >>> import pandas as pd
    >>> from sfumato.privacy import Meter
    >>> from sfumato.tables import Numeric, Schema, open
    >>> frame = pd.DataFrame({"age": [31, 77, 78], "epsilon": [0.1, 0.5, 1.0]})
    >>> clinic = open(frame, schema=Schema({"age": Numeric(0, 99, bins=2, integer=True)}), budgets="epsilon")
    >>> table = PersonalTable(clinic, PersonBudgets.of([0.1, 0.3]))
    >>> table.weighted_cells(np.array([1, 10]), ["age"])
    <Exact: a private value>
    >>> Meter().laplace(table.group_sums(), rate=50 * 10**9).tolist()
    [1, 2]

    Notes
    -----
    Each method is one query, made when the Meter opens its result. Where the engine keeps a random few of a person's rows,
    two queries see different rows, so a measure must never be put together from two of them: `base` shifts the lattice
    inside the engine.
    """

    dataset: Dataset
    budgets: PersonBudgets | None = None

    def group_sums(
        self, *, where: Where = None, measure: str | None = None, steps: int | None = None, base: int = 0
    ) -> Exact[Integers]:
        """Rows per person group, or sums of a measure on the lattice ``base + 0..steps``, 0 where it is missing.

        `where`, `measure`, `steps` and `base` are as for `Dataset.sum`; without `measure` every row counts 1.
        """
        if self.budgets is not None:
            return self.dataset.group_sums(self.budgets, where=where, measure=measure, steps=steps, base=base)
        if measure is None:
            return self.dataset.count(where).map(_one)
        return self.dataset.sum(measure, steps=steps, base=base, where=where).map(_one)

    def weighted_sum(
        self,
        weights: Integers,
        *,
        where: Where = None,
        measure: str | None = None,
        steps: int | None = None,
        base: int = 0,
    ) -> Exact[int]:
        """``Σ over rows of weights[group of the row] * measure``, exactly.

        `weights` has an integer for each person group; `where`, `measure`, `steps` and `base` are as for `group_sums`.
        """
        return self.weighted_sums([weights], where=where, measure=measure, steps=steps, base=base)[0]

    def weighted_sums(
        self,
        weights: Sequence[Integers],
        *,
        where: Where = None,
        measure: str | None = None,
        steps: int | None = None,
        base: int = 0,
    ) -> Exact[tuple[int, ...]]:
        """`weighted_sum` for each of several `weights`, from one query over the same rows.

        `where`, `measure`, `steps` and `base` are as for `group_sums`.
        """
        lines = np.stack([self._checked(each) for each in weights])
        if self.budgets is None:
            plain = self.group_sums(where=where, measure=measure, steps=steps, base=base)
            return plain.map(lambda found: tuple(int(found[0]) * int(line[0]) for line in lines))
        lattice = None if measure is None else sums.Measured(measure, self.dataset.schema.lattice(measure, steps), base)
        if lattice is None and steps is not None:
            raise InputError("steps needs a measure, the numeric column to put on the lattice")
        if lattice is not None:
            sums.check_sums(lattice)
        found = read_weighted(self.dataset, self.budgets, lines, (), where, measured=(lattice,))
        return found.map(lambda cells: tuple(int(total) for total in cells[1][:, 0].sum(axis=0)))

    def weighted_cells(self, weights: Integers, columns: Sequence[str], where: Where = None) -> Exact[Integers]:
        """Count of every cell of `columns` by `weights` per person group, one axis per column; rows as `where` says."""
        return self.weighted_tables([weights], columns, where)[0]

    def weighted_tables(
        self, weights: Sequence[Integers], columns: Sequence[str], where: Where = None
    ) -> Exact[tuple[Integers, ...]]:
        """`weighted_cells` for each of several `weights`, from one query over the same rows.

        `columns` and `where` are as there.
        """
        self.dataset.schema.check_cells(columns)
        shape = self.dataset.schema.shape(columns)
        return self._weighted_lines(weights, columns, where).map(
            lambda found: tuple(dense(found[0], as_int64(line), shape) for line in found[1].T)
        )

    def weighed_at_once(
        self, weights: Sequence[Integers], columns: Sequence[str], where: Where = None
    ) -> Callable[[Integers], Exact[Integers]]:
        """`weighted_cells` as a function of one of the given `weights`, all of them from one query over the same rows.

        `columns` and `where` are as there.
        """
        found = self.weighted_tables(weights, columns, where)

        def weighed(asked: Integers) -> Exact[Integers]:
            place = next((i for i, known in enumerate(weights) if known is asked), None)
            return self.weighted_cells(asked, columns, where) if place is None else found[place]

        return weighed

    def weighted_rows(
        self, weights: Integers, columns: Sequence[str], where: Where = None
    ) -> Exact[tuple[Integers, Integers]]:
        """The cells of `columns` that hold a row, as codes (one line per cell, in order), and their weighted counts.

        `weights` and `where` are as for `weighted_cells`. For tables with too many cells for a dense array. Which cells are
        empty is a fact about the data, so it is inside the `Exact` too.
        """
        shape = self.dataset.schema.shape(columns)
        return self._weighted_lines([weights], columns, where).map(lambda found: _in_order(found[0], found[1], shape))

    def _weighted_lines(self, weights: Sequence[Integers], columns: Sequence[str], where: Where) -> Exact[Any]:
        lines = np.stack([self._checked(each) for each in weights])
        if self.budgets is not None:
            found = read_weighted(self.dataset, self.budgets, lines, columns, where)
            return found.map(lambda cells: (cells[0], cells[1][:, 0]))
        return self.dataset.sparse_counts(columns, where).map(
            lambda found: (found[0], found[1].astype(object)[:, None] * lines[:, 0].astype(object))
        )

    def group_rows(self, columns: Sequence[str], where: Where = None) -> Exact[tuple[Integers, Integers, Integers]]:
        """Rows per person group and cell of `columns`, for those that hold one: group numbers, codes and counts.

        For learners that look at records one by one; needs `budgets`. `where` is as for `weighted_cells`.
        """
        if self.budgets is None:
            raise InputError("rows by person group need person groups: PersonalTable(dataset, budgets)")
        return sums.group_cells(self.dataset, self.budgets, columns, where)

    def moments(
        self,
        columns: Sequence[str] = (),
        where: Where = None,
        *,
        measure: str | None = None,
        steps: int | None = None,
        holds: Where = None,
        powers: int = 0,
    ) -> Exact[moments.Moments]:
        """Rows and sums of powers for every person group and cell of `columns` that holds a row, from one query.

        Parameters
        ----------
        columns : sequence of str
            Whose cells to keep apart; none for the whole table.
        where : predicate, optional
            Which rows count.
        measure : str, optional
            A numeric column on the lattice 0..steps; rows where it is missing have no part, not even in the number of rows.
        steps : int, optional
            Size of the lattice; for an integer column ``high - low`` if not given.
        holds : predicate, optional
            Instead of a measure: 1 where the condition holds and 0 where it does not.
        powers : 0, 1 or 2
            Rows only; their sum as well; their sum of squares as well.

        Returns
        -------
        Exact of (groups, cells, totals)
            A number of the person group, the codes of the cell and the totals of powers 0 to `powers`, line by line.
        """
        self.dataset.schema.check_cells(columns)
        lattice = None if measure is None else sums.Measured(measure, self.dataset.schema.lattice(measure, steps))
        about = {"measure": lattice, "holds": holds, "powers": powers}
        return moments.moments(self.dataset, self.budgets, columns, where, **about)  # type: ignore[arg-type]

    def weighed_moments(
        self,
        weights: Sequence[Integers],
        columns: Sequence[str] = (),
        where: Where = None,
        *,
        measure: str | None = None,
        steps: int | None = None,
        holds: Where = None,
        powers: int = 0,
        less: int = 0,
    ) -> WeighedMoments:
        """`moments` of rows that are weighed where they are, for each of several `weights`; from one query.

        `columns`, `where`, `measure`, `steps`, `holds` and `powers` are as there; `less` is taken from every weight, down to
        0, before rows enter with it.
        """
        self.dataset.schema.check_cells(columns)
        lattice = None if measure is None else sums.Measured(measure, self.dataset.schema.lattice(measure, steps))
        lines = np.maximum(np.stack([self._checked(each) for each in weights]) - less, 0)
        about: Any = {"measure": lattice, "holds": holds, "powers": powers, "lines": lines}
        found = moments.moments(self.dataset, self.budgets, columns, where, **about)
        return WeighedMoments(tuple(weights), found)

    def margins(
        self, columns: Sequence[str], where: Where = None, weights: Sequence[Integers] = ()
    ) -> Callable[[Integers, Sequence[int]], Exact[Integers]]:
        """Weighted counts over any of `columns`, from one query for all of `weights`; rows as `where` says.

        A row counts only if it has a cell in every one of `columns`, so that all margins are sums of one table. What is
        returned takes a weight per person group and the positions of the columns to keep (none for the total). Weights that
        were not named beforehand have a query of their own.
        """
        names = tuple(columns)
        named = tuple(weights)
        together = self._weighted_lines(named, names, where) if named else None
        alike = self._weighted_lines([np.ones(1, dtype=np.int64)], names, where) if self.budgets is None else None

        def margin(weights: Integers, kept: Sequence[int]) -> Exact[Integers]:
            shape = self.dataset.schema.shape([names[i] for i in kept])
            self.dataset.schema.check_cells([names[i] for i in kept])
            place = next((i for i, known in enumerate(named) if known is weights), None)
            times = 1
            if alike is not None:  # one group, which any weight is a multiple for
                found, place, times = alike, 0, int(self._checked(weights)[0])
            elif place is None or together is None:
                found, place = self._weighted_lines([weights], names, where), 0
            else:
                found = together

            def counted(cells: tuple[Integers, NDArray[Any]]) -> Integers:
                codes, totals = cells[0][:, list(kept)], cells[1][:, place]
                totals = totals.astype(object) * times  # Python integers: 64 bits might not do
                if not kept:
                    return as_int64(sum(totals.tolist()))
                summed = np.zeros(shape, dtype=object)
                np.add.at(summed, tuple(codes.T), totals)
                return as_int64(summed)

            return found.map(counted)

        return margin

    def _checked(self, weights: Integers) -> Integers:
        each = np.asarray(weights, dtype=np.int64)
        groups = 1 if self.budgets is None else self.budgets.groups
        if each.shape != (groups,) or int(each.min()) < 0:
            raise InputError(f"a weight of at least 0 is needed for each of {groups} person groups")
        return each


def _one(value: int) -> Integers:
    return as_int64([value])


def _in_order(cells: Integers, totals: NDArray[Any], shape: tuple[int, ...]) -> tuple[Integers, Integers]:
    """The cells in which somebody weighs something, in order; their totals held at the ends, as to fail would tell."""
    held = as_int64(totals[:, 0])
    cells, held = cells[held > 0], held[held > 0]
    distinct, place = _distinct(cells, shape)
    order = np.argsort(place, kind="stable")
    return distinct, held[order]


def _distinct(cells: Integers, shape: tuple[int, ...]) -> tuple[Integers, Integers]:
    """The different cells in order, and which of them each cell is."""
    if math.prod(shape) >= 2**62:
        different, place = np.unique(cells, axis=0, return_inverse=True)
        return different, place.reshape(-1)
    codes, place = np.unique(np.ravel_multi_index(tuple(cells.T), shape), return_inverse=True)
    return np.stack(np.unravel_index(codes, shape), axis=1), place.reshape(-1)
