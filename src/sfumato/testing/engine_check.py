"""The hard rows on an engine of one's own: does it give what DuckDB gives, case by case?

Two scratch tables of constants are made on the engine, in a schema that is named for it, and dropped again. Nothing else is
read or written, and nothing in them is anybody's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from sfumato.errors import InputError
from sfumato.tables import PersonalTable, PrivacyUnit, Roster, Schema
from sfumato.tables import open as open_table
from sfumato.tables.databases import connected
from sfumato.tables.engine_list import DATABASES, SCHEMES
from sfumato.tables.engine_probe import literal_rows, wrong_answers
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
    wrong = wrong_answers(Engine(backend, None, backend.name))
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
    here = {"rows": {"source": as_arrow(COLUMNS)}, "roster": {"source": as_arrow(ROSTER)}}
    return [_compared(name, compute, here, {"rows": rows, "roster": roster}) for name, compute in _cases()]


def _compared(name: str, compute: Callable[..., Any], here: dict[str, Source], there: dict[str, Source]) -> Case:
    expected = compute(**here)
    try:
        found = compute(**there)
    except Exception as error:
        return Case(name, False, f"it raises {type(error).__name__}")
    return Case(name, found == expected, "" if found == expected else "another answer")


def _cases() -> Iterator[tuple[str, Callable[..., Any]]]:
    """What is computed: a name, and a function of where the rows and the roster lie."""
    for name in SCHEMA.names:
        yield f"cells of {name}", lambda rows, roster, name=name: reveal(_open(rows).counts(name)).tolist()
    for pair in (["age", "sex"], ["place", "income", "smoker"], ["ward", WEIRD]):
        yield f"cells of {', '.join(pair)}", lambda rows, roster, pair=pair: reveal(_open(rows).counts(pair)).tolist()
    for text in PREDICATES:
        yield f"count where {text}", lambda rows, roster, text=text: reveal(_open(rows).count(text))
    yield "several tables at once", lambda rows, roster: _lists(reveal(_open(rows).marginals([["age", "sex"], ["place"]])))
    yield "margins", lambda rows, roster: _margins(rows)
    yield "cells with rows", lambda rows, roster: _lists(reveal(_open(rows).sparse_counts(["age", "sex"], "age >= 10")))
    yield "weighted count", lambda rows, roster: reveal(_open(rows).weighted_sums(200_000_000, where="age >= 10"))
    yield (
        "weighted sum",
        lambda rows, roster: reveal(_open(rows).weighted_sums(200_000_000, measure="income", steps=1000)),
    )
    yield (
        "sum beyond 64 bits",
        lambda rows, roster: reveal(_open(rows).weighted_sums(10**15, measure="income", steps=9000)),
    )
    yield "weighted counts by sex", lambda rows, roster: reveal(_open(rows).weighted_sums(10**9, by=["sex"])).tolist()
    yield "points of a lattice", lambda rows, roster: _points(rows)
    yield "groups of people", lambda rows, roster: _groups(rows, Roster.column("epsilon"))
    tiers = Roster.tiers({"strict": 0.01, "open": 1.0}, column="consent")
    yield "tiers", lambda rows, roster: _groups(rows, tiers)
    for most in (1, 3):
        yield f"at most {most} rows a person", lambda rows, roster, most=most: _capped(rows, roster, most)


def _open(rows: Source, budgets: Roster | str = "epsilon", schema: Schema = SCHEMA) -> Any:
    return open_table(**rows, schema=schema, budgets=budgets)


def _lists(arrays: Any) -> list[Any]:
    return [array.tolist() for array in arrays]


def _margins(rows: Source) -> list[Any]:
    import numpy as np

    read = PersonalTable(_open(rows)).margins(["age", "sex", "smoker"])
    return [reveal(read(np.array([1]), axes)).tolist() for axes in ((0, 1, 2), (2, 0), ())]


def _points(rows: Source) -> Any:
    import numpy as np

    found = reveal(_open(rows).points("income", steps=100))
    return np.bincount(found.points, found.counts, minlength=101).tolist()


def _groups(rows: Source, budgets: Roster) -> list[Any]:
    data = _open(rows, budgets)
    people = data.person_budgets()
    return [people.levels.tolist(), people.counts.tolist(), reveal(data.group_sums(people, where="sex = 'F'")).tolist()]


def _capped(rows: Source, roster: Source, most: int) -> list[Any]:
    """What does not depend on which rows of a person were kept."""
    budgets = Roster.table(roster["source"], table=roster.get("table"), person="patient", epsilon="budget")
    data = _open(rows, budgets, Schema(SCHEMA.columns, PrivacyUnit(person="patient", rows_per_person=most)))
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
        backend.create_table(name, literal_rows(columns), database=database)
    except Exception as error:
        kind = type(error).__name__
    else:
        try:
            yield {"source": url, "table": (*place, name)}
        finally:
            with suppress(Exception):
                backend.drop_table(name, database=database)
        return
    raise InputError(
        f"no table could be made in {scratch!r} at {describe(url)} ({kind}); name a schema that you may write to"
    )
