"""The whole numbers by which records weigh in a round of an additive model: by the model, and by what their people granted.

A record whose person weighs w (`weighing`) has ``limit = floor(UNIT fine w / top)`` units at most, and its weight by the
model is rounded on those. If a unit of a person's weight may cost s, a unit here may cost ``s top / (UNIT fine)``: then
limit units cost at most w s. With one ε for all, w = top = fine = 1, and a record has at most UNIT units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.classifiers.weighing import Weighing
from sfumato.privacy import NANO, Nano

UNIT = 256  # lattice of the weights: a record of weight 1 enters as this many units
FINEST = 16  # how many times as fine it is where people weigh differently
_LEAST_RATE = (
    1e-5  # ε per unit that is kept: below it the table of a score's losses (`grids.quality`) has millions of entries
)


@dataclass(frozen=True, eq=False)
class Lattice:
    """The units of a round.

    Attributes
    ----------
    fine : int
        How many times as fine as for one ε.
    top : int
        What the most generous people weigh.

    Examples
    --------
    >>> Lattice(16, 100).limits(np.array([1, 20, 100])).tolist()
    [40, 819, 4096]
    """

    fine: int
    top: int

    @classmethod
    def of(cls, weighing: Weighing, counts: Nano) -> Lattice:
        """For counts that may cost a unit of a person's weight so much."""
        epsilon = counts * weighing.top / NANO / UNIT
        return cls(1 if weighing.even else int(np.clip(epsilon / _LEAST_RATE, 1, FINEST)), weighing.top)

    @property
    def units(self) -> int:
        """The most units of any record."""
        return UNIT * self.fine

    def limits(self, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """The most units of records whose people weigh so much."""
        return np.asarray(self.units * weights // self.top)

    def together(self, nano: Nano) -> Nano:
        """What all units of the heaviest record may cost, if a unit of a person's weight may cost `nano`."""
        return Nano(nano * self.top)

    def weighed(self, by_model: NDArray[np.int64], weights: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """Units of records, from their weights by the model (at most UNIT) and by what their people granted."""
        if weights is None:
            return by_model
        return np.asarray((by_model * self.limits(weights) + UNIT // 2) // UNIT)
