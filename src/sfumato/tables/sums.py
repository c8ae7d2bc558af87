"""Weighted sums, exactly: integers times integers, never a floating-point sum.

Ranges are checked from public facts before anything is read: a row adds at most (largest weight) x (lattice steps),
and a table has at most 2**32 rows. If such a total fits 64 bits the engine adds plain integers, otherwise decimals
of 38 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.exact import Exact
from sfumato.privacy.integers import whole_numbers
from sfumato.tables.capping import lowest_of_each
from sfumato.tables.columns import Column, Expr
from sfumato.tables.counting import cell_columns, has_cells
from sfumato.tables.lattice import Lattice
from sfumato.tables.predicates import Where
from sfumato.tables.raw_groups import budget_grouping, coded_groups, raw_tiers
from sfumato.tables.rows import exactly, exactly_counted, granted_rows
from sfumato.tables.weighing import number_of

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset
    from sfumato.tables.roster import Roster

MAX_ROWS = 2**32
INT64 = 2**63
FEW_GROUPS = 1024  # that rows can be told apart by, by comparisons
Integers = NDArray[np.int64]
T = TypeVar("T")


@dataclass(frozen=True)
class Measured:
    """What a row adds: its place on the lattice of a column, plus `base`; 0 where the column is missing."""

    column: str
    lattice: Lattice
    base: int = 0

    @property
    def most(self) -> int:
        """The most that a row can add, in size."""
        return abs(self.base) + self.lattice.steps


def check_range(largest: int) -> bool:
    """Whether sums of rows of at most `largest` need more than 64 bits; refuses rows that do."""
    if largest >= INT64:
        raise InputError(
            f"a row could add {largest}, which does not fit 64 bits; use a smaller cap or a coarser lattice (steps)"
        )
    return largest * MAX_ROWS >= INT64


def check_sums(measure: Measured) -> None:
    """Refuse a measure whose sums over all rows need more than 64 bits."""
    if check_range(measure.most):
        raise InputError(f"base {measure.base} is too large for sums in 64 bits; use a coarser lattice (steps)")


def _total(expr: Expr, wide: bool) -> Expr:
    return expr.cast("decimal(38, 0)").sum() if wide else expr.sum()


def _integers(column: Any) -> list[int]:
    return [0 if v is None else int(v) for v in column.to_pylist()]


def _int64(column: Any, missing: int = 0) -> Integers:
    """Numbers of any type that hold whole numbers within 64 bits."""
    import pyarrow as pa

    return np.asarray(column.cast(pa.int64()).fill_null(missing).to_numpy())


def _measured(
    dataset: Dataset,
    where: Where,
    measure: Measured | None,
    by: Sequence[str],
    add_up: Callable[[Expr, Expr], T],
    *,
    raw: bool = False,
) -> Exact[T]:
    """What `add_up` makes of rows with ``key`` and the cells to group by, and the measure of each.

    Rows of a few tiers have been added up by tier and cell already: there are then a few lines. Of persons whose rows are
    only counted there is a line each. With `raw` the key is the budget column as it stands.
    """
    if measure is None and not by and dataset.schema.unit.person is not None:
        return exactly_counted(dataset, where, lambda each: add_up(each, each["value"]), budgets=True)

    def read(rows: Expr, columns: dict[str, Column]) -> T:
        import ibis

        if roster.tiers_nano:
            totals = {"value": _value(dataset, measure, columns) if measure else None}
            key = budget_grouping(roster, rows["key"], dataset.engine, raw=raw)
            about: Any = {"engine": dataset.engine.name, "keys": {"key": key}, "totals": totals}
            table = coded_groups(rows, by, columns, dataset.schema, **about)
            return add_up(table, table["value"])
        value = _value(dataset, measure, columns) if measure else ibis.literal(1, type="int64")
        table = rows.select(key=rows["key"], value=value, **cell_columns(by, columns, dataset.schema))
        return add_up(table, table["value"])

    def needs(columns: dict[str, Column]) -> list[Expr]:
        return has_cells(by, columns, dataset.schema) + has_value(dataset, measure, columns)

    roster = dataset.roster
    raw = raw or raw_tiers(dataset)
    names = [*by, *([measure.column] if measure else [])]
    return exactly(dataset, names, where, read, budgets=True, raw=raw, needs=needs)


def has_value(dataset: Dataset, measure: Measured | None, columns: Any) -> list[Expr]:
    """What must be true of a row for it to add anything: the `measure`, if there is one, is not missing."""
    return [] if measure is None else [dataset.schema[measure.column].number(columns[measure.column]).notnull()]


def _value(dataset: Dataset, measure: Measured, columns: Any) -> Expr:
    return dataset.schema[measure.column].point(columns[measure.column], measure.lattice, measure.base)


def plain(dataset: Dataset, measure: Measured, where: Where) -> Exact[int]:
    """The sum of a measure over all rows, whoever's they are."""
    wide = check_range(measure.most)

    def read(rows: Expr, columns: dict[str, Column]) -> int:
        table = rows.select(value=_value(dataset, measure, columns))
        found = dataset.engine.fetch(table.aggregate(total=_total(table["value"], wide)))
        return sum(_integers(found["total"]))

    return exactly(dataset, [measure.column], where, read, needs=partial(has_value, dataset, measure))


# ------------------------------------------------------------------------------------------------ per person group


def head_counts(dataset: Dataset) -> PersonBudgets:
    """People per budget, read from the table itself."""
    rows = granted_rows(dataset)
    if dataset.schema.unit.person is not None:
        rows = lowest_of_each(rows)
    return dataset.roster.summary(dataset.engine.fetch(rows.group_by("key").agg(n=rows.count())))


def group_sums(dataset: Dataset, people: PersonBudgets, measure: Measured | None, where: Where) -> Exact[Integers]:
    """See `Dataset.group_sums`.

    Where budgets are a column in ε, rows are first added up by the column as it stands: turning ε into nano-ε once per
    distinct budget rather than once per row halves the time over ten million rows.
    """
    roster = dataset.roster
    if measure is not None:
        check_sums(measure)
    if not roster.tiers_nano and people.groups <= FEW_GROUPS:
        return _few_group_sums(dataset, people, measure, where)
    raw = roster.in_table and not roster.tiers_nano and dataset.schema.unit.person is None

    def add_up(table: Expr, value: Expr) -> Integers:
        found = table.group_by("key").agg(total=value.sum())
        if raw:
            found = found.select(key=roster.key(found["key"], dataset.engine), total=found["total"])
            found = found.group_by("key").agg(total=found["total"].sum())
        rows = dataset.engine.fetch(found)
        groups, totals = groups_of_keys(roster, _int64(rows["key"]), people), _int64(rows["total"])
        sums = np.zeros(people.groups, dtype=np.int64)
        np.add.at(sums, groups[groups >= 0], totals[groups >= 0])
        return sums

    return _measured(dataset, where, measure, (), add_up, raw=raw)


def _few_group_sums(dataset: Dataset, people: PersonBudgets, measure: Measured | None, where: Where) -> Exact[Integers]:
    """The same where there are few groups: the engine tells a row's group, so that a line per group comes back."""

    def add_up(table: Expr, _value: Expr) -> Integers:
        table = table.mutate(group=number_of(table["key"], people.levels))
        found = dataset.engine.fetch(table.group_by("group").agg(total=table["value"].sum()))
        sums = np.zeros(people.groups + 1, dtype=np.int64)
        sums[_int64(found["group"])] = _int64(found["total"])
        return sums[1:]

    return _measured(dataset, where, measure, (), add_up)


def group_cells(
    dataset: Dataset, people: PersonBudgets, by: Sequence[str], where: Where
) -> Exact[tuple[Integers, Integers, Integers]]:
    """Rows per person group and cell, for those that hold a row: group numbers, codes (one line per cell) and counts."""
    keys = [f"c{i}" for i in range(len(by))]

    def add_up(table: Expr, value: Expr) -> tuple[Integers, Integers, Integers]:
        found = dataset.engine.fetch(table.group_by(["key", *keys]).agg(total=value.sum()))
        cells, known = _known_cells(found, keys)
        groups = groups_of_keys(dataset.roster, _int64(found["key"]), people)
        kept = known & (groups >= 0)
        return groups[kept], cells[kept], _int64(found["total"])[kept]

    return _measured(dataset, where, None, by, add_up)


def groups_of_keys(roster: Roster, keys: Integers, people: PersonBudgets) -> Integers:
    """The person group of each budget key: a budget between those of two groups belongs to the lower, below all to none."""
    named = tuple(name for name, _ in roster.tiers_nano)
    if named and people.names == named:
        return keys - 1
    different, place = np.unique(
        keys, return_inverse=True
    )  # in order, a search among millions of budgets is ten times faster
    groups = np.searchsorted(people.levels, roster.nano_of_keys(different), side="right") - 1
    return np.asarray(groups[place.reshape(-1)])


# ------------------------------------------------------------------------------------------------ weighted sums


def _budget_weights(weights: tuple[Any, Any]) -> tuple[Integers, Integers]:
    budgets = np.asarray(weights[0], dtype=np.int64)
    each = whole_numbers(weights[1], "weights")
    if budgets.ndim != 1 or budgets.shape != each.shape or budgets.size == 0 or (np.diff(budgets) <= 0).any():
        raise InputError("weights needs sorted, distinct budgets in nano-ε and one weight for each")
    if int(each.min()) < 0:
        raise InputError("weights must not be negative")
    return budgets, each


def weighted(
    dataset: Dataset, weights: int | tuple[Any, Any], measure: Measured | None, by: Sequence[str], where: Where
) -> Exact[int] | Exact[NDArray[Any]]:
    """See `Dataset.weighted_sums`."""
    most = measure.most if measure else 1
    if isinstance(weights, tuple):
        budgets, each = _budget_weights(weights)
        wide = check_range(int(each.max()) * most)
        from sfumato.tables.weighted import read_weighted  # which adds up tiers as is done here

        people = PersonBudgets(np.maximum(budgets, 1), np.zeros_like(budgets))
        found = read_weighted(dataset, people, each[None, :], by, where, measured=(measure,)).map(_first_line)
    else:
        cap = int(weights)
        if cap < 1:
            raise InputError(f"the cap on weights must be at least 1 nano-ε, got {weights!r}")
        if levels := sorted({nano for _, nano in dataset.roster.tiers_nano if nano > 0}):
            return weighted(dataset, (levels, [min(nano, cap) for nano in levels]), measure, by, where)
        wide = check_range(cap * most)
        found = _capped(dataset, cap, measure, by, where, wide)
    if not by:
        return found.map(lambda cells_and_totals: sum(cells_and_totals[1]))
    shape = dataset.schema.shape(by)
    return found.map(lambda cells_and_totals: _dense(*cells_and_totals, shape, wide))


def _dense(cells: Integers, totals: list[int], shape: tuple[int, ...], wide: bool) -> NDArray[Any]:
    dense: NDArray[Any] = np.zeros(shape, dtype=object if wide else np.int64)
    np.add.at(dense, tuple(cells.T), np.array(totals, dtype=dense.dtype))
    return dense


def _capped(
    dataset: Dataset, cap: int, measure: Measured | None, by: Sequence[str], where: Where, wide: bool
) -> Exact[tuple[Integers, list[int]]]:
    keys = [f"c{i}" for i in range(len(by))]
    unit = dataset.schema.unit
    check_range(cap * unit.rows_per_person)  # what a line for a person can add

    def add_up(table: Expr, value: Expr) -> tuple[Integers, list[int]]:
        import ibis

        weight = ibis.ifelse(table["key"] < cap, table["key"], ibis.literal(cap, type="int64"))
        total = _total(weight if measure is None and unit.person is None else weight * value, wide)
        found = dataset.engine.fetch(table.group_by(keys).agg(total=total) if keys else table.aggregate(total=total))
        cells, known = _known_cells(found, keys)
        return cells[known], [t for t, keep in zip(_integers(found["total"]), known.tolist(), strict=True) if keep]

    return _measured(dataset, where, measure, by, add_up)


def _first_line(found: Any) -> tuple[Integers, list[int]]:
    return found[0], found[1][:, 0, 0].tolist()


def _known_cells(found: Any, keys: list[str]) -> tuple[Integers, NDArray[np.bool_]]:
    """The codes of all rows, -1 where there is no cell, and which rows have a cell in every column."""
    cells = np.full((found.num_rows, len(keys)), -1, dtype=np.int64)
    for i, key in enumerate(keys):
        cells[:, i] = _int64(found[key], -1)
    return cells, np.asarray((cells >= 0).all(axis=1))
