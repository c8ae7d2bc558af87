"""The rows an aggregate is over: budgets attached, those that can count, and of these at most so many of each person."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from sfumato.errors import PrivacyError
from sfumato.privacy.exact import Exact
from sfumato.tables.capping import capped, rows_of_each, with_lowest
from sfumato.tables.columns import Column, Expr, all_of
from sfumato.tables.conditions import condition
from sfumato.tables.lookups import with_place
from sfumato.tables.predicates import Both, Where, columns_of, parse_where
from sfumato.tables.steps import in_steps

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset
    from sfumato.tables.roster import Roster

T = TypeVar("T")
Needs = Callable[[dict[str, Column]], Sequence[Expr]]
"""What must be true of a row, by its columns, for it to count at all."""


def exactly(
    dataset: Dataset,
    columns: Iterable[str],
    where: Where,
    read: Callable[[Expr, dict[str, Column]], T],
    *,
    budgets: bool = False,
    raw: bool = False,
    placed: Iterable[str] = (),
    needs: Needs | None = None,
) -> Exact[T]:
    """What `read` makes of the rows in use and the columns asked for, as a private value.

    Names, types and the condition are checked now, against the schema and the columns of the table; rows are read when the
    Meter opens the value. Rows for which `needs` is not true add nothing to what is read: with a cap on rows per person
    they are left out before it, so that they take no place from others.
    """
    names = tuple(columns)
    _check(dataset, names, where, budgets=budgets, raw=raw)
    return Exact.reading(
        lambda: read(*rows_in_use(dataset, names, where, budgets=budgets, raw=raw, placed=placed, needs=needs)),
        rows_per_person=dataset.schema.unit.rows_per_person,
    )


def exactly_counted(dataset: Dataset, where: Where, read: Callable[[Expr], T], *, budgets: bool = False) -> Exact[T]:
    """What `read` makes of a table whose column ``value`` adds up to the number of rows in use, as a private value.

    With a cap on rows per person it has a line for each person, otherwise one for each row, and no row is drawn. With
    `budgets` it has ``key`` too.
    """
    _check(dataset, (), where, budgets=budgets)
    return Exact.reading(
        lambda: read(_counted(dataset, where, budgets=budgets)), rows_per_person=dataset.schema.unit.rows_per_person
    )


def _check(dataset: Dataset, names: Sequence[str], where: Where, *, budgets: bool, raw: bool = False) -> None:
    rows_in_use(dataset, names, where, budgets=budgets, raw=raw, to_check=True)
    if budgets:
        dataset.check_persons()


def rows_in_use(
    dataset: Dataset,
    columns: Iterable[str],
    where: Where,
    *,
    budgets: bool = False,
    raw: bool = False,
    to_check: bool = False,
    placed: Iterable[str] = (),
    needs: Needs | None = None,
) -> tuple[Expr, dict[str, Column]]:
    """The rows in use (filtered, then capped), and the columns asked for.

    With `budgets` the rows carry ``key``, the person's budget as the roster encodes it; with `raw` the budget column
    of the table itself, still to be encoded. `to_check` leaves rows uncapped and without a roster table's budgets: some
    engines read rows to cap and to join them. Columns with a long list have a place in it if the condition is about them or
    if they are among `placed`.
    """
    asked = tuple(columns)
    judged = {*placed, *asked} if needs is not None and dataset.schema.unit.person is not None else {*placed}
    rows, alias, holds = _all_rows(dataset, asked, where, budgets=budgets, raw=raw, to_check=to_check, placed=judged)
    if holds is not None:
        rows = rows.filter(holds)
    if dataset.schema.unit.person is not None and not to_check:
        if needs is not None:
            rows = rows.filter(all_of(needs(_columns(dataset, rows, alias))))
        # What only the condition was about need not be carried along.
        alias, used = {name: alias[name] for name in asked}, {short for name, short in alias.items() if name not in asked}
        rows = rows.select(*(name for name in rows.columns if name.partition("_")[0] not in used))
        rows = capped(dataset.engine, rows, dataset.schema.unit.rows_per_person)
    return rows, _columns(dataset, rows, alias)


def granted_rows(dataset: Dataset) -> Expr:
    """All rows with ``key``, the budget that is written in them as the roster encodes it, and ``person`` if there is one."""
    return _all_rows(dataset, (), None, budgets=True, of_person=False)[0]


def _counted(dataset: Dataset, where: Where, *, budgets: bool) -> Expr:
    import ibis

    unit, kept = dataset.schema.unit, {"key"} if budgets else set()
    if unit.person is None:
        rows, _ = rows_in_use(dataset, (), where, budgets=budgets)
        return rows.select(value=ibis.literal(1, type="int64"), **{name: rows[name] for name in kept})
    roster = _roster(dataset, budgets)
    rows, _, holds = _all_rows(dataset, (), where, budgets=budgets, of_person=False)
    if roster is None or not roster.in_table:  # nobody's budget depends on rows that do not count
        rows, holds = rows if holds is None else rows.filter(holds), None
    each = rows_of_each(rows, unit.rows_per_person, holds)
    return each if roster is None or budgets else _with_a_budget(each, roster)


def _all_rows(
    dataset: Dataset,
    columns: Iterable[str],
    where: Where,
    *,
    budgets: bool = False,
    raw: bool = False,
    to_check: bool = False,
    of_person: bool = True,
    placed: Iterable[str] = (),
) -> tuple[Expr, dict[str, str], Expr | None]:
    """All rows of people who have a part, before `where` and the cap; columns by their plain names; and what `where` says.

    A budget of the table is the smallest of the person's, unless `of_person` is False: then it is the row's own.
    """
    roster = _roster(dataset, budgets)
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
    own = {}
    if schema.unit.person is not None:
        own["person"] = engine.column(schema.unit.person, "the person column")
    lowest = False
    if roster is not None and roster.in_table:
        granted = engine.column(roster.budget, "the budget column")
        own["key"] = granted if raw else roster.key(granted, engine)
        lowest = "person" in own and of_person and not to_check
    mine = {name: expr for name, expr in own.items() if name != "key" or not lowest}
    rows = engine.table.select(**picked, **mine) if picked or mine else engine.table
    if lowest:
        rows = with_lowest(rows, engine.table.select(**own))
    elif roster is not None and not roster.in_table and not to_check:
        rows = roster.joined(rows, engine)
    if roster is not None and not budgets and of_person and "key" in rows.columns:
        rows = _with_a_budget(rows, roster)
    rows = _with_places(dataset, _in_steps(dataset, rows, alias), alias, {*columns_of(predicate), *placed})
    holds = None if predicate == Both(()) else condition(predicate, _columns(dataset, rows, alias), schema.columns)
    return rows, alias, holds


def _roster(dataset: Dataset, budgets: bool) -> Roster | None:
    """Whose budgets the rows carry: with `budgets`, or where people without one are left out."""
    return dataset.roster if budgets else dataset.budgets if dataset.roster_only else None


def _with_a_budget(rows: Expr, roster: Roster) -> Expr:
    return rows.filter(rows["key"] >= roster.least_key)


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
