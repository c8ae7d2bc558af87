"""PPH, the private projected histogram: choose columns that tell the classes apart, then publish their noisy histogram.

Vinterbo, *Differentially private projected histograms: construction and use for prediction*, ECML PKDD 2012. Columns
are added one at a time for *discernibility*: how many pairs of records of different classes fall into different cells.
Categories enter with all their values, numbers cut into as many pieces as Lei's rule says. How many columns are taken
depends on N and public facts only.

**Guarantee.** The number of pairs is as sensitive as N is large, so the sound score is ``-u / N`` (0 for an empty table), u
being the pairs of different classes in the *same* cell (which ranks columns alike). One more record, of class k, raises u
by δ, the records of other classes in its cell, and N by one: the score changes by ``(u - N δ)/(N (N + 1))``. Between two
candidates A and B on the same table these changes differ by at most ``N/(N + 1) < 1``:

- Of the N records let m be of other classes than k, V the pairs of different classes among those m. Then
  ``u_A - N δ_A <= u_A <= m (N - m) + V``.
- B puts δ_B = m - e of the m into the record's cell. Their own pairs count in u_B, so V - u_B is at most the pairs with one
  of the e others, ``e (m - e) + e²/2``; and ``N δ_B - u_B <= N (m - e) - V + e (m - e) + e²/2``.
- The sum is at most ``2 N m - m² - e (N - m) - e²/2 <= N²``; divide by N (N + 1). An empty table has no pairs before or
  after: its scores do not change.

N is private, so 1 is paid. Scores are rounded down to multiples of 2**-16, which moves a difference of changes by less than
two units; being a multiple of the unit itself it is at most one unit above 1. The choices share `select` of the
budget, the counts get the rest, and steps in sequence add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from sfumato.errors import InputError
from sfumato.grids.published.cuts import cuts_of
from sfumato.grids.published.synopsis import Synopsis
from sfumato.grids.publishers.base import Publisher, noise_of
from sfumato.grids.publishers.settings import MOST_CELLS
from sfumato.grids.publishers.task import Task
from sfumato.grids.search.quality import SCALE
from sfumato.privacy.exact import Exact
from sfumato.privacy.losses import choice_rate
from sfumato.privacy.meter import Meter
from sfumato.privacy.units import Nano
from sfumato.records.records import Grid, Records
from sfumato.registry import Mechanism, Parameter

SPREAD = 1.0 + 1.0 / SCALE


def undiscerned(records: Records, grid: Grid) -> float:
    """Minus the pairs of different classes in one cell, per record: an exact multiple of 2**-16, rounded down."""
    table = records.table(grid).reshape(len(records.class_labels), -1)
    cells = table.sum(axis=0).tolist()
    # Python integers: squares of large counts must not overflow.
    pairs = sum(n * n for n in cells) - sum(n * n for n in table.reshape(-1).tolist() if n)
    total = max(sum(cells), 1)
    return float(-pairs * SCALE // (2 * total)) / SCALE


@dataclass(kw_only=True, eq=False)
class PPH(Publisher):
    """Publish a histogram over a few columns chosen for telling the classes apart.

    Parameters
    ----------
    epsilon : ε
        The budget of the whole release.
    budgets : optional
        Refused: one ε holds for all. `PrivPfC` takes what everybody granted.
    target : str
        The column to be predicted.
    columns : int, optional
        At most so many columns; by default as many as the number of records and their values allow.
    select : float
        Share of the budget for their choice.
    rows : int, optional
        A public number of records; without it 3% of the budget estimates it.
    attributes : tuple of str, optional
        Predictors to consider; by default every column but the target.
    """

    mechanism = "pph"

    columns: int | None = None
    select: float = 0.5
    synopsis: Synopsis = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.columns is not None and self.columns < 1) or not 0 < self.select < 1:
            raise InputError("PPH needs columns >= 1 and a share `select` between 0 and 1")

    def expected(self, task: Task, factor: int = 1) -> tuple[float | None, str]:
        budget = self._budget(factor)
        left = budget - self._size_share(budget)
        choice_rate(Nano(self._choices(Nano(left)) // len(task.attributes)), SPREAD)  # no more are chosen than there are
        return noise_of(left - self._choices(Nano(left))), ""

    def _choices(self, budget: Nano) -> Nano:
        """What all choices may cost."""
        return Nano(int(budget * self.select))

    def release(self, records: Exact[Records], task: Task, meter: Meter) -> Synopsis:
        size, budget = self._size(records, meter, self._budget(meter.terms.factor))
        per_number = max(2.0, (size / math.sqrt(math.log(max(size, 3.0)))) ** (2.0 / (2 + 3)))
        level = {}
        for j, levels in enumerate(task.taxonomies):
            if levels.edges is None:
                level[j] = levels.height - 1
            else:
                level[j] = max(v for v in range(levels.height) if levels.sizes[v] <= max(per_number, levels.sizes[0]))
        typical = float(np.median([task.taxonomies[j].sizes[v] for j, v in level.items()]))
        columns = max(1, min(len(level), int(math.log(max(size, 3.0)) / math.log(max(typical, 2.0)))))
        columns = columns if self.columns is None else min(columns, self.columns)
        each = Nano(self._choices(budget) // columns)
        grid: Grid = ()
        for step in range(columns):
            cells = int(np.prod([task.taxonomies[j].sizes[v] for j, v in grid], dtype=np.int64)) * task.classes
            options = [
                (*grid, (j, v))
                for j, v in level.items()
                if all(j != used for used, _ in grid) and v > 0 and cells * task.taxonomies[j].sizes[v] <= MOST_CELLS
            ]
            if not options:
                break
            chosen = meter.choose(
                records.map(partial(_scores, options)),
                rate=choice_rate(each, SPREAD),
                spread=SPREAD,
                label=f"{self.mechanism}: column {step + 1}",
            )
            grid = options[chosen]
        parameters = {"columns": columns}
        rate = budget - each * columns
        cuts = cuts_of(grid, task.attributes)
        return self._publish(records, task, meter, cuts=cuts, rate=rate, size=size, parameters=parameters)


def _scores(options: list[Grid], records: Records) -> list[float]:
    return [undiscerned(records, option) for option in options]


MECHANISM = Mechanism(
    "pph",
    ("synthesize",),
    PPH,
    "a few columns chosen one at a time, with all their values",
    parameters=(
        Parameter("columns", "whole", "columns at most; by default records and values decide", low=1, high=1000),
        Parameter("select", "number", "the share of ε for the choice of columns", 0.5, low=0.001, high=0.999),
    ),
    needs=("one epsilon",),
    rank={"classification": 3, "general": 5},
    paper="Vinterbo 2012",
)
