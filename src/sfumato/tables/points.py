"""Rows per point of a column's lattice, counted where the data lives: the one aggregate behind every quantile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.exact import Exact
from sfumato.privacy.integers import as_int64
from sfumato.tables.columns import Column, Expr
from sfumato.tables.counting import has_cells
from sfumato.tables.lattice import Lattice
from sfumato.tables.predicates import Where
from sfumato.tables.raw_groups import Grouping, budget_grouping, coded_groups, raw_tiers
from sfumato.tables.rows import exactly
from sfumato.tables.sums import groups_of_keys
from sfumato.tables.weighted import weigh

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
    dataset: Dataset,
    column: str,
    lattice: Lattice,
    by: Sequence[str],
    people: PersonBudgets | None,
    where: Where,
    weights: Integers | None = None,
) -> Exact[PointCounts]:
    """See `Dataset.points`."""
    cells = [f"c{i}" for i in range(len(by))]

    def read(rows: Expr, columns: dict[str, Column]) -> PointCounts:
        domain, engine, measured = dataset.schema[column], dataset.engine, columns[column]
        budget = {} if people is None else {"key": budget_grouping(dataset.roster, rows["key"], engine, raw=raw)}

        def place(value: Column) -> Expr:
            return domain.point(value, lattice, base=1)  # 0 is left for what is missing

        # Whole numbers are counted as they stand: the lattice then costs a step per value, not one per row.
        whole = Grouping(measured.expr, None, "int", place)
        point = whole if measured.kind == "int" else Grouping(place(measured), lattice.steps + 2)
        if people is not None and weights is not None:
            about: Any = {"most": 1, "keys": {"point": point}}
            return _weighed(*weigh(dataset, rows, columns, people, weights[None, :], by, {"n": None}, **about))
        about = {"engine": engine.name, "keys": {**budget, "point": point}, "totals": {"n": None}}
        return _read(dataset, engine.fetch(coded_groups(rows, by, columns, dataset.schema, **about)), cells, people)

    def needs(columns: dict[str, Column]) -> list[Expr]:
        return [dataset.schema[column].number(columns[column]).notnull(), *has_cells(by, columns, dataset.schema)]

    raw = people is not None and raw_tiers(dataset)
    return exactly(dataset, [column, *by], where, read, budgets=people is not None, raw=raw, needs=needs)


def _weighed(codes: Integers, totals: NDArray[Any]) -> PointCounts:
    """Weighted rows are in one group."""
    known = codes[:, 0] > 0
    none = np.zeros(int(known.sum()), dtype=np.int64)
    return PointCounts(none, codes[known, 1:], codes[known, 0] - 1, as_int64(totals[known, 0, 0]))


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
