"""Whole numbers between two public bounds: how a measured column is added up without floating-point sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.errors import InputError
from sfumato.tables.columns import Expr, exact_double, without_dust

MAX_STEPS = 2**30  # 2^32 rows of it still add up in 64 bits


@dataclass(frozen=True)
class Lattice:
    """The points 0..steps between two bounds: point k stands for ``low + k * unit``.

    Attributes
    ----------
    low, high : float
        Public bounds of the column.
    steps : int
        Number of steps from `low` to `high`.
    exact : bool
        Whether every value of the column is a point, so that nothing is rounded.

    Examples
    --------
    >>> Lattice(0.0, 50.0, 1000).unit, Lattice(0.0, 50.0, 1000).rounding
    (0.05, 0.025)
    """

    low: float
    high: float
    steps: int
    exact: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or not 1 <= self.steps <= MAX_STEPS:
            raise InputError(f"steps must be a whole number from 1 to 2^30, got {self.steps!r}")

    @property
    def unit(self) -> float:
        """What one step means in the column's own unit."""
        return (self.high - self.low) / self.steps

    @property
    def rounding(self) -> float:
        """By how much the nearest point can differ from a value."""
        return 0.0 if self.exact else self.unit / 2


def on_lattice(value: Expr, lattice: Lattice, base: int = 0) -> Any:
    """A cleaned number on base..base + steps (the nearest point between the public bounds); 0 where missing."""
    import ibis

    steps, scale = lattice.steps, lattice.steps / (lattice.high - lattice.low)
    place = without_dust(value - exact_double(lattice.low), lattice.unit) * exact_double(scale) + 0.5
    found = ibis.cases((place >= float(steps), steps), (place.notnull(), place.floor()), else_=0).cast("int64")
    return found if base == 0 else ibis.ifelse(place.notnull(), found + base, 0).cast("int64")
