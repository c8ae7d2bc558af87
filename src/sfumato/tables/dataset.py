"""A table with its public schema: exact counts and weighted sums, computed where the data lives.

Every aggregate is an `Exact`: a private value that a Meter opens when it adds noise, and nobody else. A `Dataset` is a
description; the file or connection is opened for the first aggregate and not before, and no row is read until the Meter
opens one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, SchemaError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.exact import Exact
from sfumato.tables import counting, private_roster, sums
from sfumato.tables.connecting import connect
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.engine_settings import EngineSettings
from sfumato.tables.engines import Engine
from sfumato.tables.frames import AsArrow, person_array
from sfumato.tables.living import LivingRoster
from sfumato.tables.points import PointCounts, point_counts
from sfumato.tables.predicates import Where
from sfumato.tables.roster import Roster
from sfumato.tables.roster_findings import check_persons
from sfumato.tables.roster_join import matched
from sfumato.tables.rows import rows_in_use
from sfumato.tables.schema import Schema
from sfumato.tables.sources import TableName, describe
from sfumato.tables.sums import Measured


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with its schema; made by `sfumato.tables.open`.

    Rules for every method: names are columns of the schema; a row counts in a cell only if it has a cell in every column
    asked for (see `sfumato.tables.domains`); with a person column each call keeps, of the rows that can count, at most
    `rows_per_person` of each person, chosen at random (`sfumato.tables.capping`). Results are exact integers inside an
    `Exact`: what public facts decide is refused at once, rows are read when a Meter opens it.

    People who granted nothing weigh nothing; in plain counts and sums they count, unless `roster_only` leaves them out.

    Attributes
    ----------
    source
        Where the rows lie; see `sfumato.tables.open`.
    schema : Schema
        The public schema.
    table : str or (str, str), optional
        The table in a database.
    budgets : Roster, optional
        Where each person's budget is written.
    roster_only : bool
        Whether people who granted nothing are left out of plain counts and sums too.
    readable : tuple of str or None
        The only columns that may be read, beside the person and the budget; None for every column of the schema.
    csv : CsvOptions, optional
        How a text file is written.
    settings : EngineSettings, optional
        What DuckDB in this process may use.
    """

    source: Any = field(repr=False)
    schema: Schema = field(repr=False)
    table: TableName | None = None
    budgets: Roster | None = None
    roster_only: bool = False
    readable: tuple[str, ...] | None = None
    csv: CsvOptions | None = None
    settings: EngineSettings | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"{describe(self.source)}{f', table {self.table!r}' if self.table else ''}"

    @property
    def engine(self) -> Engine:
        """The open engine; first use opens the source, for all that were made from this description too."""
        budget = self.budgets.budget if self.budgets is not None and self.budgets.in_table else None
        found = self._open.get(budget) or (next(iter(self._open.values()), None) if budget is None else None)
        if found is None or found.is_closed:
            found = self._open[budget] = self._connected()
        return found

    def opened_on(self, engine: Engine) -> None:
        """Use `engine`, which is open, instead of opening the source."""
        self._open[None] = engine

    @cached_property
    def _open(self) -> dict[str | None, Engine]:
        """Engines by the column of budgets that was read into them, shared with descriptions of the same table."""
        return {}

    def _connected(self) -> Engine:
        columns: dict[str, AsArrow] = {name: domain.to_arrow for name, domain in self.schema.columns.items()}
        if self.budgets is not None and self.budgets.in_table:
            columns.setdefault(self.budgets.budget, self.budgets.to_arrow)
        if self.schema.unit.person is not None:
            columns.setdefault(self.schema.unit.person, person_array)
        return connect(self.source, self.table, columns=columns, csv=self.csv, settings=self.settings)

    def with_budgets(self, budgets: Roster) -> Dataset:
        """The same table with other `budgets` joined to it; opened once for both."""
        return self._opened_as(replace(self, budgets=budgets))

    def for_release(self, budgets: Roster | None) -> Dataset:
        """The same table, opened once for both, whose plain counts leave out people who have none of `budgets`."""
        return self._opened_as(replace(self, budgets=budgets, roster_only=True))

    def limited_to(self, columns: Iterable[str]) -> Dataset:
        """The same table, opened once for both, of which only `columns` can be read: what a release is charged for."""
        return self._opened_as(replace(self, readable=tuple(columns)))

    def _opened_as(self, other: Dataset) -> Dataset:
        other.__dict__["_open"] = self._open
        return other

    @property
    def roster(self) -> Roster:
        """Where budgets are written, or an error that says how to give them."""
        if self.budgets is None:
            raise InputError(
                "this needs budgets per person: open(..., budgets=Roster.column('epsilon')), or tiers, or a table"
            )
        return self.budgets

    def check(self) -> None:
        """Open the table and compare column names and types with the schema and the roster; no row of it is read."""
        names = [name for name in self.schema.names if self.readable is None or name in self.readable]
        rows_in_use(self, names, None, budgets=self.budgets is not None, to_check=True)
        self.check_persons()

    def check_persons(self) -> None:
        """Refuse a roster table whose persons cannot be those of this table; no row of this table is read."""
        _ = self._persons_match

    @cached_property
    def _persons_match(self) -> bool:
        if isinstance(self.budgets, LivingRoster):
            self.budgets.check_person_type(self._person_type())
        elif self.budgets is not None and self.budgets.source is not None:
            persons = self.engine.column(str(self.schema.unit.person), "the person column")
            if self.budgets.private:  # types only: what the roster holds is not told by an error either
                matched(self.budgets, persons.type(), self.budgets.connect(near=self.engine), self.engine)
                return True
            self.budgets.joined(self.engine.table.select(person=persons), self.engine)
            check_persons(self.budgets, persons.type())
        return True

    def findings(self) -> tuple[str, ...]:
        """What is odd about the roster, in sentences (see `Roster.findings`). Opens the table; no row of it is read."""
        if self.budgets is None:
            return ()
        return self.budgets.findings(self._person_type() if self.budgets.source is not None else None)

    # ------------------------------------------------------------------------------------------ counts

    def count(self, where: Where = None) -> Exact[int]:
        """Number of rows, with `where` of those that it holds for."""
        return counting.count(self, where)

    def counts(self, columns: str | Sequence[str], where: Where = None) -> Exact[NDArray[np.int64]]:
        """Rows per cell of `columns`, as a dense array with one axis per column; only those that `where` holds for."""
        names = self._names(columns)
        self.schema.check_cells(names)
        return self.sparse_counts(names, where).map(lambda cells: counting.dense(*cells, self.schema.shape(names)))

    def sparse_counts(
        self, columns: str | Sequence[str], where: Where = None
    ) -> Exact[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Cells of `columns` that hold a row, as codes (one line per cell, in order) and counts.

        Only rows that `where` holds for. Which cells are empty is a fact about the data, so it is inside the `Exact` too.
        """
        return counting.sparse_counts(self, self._names(columns), where)

    def marginals(self, columns: Iterable[str | Sequence[str]], where: Where = None) -> Exact[list[NDArray[np.int64]]]:
        """Several tables of counts from one scan, one for each entry of `columns`, all over the same rows.

        Take one of them by its public index: ``dataset.marginals(...)[0]``.

        The rows are first compressed to distinct combinations of cells, inside the engine; each marginal is then
        rolled up from those. With `where`, only rows that it holds for.
        """
        wanted = [self._names(c) for c in columns]
        for names in wanted:
            self.schema.check_cells(names)
        if len(wanted) == 1:
            return self.counts(wanted[0], where).map(lambda only: [only])
        return counting.marginals(self, wanted, where)

    def sum(self, measure: str, *, steps: int | None = None, base: int = 0, where: Where = None) -> Exact[int]:
        """Sum of the numeric column `measure` on its lattice, over rows that `where` holds for.

        A row counts `base` plus its place on the lattice of `steps` steps (see `Schema.lattice`), 0 where it is missing.
        """
        return sums.plain(self, Measured(measure, self.schema.lattice(measure, steps), base), where)

    def points(
        self,
        column: str,
        *,
        steps: int | None = None,
        by: Sequence[str] = (),
        budgets: PersonBudgets | None = None,
        weights: NDArray[np.int64] | None = None,
        where: Where = None,
    ) -> Exact[PointCounts]:
        """Rows per point of the lattice of `column` (0 to `steps`); a missing value has none.

        With `by` per cell of these columns, with `budgets` per person group as for `group_sums`; rows as `where` says. With
        `weights`, an integer for each person group, rows are added up by weight and all people are in one group.
        """
        names = self._names(by) if len(by) else ()
        self.schema.check_cells(names)
        return point_counts(self, column, self.schema.lattice(column, steps), names, budgets, where, weights)

    # ------------------------------------------------------------------------------------ weighted sums

    def person_budgets(self) -> PersonBudgets:
        """Public head counts per budget. Reads the table if the roster is a column of it without stated counts."""
        roster = self.roster
        if roster.private:
            return roster.head_counts()  # which refuses
        return sums.head_counts(self) if roster.reads_table else roster.head_counts()

    def heads(self) -> Exact[NDArray[np.int64]]:
        """People per tier of a roster with a menu, in its order: each person once, whatever rows they own.

        Whoever has no budget, or is not in the roster, is in no tier.
        """
        return private_roster.heads(self)

    def group_sums(
        self,
        budgets: PersonBudgets | None = None,
        *,
        where: Where = None,
        measure: str | None = None,
        steps: int | None = None,
        base: int = 0,
    ) -> Exact[NDArray[np.int64]]:
        """Rows per person group of `budgets` (by default those of the roster), or sums of a measure, in order of budget.

        A person whose budget lies between those of two groups belongs to the lower one, below the first to none.
        `measure`, `steps`, `base` and `where` are as for `sum`.
        """
        people = budgets if budgets is not None else self.person_budgets()
        return sums.group_sums(self, people, self._measured(measure, steps, base), where)

    def weighted_sums(
        self,
        weights: int | tuple[Any, Any],
        *,
        measure: str | None = None,
        steps: int | None = None,
        by: Sequence[str] = (),
        where: Where = None,
    ) -> Exact[int] | Exact[NDArray[Any]]:
        """Sum over rows of (weight of the person's budget) times (measure), exactly.

        Parameters
        ----------
        weights : int or (budgets, weights)
            A cap in nano-ε, for ``min(budget, cap)``; or sorted budgets in nano-ε and an integer weight for each (a
            budget in between weighs as the one below, a budget below the first weighs 0).
        measure : str, optional
            A numeric column, put on the lattice 0..steps between its public bounds (nearest point, clamped; missing
            counts 0): a lattice value v stands for ``low + v * (high - low) / steps``. Without it each row counts 1.
        steps : int, optional
            Size of the lattice; for an integer column ``high - low`` if not given.
        by : sequence of str
            Columns to group by; the result then has one axis per column.
        where : predicate, optional
            See `sfumato.tables.predicates`.

        Returns
        -------
        Exact of an int, or of an array (int64, or Python integers where 64 bits might not do)

        Notes
        -----
        One row moves the sum by at most ``weight * steps``, one person by `rows_per_person` times that.
        """
        names = self._names(by) if len(by) else ()
        self.schema.check_cells(names)
        return sums.weighted(self, weights, self._measured(measure, steps), names, where)

    # --------------------------------------------------------------------------------------- internals

    def _names(self, columns: str | Sequence[str]) -> tuple[str, ...]:
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        if not names:
            raise SchemaError(f"name at least one column; known: {', '.join(self.schema.names)}")
        for name in names:
            self.schema[name]
        if len(set(names)) < len(names):
            raise SchemaError(f"a column is named twice in {', '.join(names)}")
        return names

    def _person_type(self) -> Any:
        return self.engine.column(str(self.schema.unit.person), "the person column").type()

    def _measured(self, measure: str | None, steps: int | None, base: int = 0) -> Measured | None:
        if measure is not None:
            return Measured(measure, self.schema.lattice(measure, steps), base)
        if steps is not None:
            raise InputError("steps needs a measure, the numeric column to put on the lattice")
        return None
