"""Sums over rows that people weigh in with, read from a table: whole numbers by cell, for several ways to weigh at once.

Ranges are known before anything is read: a row adds at most (largest weight) x (largest measure), and a table has at most
2**32 rows. Where such a total might pass 64 bits the engine adds decimals, and where one product might, weights are taken
apart into two halves of 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.exact import Exact
from sfumato.tables.columns import Column, Expr, all_of, any_of
from sfumato.tables.counting import has_cells
from sfumato.tables.predicates import Where
from sfumato.tables.raw_groups import Grouping, budget_grouping, coded_groups, raw_tiers
from sfumato.tables.rows import exactly, exactly_counted
from sfumato.tables.sums import (
    INT64,
    MAX_ROWS,
    Integers,
    Measured,
    _int64,
    _integers,
    _known_cells,
    _value,
    groups_of_keys,
    has_value,
)
from sfumato.tables.weighing import Steps, weighed_groups

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset

Weighted = tuple[Integers, NDArray[Any]]
"""Codes of cells, one line each, and their totals by measure and way to weigh: int64, or Python integers where 64 bits might
not do."""
Columns = Mapping[str, Column]
_HALF = 2**32


def read_weighted(
    dataset: Dataset,
    people: PersonBudgets,
    lines: Integers,
    by: Sequence[str],
    where: Where,
    *,
    measured: Sequence[Measured | None] = (None,),
) -> Exact[Weighted]:
    """Sums over rows of (weight of the person's group) times (measure), for cells that hold a row.

    Parameters
    ----------
    dataset : Dataset
        With a roster.
    people : PersonBudgets
        The groups.
    lines : int64 array
        A line for each way to weigh, a column for each group.
    by : sequence of str
        Columns whose cells to keep apart.
    where : predicate, optional
        Which rows count.
    measured : sequence of Measured or None
        What a row adds; None for 1.

    Returns
    -------
    Exact of (codes, totals)
    """
    names = dict.fromkeys([*by, *(m.column for m in measured if m is not None)])
    unit = dataset.schema.unit
    if unit.person is not None and not names:  # rows are only counted: which of a person's do count does not matter

        def counted(each: Expr) -> Weighted:
            ones = {f"m{i}": each["value"] for i in range(len(measured))}
            return weigh(dataset, each, {}, people, lines, (), ones, most=unit.rows_per_person)

        return exactly_counted(dataset, where, counted, budgets=True)

    def read(rows: Expr, columns: dict[str, Column]) -> Weighted:
        measures = {f"m{i}": None if m is None else _value(dataset, m, columns) for i, m in enumerate(measured)}
        most = max(1 if m is None else m.most for m in measured)
        return weigh(dataset, rows, columns, people, lines, by, measures, most=most)

    def needs(columns: dict[str, Column]) -> list[Expr]:
        values = [all_of(has_value(dataset, m, columns)) for m in measured]
        return [*has_cells(by, columns, dataset.schema), any_of(values)]

    return exactly(dataset, names, where, read, budgets=True, raw=raw_tiers(dataset), needs=needs)


def weigh(
    dataset: Dataset,
    rows: Expr,
    columns: Columns,
    people: PersonBudgets,
    lines: Integers,
    by: Sequence[str],
    measures: Mapping[str, Expr | None],
    *,
    most: int,
    keys: Mapping[str, Grouping] | None = None,
) -> Weighted:
    """What `read_weighted` reads, from `rows` in use (see `rows_in_use`, with the name of a tier as it stands if it can be).

    A row adds at most `most` in any of the `measures`; `keys` are kept apart beside the cells and come first in the codes. A
    few tiers are added up each by itself and weighed here; budgets in ε, of which there may be a million, are weighed where
    the rows are, so that a line per cell comes back.
    """
    given = dict(keys or {})
    cells = [*given, *(f"c{i}" for i in range(len(by)))]
    largest = most * max(1, int(lines.max()))
    wide = largest * MAX_ROWS >= INT64
    if dataset.roster.tiers_nano:
        return _tiers(dataset, rows, columns, people, lines, by, measures, given, cells, wide)
    halves = largest >= INT64
    numbers = np.concatenate([lines % _HALF, lines // _HALF]) if halves else lines
    steps = Steps.of(people.levels, numbers)
    if not steps.starts.size:  # nobody weighs anything
        return np.zeros((0, len(cells)), dtype=np.int64), np.zeros((0, len(measures), len(lines)), dtype=np.int64)
    about: Any = {"engine": dataset.engine, "measures": measures, "keys": given, "wide": wide}
    found = dataset.engine.fetch(weighed_groups(rows, by, columns, dataset.schema, steps, **about))
    codes, known = _known_cells(found, cells)
    read: Callable[[Any], NDArray[Any]] = _wide if wide else _int64
    each = [read(found[f"{name}_{j}"])[known] for name in measures for j in range(len(numbers))]
    totals = np.stack(each, axis=1).reshape(-1, len(measures), len(numbers))
    if halves:
        totals = totals[:, :, len(lines) :] * _HALF + totals[:, :, : len(lines)]
    return codes[known], totals


def _tiers(
    dataset: Dataset,
    rows: Expr,
    columns: Columns,
    people: PersonBudgets,
    lines: Integers,
    by: Sequence[str],
    measures: Mapping[str, Expr | None],
    given: Mapping[str, Grouping],
    cells: list[str],
    wide: bool,
) -> Weighted:
    engine, roster = dataset.engine, dataset.roster
    key = budget_grouping(roster, rows["key"], engine, raw=raw_tiers(dataset))
    about: Any = {"engine": engine.name, "totals": measures, "keys": {"key": key, **given}}
    found = engine.fetch(coded_groups(rows, by, columns, dataset.schema, **about))
    groups = groups_of_keys(roster, _int64(found["key"]), people)
    codes, known = _known_cells(found, cells)
    kept = known & (groups >= 0)
    number = object if wide else np.int64
    each = np.stack([_int64(found[name])[kept] for name in measures], axis=1).astype(number)
    totals = each[:, :, None] * lines[:, groups[kept]].T.astype(number)[:, None, :]
    if not cells:
        return np.zeros((1, 0), dtype=np.int64), totals.sum(axis=0, keepdims=True)
    different, place = np.unique(codes[kept], axis=0, return_inverse=True)
    summed = np.zeros((len(different), *totals.shape[1:]), dtype=number)
    np.add.at(summed, place.reshape(-1), totals)
    return different, summed


def _wide(column: Any) -> NDArray[Any]:
    return np.array([*_integers(column), None], dtype=object)[:-1]
