"""Rows, sums and sums of squares per group of people and cell, from one query.

Where an engine keeps a random few of a person's rows, two queries see different rows. Whatever is put together from several
sums must therefore come from one of them: here all powers of a measure do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import InputError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.exact import Exact
from sfumato.tables.columns import Column, Expr
from sfumato.tables.conditions import condition
from sfumato.tables.counting import has_cells
from sfumato.tables.predicates import Where, columns_of, parse_where
from sfumato.tables.raw_groups import budget_grouping, coded_groups, raw_tiers
from sfumato.tables.rows import exactly
from sfumato.tables.sums import MAX_ROWS, Integers, Measured, _int64, _known_cells, groups_of_keys, has_value
from sfumato.tables.weighted import weigh

if TYPE_CHECKING:
    from sfumato.tables.dataset import Dataset

Moments = tuple[Integers, Integers, Integers]
"""Person groups, codes of cells and, for every pair that holds a row, the sums of the powers 0, 1, ... of the measure."""

MOST_SQUARED = 2**15  # steps of a lattice whose squares still add up in 64 bits


@dataclass(frozen=True, eq=False)
class WeighedMoments:
    """Moments of rows that were weighed where they are, for several ways to weigh; all from one query.

    Attributes
    ----------
    weights : tuple of int64 arrays
        The ways to weigh, by person group.
    found : Exact of Moments
        A way stands where a person group would.
    """

    weights: tuple[Integers, ...]
    found: Exact[Moments]

    def of(self, weights: Integers) -> Exact[Moments]:
        """The moments by one of the `weights`, as if of one group whose rows weigh 1."""
        place = next(i for i, known in enumerate(self.weights) if known is weights)

        def lines(found: Moments) -> Moments:
            groups, cells, totals = found
            mine = groups == place
            return np.zeros(int(mine.sum()), dtype=np.int64), cells[mine], totals[mine]

        return self.found.map(lines)


def moments(
    dataset: Dataset,
    people: PersonBudgets | None,
    by: Sequence[str],
    where: Where,
    *,
    measure: Measured | None = None,
    holds: Where = None,
    powers: int = 0,
    lines: Integers | None = None,
) -> Exact[Moments]:
    """See `PersonalTable.moments`; with `lines` of weights by person group, a line stands where a group would."""
    if powers and (measure is None) == (holds is None):
        raise InputError("powers need what is added up: a measure, or a condition that holds or does not")
    if measure is not None and measure.lattice.steps**powers * MAX_ROWS >= 2**63:
        raise InputError(
            f"the squares of {measure.lattice.steps} steps do not fit 64 bits; take at most {MOST_SQUARED} steps"
        )
    schema = dataset.schema
    hit = None if holds is None else parse_where(holds, schema)
    keys = [f"c{i}" for i in range(len(by))]

    def read(rows: Expr, columns: dict[str, Column]) -> Moments:
        import ibis

        value: Expr = ibis.literal(1, type="int64")
        present = None  # counts every row
        if measure is not None:
            domain, column = schema[measure.column], columns[measure.column]
            value = domain.point(column, measure.lattice)
            present = ibis.ifelse(domain.inside(column), 1, 0).cast("int64")
        elif hit is not None:
            value = ibis.ifelse(condition(hit, columns, schema.columns), 1, 0).cast("int64")
        power = {"p0": present, "p1": value, "p2": value * value}
        wanted = {name: power[name] for name in list(power)[: powers + 1]}
        if people is not None and lines is not None:
            most = 1 if measure is None else measure.lattice.steps**powers
            codes, weighed = weigh(dataset, rows, columns, people, lines, by, wanted, most=max(1, most))
            ways = len(lines)
            return (
                np.repeat(np.arange(ways), len(codes)),
                np.tile(codes, (ways, 1)),
                np.concatenate([*weighed.transpose(2, 0, 1)]),
            )
        budget = {} if people is None else {"key": budget_grouping(dataset.roster, rows["key"], dataset.engine, raw=raw)}
        about: Any = {"engine": dataset.engine.name, "keys": budget, "totals": wanted}
        found = dataset.engine.fetch(coded_groups(rows, by, columns, schema, **about))
        cells, known = _known_cells(found, keys)
        totals = np.stack([_int64(found[name]) for name in wanted], axis=1)
        groups = np.zeros(len(totals), dtype=np.int64)
        if people is not None:
            groups = groups_of_keys(dataset.roster, _int64(found["key"]), people)
        kept = known & (groups >= 0)
        return groups[kept], cells[kept], totals[kept]

    names = [*by, *([] if measure is None else [measure.column]), *(() if hit is None else columns_of(hit))]
    raw, judged = people is not None and raw_tiers(dataset), () if hit is None else columns_of(hit)

    def needs(columns: dict[str, Column]) -> list[Expr]:
        return has_cells(by, columns, schema) + has_value(dataset, measure, columns)

    about: Any = {"budgets": people is not None, "raw": raw, "placed": judged, "needs": needs}
    return exactly(dataset, dict.fromkeys(names), where, read, **about)
