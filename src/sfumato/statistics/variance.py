"""The variance of a column: rows shared out in three parts, and an interval for any data.

A row at a share u of the range is shared out as ``(1 - u)², 2 u (1 - u), u²`` (see `shares`, where the price is proved): one
row in all, so that every part has the noise of the whole budget. With noisy parts P, Q, R

    n = P + Q + R,     mean of u = (R + Q / 2) / n,     variance of u = R / n - (mean of u)²

held between 0 and what the bounds allow, 1/4. It is the variance of the rows (divided by n), not an estimate for a larger
crowd.

**Interval.** For a number c the mean of ``(u - c)²`` is a ratio of known combinations of the parts, ``c² P + (c² - c) Q + (1
- c)² R`` over n, so ``Σ (coefficient - t) part`` is noise alone at the true t (Fieller 1954). At c = the mean of u it is the
variance. The mean is not known, but lies in an interval of its own with 99%; the ends of the 96% intervals over all c in it
cover the variance with 95% (Bonferroni), whatever the data. The ends are taken at five c: t(c) is the variance plus (c -
mean)², smooth and with one minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy import Charge, Exact, Meter
from sfumato.statistics.figure import Figure
from sfumato.statistics.ratios import laplace_quantile
from sfumato.statistics.shares import Noisy, PersonalPlan, Plan, Sums, by_weight, shared_out
from sfumato.tables.moments import Moments, WeighedMoments

Floats = NDArray[np.float64]
_NARROWINGS = 6
_UNIFORM = 1 / 12  # the variance that a preview plans for, in squared ranges


@dataclass(frozen=True, eq=False)
class VariancePlan:
    """A variance, fixed from public facts."""

    mechanism: str
    plan: Plan
    column: str
    low: float
    high: float
    steps: int
    rounding: float
    rows: float | None

    @property
    def charge(self) -> Charge:
        """One measurement of three parts."""
        return self.plan.charge

    def _error(self, of_part: float) -> float | None:
        """Of the variance, from that of a part in rows: to first order, for an even spread, at most half its range."""
        if not self.rows:
            return None
        inner, outer = 0.25 + _UNIFORM, 0.25 - _UNIFORM
        return float((self.high - self.low) ** 2 * min(of_part * np.sqrt(2 * outer**2 + inner**2) / self.rows, 0.125))

    @property
    def expected_rmse(self) -> float | None:
        """For values spread evenly over the range, if as many rows count as are known."""
        return self._error(float(np.sqrt(2)) * self.plan.scale)

    @property
    def bias_bound(self) -> float:
        """Beside the noise, for any data."""
        return (self._error(self.plan.plan.bias_bound) or 0.0) if isinstance(self.plan, PersonalPlan) else 0.0

    def run(self, found: Exact[Moments] | WeighedMoments, meter: Meter) -> Figure:
        """Measure the parts, then estimate."""
        steps = self.steps

        def sums(weights: NDArray[np.int64]) -> Exact[NDArray[np.int64]]:
            return by_weight(found, weights, lambda m, w: shared_out(m, w, shape=(), steps=steps, degree=2).reshape(-1))

        read: Sums = sums
        noisy = self.plan.run(read, meter)
        value, mean, rows = variance_of(noisy.parts[0])
        width = self.high - self.low
        least, most = self._deviations(noisy)
        narrow = noisy.if_independent()
        keen = None if narrow is None else self._deviations(narrow)
        details: dict[str, float] = {
            "standard_deviation": width * float(np.sqrt(value)),
            "standard_deviation_low": least,
            "standard_deviation_high": most,
            "mean": self.low + width * mean,
            "rows": rows,
        }
        told: dict[str, Any] = {"clamped": [self.low, self.high], "lattice_steps": steps, "noise_scale": noisy.scale}
        return Figure(
            kind="variance",
            value=width**2 * value,
            low=least**2,
            high=most**2,
            if_independent=None if keen is None else (keen[0] ** 2, keen[1] ** 2),
            guarantee=meter.guarantee(),
            mechanism=self.mechanism,
            bounds=(0.0, width**2 / 4),
            column=self.column,
            expected_rmse=self.expected_rmse,
            bias_bound=self.bias_bound,
            details=details,
            parameters={**told, **noisy.told},
            warnings=noisy.warnings,
            alarm=noisy.alarm,
        )

    def _deviations(self, noisy: Noisy) -> tuple[float, float]:
        """The interval of the standard deviation; rounding moves it by at most the rounding itself."""
        low, high = variance_interval(noisy)
        width = self.high - self.low
        return max(0.0, width * low**0.5 - self.rounding), min(width / 2, width * high**0.5 + self.rounding)


def variance_of(parts: Floats) -> tuple[float, float, float]:
    """Variance and mean in shares of the range, and the number of rows, from three noisy parts.

    >>> variance_of(np.array([25.0, 50.0, 25.0]))  # all rows in the middle would be 25, 50, 25
    (0.0, 0.5, 100.0)
    >>> variance_of(np.array([50.0, 0.0, 50.0]))  # half at either end
    (0.25, 0.5, 100.0)
    """
    rows = float(parts.sum())
    if rows <= 0:
        return 0.125, 0.5, 0.0
    mean = min(max(float(parts[2] + parts[1] / 2) / rows, 0.0), 1.0)
    spread = float(parts[2]) / rows - mean**2
    return min(max(spread, 0.0), 0.25), mean, rows


def variance_interval(noisy: Noisy) -> tuple[float, float]:
    """A 95% interval of the variance in squared ranges, for any data.

    >>> parts = np.array([[5000.0, 0.0, 5000.0]])
    >>> low, high = variance_interval(Noisy(parts, 1.0, parts, 1.0))
    >>> round(low, 4), round(high, 4)
    (0.2498, 0.25)
    """
    parts = noisy.seen[0]
    fewest = float(parts.sum()) - _half(np.ones(3), noisy, 0.99)
    if fewest <= 0:
        return 0.0, 0.25
    middle = np.array([0.0, 0.5, 1.0])
    first, last = _ratio(middle, noisy, 0.99, 0.0, 1.0)
    likely = min(max(float(parts @ middle) / float(parts.sum()), first), last)
    centres = (first, (first + likely) / 2, likely, (likely + last) / 2, last)
    ends = [_ratio(np.array([c**2, c**2 - c, (1 - c) ** 2]), noisy, 0.96, 0.0, 0.25) for c in centres]
    return min(e[0] for e in ends), max(e[1] for e in ends)


def _ratio(coefficients: Floats, noisy: Noisy, confidence: float, least: float, most: float) -> tuple[float, float]:
    """All t between two bounds for which ``Σ (coefficient - t) part`` may be noise; every narrowing is valid.

    The half-width is convex in t, so it is largest at one of the two ends that are left.
    """
    parts = noisy.seen[0]
    rows, centre = float(parts.sum()), float(parts @ coefficients) / float(parts.sum())
    low, high = least, most
    for _ in range(_NARROWINGS):
        half = max(_half(coefficients - t, noisy, confidence) for t in (low, high)) / rows
        low, high = max(low, min(centre - half, most)), min(high, max(centre + half, least))
    return low, high


def _half(coefficients: Floats, noisy: Noisy, confidence: float) -> float:
    """How far a combination of noisy parts may lie from the true one."""
    size = np.abs(coefficients)
    noise = laplace_quantile((noisy.seen_scale * size).tolist(), confidence)
    beside = noisy.missing * float(size.max()) + noisy.bias * float(np.ptp(np.append(coefficients, 0.0)))
    return noise + beside
