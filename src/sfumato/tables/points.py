"""Rows per point of a column's lattice, counted where the data lives: the one aggregate behind every quantile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.exact import Exact
from sfumato.tables.columns import Column, Expr
from sfumato.tables.counting import cell_columns, has_cells
from sfumato.tables.lattice import Lattice, on_lattice
from sfumato.tables.predicates import Where
from sfumato.tables.rows import exactly
from sfumato.tables.sums import groups_of_keys

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PointCounts:
    """Rows per person group, cell and point of the lattice, for those that hold a row; a point may come more than once.

    Attributes
    ----------
    groups : int64 array
        The person group, 0 where everybody is in one.
    cells : int64 array
        Codes of the cell, one line per entry and one column for each column to group by.
    points : int64 array
        The place on the lattice, from 0.
    counts : int64 array
        How many rows.
    """

    groups: Integers
    cells: Integers
    points: Integers
    counts: Integers


def point_counts(
    dataset: Dataset, column: str, lattice: Lattice, by: Sequence[str], people: PersonBudgets | None, where: Where
) -> Exact[PointCounts]:
    """See `Dataset.points`."""
    cells = [f"c{i}" for i in range(len(by))]

    def read(rows: Expr, columns: dict[str, Column]) -> PointCounts:
        domain, engine, measured = dataset.schema[column], dataset.engine, columns[column]
        keys = {"key": rows["key"]} if people is not None else {}
        given = {**keys, **cell_columns(by, columns, dataset.schema)}

        def place(value: Column) -> Expr:
            return on_lattice(domain.number(value), lattice, base=1)  # 0 is left for what is missing

        if measured.kind == "int":
            # Whole numbers are counted as they stand: the lattice then costs a step per value, not one per row.
            table = rows.select(value=measured.expr, **given)
            counted = table.group_by(["value", *given]).agg(n=table.count())
            kept = {name: counted[name] for name in given}
            table = counted.select(point=place(Column(counted["value"], "int")), n=counted["n"], **kept)
            # Where every whole number has a point of its own, little is left to be added up.
            found = table if lattice.exact else table.group_by(["point", *given]).agg(n=table["n"].sum())
        else:
            table = rows.select(point=place(measured), **given)
            found = table.group_by(["point", *given]).agg(n=table.count())
        return _read(dataset, engine.fetch(found), cells, people)

    def needs(columns: dict[str, Column]) -> list[Expr]:
        return [dataset.schema[column].number(columns[column]).notnull(), *has_cells(by, columns, dataset.schema)]

    return exactly(dataset, [column, *by], where, read, budgets=people is not None, needs=needs)


def _read(dataset: Dataset, found: Expr, cells: list[str], people: PersonBudgets | None) -> PointCounts:
    points = _int64(found["point"], 0) - 1
    codes = np.stack([_int64(found[c], -1) for c in cells], axis=1) if cells else np.zeros((points.size, 0), dtype=np.int64)
    groups = np.zeros(points.size, dtype=np.int64)
    if people is not None:
        groups = groups_of_keys(dataset.roster, _int64(found["key"], 0), people)
    kept = (points >= 0) & (groups >= 0) & (codes >= 0).all(axis=1)
    return PointCounts(groups[kept], codes[kept], points[kept], _int64(found["n"], 0)[kept])


def _int64(column: Expr, missing: int) -> Integers:
    import pyarrow as pa

    return np.asarray(column.cast(pa.int64()).fill_null(missing).to_numpy(), dtype=np.int64)
