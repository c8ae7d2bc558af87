"""The rows an aggregate is over: each person's rows capped, budgets attached, then those that satisfy a `where`."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from sfumato.errors import PrivacyError
from sfumato.privacy.exact import Exact
from sfumato.tables.columns import Column, Expr
from sfumato.tables.conditions import condition
from sfumato.tables.lookups import with_place
from sfumato.tables.predicates import Both, Where, columns_of, parse_where
from sfumato.tables.steps import in_steps

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset

T = TypeVar("T")


def exactly(
    dataset: Dataset,
    columns: Iterable[str],
    where: Where,
    read: Callable[[Expr, dict[str, Column]], T],
    *,
    budgets: bool = False,
    raw: bool = False,
    placed: Iterable[str] = (),
) -> Exact[T]:
    """What `read` makes of the rows in use and the columns asked for, as a private value.

    Names, types and the condition are checked now, against the schema and the columns of the table; rows are read when the
    Meter opens the value.
    """
    names = tuple(columns)
    rows_in_use(dataset, names, where, budgets=budgets, raw=raw, to_check=True)
    if budgets:
        dataset.check_persons()
    return Exact.reading(
        lambda: read(*rows_in_use(dataset, names, where, budgets=budgets, raw=raw, placed=placed)),
        rows_per_person=dataset.schema.unit.rows_per_person,
    )


def rows_in_use(
    dataset: Dataset,
    columns: Iterable[str],
    where: Where,
    *,
    budgets: bool = False,
    raw: bool = False,
    to_check: bool = False,
    placed: Iterable[str] = (),
) -> tuple[Expr, dict[str, Column]]:
    """The rows in use (capped, then filtered), and the columns asked for.

    With `budgets` the rows carry ``key``, the person's budget as the roster encodes it; with `raw` the budget column
    of the table itself, still to be encoded. `to_check` leaves rows uncapped and without a roster table's budgets: some
    engines read rows to cap and to join them. Columns with a long list have a place in it if the condition is about them or
    if they are among `placed`.
    """
    roster = dataset.roster if budgets else dataset.budgets if dataset.roster_only else None
    predicate = parse_where(where, dataset.schema)
    schema, engine = dataset.schema, dataset.engine
    needed = sorted(set(columns) | columns_of(predicate), key=schema.names.index)
    beyond = [] if to_check or dataset.readable is None else [name for name in needed if name not in dataset.readable]
    if beyond:
        raise PrivacyError(
            f"a release may not read column {beyond[0]!r}: it was not asked for, so nothing was charged to it"
        )
    # Plain names from here on: whatever a column is called, engines see v0, v1...
    alias = {name: f"v{i}" for i, name in enumerate(needed)}
    picked = {alias[name]: engine.column(name, "column") for name in needed}
    in_table = roster is not None and roster.in_table
    if roster is not None and in_table:
        granted = engine.column(roster.budget, "the budget column")
        picked["key"] = granted if raw else roster.key(granted, engine)
    person = schema.unit.person
    if person is not None:
        picked["person"] = engine.column(person, "the person column")
    rows = engine.table.select(**picked) if picked else engine.table
    if person is not None and not to_check:
        lowest = "key" if in_table else None
        rows = engine.cap_rows(rows, person="person", rows=schema.unit.rows_per_person, lowest=lowest)
    joined = roster is not None and not in_table and not to_check
    if roster is not None and joined:
        rows = roster.joined(rows, engine)
    if roster is not None and not budgets and (in_table or joined):
        rows = rows.filter(rows["key"] >= roster.least_key)
    rows = _with_places(dataset, _in_steps(dataset, rows, alias), alias, {*columns_of(predicate), *placed})
    if predicate != Both(()):
        rows = rows.filter(condition(predicate, _columns(dataset, rows, alias), schema.columns))
    return rows, _columns(dataset, rows, alias)


def _in_steps(dataset: Dataset, rows: Expr, alias: Mapping[str, str]) -> Expr:
    """The rows with a column more for every column that is read in steps; see `Domain.steps`."""
    known = {
        (short, f"{short}_ready"): dataset.schema[name].steps(rows[short].type(), what=f"column {name!r}")
        for name, short in alias.items()
    }
    return in_steps(rows, known)


def _with_places(dataset: Dataset, rows: Expr, alias: Mapping[str, str], placed: Container[str]) -> Expr:
    """The rows with a place for each of the columns `placed` whose domain is a long list: those that rows are judged by.

    Columns that rows are grouped by have their few groups looked up (see `sfumato.tables.raw_groups`).
    """
    for name, short in alias.items():
        listed = dataset.schema[name].long_list() if name in placed else None
        if listed is not None:
            column = _column(dataset, rows, name, short)
            rows = with_place(rows, column, listed, f"{short}_place", engine=dataset.engine.name)
    return rows


def _columns(dataset: Dataset, rows: Expr, alias: Mapping[str, str]) -> dict[str, Column]:
    found = {name: _column(dataset, rows, name, short) for name, short in alias.items()}
    placed = {name: f"{short}_place" for name, short in alias.items() if f"{short}_place" in rows.columns}
    return found | {name: replace(found[name], place=rows[place]) for name, place in placed.items()}


def _column(dataset: Dataset, rows: Expr, name: str, short: str) -> Column:
    engine = dataset.engine
    if f"{short}_ready" in rows.columns:
        return Column(rows[f"{short}_ready"], "int", engine=engine.name)
    found = dataset.schema[name].column(rows[short], engine=engine.name, what=f"column {name!r}", text=engine.text)
    return replace(found, engine=engine.name)
