"""An engine is tried with hard constants before it sees a row: one that fails on them would fail on somebody's record.

An engine that raises on NaN, or takes it for a number in one place and not in another, gives answers and errors that depend
on single records, after they were paid for. So every engine that is not our own DuckDB computes, once per connection, the
cells, conditions and budgets of a few constants: NaN, both infinities, the largest and smallest numbers, both zeros, NULL,
quotes, backslashes and other alphabets. One query, no table, nothing private. What comes back must be what the plain rule
says (`Domain.cells`); anything else, an error included, and the engine is refused.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sfumato.errors import InputError
from sfumato.tables.addresses import reason_to_tell, without_secrets
from sfumato.tables.engines import Engine

if TYPE_CHECKING:
    from sfumato.tables.columns import Column
    from sfumato.tables.domains import Domain

NAN, INF = math.nan, math.inf
NUMBERS: Final = (NAN, INF, -INF, None, 1e308, -1e308, 5e-324, -0.0, 0.0, 2.5, 0.3, -5.0)
WHOLES: Final = (2**63 - 1, -(2**63) + 1, 2**53 + 1, None, 0, -1, 119, 120, 7, 64, 65, 3)
WORDS: Final = (
    "F",
    "",
    None,
    "f",
    "F ",
    "ünï→",
    "back\\slash",
    "a'); DROP TABLE x; --",
    'quo"ted',
    "tab\tnew\nline",
    "😀",
    "M",
)
DAYS: Final = (date(1, 1, 1), date(9999, 12, 31), None, date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)) * 2
NANO: Final = (0, 10**15, 0, 0, 10**15, 0, 0, 0, 0, 2_500_000_000, 300_000_000, 0)
LATTICE: Final = (0, 10, 0, 0, 10, 0, 5, 5, 5, 8, 5, 0)
_WHERE: Final = "number >= 2.5 or not (whole < 100) or word = 'ünï→'"
HOLDS: Final = (True, True, True, False, True, True, True, True, False, True, False, False)

_trying = threading.Lock()
_passed: dict[int, weakref.ref[Any]] = {}  # by identity: to Ibis two connections may be equal that lead elsewhere
_passed_urls: set[int] = set()


def try_hard_constants(engine: Engine, connection: Any = None) -> Engine:
    """The `engine`, if it computes with hard constants what every engine must.

    Tried once in a process for each URL or, where there is none, for each `connection`.
    """
    with _trying:
        if not _is_known(engine, connection):
            wrong = wrong_answers(engine)
            if wrong:
                refuse_silent(engine)
                raise InputError(
                    f"the engine {engine.name} is refused: on constants it computes {', '.join(wrong)} in another way than "
                    "other engines, so its answers and its errors would depend on single records. Bring the table to an "
                    "engine that `sfumato engines` calls tested"
                )
            if engine.url is not None:
                _passed_urls.add(hash(engine.url))
            else:
                _passed[id(connection)] = weakref.ref(connection)
    return engine


def _is_known(engine: Engine, connection: Any) -> bool:
    if engine.url is not None:
        return hash(engine.url) in _passed_urls
    known = _passed.get(id(connection))
    return known is not None and known() is connection


def refuse_silent(engine: Engine) -> None:
    """Refuse an engine that does not even say what 1 is: some drivers connect with the first query."""
    import ibis

    try:
        engine.backend.to_pyarrow(ibis.literal(1).name("one").as_table())
        return
    except Exception as error:
        why = reason_to_tell(error)
    raise InputError(f"cannot connect to {engine.name if engine.url is None else without_secrets(engine.url)}: {why}")


def wrong_answers(engine: Engine) -> list[str]:
    """What an engine computes wrongly with the hard constants, in a few words; nothing if all is well."""
    try:
        found = engine.backend.to_pyarrow(_questions(engine)).sort_by("place").to_pylist()
    except Exception as error:
        kind = type(error).__name__
        return [f"nothing at all (it raises {kind})"]
    expected = _answers()
    if len(found) != len(expected):
        return ["how many rows there are"]
    names = {"n": "counts of rows", "number": "cells of numbers", "edged": "cells between edges", "whole": "whole numbers"}
    names |= {"word": "text", "truth": "true and false", "day": "dates", "nano": "budgets", "lattice": "sums of numbers"}
    names |= {"holds": "conditions"}
    return [name for key, name in names.items() if any(f[key] != e[key] for f, e in zip(found, expected, strict=True))]


@cache
def _schema() -> Any:
    from sfumato.tables.domains import Boolean, Categorical, Date, Numeric
    from sfumato.tables.schema import Schema

    words = [w for w in WORDS if w and w != "f"]
    return Schema(
        {
            "place": Numeric(0, len(NUMBERS) - 1, bins=len(NUMBERS), integer=True),
            "number": Numeric(-5.0, 5.0, bins=8, other="unknown"),
            "edged": Numeric(edges=[0, 1, 2.5, 7, 30], outside="other"),
            "whole": Numeric(0, 119, bins=12, integer=True),
            "word": Categorical(words, other=True),
            "truth": Boolean(),
            "day": Date("2021-01-01", "2024-12-31", by="year", missing=True),
        }
    )


def _columns() -> dict[str, tuple[str, tuple[Any, ...]]]:
    """The constants: by column their type and one value for each row."""
    truths = (True, False, None) * (len(NUMBERS) // 3)
    return {
        "place": ("int64", tuple(range(len(NUMBERS)))),
        "number": ("float64", NUMBERS),
        "edged": ("float64", NUMBERS),
        "whole": ("int64", WHOLES),
        "word": ("string", WORDS),
        "truth": ("boolean", truths),
        "day": ("date", DAYS),
    }


def _questions(engine: Engine) -> Any:
    """One query over the constants, by the expressions that releases are computed with."""
    from sfumato.tables.columns import nano_budget
    from sfumato.tables.conditions import condition
    from sfumato.tables.dataset import Dataset
    from sfumato.tables.lattice import on_lattice
    from sfumato.tables.predicates import parse_where
    from sfumato.tables.rows import rows_in_use

    schema = _schema()
    dataset = Dataset(source=None, schema=schema)
    dataset.opened_on(replace(engine, opened=literal_rows(_columns(), engine.name)))
    rows, columns = rows_in_use(dataset, schema.names, None)
    asked = {name: _twice(schema[name], columns[name]) for name in schema.names}
    number = schema["number"].number(columns["number"])
    asked["lattice"] = on_lattice(number, schema.lattice("number", 10)).fill_null(0)
    asked["nano"] = nano_budget(columns["number"])
    asked["holds"] = condition(parse_where(_WHERE, schema), columns, schema.columns).fill_null(False)
    cells = rows.select(**asked)
    keys = [name for name in cells.columns if name not in ("lattice", "nano")]
    return cells.group_by(keys).agg(n=cells.count(), nano=cells["nano"].sum(), lattice=cells["lattice"].sum())


def _twice(domain: Domain, column: Column) -> Any:
    """The code of a column for a row and for a group of rows; no code at all if they differ."""
    import ibis

    group = domain.grouping(column, blank=True)
    key = replace(column, expr=group.key, kind=group.kind)
    code, grouped = (found.cast("int64") for found in (domain.code(column), group.code(key) if group.code else group.key))
    return ibis.ifelse(code.fill_null(-1) == grouped.fill_null(-1), code, -2)


@cache
def _answers() -> list[dict[str, Any]]:
    schema = _schema()
    told: dict[str, Iterable[Any]] = {"nano": NANO, "lattice": LATTICE, "holds": HOLDS, "n": (1,) * len(NUMBERS)}
    for name, (_, values) in _columns().items():
        told[name] = [None if cell < 0 else int(cell) for cell in schema[name].cells(list(values))]
    return [dict(zip(told, row, strict=True)) for row in zip(*told.values(), strict=True)]


def literal_rows(columns: Mapping[str, tuple[str, tuple[Any, ...]]], engine: str) -> Any:
    """An Ibis table of constants, made by the query itself: by column its type and one value for each row.

    A union of rows where that will do, which all engines know; Spark would compile what is computed once for each of them.
    """
    import ibis

    length = len(next(iter(columns.values()))[1])
    if engine not in ("pyspark", "databricks"):
        rows = [{name: _literal(values[i], kind) for name, (kind, values) in columns.items()} for i in range(length)]
        return ibis.union(*map(_one_row, rows), distinct=False)
    turns = ibis.range(0, length).unnest().name("_turn").as_table()
    made = {
        name: ibis.cases(*((turns["_turn"] == i, _literal(value, kind)) for i, value in enumerate(values))).cast(kind)
        for name, (kind, values) in columns.items()
    }
    return turns.select(**made).view()  # or Ibis would put the constants in wherever a column is used


def _one_row(literals: Mapping[str, Any]) -> Any:
    first, *others = literals
    return literals[first].name(first).as_table().mutate(**{name: literals[name] for name in others})


def _literal(value: Any, kind: str) -> Any:
    import ibis

    if value is None:
        return ibis.null(kind)
    if kind == "float64" and math.isfinite(value):  # from text every engine reads it to the last bit, and the sign of zero
        return ibis.literal(repr(value)).cast("float64")
    return ibis.literal(value, type=kind)
