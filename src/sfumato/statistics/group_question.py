"""What is asked of every group, in public facts, and how it is read from noisy parts of rows (see `shares`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.bins import Bins
from sfumato.histograms.estimation.measurements import noise_quantile
from sfumato.privacy import NANO, Exact
from sfumato.statistics.ratios import laplace_quantile, share_intervals
from sfumato.statistics.shares import Integers, Noisy, Sums, by_weight, shared_out, signed
from sfumato.statistics.shrinking import plain_errors, plain_means
from sfumato.tables.moments import Moments, WeighedMoments

Floats = NDArray[np.float64]
GroupKind = Literal["count", "sum", "mean", "proportion"]
NOISE_95 = float(np.log(20.0))  # scales of Laplace noise that hold 95% of it


@dataclass(frozen=True, eq=False)
class GroupQuestion:
    """A count, sum, mean or proportion per group.

    Attributes
    ----------
    kind : str
    by : Bins
        The groups.
    column : str, optional
        What is added up.
    low, high : float
        Public bounds of a value.
    steps : int
        Steps of the lattice between them.
    base : int or None
        For a sum that is measured as one number: where the lattice starts, in steps from 0. None where a value is shared out
        between two parts, one for each bound.
    rounding : float
        How far a value may lie from its point of the lattice.
    rows : float or None
        A public number of rows that count, at most.
    """

    kind: GroupKind
    by: Bins
    column: str | None = None
    low: float = 0.0
    high: float = 1.0
    steps: int = 1
    base: int | None = None
    rounding: float = 0.0
    rows: float | None = None

    @property
    def parts(self) -> int:
        """Numbers that are measured of a group; 0 for whole rows."""
        return 0 if self.kind == "count" else 1 if self.base is not None else 2

    @property
    def reach(self) -> int:
        """The largest size of a value, in steps, where a sum is measured as one number."""
        assert self.base is not None
        return max(abs(self.base), abs(self.base + self.steps))

    @property
    def factor(self) -> float:
        """What the noise of a part is multiplied by in the figure: its size, in the unit of the figure for each row."""
        if self.kind == "count":
            return 1.0
        if self.base is not None:
            return self.reach * (self.high - self.low) / self.steps
        return float(np.hypot(self.low, self.high)) if self.kind == "sum" else self.high - self.low

    def sums(self, found: Exact[Moments] | WeighedMoments, depth: int) -> Sums:
        """Weighted parts of the groups by the first `depth` columns, for a weight per person group; one query for all."""
        shape = self.by.shape[:depth]

        def weighted(moments: Moments, weights: Integers | None) -> Integers:
            groups, cells, totals = moments
            if self.base is not None:
                made = signed((groups, cells[:, :depth], totals), weights, shape=shape, base=self.base, reach=self.reach)
            else:
                about = {"shape": shape, "steps": self.steps, "degree": max(0, self.parts - 1)}
                made = shared_out((groups, cells[:, :depth], totals), weights, **about)  # type: ignore[arg-type]
            return made.reshape(-1)

        return lambda weights: by_weight(found, weights, weighted)

    # --- figures from parts ------------------------------------------------------------------------------------------

    def values(self, parts: Floats) -> Floats:
        """The plain figure of every line of noisy parts."""
        if self.parts == 0:
            return np.maximum(parts[:, 0], 0.0)
        if self.parts == 1:
            return self._held(parts[:, 0] * self.factor)
        if self.kind == "sum":
            return self._held(parts @ np.array([self.low, self.high]))
        return self.low + (self.high - self.low) * plain_means(parts)

    def _held(self, sums: Floats) -> Floats:
        """Sums of values of one sign have that sign."""
        if self.low >= 0:
            return np.maximum(sums, 0.0)
        return np.minimum(sums, 0.0) if self.high <= 0 else sums

    def errors(self, noisy: Noisy) -> Floats:
        """Expected error of the plain figures: of counts and sums from the noise alone."""
        if self.kind in ("count", "sum"):
            return np.full(noisy.groups, np.sqrt(2) * noisy.scale * self.factor)
        means = plain_means(noisy.parts)
        return (self.high - self.low) * plain_errors(means, noisy.parts.sum(axis=1), noisy.scale)

    def interval(self, noisy: Noisy) -> tuple[Floats, Floats]:
        """A 95% interval per group that holds for any data."""
        if self.kind in ("mean", "proportion"):
            low, high = share_intervals(noisy.seen, noisy.seen_scale, missing=noisy.missing, bias=noisy.bias)
            width = self.high - self.low
            ends = self.low + width * low - self.rounding, self.low + width * high + self.rounding
            return np.maximum(ends[0], self.low), np.minimum(ends[1], self.high)
        return self.sum_interval(noisy.seen, noisy.seen_scale, noisy.missing, noisy.bias)

    def sum_interval(self, seen: Floats, scale: float, missing: float, bias: float) -> tuple[Floats, Floats]:
        """The same of counts and sums: the noise, what may be missing, and what rounding all rows one way would do."""
        if self.parts < 2:
            middle, half = seen[:, 0] * self.factor, NOISE_95 * scale * self.factor
            if self.parts == 0:  # whole noise has no quantile between two numbers
                half = noise_quantile(np.array([round(NANO / scale)]), 0.95)
        else:
            middle = seen @ np.array([self.low, self.high])
            half = laplace_quantile([abs(self.low) * scale, abs(self.high) * scale], 0.95)
        least, most = (0.0, 1.0) if self.kind == "count" else (min(self.low, 0.0), max(self.high, 0.0))
        half += bias * max(abs(self.low), abs(self.high), most - least) + self.rounding * (self.rows or 0.0)
        ends = middle - half + min(least, 0.0) * missing, middle + half + most * missing
        return (np.maximum(ends[0], 0.0), np.maximum(ends[1], 0.0)) if self.kind == "count" else self._both(*ends)

    def _both(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        return self._held(low), self._held(high)
