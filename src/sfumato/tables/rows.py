"""The rows an aggregate is over: each person's rows capped, budgets attached, then those that satisfy a `where`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from sfumato.tables.columns import Column, Expr
from sfumato.tables.conditions import condition
from sfumato.tables.predicates import Both, Where, columns_of, parse_where

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset


def rows_in_use(
    dataset: Dataset,
    columns: Iterable[str],
    where: Where,
    *,
    budgets: bool = False,
    raw: bool = False,
    capped: bool = True,
) -> tuple[Expr, dict[str, Column]]:
    """The rows in use (capped, then filtered), and the columns asked for.

    With `budgets` the rows carry ``key``, the person's budget as the roster encodes it; with `raw` the budget column
    of the table itself, still to be encoded. Only a check leaves rows uncapped: some engines read them to cap them.
    """
    roster = dataset.roster if budgets else dataset.budgets if dataset.roster_only else None
    predicate = parse_where(where, dataset.schema)
    schema, engine = dataset.schema, dataset.engine
    needed = sorted(set(columns) | columns_of(predicate), key=schema.names.index)
    # Plain names from here on: whatever a column is called, engines see v0, v1...
    alias = {name: f"v{i}" for i, name in enumerate(needed)}
    picked = {alias[name]: engine.column(name, "column") for name in needed}
    in_table = roster is not None and roster.source is None
    if roster is not None and in_table:
        granted = engine.column(roster.budget, "the budget column")
        picked["key"] = granted if raw else roster.key(granted, engine)
    person = schema.unit.person
    if person is not None:
        picked["person"] = engine.column(person, "the person column")
    rows = engine.table.select(**picked) if picked else engine.table
    if person is not None and capped:
        lowest = "key" if in_table else None
        rows = engine.cap_rows(rows, person="person", rows=schema.unit.rows_per_person, lowest=lowest)
    if roster is not None and not in_table:
        rows = roster.joined(rows, engine)
    if roster is not None and not budgets:
        rows = rows.filter(rows["key"] >= roster.least_key)
    if predicate != Both(()):
        rows = rows.filter(condition(predicate, _columns(dataset, rows, alias), schema.columns))
    return rows, _columns(dataset, rows, alias)


def _columns(dataset: Dataset, rows: Expr, alias: Mapping[str, str]) -> dict[str, Column]:
    engine, schema = dataset.engine, dataset.schema
    return {
        name: schema[name].column(rows[short], engine=engine.name, what=f"column {name!r}", text=engine.text)
        for name, short in alias.items()
    }
