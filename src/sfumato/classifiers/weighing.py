"""Everybody at their own ε in a model made of counts and choices: a record counts with the weight that its person's ε pays.

A model of counts is a fixed list of steps, each priced per *unit of weight*. With one ε for all a record is one unit. With
budgets a record of person group g is ``w_g`` units, whole numbers in proportion to what the group granted (up to a cap).

**Guarantee.** Let r be the nano-ε that all steps together may cost one unit, f the rows that a person may own (twice that
against replacement), and ``r = min_g floor(ε_g / (f w_g))`` over the groups with w_g > 0. Then

1. a count of weighted records with noise of rate a costs a record of group g exactly ``w_g a`` (as in the affine histogram);
2. a choice by a score that is a sum of unit steps, each moving every score by an amount in [low, high], moves under a
   record of weight w by w such steps, in [w low, w high]: the spread is w (high - low), so what costs one unit s costs the
   record ``w_g s``. The spreads are dyadic and small, so w times a spread is exact in float64 and nothing is rounded;
3. all steps together cost a person of group g at most ``f w_g r <= ε_g``. The Meter knows the weights and adds this up.

Which group a record is in is public, row by row (the roster). A person with several rows has the weight of the strictest
of them in all. With equal budgets the weights are one, and everything is as with one ε.

**What is lost.** An estimate from weighted records is that of a population in which generous people are more frequent: if
budgets go with the records it leans (`linear.proportion`, which also says what avoiding it costs). The cap is that of
`people.mechanisms.affine` for a count with a fifth of the budget of a cell with a hundredth of the records (`CELL`): beyond
it uneven weights would cost more than the noise they save.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.classifiers.linear.proportion import Lean, Tiers, lowered, most_often
from sfumato.errors import InputError
from sfumato.people.mechanisms.affine import optimal_cap
from sfumato.privacy import Nano, PersonBudgets
from sfumato.privacy.units import epsilon_text, nano_down_array

LATTICE = 1000  # the weight of the most generous people; others are rounded down to thousandths of it
CELL = (1 / 5) ** 2 / 100  # variance of a record in a cell, beside the noise: a public guess
_MOST_WEIGHT = 1 << 30  # of all records together: scores of a tree are then far more precise than their lattice


@dataclass(frozen=True, eq=False)
class Weighing:
    """What a record weighs, per person group, and what a unit of weight may cost.

    Attributes
    ----------
    groups : int64 array
        The weight of a record of each person group.
    heads : int64 array or None
        Public number of rows per group; None where all have one ε.
    levels : int64 array or None
        What each group granted, in nano-ε.
    about : dict
        What is public to say: the cap, the lean and the noise, and how many rows granted too little to count.

    Examples
    --------
    >>> roster = PersonBudgets.from_tiers({"strict": (0.01, 5400), "standard": (0.2, 3700), "open": (1.0, 900)})
    >>> weighing = Weighing.of(roster, "as granted")
    >>> weighing.groups.tolist(), weighing.rate(1), weighing.about["lean"]
    ([1, 20, 100], 10000000, 0.5081)
    >>> Weighing.of(roster, "in proportion").groups.tolist()
    [1, 1, 1]
    """

    groups: NDArray[np.int64]
    heads: NDArray[np.int64] | None
    levels: NDArray[np.int64] | None
    about: dict[str, Any]

    @classmethod
    def of(cls, roster: PersonBudgets, tiers: Tiers) -> Weighing:
        """Of a public roster; `tiers` says how much more the generous may weigh than the strict."""
        granted = min(optimal_cap(roster, variance=CELL), Nano(int(roster.levels[-1])))
        cap = lowered(granted, roster.levels, tiers)
        lattice = max(1, min(LATTICE, _MOST_WEIGHT // max(roster.people, 1)))
        weights = np.array([min(n, cap) * lattice // cap for n in roster.levels.tolist()], dtype=np.int64)
        used = weights[weights > 0]
        times = most_often(tiers)
        if np.isfinite(times):  # the lattice rounds the strictest down most
            weights = np.minimum(weights, max(1, int(min(times * int(used.min()), float(lattice)))))
        found = Lean.of(roster, cap, granted)
        about: dict[str, Any] = {"cap": epsilon_text(cap), "lean": found.lean, "noise": found.noise}
        silent = int(roster.counts[weights == 0].sum())
        if silent:  # so little beside the most generous that they count for nothing
            about["silent"] = silent
        return cls(weights // np.gcd.reduce(weights), roster.counts, roster.levels, about)

    def rate(self, factor: int) -> Nano:
        """What all steps together may cost one unit of weight of one row."""
        if self.levels is None:
            raise InputError("one ε for all is given by the estimator, not by a roster")
        used = self.groups > 0
        return Nano(int((self.levels[used] // factor // self.groups[used]).min()))

    @property
    def personal(self) -> bool:
        """Whether people have their own budgets."""
        return self.heads is not None

    @property
    def even(self) -> bool:
        """Whether all records weigh alike."""
        return int(self.groups.min()) == self.top

    @property
    def top(self) -> int:
        """The weight of the most generous people."""
        return int(self.groups.max())

    @cached_property
    def total(self) -> int | None:
        """The public weight of all records; None where the number of records is not public."""
        return None if self.heads is None else max(1, int((self.heads * self.groups).sum()))

    @property
    def average(self) -> float:
        """The weight of an average record: what a weighted count is divided by to estimate records."""
        return 1.0 if self.heads is None else float((self.heads * self.groups).sum()) / max(int(self.heads.sum()), 1)

    @property
    def lift(self) -> float:
        """Σ w² / Σ w: the total weight over this is how many records of equal weight would scatter as little."""
        if self.heads is None:
            return 1.0
        return float((self.heads * self.groups.astype(np.float64) ** 2).sum()) / max(
            int((self.heads * self.groups).sum()), 1
        )


ALIKE = Weighing(np.ones(1, dtype=np.int64), None, None, {})
"""One ε for all: every record is one unit."""


def roster_of(budgets: ArrayLike, rows: int) -> tuple[PersonBudgets, NDArray[np.int64]]:
    """The public roster of one ε per row, and the person group of each row.

    >>> roster, groups = roster_of([0.5, 0.1, 0.5], 3)
    >>> roster, groups.tolist()
    (PersonBudgets(3 people in 2 groups, ε 0.1 to 0.5), [1, 0, 1])
    """
    nano = nano_down_array(budgets)
    if nano.shape != (rows,):
        raise InputError(f"budgets holds {nano.size} values for {rows} rows: give each row its own ε")
    roster = PersonBudgets.from_nano(nano)
    return roster, np.searchsorted(roster.levels, nano)
