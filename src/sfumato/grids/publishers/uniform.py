"""Uniform grids: every column is cut into equally many pieces, whatever the data; one noisy histogram over all of them.

The number of cells follows from the number of records N (public, or noisy for 3% of ε), the number d of columns and ε:

- ``rule="lei"``: (N / sqrt(log N))^{2d/(2+d)} (Lei, NIPS 2011; ε plays no part);
- ``rule="ug"``: N ε / 10 (Qardaji, Yang & Li, ICDE 2013; meant for two columns);
- ``rule="eug"``: (N ε / 10)^{2d/(2+d)} (Su et al., CODASPY 2016).

Each column is cut at the finest level of its taxonomy that has at most the d-th root of that many nodes.

**Guarantee.** The cut depends on the noisy N and public facts only; a record is in one cell with one class, so counts
with noise of rate ε_count lose ε_count; with the number of records the losses add up to ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

from sfumato.errors import InputError
from sfumato.grids.published.cuts import Cut
from sfumato.grids.published.synopsis import Synopsis
from sfumato.grids.publishers.base import Publisher, noise_of
from sfumato.grids.publishers.settings import MOST_CELLS
from sfumato.grids.publishers.task import Task
from sfumato.privacy.exact import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.units import NANO
from sfumato.records.records import Records
from sfumato.registry import Mechanism, Parameter

Rule = Literal["lei", "ug", "eug"]


def uniform_cells(rule: Rule, *, records: float, epsilon: float, columns: int) -> float:
    """How many cells a rule asks for.

    >>> round(uniform_cells("ug", records=10_000, epsilon=0.5, columns=2))
    500
    """
    power = 2 * columns / (2 + columns)
    if rule == "lei":
        return float((records / math.sqrt(math.log(max(records, 3.0)))) ** power)
    if rule == "ug":
        return max(1.0, records * epsilon / 10)
    if rule == "eug":
        return float(max(1.0, records * epsilon / 10) ** power)
    raise InputError(f"rule must be 'lei', 'ug' or 'eug', got {rule!r}")


@dataclass(kw_only=True, eq=False)
class UniformGrid(Publisher):
    """Publish counts over a grid that does not look at the data.

    Parameters
    ----------
    epsilon : ε
        The budget of the whole release.
    budgets : optional
        Refused: one ε holds for all. `PrivPfC` takes what everybody granted.
    target : str
        The column to be predicted.
    rule : "eug", "ug" or "lei"
        How many cells the grid has, from the number of records, the number of columns and (but for "lei") ε.
    rows : int, optional
        A public number of records; without it 3% of the budget estimates it.
    attributes : tuple of str, optional
        Predictors to consider; by default every column but the target.
    """

    mechanism = "uniform-grid"

    rule: Rule = "eug"
    synopsis: Synopsis = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        uniform_cells(self.rule, records=10.0, epsilon=1.0, columns=1)

    def expected(self, task: Task, factor: int = 1) -> tuple[float | None, str]:
        budget = self._budget(factor)
        return noise_of(budget - self._size_share(budget)), ""

    def release(self, records: Exact[Records], task: Task, meter: Meter) -> Synopsis:
        size, rate = self._size(records, meter, self._budget(meter.terms.factor))
        d = len(task.attributes)
        wanted = min(
            uniform_cells(self.rule, records=size, epsilon=rate / NANO, columns=d), float(MOST_CELLS) / task.classes
        )
        each = wanted ** (1.0 / d)
        cuts, cells = [], 1
        for j, levels in enumerate(task.taxonomies):
            fitting = [v for v in range(1, levels.height) if levels.sizes[v] <= max(2.0, each)]
            if fitting and cells * levels.sizes[fitting[-1]] <= wanted:
                cells *= levels.sizes[fitting[-1]]
                cuts.append(Cut.at(task.attributes, j, fitting[-1]))
        parameters = {"rule": self.rule, "cells": cells}
        return self._publish(records, task, meter, cuts=cuts, rate=rate, size=size, parameters=parameters)


MECHANISM = Mechanism(
    "uniform-grid",
    ("synthesize",),
    UniformGrid,
    "every column cut alike, without looking at the data",
    parameters=(Parameter("rule", "text", "what decides the number of cells", "eug", choices=get_args(Rule)),),
    needs=("one epsilon",),
    rank={"classification": 6, "general": 6},
    paper="Lei 2011; Qardaji, Yang & Li 2013; Su et al. 2016",
)
