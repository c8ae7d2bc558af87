"""PrivPfC: choose one grid for classification in a single private step, then publish its noisy counts.

Su, Cao, Li & Lyu, *PrivPfC: differentially private data publication for classification*, VLDB Journal 2018, Algorithm
2.

**Guarantee.** ε-differential privacy against the absence of a person, ε = ε_size + ε_select + ε_count:

1. The number of records gets Laplace noise of rate ε_size (or is public: then this step costs nothing).
2. The pool of grids depends on 1 and public taxonomies only. One record moves every score by an amount in [low, high],
   so the exponential choice at rate η loses η (high - low) <= ε_select (`quality`; the paper's 2.2 is allowed, and
   wasteful).
3. A record is in one cell of the chosen grid, with one class: noise of rate ε_count on every count loses ε_count.
4. Steps in sequence add up; everything after them is post-processing.
5. A record of weight w in 1, 3 and in the scores of 2 loses w times as much: with weights proportional to the budgets
   that people granted, nobody loses more than they granted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.publishers.settings import MOST_CELLS, Settings
from sfumato.grids.search.pool import Pool, enumerate_grids
from sfumato.grids.search.quality import PAPER_DENOMINATOR, Quality
from sfumato.grids.search.scoring import Scorer, score_pool
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.exact import Exact
from sfumato.privacy.losses import choice_rate
from sfumato.privacy.meter import Meter
from sfumato.privacy.units import NANO, Nano
from sfumato.records.levels import Levels
from sfumato.records.records import Grid, Records, Table

LATTICE = 1000  # the weight of the most generous people; others are rounded down to thousandths of it
MOST_WORK = 1 << 34  # numbers that scoring a pool may have to look at, if all its grids were as fine as any: minutes
TOO_SMALL = "the budget is too small for this release; raise epsilon"


@dataclass(frozen=True, eq=False)
class Weights:
    """What a record weighs, per person group: 1 for all, or in proportion to what people granted.

    >>> budgets = PersonBudgets.from_tiers({"open": (1, 90), "strict": (0.01, 540)})
    >>> Weights.of(budgets).groups.tolist()
    [10, 1000]
    """

    groups: NDArray[np.int64]
    counts: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, budgets: PersonBudgets | None) -> Weights:
        if budgets is None:
            return cls(np.ones(1, dtype=np.int64))
        top = int(budgets.levels[-1])
        # Scores must stay below 2**53 in units of 2**-16 record: a very large (public) roster gets a coarser lattice.
        lattice = max(1, min(LATTICE, (1 << 36) // max(budgets.people, 1)))
        return cls(np.array([int(n) * lattice // top for n in budgets.levels], dtype=np.int64), budgets.counts)

    @property
    def top(self) -> int:
        """The weight of the most generous people."""
        return int(self.groups.max())

    @property
    def average(self) -> float:
        """The weight of an average record."""
        if self.counts is None:
            return 1.0
        people = max(int(self.counts.sum()), 1)
        return max(float((self.counts * self.groups).sum()) / people, 1.0 / LATTICE)

    def usable(self, nano: Nano) -> Nano:
        """What a step may cost a record of weight one, given the budget of the most generous people.

        With budgets per person one nano-ε is held back, because the Meter rounds the price of a choice up per group.
        """
        return Nano(nano // self.top - (self.counts is not None))

    def total(self, rows: int) -> int:
        """The public total weight, from a public number of records."""
        return rows if self.counts is None else int((self.counts * self.groups).sum())


@dataclass(frozen=True, eq=False)
class Chosen:
    """The chosen grid and its noisy counts, in units of weight."""

    grid: Grid
    noisy: Table
    rate: int
    size: float
    candidates: int
    most_cells: int
    class_counts: tuple[NDArray[np.int64], Nano] | None = None  # of the whole table with their rate, if they were counted


def most_grids(settings: Settings, cells: int, classes: int) -> int:
    """Θ, or fewer where grids of so many cells and classes would take too long to score.

    >>> most_grids(Settings(most=40_000), 140_000, 2), most_grids(Settings(most=40_000), 2_000, 2_000)
    (40000, 4294)
    """
    numbers = 1 if classes == 2 else classes  # of two classes only the difference is counted
    return min(settings.most, max(1, MOST_WORK // (cells * numbers)))


def step_rates(
    settings: Settings, nano: Nano, *, factor: int, public_size: bool, weights: Weights
) -> tuple[Nano, Nano, Nano]:
    """What the three steps may cost a record of weight one; refused where one of them could not be done."""
    shares = settings.shares(Nano(nano // factor), public_size=public_size)
    size, select, count = (weights.usable(n) if n else n for n in shares)
    # A choice costs up to 2.2 units per unit of its rate.
    if select < 3 or count < 1 or (not public_size and size < 1):
        raise InputError(TOO_SMALL)
    return size, select, count


def choose_and_count(
    records: Exact[Records],
    meter: Meter,
    *,
    nano: Nano,
    taxonomies: tuple[Levels, ...],
    classes: int,
    settings: Settings,
    rows: int | None = None,
    weights: Weights | None = None,
    pool: Callable[[int], Pool] | None = None,
    score: Scorer = score_pool,
    label: str = "grid",
) -> Chosen:
    """Algorithm 2 for a budget of `nano` (that of the most generous people).

    `pool` replaces the enumeration (a function of τ).
    """
    weigh = weights or Weights.of(None)
    size_nano, select_nano, count_nano = step_rates(
        settings, nano, factor=meter.terms.factor, public_size=rows is not None, weights=weigh
    )
    if rows is None:
        noisy_size = meter.laplace(
            records.map(lambda r: [r.total]), rate=size_nano, weights=weigh.groups, label=f"{label}: number of records"
        )
        size = float(max(1, int(noisy_size[0])))
    else:
        size = float(weigh.total(rows))
    limit = min(settings.most_cells(size / weigh.top, count_nano * weigh.top / NANO), max(2, MOST_CELLS // classes))
    if pool is None:
        most = most_grids(settings, limit, classes)
        candidates = enumerate_grids(taxonomies, most=most, cells=limit, order=settings.order, widest=settings.widest)
    else:
        candidates = pool(limit)
    quality = Quality.of(count_nano)
    price = quality.spread if settings.calibration == "spread" else PAPER_DENOMINATOR
    index = meter.choose(
        records.map(lambda r: score(r, candidates, quality)),
        rate=choice_rate(select_nano, price),
        spread=price * weigh.groups,
        label=f"{label}: choice among {candidates.size} candidates",
    )
    grid = candidates.grid(index)
    shape = (classes, *(taxonomies[j].sizes[level] for j, level in grid))
    noisy = meter.laplace(
        records.map(lambda r: r.table(grid).reshape(-1)), rate=count_nano, weights=weigh.groups, label=f"{label}: counts"
    )
    return Chosen(grid, noisy.reshape(shape), count_nano, size, candidates.size, limit)
