"""The yardstick of `sfumato bench scale`: the SQL that a good engineer would write, and how to compare with it.

A *work* is a kind of budgets and a question, as in ``tiers/count``. Its query groups by columns as they are, cuts bins by
division and clamps the few numbers, weighs with ``least``, and counts capped persons by ``least(count(*), 3)``; it has
none of our own CASE chains (bins of unequal width have one, for want of a formula). It computes the same exact aggregate as
ours, which `agree` shows: a baseline that computes something else is none. Which three rows of a capped person count is
random on both sides, so there only counts and totals are compared.

The query may assume what we may not: that no number is NaN and that a text is one of a few. It may not skip the rule that
a person who declares two budgets has the lower.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.bench import scale_data as made
from sfumato.privacy.budgets import PersonBudgets
from sfumato.tables import Dataset, PersonalTable
from sfumato.testing import reveal

KINDS = ("one", "tiers", "million", "capped", "persons")
"""One ε for all; three tiers; a million budgets; capped persons at one ε; capped persons in three tiers."""
QUESTIONS = ("count", "sum", "histogram", "bins", "table", "quantile", "grid")
"""A condition; a measure; a text column; a numeric column; two columns; the points of a quantile; five columns."""
WORKS = tuple(f"{kind}/{asked}" for kind in KINDS for asked in QUESTIONS)

WHERE = "age >= 65 and region = 'r3'"
STEPS = 1000
CAP = 250_000_000
"""The cap r of the weights, in nano-ε."""
Integers = NDArray[np.int64]

_AGE = "least(greatest(age, 0), 119) // 10"
_AMOUNT = "least(greatest(income, 0), 1000)"
_BIN = f"least(floor({_AMOUNT} / 50), 19)::INTEGER"
_POINT = f"floor({_AMOUNT} + 0.5)::INTEGER"
_STAY = "CASE WHEN stay < 1 THEN 0 WHEN stay < 2 THEN 1 WHEN stay < 4 THEN 2 WHEN stay < 7 THEN 3 "
_STAY += "WHEN stay < 14 THEN 4 WHEN stay < 30 THEN 5 ELSE 6 END"
_CELLS: dict[str, dict[str, str]] = {
    "histogram": {"region": "region"},
    "bins": {"income": _BIN},
    "table": {"age": _AGE, "region": "region"},
    "quantile": {"point": _POINT},
    "grid": {"age": _AGE, "sex": "sex", "income": _BIN, "region": "region", "stay": _STAY},
}
_READ: dict[str, tuple[str, ...]] = {
    "count": ("age", "region"),
    "sum": ("income",),
    "histogram": ("region",),
    "bins": ("income",),
    "table": ("age", "region"),
    "quantile": ("income",),
    "grid": made.COLUMNS,
}
_HOLDS = {"count": " WHERE age >= 65 AND region = 'r3'"} | dict.fromkeys(
    ("bins", "quantile", "grid"), " WHERE income IS NOT NULL"
)
_RANK = "min(CASE tier WHEN 'strict' THEN 0 WHEN 'standard' THEN 1 ELSE 2 END)"


def split(work: str) -> tuple[str, str]:
    """The kind of budgets and the question of a work, which must be one of `WORKS`."""
    if work not in WORKS:
        raise ValueError(f"there is no work {work!r}; there are {', '.join(WORKS)}")
    kind, _, asked = work.partition("/")
    return kind, asked


def columns_of(asked: str) -> tuple[str, ...]:
    """The columns of the schema that a question groups by."""
    return () if asked in ("count", "sum", "quantile") else tuple(_CELLS[asked])


def hand_query(work: str, path: str | Path, *, table: str | None = None) -> str:
    """The query of a good engineer for `work` over the Parquet file at `path` (or over a `table` of PostgreSQL).

    Parameters
    ----------
    work : str
        One of `WORKS`.
    path : path
        What `scale_data.make_table` wrote.
    table : str, optional
        The name of a table, instead of a file.

    Returns
    -------
    str

    Examples
    --------
    >>> hand_query("tiers/count", "people.parquet")
    "SELECT tier, count(*) AS n FROM 'people.parquet' WHERE age >= 65 AND region = 'r3' GROUP BY tier"
    >>> hand_query("one/histogram", "people.parquet")
    "SELECT region, count(*) AS n FROM 'people.parquet' GROUP BY region"
    """
    kind, asked = split(work)
    if table is not None:  # PostgreSQL divides whole numbers with one stroke
        return hand_query(work, path).replace(f"'{path}'", table).replace("//", "/")
    rows = f"'{path}'"
    holds = _HOLDS.get(asked, "")
    if kind in ("capped", "persons"):
        return _of_persons(kind, asked, rows, holds)
    value = {"count": "count(*)", "sum": f"sum({_POINT})"}.get(asked, "count(*)")
    if kind == "million":
        weight = f"least(floor(epsilon * 1e9), {CAP})::BIGINT"
        value = f"sum({weight} * {_POINT})" if asked == "sum" else f"sum({weight})"
    keys = ({"tier": "tier"} if kind == "tiers" else {}) | _CELLS.get(asked, {})
    return _grouped(keys, f"{value} AS n", rows + holds)


def _grouped(keys: Mapping[str, str], values: str, rows: str) -> str:
    """Group by the keys' own expressions: by position where they are not columns, as PostgreSQL and DuckDB both read."""
    if not keys:
        return f"SELECT {values} FROM {rows}"
    selected = ", ".join(name if name == sql else f"{sql} AS {name}_" for name, sql in keys.items())
    plain = all(name == sql for name, sql in keys.items())
    by = ", ".join(keys) if plain else ", ".join(str(i + 1) for i in range(len(keys)))
    return f"SELECT {selected}, {values} FROM {rows} GROUP BY {by}"


def columns_read(work: str) -> tuple[str, ...]:
    """The columns of the table that a work must read, whoever writes the query."""
    kind, asked = split(work)
    granted = {"tiers": ("tier",), "persons": ("tier", "person"), "capped": ("person",), "million": ("epsilon",)}
    return (*_READ[asked], *granted.get(kind, ()))


def _of_persons(kind: str, asked: str, rows: str, holds: str) -> str:
    most = made.ROWS_PER_PERSON
    if asked == "count" and kind == "capped":
        each = f"SELECT count(*) AS n FROM {rows}{holds} GROUP BY person"
        return f"SELECT sum(least(n, {most})) AS n FROM ({each}) AS persons"
    if asked == "count":  # the lowest tier of a person is that over all their rows, whatever the condition
        each = f"SELECT {_RANK} AS tier, count(*) FILTER ({holds.strip()}) AS n FROM {rows} GROUP BY person"
        return f"SELECT tier, sum(least(n, {most})) AS n FROM ({each}) AS persons GROUP BY tier"
    read = ", ".join(_READ[asked])
    turn = f"row_number() OVER (PARTITION BY person ORDER BY random()) AS turn, {read}"
    lowest = f", {_RANK} OVER (PARTITION BY person) AS tier" if kind == "persons" else ""
    kept = f"(SELECT {turn}{lowest} FROM {rows}) AS turns WHERE turn <= {most}{holds.replace(' WHERE', ' AND')}"
    keys = ({"tier": "tier"} if kind == "persons" else {}) | _CELLS.get(asked, {})
    return _grouped(keys, f"{f'sum({_POINT})' if asked == 'sum' else 'count(*)'} AS n", kept)


# ---------------------------------------------------------------------------------------------- what both compute


def people_of(kind: str, rows: int) -> PersonBudgets | None:
    """The person groups of a kind of budgets; None where one ε holds."""
    if kind in ("one", "capped"):
        return None
    return made.roster("million" if kind == "million" else "tiers", rows).head_counts()


def exact(work: str, dataset: Dataset, people: PersonBudgets | None) -> Any:
    """Our exact aggregate for `work`, as releases of this kind read it: an integer, or an array with an axis per column."""
    _, asked = split(work)
    weights = np.ones(1, dtype=np.int64) if people is None else np.minimum(people.levels, CAP)
    if asked == "quantile":
        return dataset.points("income", steps=STEPS, budgets=people, weights=None if people is None else weights)
    table = PersonalTable(dataset, people)
    if asked == "count":
        return table.weighted_sum(weights, where=WHERE)
    if asked == "sum":
        return table.weighted_sum(weights, measure="income", steps=STEPS)
    return table.weighted_cells(weights, columns_of(asked))


def result_of(work: str, found: Mapping[str, Any]) -> Any:
    """What a query by hand found, as our aggregate writes it: the few groups coded and weighed in memory."""
    kind, asked = split(work)
    totals = [0 if n is None else int(n) for n in found["n"]]
    weights = [1] * len(totals)
    if kind in ("tiers", "persons"):
        nano = [min(CAP, int(float(epsilon) * 1e9)) for epsilon in made.TIERS.values()]
        by_name = dict(zip(made.TIERS, nano, strict=True)) | dict(enumerate(nano))
        weights = [by_name[tier] for tier in found["tier"]]
    each = [w * n for w, n in zip(weights, totals, strict=True)]
    if asked in ("count", "sum"):
        return sum(each)
    if asked == "quantile":
        points = np.zeros(STEPS + 1, dtype=np.int64)
        known = [(int(p), n) for p, n in zip(found["point_"], each, strict=True) if p is not None]
        np.add.at(points, [p for p, _ in known], [n for _, n in known])
        return points
    names = columns_of(asked)
    cells = np.zeros(made.SCHEMA.shape(names), dtype=np.int64)
    codes = [[_code(name, value) for value in found[name if name in found else f"{name}_"]] for name in names]
    kept = [i for i in range(len(each)) if all(column[i] >= 0 for column in codes)]
    np.add.at(cells, tuple([column[i] for i in kept] for column in codes), [each[i] for i in kept])
    return cells


def _code(column: str, value: Any) -> int:
    if column == "region":
        return made.REGIONS.index(value) if value in made.REGIONS else len(made.REGIONS)
    if column == "sex":
        return {"F": 0, "M": 1}.get(value, -1)
    return -1 if value is None else int(value)


def ours_as_result(work: str, found: Any) -> Any:
    """What our aggregate gave, comparable with `result_of`: points of a quantile are added up by weight."""
    if not work.endswith("/quantile"):
        return found
    points = np.zeros(STEPS + 1, dtype=np.int64)
    np.add.at(points, found.points, found.counts)
    return points


def agree(work: str, ours: Any, by_hand: Any) -> bool | None:
    """Whether both are the same to the last row; None where rows are chosen at random and nothing must be equal.

    Of capped persons a count is exact, and so is the total of a table in which every row has a cell.
    """
    kind, asked = split(work)
    if kind not in ("capped", "persons") or asked == "count":
        return bool(np.array_equal(ours, by_hand))
    return int(np.sum(ours)) == int(np.sum(by_hand)) if asked in ("histogram", "table") else None


def run_hand(connection: Any, query: str) -> dict[str, list[Any]]:
    """Run a query on DuckDB and fetch all of it, as lists by column."""
    found: dict[str, list[Any]] = connection.execute(query).fetch_arrow_table().to_pydict()
    return found


# ---------------------------------------------------------------------------------------------- how long it takes


@dataclass(frozen=True)
class Ratio:
    """Median seconds of two jobs run in turns.

    Attributes
    ----------
    ours, hand : float
        Processor seconds of all threads, unless another clock was given.
    """

    ours: float
    hand: float

    @property
    def times(self) -> float:
        """Ours as a multiple of the query by hand."""
        return self.ours / self.hand


def ratio(
    ours: Callable[[], Any],
    hand: Callable[[], Any],
    repeats: int = 5,
    *,
    clock: Callable[[], float] = time.process_time,
    warm: bool = True,
) -> Ratio:
    """Median seconds of two jobs in turns.

    Parameters
    ----------
    ours, hand : callable
        The jobs. One that must differ every time (a release again is free) has to see to that itself.
    repeats : int
        Turns that count.
    clock : callable
        Processor seconds of this process with all its threads; `server_clock` for a server; else ``time.perf_counter``.
    warm : bool
        Begin with a turn of each that is not counted; not needed where both have just been run.

    Returns
    -------
    Ratio
    """
    if warm:
        ours(), hand()
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(repeats):
        order = (0, 1) if turn % 2 == 0 else (1, 0)  # whoever comes second finds warmer caches
        for i in order:
            start = clock()
            (ours, hand)[i]()
            seconds[i].append(clock() - start)
    return Ratio(statistics.median(seconds[0]), statistics.median(seconds[1]))


def server_clock(root: int) -> Callable[[], float] | None:
    """A clock of the processor seconds of a server with process number `root`, its children, and this process.

    Reads ``/proc``; None where there is none. Children that ended are in the account of their parent.
    """
    if not Path(f"/proc/{root}/stat").exists():
        return None
    ticks = os.sysconf("SC_CLK_TCK")

    def seconds() -> float:
        spent: dict[int, tuple[int, float]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:  # it ended while we looked
                    continue
                spent[int(entry.name)] = (int(fields[1]), sum(map(int, fields[11:15])) / ticks)
        tree, more = {root}, True
        while more:
            found = {pid for pid, (parent, _) in spent.items() if parent in tree} - tree
            tree, more = tree | found, bool(found)
        return time.process_time() + sum(spent[pid][1] for pid in tree if pid in spent)

    return seconds


def weighed(work: str, dataset: Dataset, people: PersonBudgets | None) -> Any:
    """`exact`, opened: for jobs that are timed and compared, on made data only."""
    return reveal(exact(work, dataset, people))
