"""Rows weighed inside the engine: whole numbers that follow a person's budget by steps, and sums of what they multiply.

What comes back is a line per cell, however many budgets there are. The rule is exact for every row, listed budget or not:
a budget weighs as the largest listed one that it reaches, and below the first it weighs nothing. The public list alone says
which of three ways is taken:

- a few steps (a cap, a dozen parts) are a tree of comparisons;
- where the listed budgets are all multiples of a part of ε between the first and the last (0.001, 0.002...), and weigh their
  own size beyond some bound and up to another, a row is rounded down to its multiple by arithmetic;
- otherwise the list is a table on the engine and rows are joined to it. Rows beyond the last step are not looked up. A
  budget that is not in the list is kept apart, with its sums, and finds the one below it by a second join, of such budgets
  only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.units import NANO
from sfumato.tables.columns import Column, Expr
from sfumato.tables.engine_list import LISTS_AS_TEXT
from sfumato.tables.engines import Engine
from sfumato.tables.raw_groups import Grouping, coded_groups

if TYPE_CHECKING:
    from sfumato.tables.schema import Schema

Integers = NDArray[np.int64]
FEW = 128  # steps that a tree of comparisons decides faster than a join


@dataclass(frozen=True, eq=False)
class Steps:
    """Whole numbers of at least 0 that depend on a key (a budget) by steps; 0 below the first.

    Attributes
    ----------
    keys : int64 array
        Where something is listed, strictly increasing.
    values : int64 array
        A line for each number, a column for each key.

    Examples
    --------
    >>> steps = Steps.of(np.array([10, 20, 20, 30]), np.array([[1, 2, 5, 5]]))
    >>> steps.keys.tolist(), steps.values.tolist(), steps.starts.tolist()
    ([10, 20, 30], [[1, 5, 5]], [0, 1])
    """

    keys: Integers
    values: Integers

    @classmethod
    def of(cls, keys: Integers, values: Integers) -> Steps:
        """From sorted `keys` and lines of `values`; of equal keys the last counts, as in a search from the right."""
        last = np.append(np.diff(keys) > 0, True)
        return cls(keys[last], np.atleast_2d(values)[:, last])

    @property
    def starts(self) -> Integers:
        """Places of the keys at which a number changes."""
        before = np.concatenate([np.zeros((len(self.values), 1), dtype=np.int64), self.values[:, :-1]], axis=1)
        return np.flatnonzero((self.values != before).any(axis=0))


def weighed_groups(
    rows: Expr,
    names: Sequence[str],
    columns: Mapping[str, Column],
    schema: Schema,
    steps: Steps,
    *,
    engine: Engine,
    measures: Mapping[str, Expr | None],
    keys: Mapping[str, Grouping],
    wide: bool,
) -> Expr:
    """Sums of every number times every measure, by cell; one row of the result for each.

    Parameters
    ----------
    rows, columns
        What `sfumato.tables.rows.rows_in_use` gave, with ``key``.
    names : sequence of str
        Columns whose cells to keep apart.
    schema : Schema
        Says what cells are.
    steps : Steps
        The numbers, by key.
    engine : Engine
        Where the rows are.
    measures : mapping
        Under its name a whole number for each row, or None for 1.
    keys : mapping
        What else to keep apart.
    wide : bool
        Whether sums may pass 64 bits.

    Returns
    -------
    Ibis table
        With the names of `keys`, c0, c1..., and ``{measure}_{number}`` for every pair.
    """
    starts = steps.starts
    about: Any = {"engine": engine.name}
    if starts.size <= FEW:
        numbers = [_tree(rows["key"], steps.keys[starts], line[starts]) for line in steps.values]
        return coded_groups(rows, names, columns, schema, **about, totals=_products(numbers, measures, wide), keys=keys)
    if (grid := regular(steps.keys)) is not None and (lines := _own_size(steps)) is not None:
        numbers = [
            _rounded(rows["key"], steps.keys, line, grid, less) for line, less in zip(steps.values, lines, strict=True)
        ]
        return coded_groups(rows, names, columns, schema, **about, totals=_products(numbers, measures, wide), keys=keys)
    first, last = int(starts[0]), int(starts[-1])
    listed = _listed(steps.keys[first:last], steps.values[:, first:last], engine.name)
    joined, numbers, missed = _looked_up(rows, listed, steps, first, last)
    sums = _products(numbers, measures, wide) | {f"_of_{name}": value for name, value in measures.items()}
    apart = {**keys, "_missed": Grouping(missed, 1)}
    found = coded_groups(joined, names, columns, schema, **about, totals=sums, keys=apart)
    below = _below(found, listed, len(numbers), engine)

    def together(name: str, j: int) -> Expr:
        late = below[f"_w{j}"].fill_null(0)
        late = late.cast("decimal(38, 0)") if wide else late
        return (below[f"{name}_{j}"] + late * below[f"_of_{name}"]).sum()

    totals = {f"{name}_{j}": together(name, j) for name in measures for j in range(len(numbers))}
    cells = [*keys, *(f"c{i}" for i in range(len(names)))]
    return below.group_by(cells).agg(**totals) if cells else below.aggregate(**totals)


def _products(numbers: Sequence[Expr], measures: Mapping[str, Expr | None], wide: bool) -> dict[str, Expr]:
    made = {}
    for name, value in measures.items():
        for j, number in enumerate(numbers):
            product = number if value is None else number * value
            made[f"{name}_{j}"] = product.cast("decimal(38, 0)") if wide else product
    return made


def number_of(key: Expr, levels: Integers) -> Expr:
    """How many of the `levels` a key reaches; of equal ones the last is its group."""
    return _tree(key, levels, np.arange(1, levels.size + 1))


def _tree(key: Expr, starts: Integers, values: Integers) -> Expr:
    """The number that a key has, by halving: every row is compared as often as the tree is deep."""
    import ibis

    def between(low: int, high: int) -> Any:
        if low == high:
            return ibis.literal(int(values[low - 1]) if low else 0, type="int64")
        middle = (low + high + 1) // 2
        if between_is_constant(low, high):
            return ibis.literal(int(values[low - 1]) if low else 0, type="int64")
        return ibis.ifelse(key >= int(starts[middle - 1]), between(middle, high), between(low, middle - 1))

    padded = np.concatenate([[0], values])

    def between_is_constant(low: int, high: int) -> bool:
        return bool((padded[low : high + 1] == padded[low]).all())

    return between(0, len(values))


# ------------------------------------------------------------------------------------------------ on a regular grid


def regular(keys: Integers) -> tuple[int, int, int] | None:
    """p, q and b such that ``keys[i] = (i p + b) // q`` for all i, if there are such: multiples of a part of ε do.

    >>> regular(np.arange(5, 50) * 1000), regular(np.arange(1, 900) * 10**9 // 1024)
    ((1000, 1, 5000), (1953125, 2, 1953125))
    >>> regular(np.array([1000, 2000, 4000]))
    """
    low, high, last = int(keys[0]), int(keys[-1]), keys.size - 1
    if last < 2 or high <= low:
        return None
    parts = round(last * NANO / (high - low))  # in one ε
    common = math.gcd(NANO, parts)  # at least 1
    wide, fine = NANO // common, parts // common
    for p, q, b in (((high - low) // last, 1, low), (wide, fine, -(-low * fine // wide) * wide)):
        # What is divided stays below 2^53, where the division of doubles that engines use is exact after rounding down.
        if q and (high + 1) * q + p < 2**53 and np.array_equal((np.arange(keys.size) * p + b) // q, keys):
            return p, q, b
    return None


def _own_size(steps: Steps) -> list[int] | None:
    """For each number what is taken from a key to give it, between 0 and its largest value; None if one is not so."""
    found = []
    for line in steps.values:
        top = int(line.max())
        place = int(np.argmax((line > 0) & (line < top))) if ((line > 0) & (line < top)).any() else int(np.argmax(line))
        less = int(steps.keys[place] - line[place])
        if not np.array_equal(np.clip(steps.keys - less, 0, top), line):
            return None
        found.append(less)
    return found


def _rounded(key: Expr, keys: Integers, line: Integers, grid: tuple[int, int, int], less: int) -> Expr:
    """The number of a key: of the multiple that it is rounded down to."""
    import ibis

    p, q, b = grid
    top = int(line.max())
    if top == 0:
        return ibis.literal(0, type="int64")
    # Held before it is multiplied: some engines compute every branch.
    held = ibis.ifelse(key < int(keys[-1]), key, int(keys[-1]))
    place = ((held + 1) * q - (b + 1)) // p
    multiple = (place * p + b) // q if q > 1 else place * p + b
    from_here, full = int(keys[np.argmax(line > 0)]), int(keys[np.argmax(line == top)])
    return ibis.cases((key >= full, top), (key < from_here, 0), else_=multiple - less).cast("int64")


# ------------------------------------------------------------------------------------------------ joined to the list


def _looked_up(rows: Expr, listed: Expr, steps: Steps, first: int, last: int) -> tuple[Expr, list[Expr], Expr]:
    """The rows beside what is listed for their key; their numbers; and the keys for which nothing is listed."""
    import ibis

    low, top = int(steps.keys[first]), int(steps.keys[last])
    sought = ibis.ifelse((rows["key"] >= low) & (rows["key"] < top), rows["key"], ibis.null("int64"))
    rows = rows.mutate(_sought=sought)
    joined = rows.left_join(listed, rows["_sought"] == listed["_key"])
    missed = ibis.ifelse(joined["_sought"].notnull() & joined["_key"].isnull(), joined["_sought"], ibis.null("int64"))
    numbers = [
        ibis.ifelse(joined["key"] >= top, int(line[last]), joined[f"_w{j}"].fill_null(0)).cast("int64")
        for j, line in enumerate(steps.values)
    ]
    return joined, numbers, missed


def _below(apart: Expr, listed: Expr, count: int, engine: Engine) -> Expr:
    """Sums of budgets that are not in the list, beside the numbers of the one below; NULL for the others."""
    import ibis

    numbers = [f"_w{j}" for j in range(count)]
    if engine.name == "duckdb":
        return apart.asof_join(listed, apart["_missed"] >= listed["_key"])
    if engine.name == "polars":  # wants both in order, and no NULL among them
        apart = apart.mutate(_missed=apart["_missed"].fill_null(-1)).order_by("_missed")
        return apart.asof_join(listed.order_by("_key"), apart["_missed"] >= listed["_key"])
    # The others have no such join: both in one order, and the largest key so far.
    marks = listed.select(_missed=listed["_key"], _mark=listed["_key"])
    empty = {c: ibis.null(apart[c].type()) for c in apart.columns if c != "_missed"}
    marks = marks.mutate(**empty).select("_missed", "_mark", *empty)
    ours = apart.mutate(_mark=ibis.null("int64")).select("_missed", "_mark", *empty)
    both = marks.union(ours, distinct=False).mutate(_is=ibis.literal(1))
    so_far = both["_mark"].max().over(ibis.window(order_by=both["_missed"], preceding=None, following=0))
    both = both.mutate(_place=ibis.ifelse(both["_missed"].notnull(), so_far, ibis.null("int64")), _level=both["_mark"])
    both = both.filter(both["_mark"].isnull())
    met = both.left_join(listed, both["_place"] == listed["_key"])
    return met.select(*(met[c] for c in apart.columns), *(met[n] for n in numbers))


def _listed(keys: Integers, values: Integers, engine: str) -> Expr:
    """The list as a table of ``_key`` and ``_w0``, ``_w1``..."""
    import ibis
    import pyarrow as pa

    if engine not in LISTS_AS_TEXT:
        return ibis.memtable(pa.table({"_key": keys} | {f"_w{j}": line for j, line in enumerate(values)}))
    # As `lookups` does, and for the same reasons: one literal that the engine takes apart.
    lines = [keys, *values]
    text = ";".join(",".join(map(str, line)) for line in zip(*(x.tolist() for x in lines), strict=True))
    each = ibis.literal(text).split(";").unnest().name("_each").as_table()["_each"]
    parts = each.split(",")
    table = each.as_table()
    named = {"_key": parts[0]} | {f"_w{j}": parts[j + 1] for j in range(len(values))}
    return table.select(**{name: part.cast("int64") for name, part in named.items()})
