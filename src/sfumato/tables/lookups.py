"""Places in long public lists, found by a join: thousands of comparisons for each row would take minutes.

The list becomes a small table of value and place on the engine that holds the rows. Every value stands in it once, so a left
join keeps every row and adds none, and a value that is not listed has no place. What is joined on is total: text as it is,
whole numbers only between the smallest and the largest that are listed, doubles as they are (NaN equals nothing listed).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.tables.columns import Column, Expr
from sfumato.tables.engine_list import LISTS_AS_TEXT
from sfumato.tables.taxonomy import Leaf

_DIGITS = 7  # of a place, in front of its value


def with_place(rows: Expr, column: Column, listed: Sequence[Leaf], name: str, *, engine: str) -> Expr:
    """The rows of a table with one more column, called `name`: the place of `column` in the list, NULL where it has none."""
    keyed = rows.mutate(_key=_key(column, listed))
    places = _places(listed, column.kind, engine)
    joined = keyed.left_join(places, keyed["_key"] == places["_value"])
    return joined.select(*(joined[c] for c in rows.columns), **{name: joined["_place"]})


def _key(column: Column, listed: Sequence[Any]) -> Expr:
    import ibis

    if column.kind != "int":
        return column.expr
    within = (column.expr >= min(listed)) & (column.expr <= max(listed))
    return ibis.cases((within, column.expr)).cast("int64")


def _places(listed: Sequence[Leaf], kind: str, engine: str) -> Expr:
    import ibis
    import pyarrow as pa

    if engine in LISTS_AS_TEXT:
        return _from_text(listed, kind)
    stored = {"text": pa.string(), "int": pa.int64(), "float": pa.float64()}[kind]
    values = pa.array([float(v) if kind == "float" else v for v in listed], stored)
    return ibis.memtable(pa.table({"_value": values, "_place": pa.array(range(len(listed)), pa.int64())}))


def _from_text(listed: Sequence[Leaf], kind: str) -> Expr:
    """The list as one literal that the engine takes apart: a place in so many digits, then the value."""
    import ibis

    used = set("".join(map(str, listed)))
    mark = next(c for c in map(chr, range(1, 0x110000)) if c not in used and not c.isdigit())
    text = mark.join(f"{place:0{_DIGITS}}{value}" for place, value in enumerate(listed))
    both = ibis.literal(text).split(mark).unnest().name("_both").as_table()["_both"]
    value = both.substr(_DIGITS)
    if kind != "text":
        value = value.cast("int64" if kind == "int" else "float64")
    return both.as_table().select(_value=value, _place=both.substr(0, _DIGITS).cast("int64"))
