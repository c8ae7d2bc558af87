"""Columns that are read in steps, each computed once (see `Domain.steps`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sfumato.tables.columns import Expr


def in_steps(rows: Expr, known: Mapping[tuple[str, str], Sequence[Callable[[Expr], Expr]]]) -> Expr:
    """The rows with a column more for each that is read in steps: `known` has its name, that of the new one, and the steps.

    The first steps of all columns are made at once, then the second: rows within rows within rows take long to plan.
    """
    for turn in range(max(map(len, known.values()), default=0)):
        made = {}
        for (name, ready), steps in known.items():
            if turn < len(steps):
                made[ready] = steps[turn](rows[ready] if turn else rows[name])
        rows = rows.mutate(**made).view()  # or Ibis would put a step in wherever its result is used
    return rows
