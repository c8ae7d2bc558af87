"""Where everybody of a living roster stands: one entry per place, in six vectors.

A *change* (an epoch, or lowered budgets that bind) sets grants, tiers and caps and groups people anew; a *charge* adds to
what was spent. Both are a *turn*, and each turn signs the vectors it led to: vectors that were changed behind the ledger's
back do not match and stop the next release.

Nobody's ``spent`` is ever set, only added to. What somebody may still lose is

    left = max(0, min(grant, spent when the period began + cap per period) - spent)

so a grant that was lowered below what is spent leaves nothing, and a new period moves only where the period's count begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.units import NanoArray

FAR = 2**62  # a cap per period for whom there is none
OWN = -1  # the tier of who grants an amount of their own
GONE = -2  # the tier of who withdrew
PARTS = {"grants": "<i8", "tiers": "<i4", "caps": "<i8", "cohorts": "<i4", "base": "<i8", "spent": "<i8"}


@dataclass(frozen=True, eq=False)
class State:
    """Vectors over places, and which turn they are of."""

    grants: NanoArray
    tiers: NDArray[np.int64]
    caps: NanoArray
    cohorts: NDArray[np.int64]
    base: NanoArray
    spent: NanoArray
    period: str | None = None
    turn: int = 0
    change: int = 0
    epoch: int = 0

    @classmethod
    def empty(cls) -> State:
        """Nobody yet."""
        return cls.of({part: np.zeros(0, dtype=np.int64) for part in PARTS})

    @classmethod
    def of(cls, parts: Mapping[str, NDArray[np.int64]], period: str | None = None) -> State:
        """From the vectors by their names in `PARTS`."""
        grants, tiers, caps, cohorts, base, spent = (parts[part] for part in PARTS)
        return cls(grants, tiers, caps, cohorts, base, spent, period)

    def entered(self, period: str | None) -> State:
        """The same people in a period that may be a new one; a clock that goes back opens no old one."""
        if period is None or (self.period is not None and period <= self.period):
            return self
        return replace(self, base=self.spent, period=period)

    @property
    def part(self) -> NDArray[np.bool_]:
        """Who has not withdrawn."""
        here: NDArray[np.bool_] = self.tiers != GONE
        return here

    @property
    def left(self) -> NanoArray:
        """What each person may still lose, for life and in this period."""
        return left_of(self.grants, self.caps, self.base, self.spent)

    def regrouped(self) -> State:
        """Cohorts made anew: people alike in every vector, in a fixed order; -1 for who withdrew."""
        here = np.flatnonzero(self.part)
        keys = [column[here] for column in (self.base, self.spent, self.caps, self.tiers, self.grants)]
        order = np.lexsort(keys)
        new = np.zeros(len(here), dtype=bool)
        new[:1] = True
        for key in keys:
            ordered = key[order]
            new[1:] |= ordered[1:] != ordered[:-1]
        cohorts = np.full(len(self.grants), -1, dtype=np.int64)
        cohorts[here[order]] = np.cumsum(new) - 1
        return replace(self, cohorts=cohorts)

    def one_each(self) -> NDArray[np.int64]:
        """A place from every cohort, in the order of the cohorts."""
        here = np.flatnonzero(self.cohorts >= 0)
        found = np.zeros(int(self.cohorts.max(initial=-1)) + 1, dtype=np.int64)
        found[self.cohorts[here]] = here
        return found


def left_of(grants: NanoArray, caps: NanoArray, base: NanoArray, spent: NanoArray) -> NanoArray:
    """What is left of a grant and of a period's cap together."""
    left: NanoArray = np.maximum(np.minimum(grants, base + caps) - spent, 0)
    return left


def by_grant(state: State, step: int) -> NanoArray:
    """The plainest charge: min(grant, step) from everybody who takes part."""
    amounts: NanoArray = np.where(state.part, np.minimum(state.grants, step), 0)
    return amounts
