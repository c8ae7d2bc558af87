"""Rows grouped by what stands in their columns first, and the few groups coded as cells: a step per group, not one per row.

A column says what its rows are grouped by before their cells are known: its `Grouping`. The key costs a row next to nothing,
different cells have different keys, and public facts bound the number of keys, such as the range of whole numbers or
the length of a list, so that neither time nor memory grows with what somebody wrote into the column. The exception are
lists too long to compare a row with: there rows are grouped by the raw value, and the groups are joined with the list.

Which way is taken follows from the schema, the type of the column and the engine, never from the rows.

Over n rows in g groups a histogram costs n group-by steps of the engine and g steps of coding. On DuckDB, keys are functions
of a single column (no CASE), which DuckDB computes once per different value of a block of Parquet and not once per row: a
histogram of a text column then costs what a bare ``GROUP BY`` of it costs (1.0 to 1.3 times over Parquet, up to 2 times
over tables in memory, which have no dictionary). A column of ten million different texts costs what a chain of
comparisons would cost (up to 1.2 times); grouped by raw value it would be 4 to 14 times that, and with a long list it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from sfumato.tables.columns import Column, Expr, all_of
from sfumato.tables.lookups import with_place
from sfumato.tables.taxonomy import Leaf

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset
    from sfumato.tables.engines import Engine
    from sfumato.tables.roster import Roster
    from sfumato.tables.schema import Schema

MOST_GROUPS = 2**16
"""Groups of rows that stay in the caches of a processor, and are nothing to code."""


@dataclass(frozen=True)
class Grouping:
    """What rows are grouped by before they are coded.

    Attributes
    ----------
    key : expression
        Computed for every row. Rows of different cells have different keys.
    most : int or None
        Different keys at most, by public facts; None where it takes as many as there are different values.
    kind : str
        The kind of column that keys are.
    code : callable or None
        The code of a column of keys; None where keys are codes.
    present : expression or None
        Where it is not true a row has no code, whatever its key is.
    listed : sequence or None
        A long list whose places are joined to the keys before they are coded.
    one_each : bool
        Whether no two keys have the same code, so that coded groups need not be added up once more.
    """

    key: Expr
    most: int | None
    kind: str = "int"
    code: Callable[[Column], Expr] | None = None
    present: Expr | None = None
    listed: Sequence[Leaf] | None = None
    one_each: bool = False


def coded_groups(
    rows: Expr,
    names: Sequence[str],
    columns: Mapping[str, Column],
    schema: Schema,
    *,
    engine: str,
    totals: Mapping[str, Expr | None],
    keys: Mapping[str, Grouping] | None = None,
    blank: bool = False,
) -> Expr:
    """Totals per group of `keys` and cell of the columns `names` (c0, c1...), as a table of the `engine` that holds `rows`.

    Parameters
    ----------
    rows, columns
        What `sfumato.tables.rows.rows_in_use` gave.
    names : sequence of str
        Whose cells to keep apart.
    schema : Schema
        Says what cells are.
    engine : str
        The engine's name.
    totals : mapping
        Under its name a whole number to add up for each row, or None to count rows.
    keys : mapping, optional
        What else to group by, such as the budget of a person.
    blank : bool
        Whether rows without a cell in some column matter: their code is NULL. Otherwise they may be left out.

    Returns
    -------
    Ibis table
        With the names of `keys`, c0, c1... and those of `totals`. A pair of keys and cells stands in one row of it.
    """
    given = dict(keys or {})
    groups = given | _of_columns(names, columns, schema, given, blank=blank)
    present = [group.present for group in groups.values() if group.present is not None]
    shown = {f"_present{i}": test for i, test in enumerate(present)}
    values = {name: value for name, value in totals.items() if value is not None}
    table = (
        rows.select(**{name: group.key for name, group in groups.items()}, **values, **shown) if groups or values else rows
    )
    if present:
        table = table.filter(all_of([table[name] for name in shown]))
    added = {name: table.count() if value is None else table[name].sum() for name, value in totals.items()}
    if not groups:
        return table.aggregate(**added)
    found = table.group_by(list(groups)).agg(**added)
    if all(group.code is None for group in groups.values()):
        return found
    for name, group in groups.items():
        if group.listed is not None:
            found = with_place(found, Column(found[name], group.kind), group.listed, f"{name}_place", engine=engine)
    coded = {name: _coded(found, name, group, engine) for name, group in groups.items()}
    found = found.select(**coded, **{name: found[name] for name in totals})
    if all(group.code is None or group.one_each for group in groups.values()):
        return found
    return found.group_by(list(groups)).agg(**{name: found[name].sum() for name in totals})


def _coded(found: Expr, name: str, group: Grouping, engine: str) -> Expr:
    if group.code is None:
        return found[name]
    place = found[f"{name}_place"] if group.listed is not None else None
    return group.code(Column(found[name], group.kind, place, engine))


def _of_columns(
    names: Sequence[str], columns: Mapping[str, Column], schema: Schema, given: Mapping[str, Grouping], *, blank: bool
) -> dict[str, Grouping]:
    """The grouping of each column; cells at once for some of them if all keys together were too many."""
    found = {name: schema[name].grouping(columns[name], blank=blank) for name in names}
    spread = {name: (group.most or 0) / (schema[name].size + 3) for name, group in found.items()}
    others = math.prod(group.most or MOST_GROUPS + 1 for group in given.values())
    for name in sorted(names, key=spread.__getitem__, reverse=True):
        together = others * math.prod(found[n].most or schema[n].size for n in names)
        if together > MOST_GROUPS and spread[name] > 1:
            found[name] = Grouping(schema[name].code(columns[name]), schema[name].size + 1)
    return {f"c{i}": found[name] for i, name in enumerate(names)}


# ------------------------------------------------------------------------------------------------- kinds of keys


def text_grouping(
    column: Column,
    values: Sequence[str],
    code: Callable[[Column], Expr],
    *,
    other: int | None,
    missing: int | None,
) -> Grouping:
    """Text in a public list: the listed values are keys, and all others together are one.

    `code` makes codes of text; `other` and `missing` are those of text that is not listed, and of no text: where the latter
    has one of its own, its key is kept apart. A row costs a step per listed value at most, and on DuckDB none where a block
    of rows has a dictionary.
    """
    import ibis

    x, apart = column.expr, missing is not None
    if column.engine != "duckdb":
        # Other engines look a value up in a hash table, from some length of the list on.
        unlisted = next(mark for mark in ("?" * n for n in range(1, len(values) + 2)) if mark not in set(values))
        key = ibis.cases((x.isin(list(values)), x), *([(x.notnull(), unlisted)] if apart else []))
        return Grouping(key, len(values) + 2, "text", code)
    place = _list_position()(ibis.literal(list(values), type="array<string>"), x)
    if apart:
        place = ibis.cases((place > 0, place), (x.notnull(), 0))

    def of_place(key: Column) -> Expr:
        unlisted = [(key.expr == 0, ibis.null("int64") if other is None else other)] if apart else []
        return ibis.cases((key.expr > 0, key.expr - 1), *unlisted, else_=missing if apart else other)

    return Grouping(place, len(values) + 2, "int", of_place, one_each=True)


@cache
def _list_position() -> Any:
    import ibis
    import ibis.expr.datatypes as dt

    @ibis.udf.scalar.builtin(name="list_position", signature=((dt.Array(dt.string), dt.string), dt.int32))
    def list_position(values, value):  # type: ignore[no-untyped-def]
        """The place of a value in a list, from 1; NULL if it is not there."""

    return list_position


def whole_grouping(
    column: Column, low: float, high: float, code: Callable[[Column], Expr], *, absent_counts: bool
) -> Grouping | None:
    """Whole numbers between public bounds, where these are close enough: the numbers themselves, one beyond at most.

    All numbers beyond a bound are alike. `absent_counts` says that NULL has a code too, or is to be kept.
    """
    import ibis

    if column.kind != "int":
        return None
    x, held = column.expr, column.expr.type().bounds
    bottom, top = max(math.ceil(low) - 1, held.lower), min(math.floor(high) + 1, held.upper)
    if not 0 <= top - bottom <= MOST_GROUPS - 2:
        return None
    # Of the column's own type, in which both are: engines refuse to compare some types of whole numbers with others.
    least, most = (ibis.literal(end, type=x.type().copy(nullable=True)) for end in (bottom, top))

    def coded(key: Column) -> Expr:
        return code(replace(key, expr=key.expr.cast("int64")))

    if absent_counts:
        return Grouping(ibis.cases((x < least, least), (x > most, most), else_=x), top - bottom + 2, "int", coded)
    # Engines differ on the least of NULL and a number; rows with NULL are left out.
    return Grouping(ibis.greatest(ibis.least(x, most), least), top - bottom + 1, "int", coded, present=x.notnull())


def raw_tiers(dataset: Dataset) -> bool:
    """Whether rows can carry the name of a tier as it stands: of a person's several rows, the least of them counts."""
    roster = dataset.budgets
    named = roster is not None and roster.in_table and bool(roster.tiers_nano) and not roster.reaches
    return named and dataset.schema.unit.person is None


def budget_grouping(roster: Roster, key: Expr, engine: Engine, *, raw: bool) -> Grouping:
    """The budget of a row as something to group by: its `key` as the roster encodes it, or the `raw` column behind that.

    A column of tiers is grouped as it stands. It holds the few names of the roster; whatever else is written there costs
    what a bare ``GROUP BY`` of it would.
    """
    most = len(roster.tiers_nano) + 1 if roster.tiers_nano else None
    if not raw:
        return Grouping(key, most)
    return Grouping(key, most, "text" if most else "float", lambda found: roster.key(found.expr, engine))
