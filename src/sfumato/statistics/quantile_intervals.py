"""Intervals for quantiles that hold for any data: noisy counts between the chosen points, and choices beyond them.

A choice tells where a quantile is and not how far off it may be: that depends on how many records lie near. So part of
the price counts the records between the chosen points, and part of it chooses points further out.

1. Noise on the weights below, on, between and above the chosen points: one vector, each record in one cell.
2. For a target q and a point p let ``D(p) = A(p) - q n``. Noise of a known law is in it, so ``D(p) <= D~(p) + z`` but for
   a chance. If that bound is at most 0, q n is not below what lies under p and the quantile is at p or above: p is a lower
   end. Points are tried from the outermost inwards and the first that fails ends the trial, so that however many are tried
   the chance of a wrong one is that of one trial (a fixed sequence: the first point that is wrong would have to pass).
3. Where the chosen point itself is no lower end, another one is chosen in the gap below it, with so many records between
   the two that ``D`` and what this choice may miss (`ranks.rank_bound`) are made up for. It is chosen among stretches that
   grow with the distance from the point: with fewer candidates less can be missed, and the far end of the stretch is taken.

Upper ends likewise. **Guarantee.** The vector costs a row of weight w ``w rate``; the gaps are branches over disjoint
rows, with at most two choices each. All the rest is computed from what came out.

**Coverage.** Each end fails with a chance of at most .025: .005 for the trial, .005 for the bound at the point, .005 for
the number of records in the gap, .01 for the choice. Whoever has less than full weight may count for less than they are:
of a whole weight U that is not seen, up to ``(1 - q) U`` is added to D and ``q U`` taken from it (`Unseen`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from sfumato.people.error_law import LaplacePlusNormal
from sfumato.privacy import NANO, Exact, Meter
from sfumato.statistics.ranks import Floats, Integers, as_share, choose_point, rank_bound, rank_rate

CONFIDENCE = 0.95
_MISS, _CHOICE = 0.005, 0.01  # three times the first and once the second make 0.025 for an end
_MOST_OF_A_GAP = 0.9
DISJOINT = "each row lies in one gap between the chosen points"


@dataclass(frozen=True)
class Unseen:
    """What weights do not show.

    Attributes
    ----------
    weight : float
        The weight that people of less than full weight may lack, for any data.
    imbalance : float
        ``Σ m² / (Σ m)² - 1/n`` where budgets are said to be independent of the values; 0 otherwise.
    """

    weight: float = 0.0
    imbalance: float = 0.0


@dataclass(frozen=True, eq=False)
class Around:
    """Noisy weights below, on and above some points: ``2 points + 1`` cells.

    Attributes
    ----------
    points : int64 array
        Different, in increasing order.
    cells : float array
        The noisy weight below the first point, on it, between it and the next...
    scale : float
        Of the noise in each, in units of weight.
    unseen : Unseen
    """

    points: Integers
    cells: Floats
    scale: float
    unseen: Unseen

    def offset(self, q: float, number: int, *, on: bool) -> float:
        """The estimate of ``A - q n`` at a point; with `on` of ``A + E - q n``."""
        split = 2 * number + 1 + on
        return float((1 - q) * self.cells[:split].sum() - q * self.cells[split:].sum())

    def margin(self, q: float, number: int, miss: float, *, on: bool, rough: bool = False) -> float:
        """By how much that may be too low (too high with `on`), but for a chance of `miss`; with `rough` no less than so."""
        split = 2 * number + 1 + on
        total = max(float(self.cells.sum()), 0.0)
        sd = total * float(np.sqrt(q * (1 - q) * self.unseen.imbalance))
        law = ((1 - q) * self.scale, split, q * self.scale, self.cells.size - split, sd, miss)
        return (_rough_bound if rough else _noise_bound)(*law) + (q if on else 1 - q) * self.unseen.weight

    def surely(self, q: float, number: int, miss: float, *, on: bool) -> bool:
        """Whether ``A - q n`` is at most 0, or ``A + E - q n`` at least 0 with `on`, but for a chance of `miss`."""
        ahead = self.offset(q, number, on=on) * (1 if on else -1)
        if ahead < 0:
            return False
        return any(ahead >= self.margin(q, number, miss, on=on, rough=rough) for rough in (True, False))

    def too_high(self, q: float, number: int, miss: float) -> float:
        """An upper bound of ``A - q n``: at most 0 if the quantile is surely not below the point."""
        return self.offset(q, number, on=False) + self.margin(q, number, miss, on=False)

    def too_low(self, q: float, number: int, miss: float) -> float:
        """An upper bound of ``q n - A - E``: at most 0 if the quantile is surely not above the point."""
        return -self.offset(q, number, on=True) + self.margin(q, number, miss, on=True)

    def in_gap(self, gap: int, miss: float) -> float:
        """A lower bound of the weight in a gap."""
        return float(self.cells[2 * gap]) + self.scale * float(np.log(2 * miss))

    def share_below(self, number: int, miss: float) -> float:
        """The share of the records below a point is at most this, but for a chance of `miss`."""
        return self._share(number, miss, on=False)

    def share_above(self, number: int, miss: float) -> float:
        """The share of the records above a point is at most this, but for a chance of `miss`."""
        return 1 - self._share(number, miss, on=True)

    def _share(self, number: int, miss: float, *, on: bool) -> float:
        """The q at which the bound of ``A - q n`` (of ``A + E - q n`` with `on`) is 0: the end of the shares that may be."""
        total = float(self.cells.sum())
        below = float(self.cells[: 2 * number + 1 + on].sum())
        if total <= 0:
            return 0.0 if on else 1.0
        q = below / total
        for _ in range(5):  # the margin hardly depends on q
            q = float(np.clip(q, 0.0, 1.0))
            q = (below + self.margin(q, number, miss, on=on) * (-1 if on else 1)) / total
        return float(np.clip(q, 0.0, 1.0))


def count_around(
    meter: Meter, counts: Exact[Integers], points: Integers, *, nano: int, weights: Integers | None, unseen: Unseen
) -> Around:
    """Noise on the weights between some points, at `nano` for a row of the heaviest group."""
    heaviest = 1 if weights is None else int(weights.max())
    rate, different = nano // heaviest, np.unique(points)
    noisy = meter.laplace(
        counts.map(partial(_cells, points=different)),
        rate=np.full(2 * different.size + 1, rate, dtype=np.int64),
        weights=1 if weights is None else weights,
        label="records between the quantiles",
    )
    return Around(different, noisy.astype(np.float64), NANO / rate, unseen)


def _cells(counts: Integers, points: Integers) -> Integers:
    edges = np.stack([points, points + 1], axis=1).reshape(-1)
    upto = np.concatenate([[0], np.cumsum(counts)])
    return np.asarray(np.diff(upto[np.concatenate([[0], edges, [counts.size]])]))


def intervals(
    meter: Meter,
    counts: Exact[Integers],
    around: Around,
    targets: tuple[Fraction, ...],
    chosen: Integers,
    *,
    size: int,
    nano: int,
    weights: Integers | None,
) -> NDArray[np.int64]:
    """Lower and upper end for every target: points of the lattice.

    Parameters
    ----------
    meter : Meter
    counts : Exact of integers
    around : Around
        The noisy weights between the chosen points.
    targets : tuple of Fraction
    chosen : int64 array
        The point of each target.
    size : int
        Number of points of the lattice.
    nano : int
        What the choices may cost a row of the heaviest group.
    weights : int64 array, optional

    Returns
    -------
    int64 array
        One line per target.
    """
    shares = [float(q) for q in targets]
    place = np.searchsorted(around.points, chosen)
    ends = np.array([_sure(around, q, int(i), size) for q, i in zip(shares, place, strict=True)], dtype=np.int64)
    edges = np.concatenate([[-1], around.points, [size]])
    each = nano if around.points.size == 1 else nano // 2  # an inner gap may be asked from both of its ends
    with meter.parallel(DISJOINT) as branch:
        for gap in range(around.points.size + 1):
            first, last = int(edges[gap]) + 1, int(edges[gap + 1])
            if last <= first:
                continue
            far = _stretches(last - first)
            lower = [t for t in range(len(shares)) if place[t] == gap and ends[t, 0] < around.points[gap]]
            upper = [t for t in range(len(shares)) if place[t] == gap - 1 and ends[t, 1] > around.points[gap - 1]]
            with branch():
                for end, who in ((0, lower), (1, upper)):
                    bound = around.too_high if end == 0 else around.too_low
                    missed = max((bound(shares[t], int(place[t]), _MISS) for t in who), default=0.0)
                    part = _part(around, gap, missed, far.size, each, weights) if who else None
                    if part is None:
                        continue
                    found = counts.map(partial(_folded, first=first, last=last, far=far, down=end == 0))
                    number = choose_point(meter, found, part, nano=each, weights=weights, label="end of an interval")
                    point = last - int(far[number]) if end == 0 else first - 1 + int(far[number])
                    for t in who:
                        ends[t, end] = max(ends[t, 0], point) if end == 0 else min(ends[t, 1], point)
    return ends


def _sure(around: Around, q: float, number: int, size: int) -> tuple[int, int]:
    """The innermost chosen points that are surely on either side of the quantile, or the ends of the lattice."""
    low, high = 0, size - 1
    for i in range(number + 1):
        if not around.surely(q, i, _MISS, on=False):
            break
        low = int(around.points[i])
    for i in range(around.points.size - 1, number - 1, -1):
        if not around.surely(q, i, _MISS, on=True):
            break
        high = int(around.points[i])
    return low, high


def _part(around: Around, gap: int, missed: float, stretches: int, nano: int, weights: Integers | None) -> Fraction | None:
    """The share of a gap's records, counted from the chosen point, at which the end of an interval is sought.

    None where the gap may not hold enough records.
    """
    there = around.in_gap(gap, _MISS)
    heaviest = 1 if weights is None else int(weights.max())
    needed = missed + rank_bound(stretches, rank_rate(1.0, nano / heaviest), _CHOICE)
    return as_share(needed / there) if 0 < needed <= _MOST_OF_A_GAP * there else None


def _stretches(points: int) -> Integers:
    """Where stretches that grow by a fifth with the distance end: 1, 2, 3...

    >>> _stretches(20).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 19, 20]
    """
    steps = int(np.ceil(np.log(points) / np.log(1.2))) + 1
    grown = np.unique(np.ceil(1.2 ** np.arange(steps + 1)).astype(np.int64))
    return np.append(grown[grown < points], points)


def _folded(counts: Integers, first: int, last: int, far: Integers, *, down: bool) -> Integers:
    """The weight on each stretch of a gap, from the chosen point outwards."""
    inside = counts[first:last]
    return np.asarray(np.add.reduceat(inside[::-1] if down else inside, np.concatenate([[0], far[:-1]])))


@lru_cache(maxsize=4096)
def _noise_bound(low: float, lows: int, high: float, highs: int, sd: float, miss: float) -> float:
    """What `lows` Laplace noises of one scale, `highs` of another and a normal one pass with a chance of `miss`."""
    law = LaplacePlusNormal((low,) * lows + (high,) * highs, sd)
    below, above = 0.0, _rough_bound(low, lows, high, highs, sd, miss)
    for _ in range(12):
        middle = (below + above) / 2
        below, above = (middle, above) if law.coverage(middle) < 1 - 2 * miss else (below, middle)
    return above


def _rough_bound(low: float, lows: int, high: float, highs: int, sd: float, miss: float) -> float:
    """No less than that, at once: the best of Chernoff's bounds ``(ln E[exp(t X)] - ln miss) / t``."""
    t = np.linspace(0.05, 0.95, 19) / max(low, high)
    logs = (sd * t) ** 2 / 2 - lows * np.log1p(-((low * t) ** 2)) - highs * np.log1p(-((high * t) ** 2))
    return float(((logs - np.log(miss)) / t).min())
