"""The hard rows on an engine of one's own: does it give what DuckDB gives, case by case?

Two scratch tables of constants are made on the engine, in a schema that is named for it, and dropped again. Nothing else is
read or written, and nothing in them is anybody's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.tables import Dataset, PersonalTable, PrivacyUnit, Roster, Schema
from sfumato.tables import open as open_table
from sfumato.tables.databases import connected
from sfumato.tables.engine_list import DATABASES, SCHEMES
from sfumato.tables.engine_probe import literal_rows, refuse_silent, wrong_answers
from sfumato.tables.engines import Engine, fresh_name
from sfumato.tables.sources import describe, names_of
from sfumato.testing.hard_rows import COLUMNS, PREDICATES, ROSTER, SCHEMA, WEIRD, as_arrow
from sfumato.testing.revealing import reveal

Source = dict[str, Any]  # the arguments `source` and `table` of `sfumato.tables.open`


@dataclass(frozen=True)
class Case:
    """A case of the check.

    Attributes
    ----------
    name : str
        What was computed.
    passed : bool
        Whether the engine gives what DuckDB gives.
    why : str
        What happened if it does not; no value of the engine's is quoted.
    """

    name: str
    passed: bool
    why: str = ""


def check_url(url: str, scratch: str) -> list[Case]:
    """Run the hard rows on the engine at a URL.

    Parameters
    ----------
    url : str
        Where the engine is, as `sfumato.open` takes it.
    scratch : str
        The schema, or catalogue and schema, in which two scratch tables may be made and dropped.

    Returns
    -------
    list of Case
    """
    scheme = url.partition("://")[0]
    if scheme not in DATABASES or scheme == "duckdb":
        known = ", ".join(f"{s}://" for s in DATABASES if s != "duckdb")
        raise InputError(f"{describe(url)} is no engine to be checked; known: {known}")
    backend = _backend(url)
    engine = Engine(backend, None, backend.name, url=url)
    refuse_silent(engine)
    wrong = wrong_answers(engine)
    cases = [Case("constants", not wrong, ", ".join(wrong))]
    if wrong:  # it is refused whenever it is opened
        return cases
    with _scratch(backend, url, scratch, COLUMNS) as rows, _scratch(backend, url, scratch, ROSTER) as roster:
        return cases + check_sources(rows, roster)


def check_sources(rows: Source, roster: Source) -> list[Case]:
    """Compare the hard rows and their roster, which lie at two sources, with the same on DuckDB.

    Parameters
    ----------
    rows : mapping
        `source` and `table` of the hard rows (`sfumato.testing.hard_rows.COLUMNS`).
    roster : mapping
        Those of their roster (`sfumato.testing.hard_rows.ROSTER`).

    Returns
    -------
    list of Case
    """
    here, there = _Side({"source": as_arrow(COLUMNS)}, {"source": as_arrow(ROSTER)}), _Side(rows, roster)
    return [_compared(name, compute, here, there) for name, compute in _cases()]


@dataclass(frozen=True)
class _Side:
    """Where the rows and their roster lie, on the engine that is tried or on DuckDB."""

    rows: Source
    roster: Source

    @cached_property
    def data(self) -> Dataset:
        return open_table(**self.rows, schema=SCHEMA, budgets="epsilon")


def _compared(name: str, compute: Callable[[_Side], Any], here: _Side, there: _Side) -> Case:
    expected = compute(here)
    try:
        found = compute(there)
    except Exception as error:
        return Case(name, False, f"it raises {type(error).__name__}")
    return Case(name, found == expected, "" if found == expected else "another answer")


def _cases() -> Iterator[tuple[str, Callable[[_Side], Any]]]:
    """What is computed: a name, and a function of where it is."""
    for columns in (*([name] for name in SCHEMA.names), ["age", "sex"], ["place", "income", "smoker"], ["ward", WEIRD]):
        yield f"cells of {', '.join(columns)}", partial(_counts, columns)
    for text in PREDICATES:
        yield f"count where {text}", partial(_count, text)
    yield "several tables at once", lambda side: _lists(reveal(side.data.marginals([["age", "sex"], ["place"]])))
    yield "margins", _margins
    yield "cells with rows", lambda side: _lists(reveal(side.data.sparse_counts(["age", "sex"], "age >= 10")))
    yield "weighted count", partial(_weighted, {"weights": 200_000_000, "where": "age >= 10"})
    yield "weighted sum", partial(_weighted, {"weights": 200_000_000, "measure": "income", "steps": 1000})
    yield "sum beyond 64 bits", partial(_weighted, {"weights": 10**15, "measure": "income", "steps": 9000})
    yield "weighted counts by sex", partial(_weighted, {"weights": 10**9, "by": ["sex"]})
    yield "points of a lattice", _points
    yield "groups of people", lambda side: _groups(side.data)
    tiers = Roster.tiers({"strict": 0.01, "open": 1.0}, column="consent")
    yield "tiers", lambda side: _groups(open_table(**side.rows, schema=SCHEMA, budgets=tiers))
    for most in (1, 3):
        yield f"at most {most} rows a person", partial(_capped, most)


def _counts(columns: list[str], side: _Side) -> Any:
    return reveal(side.data.counts(columns)).tolist()


def _count(text: str, side: _Side) -> int:
    return reveal(side.data.count(text))


def _weighted(asked: dict[str, Any], side: _Side) -> Any:
    found: Any = reveal(side.data.weighted_sums(**asked))
    return np.asarray(found).tolist()


def _lists(arrays: Any) -> list[Any]:
    return [array.tolist() for array in arrays]


def _margins(side: _Side) -> list[Any]:
    read = PersonalTable(side.data).margins(["age", "sex", "smoker"])
    return [reveal(read(np.array([1]), axes)).tolist() for axes in ((0, 1, 2), (2, 0), ())]


def _points(side: _Side) -> Any:
    found = reveal(side.data.points("income", steps=100))
    return np.bincount(found.points, found.counts, minlength=101).tolist()


def _groups(data: Dataset) -> list[Any]:
    people = data.person_budgets()
    return [people.levels.tolist(), people.counts.tolist(), reveal(data.group_sums(people, where="sex = 'F'")).tolist()]


def _capped(most: int, side: _Side) -> list[Any]:
    """What does not depend on which rows of a person were kept."""
    source, table = side.roster["source"], side.roster.get("table")
    budgets = Roster.table(source, table=table, person="patient", epsilon="budget")
    schema = Schema(SCHEMA.columns, PrivacyUnit(person="patient", rows_per_person=most))
    data = open_table(**side.rows, schema=schema, budgets=budgets)
    people = budgets.head_counts()
    return [
        people.levels.tolist(),
        people.counts.tolist(),
        reveal(data.count()),
        reveal(data.weighted_sums(10**9)),
        reveal(data.group_sums(people)).tolist(),
    ]


def _backend(url: str) -> Any:
    if SCHEMES[url.partition("://")[0]].backend == "pyspark":
        from sfumato.tables.spark_engine import backend_at

        return backend_at(url)
    return connected(url)


@contextmanager
def _scratch(backend: Any, url: str, scratch: str, columns: dict[str, tuple[str, tuple[Any, ...]]]) -> Iterator[Source]:
    """A table of constants on the engine, dropped afterwards."""
    place = names_of(scratch)
    name = f"{fresh_name('sfumato_check')}_{os.getpid()}"
    database = place[0] if len(place) == 1 else place
    try:
        backend.create_table(name, literal_rows(columns, backend.name), database=database)
    except Exception as error:
        kind = type(error).__name__
    else:
        try:
            yield {"source": url, "table": (*place, name)}
        finally:
            with suppress(Exception):
                backend.drop_table(name, database=database)
        return
    raise InputError(f"cannot make a table in {scratch!r} at {describe(url)} ({kind}); name a schema that you may write to")
