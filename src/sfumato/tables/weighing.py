"""Rows weighed inside the engine: whole numbers that follow a person's budget by steps, and sums of what they multiply.

What comes back is a line per cell, however many budgets there are. The rule is exact for every row, listed budget or not: a
budget weighs as the largest listed one that it reaches, and below the first it weighs nothing. Which of three ways is taken
depends on the public list alone:

- a few steps (a cap, a dozen parts) are a tree of comparisons;
- budgets on a regular grid (0.001, 0.002...) are rounded down to it by arithmetic, where the weight of a listed budget is its
  own size between two bounds;
- otherwise the list is a table on the engine and rows are joined to it. Rows beyond the last step are not looked up. A budget
  that is not in the list is kept apart, with its sums, and finds the one below it by a second join, of such budgets only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.columns import Expr
from sfumato.tables.engines import Engine

Integers = NDArray[np.int64]
FEW = 128  # steps that a tree of comparisons decides faster than a join
_BASE = 1 << 32  # weights beyond it are taken apart where a product might pass 64 bits


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


def weighted_totals(
    table: Expr,
    steps: Steps,
    cells: Sequence[str],
    measures: Mapping[str, int],
    engine: Engine,
    *,
    wide: bool,
) -> Expr:
    """Sums of every number times every measure, by cell.

    Parameters
    ----------
    table : Expr
        Rows with ``key``, the cells and the measures.
    steps : Steps
        The numbers.
    cells : sequence of str
        Columns to group by.
    measures : mapping of str to int
        Columns of whole numbers, and how large the size of one can be.
    engine : Engine
    wide : bool
        Whether sums may pass 64 bits.

    Returns
    -------
    Expr
        The cells, and ``{measure}_{number}`` for every pair.
    """
    named = [(name, j, f"{name}_{j}") for name in measures for j in range(len(steps.values))]
    starts = steps.starts
    if starts.size <= FEW:
        numbers = [_tree(table["key"], steps.keys[starts], line[starts]) for line in steps.values]
        return _grouped(table, cells, {out: _total(numbers[j] * table[name], wide) for name, j, out in named})
    return _joined(table, steps, cells, list(measures), engine, wide)


def _grouped(table: Expr, cells: Sequence[str], sums: Mapping[str, Expr]) -> Expr:
    return table.group_by(list(cells)).agg(**sums) if cells else table.aggregate(**sums)


def _total(expr: Expr, wide: bool) -> Expr:
    return expr.cast("decimal(38, 0)").sum() if wide else expr.sum()


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


# ------------------------------------------------------------------------------------------------ joined to the list


def _joined(table: Expr, steps: Steps, cells: Sequence[str], measures: list[str], engine: Engine, wide: bool) -> Expr:
    import ibis

    starts = steps.starts
    first, last = int(starts[0]), int(starts[-1])
    low, top = int(steps.keys[first]), int(steps.keys[last])
    listed = _listed(steps.keys[first:last], steps.values[:, first:last], engine.name)
    looked_up = ibis.ifelse((table["key"] >= low) & (table["key"] < top), table["key"], ibis.null("int64"))
    rows = table.mutate(_sought=looked_up)
    found = rows.left_join(listed, rows["_sought"] == listed["_key"])
    missed = ibis.ifelse(found["_sought"].notnull() & found["_key"].isnull(), found["_sought"], ibis.null("int64"))
    count = len(steps.values)
    numbers = {
        f"_n{j}": ibis.ifelse(found["key"] >= top, int(line[last]), found[f"_w{j}"].fill_null(0)).cast("int64")
        for j, line in enumerate(steps.values)
    }
    weighed = found.select(
        *(found[c] for c in cells), *(found[m] for m in measures), _missed=missed, **numbers
    )
    sums = {f"{m}_{j}": _total(weighed[f"_n{j}"] * weighed[m], wide) for m in measures for j in range(count)}
    sums |= {f"_of_{m}": weighed[m].sum() for m in measures}
    apart = weighed.group_by([*cells, "_missed"]).agg(**sums)
    below = _below(apart, listed, count, engine)

    def together(name: str, j: int) -> Expr:
        late = below[f"_w{j}"].fill_null(0)
        if wide:
            late = late.cast("decimal(38, 0)")
        return (below[f"{name}_{j}"] + late * below[f"_of_{name}"]).sum()

    return _grouped(below, cells, {f"{m}_{j}": together(m, j) for m in measures for j in range(count)})


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

    if engine not in ("postgres", "pyspark"):
        return ibis.memtable(pa.table({"_key": keys} | {f"_w{j}": line for j, line in enumerate(values)}))
    # As `lookups` does, and for the same reasons: one literal that the engine takes apart.
    lines = [keys, *values]
    text = ";".join(",".join(map(str, line)) for line in zip(*(x.tolist() for x in lines), strict=True))
    each = ibis.literal(text).split(";").unnest().name("_each").as_table()["_each"]
    parts = each.split(",")
    table = each.as_table()
    named = {"_key": parts[0]} | {f"_w{j}": parts[j + 1] for j in range(len(values))}
    return table.select(**{name: part.cast("int64") for name, part in named.items()})
