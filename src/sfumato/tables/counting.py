"""Rows per cell, counted where the data lives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.exact import Exact
from sfumato.tables.columns import Column, Expr, all_of, any_of
from sfumato.tables.predicates import Where
from sfumato.tables.raw_groups import coded_groups
from sfumato.tables.rows import exactly, exactly_counted
from sfumato.tables.schema import Schema

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset

ROLL_UP_CELLS = 1_000_000  # up to here distinct rows are fetched and rolled up in memory
Counts = NDArray[np.int64]


def count(dataset: Dataset, where: Where) -> Exact[int]:
    """Number of rows that satisfy a predicate."""

    if dataset.schema.unit.person is not None:
        return exactly_counted(
            dataset, where, lambda each: _whole(dataset.engine.fetch(each.aggregate(n=each["value"].sum()))["n"][0])
        )

    def read(rows: Expr, _columns: dict[str, Column]) -> int:
        return _whole(dataset.engine.fetch(rows.aggregate(n=rows.count()))["n"][0])

    return exactly(dataset, (), where, read)


def _whole(value: Expr) -> int:
    """A sum as a whole number; of no lines it is 0."""
    return int(value.as_py() or 0)


def sparse_counts(dataset: Dataset, names: Sequence[str], where: Where) -> Exact[tuple[Counts, Counts]]:
    """See `Dataset.sparse_counts`."""

    def read(rows: Expr, columns: dict[str, Column]) -> tuple[Counts, Counts]:
        import pyarrow.compute as pc

        keys = [f"c{i}" for i in range(len(names))]
        cells = coded_groups(rows, names, columns, dataset.schema, engine=dataset.engine.name, totals={"n": None})
        found = dataset.engine.fetch(cells)
        for key in keys:
            found = found.filter(pc.is_valid(found[key]))
        codes = np.stack([found[k].to_numpy() for k in keys], axis=1).astype(np.int64)
        order = np.lexsort(codes.T[::-1])
        return codes[order], found["n"].to_numpy().astype(np.int64)[order]

    return exactly(dataset, names, where, read, needs=lambda columns: has_cells(names, columns, dataset.schema))


def dense(codes: Counts, counts: Counts, shape: tuple[int, ...]) -> Counts:
    """Counts per cell as a dense array, from the cells that hold a row."""
    cells = np.zeros(shape, dtype=np.int64)
    cells[tuple(codes.T)] = counts
    return cells


def cell_columns(names: Sequence[str], columns: dict[str, Column], schema: Schema) -> dict[str, Expr]:
    """The cells of some columns, as c0, c1..."""
    return {f"c{i}": schema[name].code(columns[name]) for i, name in enumerate(names)}


def has_cells(names: Sequence[str], columns: dict[str, Column], schema: Schema) -> list[Expr]:
    """What must be true of a row for it to count: it has a cell in every one of some columns."""
    lacking = [name for name in names if not schema[name].other]  # with a cell for others, every row has one
    return [
        schema[name].code(columns[name]).notnull() if schema[name].missing else schema[name].inside(columns[name])
        for name in lacking
    ]


def marginals(dataset: Dataset, wanted: Sequence[Sequence[str]], where: Where) -> Exact[list[Counts]]:
    """See `Dataset.marginals`."""
    union = tuple(dict.fromkeys(name for names in wanted for name in names))

    def needs(columns: dict[str, Column]) -> list[Expr]:
        return [any_of([all_of(has_cells(names, columns, dataset.schema)) for names in wanted])]

    read = partial(_marginals, dataset, wanted, union)
    return exactly(dataset, union, where, read, needs=needs)


def _marginals(
    dataset: Dataset, wanted: Sequence[Sequence[str]], union: Sequence[str], rows: Expr, columns: dict[str, Column]
) -> list[Counts]:
    schema, engine = dataset.schema, dataset.engine
    cells = coded_groups(rows, union, columns, schema, engine=engine.name, totals={"n": None}, blank=True)
    # A row without a cell in one column still counts in the marginals of the others.
    codes = {f"c{i}": cells[f"c{i}"].fill_null(schema[name].size) for i, name in enumerate(union)}
    distinct = cells.select(**codes, n=cells["n"])
    keys = [[f"c{union.index(name)}" for name in names] for names in wanted]
    shapes = [schema.shape(names) for names in wanted]
    if math.prod(schema[name].size + 1 for name in union) <= ROLL_UP_CELLS:
        found = engine.fetch(distinct)
        return [_roll_up(found, k, shape) for k, shape in zip(keys, shapes, strict=True)]
    stored = engine.store(distinct)
    try:
        return [
            _roll_up(engine.fetch(stored.group_by(k).agg(n=stored["n"].sum())), k, shape)
            for k, shape in zip(keys, shapes, strict=True)
        ]
    finally:
        stored.release()


def _roll_up(found: Expr, keys: Sequence[str], shape: tuple[int, ...]) -> Counts:
    codes = np.stack([found[k].to_numpy() for k in keys], axis=1).astype(np.int64)
    kept = (codes < np.array(shape)).all(axis=1)  # the code after the last cell stands for "no cell"
    dense = np.zeros(shape, dtype=np.int64)
    np.add.at(dense, tuple(codes[kept].T), found["n"].to_numpy().astype(np.int64)[kept])
    return dense
