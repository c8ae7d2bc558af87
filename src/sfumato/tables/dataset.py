"""A table with its public schema: exact counts and weighted sums, computed where the data lives.

Nothing here is private by itself: these are the true aggregates that a mechanism adds noise to. A `Dataset` is a
description; the file or connection is opened at the first aggregate and not before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, SchemaError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.tables import sums
from sfumato.tables.domains import Domain, Numeric
from sfumato.tables.engines import Engine, TableName, check_source, connect, describe
from sfumato.tables.expressions import Expr, Source, cell, condition, source_of
from sfumato.tables.predicates import Where, columns_of, parse_where
from sfumato.tables.roster import Roster
from sfumato.tables.schema import Schema

MAX_CELLS = 20_000_000  # a dense array of counts beyond this is a mistake more often than a wish
ROLL_UP_CELLS = 1_000_000  # up to here distinct rows are fetched and rolled up in memory


def open(
    source: Any,
    *,
    schema: Schema | str | Path,
    table: TableName | None = None,
    budgets: Roster | str | None = None,
) -> Dataset:
    """Describe a table; nothing is opened until the first aggregate.

    Parameters
    ----------
    source
        A Parquet or CSV file (or glob), a ``duckdb:///`` or ``postgresql://`` URL, a Spark session or DataFrame, a
        pandas, Polars or Arrow frame, or an Ibis table.
    schema : Schema or path
        The public schema, or the TOML file that holds it.
    table : str or (str, str), optional
        The table in a database (or its schema and name).
    budgets : Roster or str, optional
        Where each person's budget is written; a plain name is a column of the table, in ε.

    Examples
    --------
    >>> import pandas as pd
    >>> from sfumato.tables import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 99, bins=2, integer=True), "sex": Categorical(["F", "M"])})
    >>> clinic = open(pd.DataFrame({"age": [31, 77, 230], "sex": ["F", "M", "M"]}), schema=schema)
    >>> clinic.counts(["age", "sex"]).tolist()
    [[1, 0], [0, 2]]
    >>> clinic.count("age >= 65 and sex = 'M'")
    2
    """
    check_source(source, table)
    if not isinstance(schema, Schema):
        if not isinstance(schema, str | Path):
            raise SchemaError(f"schema must be a Schema or the path of its TOML file, got {type(schema).__name__}")
        schema = Schema.from_toml(schema)
    roster = Roster.column(budgets) if isinstance(budgets, str) else budgets
    if roster is not None and not isinstance(roster, Roster):
        raise InputError(f"budgets must be a Roster or the name of a column in ε, got {type(roster).__name__}")
    if roster is not None and roster.source is not None and schema.unit.person is None:
        raise SchemaError(
            "a roster table is joined on the person, but the schema's unit is the row; add to it: "
            f"[unit] person = {roster.person!r}, rows_per_person = 1"
        )
    return Dataset(source=source, schema=schema, table=table, budgets=roster)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with its schema; made by `open`.

    Rules for every method: names are columns of the schema; with a person column each call first keeps at most
    `rows_per_person` rows of each person, chosen at random, then applies `where`; a row counts in a cell only if it
    has a cell in every column asked for (see `sfumato.tables.domains`). Results are exact integers.

    People who granted nothing weigh nothing; in plain counts and sums they count, unless `roster_only` leaves them out.
    """

    source: Any = field(repr=False)
    schema: Schema = field(repr=False)
    table: TableName | None = None
    budgets: Roster | None = None
    roster_only: bool = False

    def __str__(self) -> str:
        return f"{describe(self.source)}{f', table {self.table!r}' if self.table else ''}"

    @cached_property
    def engine(self) -> Engine:
        """The open engine; first use opens the source."""
        uses = {name: _use(domain) for name, domain in self.schema.columns.items()}
        if self.budgets is not None and self.budgets.source is None:
            uses.setdefault(self.budgets.budget, self.budgets.use)
        if self.schema.unit.person is not None:
            uses.setdefault(self.schema.unit.person, "person")
        return connect(self.source, self.table, columns=uses)

    def check(self) -> None:
        """Open the table and compare column names and types with the schema; no row is read."""
        self._rows(self.schema.names, None, budgets=self.budgets is not None, capped=False)

    # ------------------------------------------------------------------------------------------ counts

    def count(self, where: Where = None) -> int:
        """Number of rows, optionally those that a predicate holds for."""
        rows, _ = self._rows((), where)
        return int(self.engine.fetch(rows.aggregate(n=rows.count()))["n"][0].as_py())

    def counts(self, columns: str | Sequence[str], where: Where = None) -> NDArray[np.int64]:
        """Rows per cell, as a dense array with one axis per column."""
        names = self._names(columns)
        shape = dense_shape(self.schema, names)
        codes, counts = self.sparse_counts(names, where)
        dense = np.zeros(shape, dtype=np.int64)
        dense[tuple(codes.T)] = counts
        return dense

    def sparse_counts(
        self, columns: str | Sequence[str], where: Where = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Cells that hold a row, as codes (one line per cell, in order) and counts.

        Which cells are empty is a fact about the data: a mechanism must not pass this set on.
        """
        names = self._names(columns)
        rows, sources = self._rows(names, where)
        cells = rows.select(**_cells(names, sources, self.schema))
        return _fetch_counts(self.engine, cells, len(names))

    def marginals(self, columns: Iterable[str | Sequence[str]], where: Where = None) -> list[NDArray[np.int64]]:
        """Several tables of counts from one scan, all over the same rows.

        The rows are first compressed to distinct combinations of cells, inside the engine; each marginal is then
        rolled up from those.
        """
        wanted = [self._names(c) for c in columns]
        shapes = [dense_shape(self.schema, names) for names in wanted]
        if len(wanted) == 1:
            return [self.counts(wanted[0], where)]
        union = tuple(dict.fromkeys(name for names in wanted for name in names))
        rows, sources = self._rows(union, where)
        place = {name: i for i, name in enumerate(union)}
        # A row without a cell in one column still counts in the marginals of the others.
        cells = {
            f"c{i}": code.fill_null(self.schema[name].size)
            for (i, name), code in zip(enumerate(union), _cells(union, sources, self.schema).values(), strict=True)
        }
        codes = rows.select(**cells)
        distinct = codes.group_by(codes.columns).agg(n=codes.count())
        if math.prod(self.schema[name].size + 1 for name in union) <= ROLL_UP_CELLS:
            found = self.engine.fetch(distinct)
            matrix = np.stack([found[f"c{i}"].to_numpy() for i in range(len(union))], axis=1).astype(np.int64)
            counts = found["n"].to_numpy().astype(np.int64)
            return [
                _roll_up(matrix[:, [place[n] for n in names]], counts, shape)
                for names, shape in zip(wanted, shapes, strict=True)
            ]
        stored = distinct.cache()
        try:
            return [
                self._marginal(stored, [place[n] for n in names], shape) for names, shape in zip(wanted, shapes, strict=True)
            ]
        finally:
            stored.release()

    def _marginal(self, stored: Expr, places: list[int], shape: tuple[int, ...]) -> NDArray[np.int64]:
        keys = [f"c{i}" for i in places]
        found = self.engine.fetch(stored.group_by(keys).agg(n=stored["n"].sum()))
        matrix = np.stack([found[k].to_numpy() for k in keys], axis=1).astype(np.int64)
        return _roll_up(matrix, found["n"].to_numpy().astype(np.int64), shape)

    def sum(self, measure: str, *, steps: int | None = None, base: int = 0, where: Where = None) -> int:
        """Sum over rows of a numeric column on its lattice: ``base + k`` with k in 0..steps, 0 where it is missing."""
        return sums.plain(self, measure, self._steps(measure, steps), base, where)

    # ------------------------------------------------------------------------------------ weighted sums

    def person_budgets(self) -> PersonBudgets:
        """Head counts per budget. Reads the table if the roster is a column of it without stated counts."""
        roster = self._roster()
        if not roster.reads_table:
            return roster.levels()
        rows, _ = self._rows((), None, budgets=True)
        if self.schema.unit.person is not None:
            rows = rows.group_by("person").agg(key=rows["key"].min())
        return roster.summary(self.engine.fetch(rows.group_by("key").agg(n=rows.count())))

    def level_counts(
        self,
        budgets: PersonBudgets | None = None,
        *,
        where: Where = None,
        measure: str | None = None,
        steps: int | None = None,
        base: int = 0,
    ) -> NDArray[np.int64]:
        """Rows per budget level (or sums of a measure, ``base`` plus its place on the lattice), in order of level.

        A person whose budget lies between two levels belongs to the lower one, below the first to none.
        """
        roster = self._roster()
        people = budgets if budgets is not None else self.person_budgets()
        lattice_steps = self._steps(measure, steps)
        if sums.check_range(abs(base) + lattice_steps):
            raise InputError(f"base {base} is too large for sums in 64 bits; use a coarser lattice (steps)")
        keys, totals = sums.by_key(self, where, measure, lattice_steps, base)
        return sums.align(roster, keys, totals, people)

    def weighted_sums(
        self,
        weights: int | tuple[Any, Any],
        *,
        measure: str | None = None,
        steps: int | None = None,
        by: Sequence[str] = (),
        where: Where = None,
    ) -> int | NDArray[Any]:
        """Sum over rows of (weight of the person's budget) times (measure), exactly.

        Parameters
        ----------
        weights : int or (levels, weights)
            A cap in nano-ε, for ``min(budget, cap)``; or sorted budget levels in nano-ε and an integer weight for
            each (budgets in between count at the level below, budgets below the first weigh 0).
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
        int, or an array (int64, or Python integers where 64 bits might not do)

        Notes
        -----
        One row moves the sum by at most ``weight * steps``, one person by `rows_per_person` times that.
        """
        self._roster()
        names = self._names(by) if len(by) else ()
        shape = dense_shape(self.schema, names) if names else ()
        return sums.weighted(self, weights, measure, self._steps(measure, steps), names, shape, where)

    # --------------------------------------------------------------------------------------- internals

    def _roster(self) -> Roster:
        if self.budgets is None:
            raise InputError(
                "this needs budgets per person: open(..., budgets=Roster.column('epsilon')), or tiers, or a table"
            )
        return self.budgets

    def _names(self, columns: str | Sequence[str]) -> tuple[str, ...]:
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        if not names:
            raise SchemaError(f"name at least one column; known: {', '.join(self.schema.names)}")
        for name in names:
            self.schema[name]
        if len(set(names)) < len(names):
            raise SchemaError(f"a column is named twice in {', '.join(names)}")
        return names

    def _steps(self, measure: str | None, steps: int | None) -> int:
        if measure is None:
            if steps is not None:
                raise InputError("steps needs a measure, the numeric column to put on the lattice")
            return 1
        domain = self.schema[measure]
        if not isinstance(domain, Numeric):
            raise SchemaError(f"column {measure!r} is categorical; a measure must be numeric")
        if steps is None:
            if not domain.integer:
                raise InputError(f"column {measure!r} is not whole numbers; give steps=..., for example steps=1000")
            steps = int(domain.high) - int(domain.low)
        if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= 2**30:
            raise InputError(f"steps must be a whole number from 1 to 2^30, got {steps!r}")
        return steps

    def _rows(
        self, columns: Iterable[str], where: Where, *, budgets: bool = False, raw: bool = False, capped: bool = True
    ) -> tuple[Expr, dict[str, Source]]:
        """The rows in use (capped, then filtered), and the columns asked for as sources.

        With `budgets` the rows carry ``key``, the person's budget as the roster encodes it; with `raw` the budget column
        of the table itself, still to be encoded. Only `check` leaves rows uncapped: some engines read them to cap them.
        """
        predicate = parse_where(where, self.schema)
        needed = sorted(set(columns) | columns_of(predicate), key=self.schema.names.index)
        engine, unit = self.engine, self.schema.unit
        # Plain names from here on: whatever a column is called, engines see v0, v1...
        alias = {name: f"v{i}" for i, name in enumerate(needed)}
        picked = {alias[name]: engine.column(name, "column") for name in needed}
        roster = self._roster() if budgets else self.budgets if self.roster_only else None
        in_table = roster is not None and roster.source is None
        if roster is not None and in_table:
            granted = engine.column(roster.budget, "the budget column")
            picked["key"] = granted if raw else roster.key(granted, engine)
        if unit.person is not None:
            picked["person"] = engine.column(unit.person, "the person column")
        rows = engine.table.select(**picked) if picked else engine.table
        if unit.person is not None and capped:
            lowest = "key" if in_table else None
            rows = engine.cap_rows(rows, person="person", rows=unit.rows_per_person, lowest=lowest)
        if roster is not None and not in_table:
            rows = roster.joined(rows, engine)
        if roster is not None and not budgets:
            rows = rows.filter(rows["key"] >= roster.least_key)
        sources = self._sources(rows, alias)
        if predicate.parts if hasattr(predicate, "parts") else True:
            rows = rows.filter(condition(predicate, sources, self.schema.columns))
            sources = self._sources(rows, alias)
        return rows, sources

    def _sources(self, rows: Expr, alias: dict[str, str]) -> dict[str, Source]:
        engine = self.engine
        return {
            name: source_of(rows[short], self.schema[name], engine=engine.name, what=f"column {name!r}", text=engine.text)
            for name, short in alias.items()
        }


def dense_shape(schema: Schema, names: Sequence[str]) -> tuple[int, ...]:
    """Cells per column, refused where all of them together are too many for a dense array: a public fact."""
    shape = schema.shape(names)
    if math.prod(shape) > MAX_CELLS:
        raise SchemaError(
            f"{' x '.join(map(str, shape))} = {math.prod(shape):,} cells over {', '.join(names)}; at most {MAX_CELLS:,}: "
            "use fewer columns or coarser bins"
        )
    return shape


def _use(domain: Domain) -> str:
    if isinstance(domain, Numeric):
        return "number"
    return {str: "text", bool: "bool"}.get(type(domain.values[0]), "number")


def _cells(names: Sequence[str], sources: dict[str, Source], schema: Schema) -> dict[str, Expr]:
    return {f"c{i}": cell(sources[name], schema[name]) for i, name in enumerate(names)}


def _fetch_counts(engine: Engine, cells: Expr, width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    import pyarrow.compute as pc

    keys = [f"c{i}" for i in range(width)]
    found = engine.fetch(cells.group_by(keys).agg(n=cells.count()))
    for key in keys:
        found = found.filter(pc.is_valid(found[key]))
    codes = np.stack([found[k].to_numpy() for k in keys], axis=1).astype(np.int64)
    order = np.lexsort(codes.T[::-1])
    return codes[order], found["n"].to_numpy().astype(np.int64)[order]


def _roll_up(codes: NDArray[np.int64], counts: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    kept = (codes < np.array(shape)).all(axis=1)  # the code after the last cell stands for "no cell"
    dense = np.zeros(shape, dtype=np.int64)
    np.add.at(dense, tuple(codes[kept].T), counts[kept])
    return dense
