"""What was really measured, kept beside the estimate: the ground on which an interval stands.

Estimates are improved by post-processing (sorting, averaging, empirical Bayes), whose error depends on the unknown
truth. Intervals do not follow the estimate: they follow the unbiased noisy sums, whose noise is known exactly, and the
fact that counts are not negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.budgets import Ints
from sfumato.privacy import NANO
from sfumato.privacy.noise import laplace_variance


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy totals of disjoint groups of bins.

    Parameters
    ----------
    labels : int64 array
        The group of each bin.
    totals : int64 array
        The noisy total of each group.
    rates : int64 array
        The rate of the noise on each total.
    """

    labels: Ints
    totals: Ints
    rates: Ints

    @classmethod
    def of_bins(cls, noisy: Ints, rates: Ints) -> Measurement:
        return cls(np.arange(noisy.size), noisy, rates)

    def bounds(self, mask: NDArray[np.bool_], confidence: float) -> tuple[float, float]:
        """An interval for the sum over `mask` that covers it with at least about the given probability.

        Groups wholly inside count with their noisy total. A group that is cut by the mask has between 0 and its total
        inside, so its upper end gets the noise and its lower end gets nothing.
        """
        size = np.bincount(self.labels, minlength=self.totals.size)
        inside = np.bincount(self.labels[mask], minlength=self.totals.size)
        whole = inside == size
        cut = (inside > 0) & ~whole
        base = float(self.totals[whole].sum())
        if not cut.any():
            reach = noise_quantile(self.rates[whole], confidence)
            return max(base - reach, 0.0), max(base + reach, 0.0)
        tail = (1 + confidence) / 2  # each end may fail with half of the rest
        low = base - noise_quantile(self.rates[whole], 2 * tail - 1)
        high = base + float(self.totals[cut].sum()) + noise_quantile(self.rates[whole | cut], 2 * tail - 1)
        return max(low, 0.0), max(high, 0.0)

    def width(self, mask: NDArray[np.bool_]) -> float:
        """Standard deviation of the noisy sum over `mask`, infinite if the mask cuts a group."""
        size = np.bincount(self.labels, minlength=self.totals.size)
        inside = np.bincount(self.labels[mask], minlength=self.totals.size)
        if ((inside > 0) & (inside < size)).any():
            return float("inf")
        return float(np.sqrt(laplace_variance(self.rates[inside > 0]).sum()))


def noise_quantile(rates: Ints, confidence: float) -> float:
    """x with ``P(|sum of the noise| <= x) >= confidence``.

    One term: exact. More: a sum of k Laplace variables of one scale is ``b sqrt(2 G) Z`` with G ~ Gamma(k), Z normal;
    different scales are matched in variance and fourth cumulant.

    >>> noise_quantile(np.array([10**9]), 0.95)
    3.0
    """
    if rates.size == 0:
        return 0.0
    if rates.size == 1:
        q = np.exp(-float(rates[0]) / NANO)
        # P(|X| > x) = 2 q^(x+1) / (1+q)
        return float(max(0.0, np.ceil(np.log((1 - confidence) * (1 + q) / 2) / np.log(q) - 1 - 1e-9)))
    square = laplace_variance(rates) / 2
    scale2 = float((square**2).sum() / square.sum()) if square.sum() > 0 else 0.0
    if scale2 == 0.0:
        return 0.0
    shape = float(square.sum() / scale2)
    from scipy import optimize, special  # slow to import, and only intervals need it

    nodes, weights = np.polynomial.legendre.leggauss(120)
    rest = ((1 - nodes) / 2) ** 4  # nodes crowd where G is large: that is where the tail comes from
    weights = weights * 2 * ((1 - nodes) / 2) ** 3
    spread = np.sqrt(2 * scale2 * special.gammainccinv(shape, rest))

    def miss(x: float) -> float:
        return float(2 * (weights * special.ndtr(-x / spread)).sum()) - (1 - confidence)

    top = float(np.sqrt(2 * square.sum())) * 40
    return float(np.ceil(optimize.brentq(miss, 0.0, top)))


def tree_sum(levels: tuple[Measurement, ...], mask: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Totals and rates of the fewest nodes of a tree (root first) that make up `mask`."""
    left = mask.copy()
    totals: list[Ints] = []
    rates: list[Ints] = []
    for level in levels:
        size = np.bincount(level.labels, minlength=level.totals.size)
        inside = np.bincount(level.labels[left], minlength=level.totals.size)
        take = (inside == size) & (size > 0)
        if take.any():
            totals.append(level.totals[take])
            rates.append(level.rates[take])
            left &= ~take[level.labels]
    empty = np.zeros(0, dtype=np.int64)
    return np.concatenate([empty, *totals]), np.concatenate([empty, *rates])


def best_bounds(
    measurements: tuple[Measurement, ...], mask: NDArray[np.bool_], confidence: float, *, tree: bool = False
) -> tuple[float, float]:
    """The interval of the measurement with least noise on this sum; which one that is follows from the noise alone."""
    if tree:
        totals, rates = tree_sum(measurements, mask)
        reach, base = noise_quantile(rates, confidence), float(totals.sum())
        return max(base - reach, 0.0), max(base + reach, 0.0)
    chosen = min(measurements, key=lambda m: m.width(mask))
    return chosen.bounds(mask, confidence)
