"""What a mechanism hands back: plain arrays, before the domain and the guarantee are attached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato.histograms.budgets import Floats, Ints
from sfumato.histograms.estimation.measurements import Measurement


@dataclass(frozen=True, eq=False)
class HistogramEstimate:
    """The outcome of one mechanism on one flat histogram.

    Attributes
    ----------
    mechanism : str
        The mechanism that made the numbers (for `auto`: the one it took).
    counts, noise : float arrays
        Estimated counts and, per bin, the standard deviation that the noise leaves in them.
    losses : int64 array
        Per bin, the loss of a record in it per unit of rate (nano-ε for one row against absence).
    measurements : tuple of Measurement
        The noisy sums behind the intervals; for a `tree`, its levels from the root down.
    parameters : mapping
        How it was made; public.
    expected_rmse : float or None
        Root mean squared error of a count, as far as public facts decide it.
    tree : bool
        Whether the measurements are the levels of a tree.
    warnings : tuple of str
        What a reader must know before using the figures.
    """

    mechanism: str
    counts: Floats
    noise: Floats
    losses: Ints
    measurements: tuple[Measurement, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    expected_rmse: float | None = None
    tree: bool = False
    warnings: tuple[str, ...] = ()
