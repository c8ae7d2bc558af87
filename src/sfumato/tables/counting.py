"""Rows per cell, counted where the data lives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.exact import Exact
from sfumato.tables.columns import Column, Expr
from sfumato.tables.predicates import Where
from sfumato.tables.raw_groups import coded_groups
from sfumato.tables.rows import exactly
from sfumato.tables.schema import Schema

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset

ROLL_UP_CELLS = 1_000_000  # up to here distinct rows are fetched and rolled up in memory
Counts = NDArray[np.int64]


def count(dataset: Dataset, where: Where) -> Exact[int]:
    """Number of rows that satisfy a predicate."""

    def read(rows: Expr, _columns: dict[str, Column]) -> int:
        return int(dataset.engine.fetch(rows.aggregate(n=rows.count()))["n"][0].as_py())

    return exactly(dataset, (), where, read)


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

    return exactly(dataset, names, where, read)


def dense(codes: Counts, counts: Counts, shape: tuple[int, ...]) -> Counts:
    """Counts per cell as a dense array, from the cells that hold a row."""
    cells = np.zeros(shape, dtype=np.int64)
    cells[tuple(codes.T)] = counts
    return cells


def cell_columns(names: Sequence[str], columns: dict[str, Column], schema: Schema) -> dict[str, Expr]:
    """The cells of some columns, as c0, c1..."""
    return {f"c{i}": schema[name].code(columns[name]) for i, name in enumerate(names)}


def marginals(dataset: Dataset, wanted: Sequence[Sequence[str]], where: Where) -> Exact[list[Counts]]:
    """See `Dataset.marginals`."""
    union = tuple(dict.fromkeys(name for names in wanted for name in names))
    return exactly(dataset, union, where, lambda rows, columns: _marginals(dataset, wanted, union, rows, columns))


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
