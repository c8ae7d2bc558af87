"""Weighted sums, exactly: integers times integers, never a floating-point sum.

Ranges are checked from public facts before anything is read: a row adds at most (largest weight) x (lattice steps),
and a table has at most 2**32 rows. If such a total fits 64 bits the engine adds plain integers, otherwise decimals
of 38 digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.tables.expressions import Expr, cell, lattice
from sfumato.tables.predicates import Where
from sfumato.tables.roster import Roster

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset

MAX_ROWS = 2**32
INT64 = 2**63


def check_range(largest: int) -> bool:
    """Whether sums of rows of at most `largest` need more than 64 bits; refuses rows that do."""
    if largest >= INT64:
        raise InputError(
            f"a row could add {largest}, which does not fit 64 bits; use a smaller cap or a coarser lattice (steps)"
        )
    return largest * MAX_ROWS >= INT64


def _total(expr: Expr, wide: bool) -> Expr:
    return expr.cast("decimal(38, 0)").sum() if wide else expr.sum()


def _integers(column: Any) -> list[int]:
    return [0 if v is None else int(v) for v in column.to_pylist()]


def _measured(
    dataset: Dataset, where: Where, measure: str | None, steps: int, by: Sequence[str], base: int = 0, raw: bool = False
) -> tuple[Expr, Expr]:
    """Rows with ``key`` (with `raw` the budget column as it stands) and the cells to group by, and the measure of each."""
    import ibis

    rows, sources = dataset._rows([*by, *([measure] if measure else [])], where, budgets=True, raw=raw)
    domains: Any = dataset.schema.columns
    value = lattice(sources[measure], domains[measure], steps, base) if measure else ibis.literal(1, type="int64")
    cells = {f"c{i}": cell(sources[name], domains[name]) for i, name in enumerate(by)}
    table = rows.select(key=rows["key"], value=value, **cells)
    return table, table["value"]


def plain(dataset: Dataset, measure: str, steps: int, base: int, where: Where) -> int:
    """The sum of a measure over all rows, whoever's they are."""
    wide = check_range(abs(base) + steps)
    rows, sources = dataset._rows([measure], where)
    domain: Any = dataset.schema.columns[measure]
    table = rows.select(value=lattice(sources[measure], domain, steps, base))
    found = dataset.engine.fetch(table.aggregate(total=_total(table["value"], wide)))
    return sum(_integers(found["total"]))


def by_key(
    dataset: Dataset, where: Where, measure: str | None, steps: int, base: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sums of the measure per budget key.

    Where budgets are a column in ε, rows are first added up by the column as it stands: turning ε into nano-ε once per
    distinct budget rather than once per row halves the time over ten million rows.
    """
    roster = dataset._roster()
    raw = roster.source is None and not roster.tiers_nano and dataset.schema.unit.person is None
    table, value = _measured(dataset, where, measure, steps, (), base, raw=raw)
    sums = table.group_by("key").agg(total=value.sum())
    if raw:
        sums = sums.select(key=roster.key(sums["key"], dataset.engine), total=sums["total"])
        sums = sums.group_by("key").agg(total=sums["total"].sum())
    found = dataset.engine.fetch(sums)
    totals = np.array(_integers(found["total"]), dtype=np.int64)
    return found["key"].to_numpy().astype(np.int64), totals


def align(roster: Roster, keys: NDArray[np.int64], totals: NDArray[np.int64], people: PersonBudgets) -> NDArray[np.int64]:
    """Per-key sums in the order of the levels; a budget between two levels belongs to the lower."""
    aligned = np.zeros(people.groups, dtype=np.int64)
    named = tuple(name for name, _ in roster.tiers_nano)
    if named and people.names == named:
        np.add.at(aligned, keys[keys > 0] - 1, totals[keys > 0])
        return aligned
    place = np.searchsorted(people.levels, roster.nano_of_keys(keys), side="right") - 1
    np.add.at(aligned, place[place >= 0], totals[place >= 0])
    return aligned


def _level_weights(weights: tuple[Any, Any]) -> tuple[NDArray[np.int64], list[int]]:
    levels = np.asarray(weights[0], dtype=np.int64)
    each = [int(w) for w in weights[1]]
    if levels.ndim != 1 or levels.size != len(each) or levels.size == 0 or (np.diff(levels) <= 0).any():
        raise InputError("weights needs sorted, distinct budget levels in nano-ε and one weight for each")
    if min(each) < 0:
        raise InputError("weights must not be negative")
    return levels, each


def weighted(
    dataset: Dataset,
    weights: int | tuple[Any, Any],
    measure: str | None,
    steps: int,
    by: Sequence[str],
    shape: tuple[int, ...],
    where: Where,
) -> int | NDArray[Any]:
    """See `Dataset.weighted_sums`."""
    if isinstance(weights, tuple):
        levels, each = _level_weights(weights)
        wide = check_range(max(each) * steps)
        cells, totals = _by_levels(dataset, levels, each, measure, steps, by, where)
    else:
        cap = int(weights)
        if cap < 1:
            raise InputError(f"the cap on weights must be at least 1 nano-ε, got {weights!r}")
        wide = check_range(cap * steps)
        cells, totals = _capped(dataset, cap, measure, steps, by, where, wide)
    if not by:
        return sum(totals)
    dense = np.zeros(shape, dtype=object if wide else np.int64)
    np.add.at(dense, tuple(cells.T), np.array(totals, dtype=dense.dtype))
    return dense


def _capped(
    dataset: Dataset, cap: int, measure: str | None, steps: int, by: Sequence[str], where: Where, wide: bool
) -> tuple[NDArray[np.int64], list[int]]:
    import ibis

    roster = dataset._roster()
    table, value = _measured(dataset, where, measure, steps, by)
    if roster.tiers_nano:
        tiers = enumerate(roster.tiers_nano)
        weight = ibis.cases(*((table["key"] == i + 1, min(nano, cap)) for i, (_, nano) in tiers), else_=0).cast("int64")
    else:
        weight = ibis.ifelse(table["key"] < cap, table["key"], ibis.literal(cap, type="int64"))
    total = _total(weight * value if measure else weight, wide)
    keys = [f"c{i}" for i in range(len(by))]
    found = dataset.engine.fetch(table.group_by(keys).agg(total=total) if keys else table.aggregate(total=total))
    return _known_cells(found, keys)


def _by_levels(
    dataset: Dataset,
    levels: NDArray[np.int64],
    each: list[int],
    measure: str | None,
    steps: int,
    by: Sequence[str],
    where: Where,
) -> tuple[NDArray[np.int64], list[int]]:
    """The engine adds up per budget; weights meet the sums here, as Python integers."""
    roster = dataset._roster()
    table, value = _measured(dataset, where, measure, steps, by)
    keys = [f"c{i}" for i in range(len(by))]
    found = dataset.engine.fetch(table.group_by(["key", *keys]).agg(total=value.sum()))
    budgets = roster.nano_of_keys(found["key"].to_numpy().astype(np.int64))
    place = np.searchsorted(levels, budgets, side="right") - 1
    factor = [each[p] if p >= 0 else 0 for p in place.tolist()]
    totals = [f * t for f, t in zip(factor, _integers(found["total"]), strict=True)]
    return _known_cells(found, keys, totals)


def _known_cells(found: Any, keys: list[str], totals: list[int] | None = None) -> tuple[NDArray[np.int64], list[int]]:
    totals = _integers(found["total"]) if totals is None else totals
    if not keys:
        return np.zeros((len(totals), 0), dtype=np.int64), totals
    codes = [found[k].to_pylist() for k in keys]
    kept = [i for i in range(len(totals)) if all(column[i] is not None for column in codes)]
    cells = np.array([[column[i] for column in codes] for i in kept], dtype=np.int64).reshape(len(kept), len(keys))
    return cells, [totals[i] for i in kept]


def sparse_weighted(
    dataset: Dataset, weights: tuple[Any, Any], by: Sequence[str], where: Where
) -> tuple[NDArray[np.int64], list[int]]:
    """Weighted counts of the cells that hold a row, as codes and totals: for tables too wide for a dense array."""
    levels, each = _level_weights(weights)
    check_range(max(each))
    return _by_levels(dataset, levels, each, None, 1, by, where)
