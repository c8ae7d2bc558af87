"""What was really measured, kept beside the estimate: the ground on which an interval stands.

Estimates are improved by post-processing (sorting, averaging, empirical Bayes), whose error depends on the unknown
truth. Intervals do not follow the estimate: they follow the unbiased noisy sums, whose noise is known exactly, and the
fact that counts are not negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.budgets import Floats, Ints
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
        """Every bin on its own: its `noisy` count and the rate of its noise (`rates`)."""
        return cls(np.arange(noisy.size), noisy, rates)

    def to_dict(self) -> dict[str, Any]:
        """For artefacts; bins that were measured one by one need no list of groups."""
        alone = self.labels.size == self.totals.size and bool((self.labels == np.arange(self.labels.size)).all())
        groups = None if alone else self.labels.tolist()
        rate = (
            self.rates.tolist()
            if self.rates.size and (self.rates != self.rates[0]).any()
            else int(self.rates.max(initial=0))
        )
        return {"groups": groups, "totals": self.totals.tolist(), "rates": rate}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Measurement:
        """The measurement that `to_dict` wrote down as `data`."""
        totals = np.array(data["totals"], dtype=np.int64)
        labels = np.arange(totals.size) if data["groups"] is None else np.array(data["groups"], dtype=np.int64)
        return cls(labels, totals, np.array(np.broadcast_to(np.array(data["rates"], dtype=np.int64), totals.shape)))

    def bounds(self, mask: NDArray[np.bool_], confidence: float) -> tuple[float, float]:
        """An interval for the sum over `mask` that covers it with a probability of at least about `confidence`.

        Groups wholly inside count with their noisy total. A group that is cut by the mask has between 0 and its total
        inside, so its upper end gets the noise and its lower end gets nothing.
        """
        size = np.bincount(self.labels, minlength=self.totals.size)
        inside = np.bincount(self.labels[mask], minlength=self.totals.size)
        whole = inside == size
        cut = (inside > 0) & ~whole
        base = float(self.totals[whole].sum())
        low = base - noise_quantile(self.rates[whole], confidence)
        high = base + float(self.totals[cut].sum()) + noise_quantile(self.rates[whole | cut], confidence)
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
    q = np.exp(-rates / NANO)
    if float((2 * q / (1 + q)).sum()) <= 1 - confidence:
        return 0.0  # so little noise that most likely all of it is 0
    square = laplace_variance(rates) / 2
    scale2 = float((square**2).sum() / square.sum())
    # Shapes are rounded to three digits so that the quantile is computed once for many ranges; down: wider tails.
    shape = float(square.sum() / scale2)
    step = 10.0 ** (np.floor(np.log10(shape)) - 2)
    variance = 2 * float(square.sum())
    return float(np.ceil(np.sqrt(variance) * _unit_quantile(float(np.floor(shape / step + 1e-9) * step), confidence)))


@lru_cache(maxsize=4096)
def _unit_quantile(shape: float, confidence: float) -> float:
    """x with ``P(|Z| sqrt(G / shape) <= x) = confidence``, G ~ Gamma(shape), Z normal: variance one."""
    from scipy import optimize, special  # slow to import, and only intervals need it

    nodes, weights = _nodes()
    rest = ((1 - nodes) / 2) ** 4  # nodes crowd where G is large: that is where the tail comes from
    weights = weights * 2 * ((1 - nodes) / 2) ** 3
    spread = np.sqrt(special.gammainccinv(shape, rest) / shape)

    def miss(x: float) -> float:
        return float(2 * (weights * special.ndtr(-x / spread)).sum()) - (1 - confidence)

    return float(optimize.brentq(miss, 0.0, 60.0))


@lru_cache(maxsize=1)
def _nodes() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(120)


def tree_bounds(levels: tuple[Measurement, ...], mask: NDArray[np.bool_], confidence: float) -> tuple[float, float]:
    """The interval from the fewest nodes of a tree (coarse first) that make up `mask`; a leaf that the mask cuts holds
    between 0 and its total of the rest."""
    left = mask.copy()
    base = 0
    rates = [np.zeros(0, dtype=np.int64)]
    for level in levels:
        size = np.bincount(level.labels, minlength=level.totals.size)
        inside = np.bincount(level.labels[left], minlength=level.totals.size)
        take = (inside == size) & (size > 0)
        base += int(level.totals[take].sum())
        rates.append(level.rates[take])
        left &= ~take[level.labels]
    cut = np.unique(levels[-1].labels[left])
    low = base - noise_quantile(np.concatenate(rates), confidence)
    high = (
        base
        + int(levels[-1].totals[cut].sum())
        + noise_quantile(np.concatenate([*rates, levels[-1].rates[cut]]), confidence)
    )
    return max(low, 0.0), max(high, 0.0)


def best_bounds(
    measurements: tuple[Measurement, ...], mask: NDArray[np.bool_], confidence: float, *, tree: bool = False
) -> tuple[float, float]:
    """The interval of the measurement with least noise on this sum; which one that is follows from the noise alone."""
    if tree:
        return tree_bounds(measurements, mask, confidence)
    return min(measurements, key=lambda m: m.width(mask)).bounds(mask, confidence)
