"""Means of groups that lend each other strength: empirical Bayes on two noisy parts per group.

A group of n rows with its mean at a share u of the range is seen as two numbers, ``n (1 - u)`` and ``n u``, each with
Laplace noise of a known scale. Divided by that scale the problem has no parameter left, but for how sizes and means are
spread.

*Small groups* (a noisy size below `SMALL` noise scales). The joint prior of size and mean is learned from all of them: the
nonparametric maximum likelihood on a grid (Kiefer & Wolfowitz 1956; by EM from a flat start, stopped early). It learns that
small groups differ from large ones, two clusters, means at the ends of the range or a few outliers alike, and where nothing
can be learned it stays flat, so that a group of which nothing is known gets about the middle of the range. A group takes the
posterior mean of u, given that somebody is in it.

*Large groups.* The ratio is nearly normal around the mean, with a known variance v. It is drawn to a common mean by ``v / (v
+ t + c / n)``, t for what groups differ by and c / n for what n rows of one group do, with the t and c that minimise Stein's
unbiased estimate of the error over these groups (Xie, Kou & Brown 2012); or left alone where that estimate does not fall by
more than its own noise. Where large groups differ nothing moves.

All of it is post-processing of the noisy parts. Everything here is in shares of the range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.estimation.npmle import fit_prior

Floats = NDArray[np.float64]
SMALL = 25.0  # noise scales of the size below which the prior is learned on the grid
FIT = 50.0  # groups up to this size take part in learning it
STEPS, PULL = 60, 30.0  # of the EM; and imaginary groups drawn from its start, which steady it where groups are few
EMPTY, ENDS = 0.3, 4.0  # the start: the share of empty groups; how much likelier an end of the range is than a point within
FEWEST = 20  # small groups from which something can be learned; fewer are left alone
SHARES = 33  # points of the grid of means
MOST_FITTED = 4000  # groups that take part in learning the prior; of more, every so many-th
_BLOCK = 2000
_SIDE = 0.02  # chance outside of an average interval on either side, under the learned prior
_FLAT = 0.1  # weight of a flat prior beside the learned one, for these intervals


@dataclass(frozen=True, eq=False)
class Shrunk:
    """What groups lend each other, in shares of the range.

    Attributes
    ----------
    means, sizes : float arrays
        Posterior means of both.
    errors : float array
        Expected root mean square error of each mean.
    low, high : float arrays
        Ends of intervals that hold on average over the groups; not set (NaN) for large groups.
    """

    means: Floats
    sizes: Floats
    errors: Floats
    low: Floats
    high: Floats


def plain_means(parts: Floats) -> Floats:
    """The plain estimate: the clamped ratio, and the middle where the noisy number of rows is not positive.

    >>> plain_means(np.array([[1.0, 3.0], [4.0, -1.0], [-2.0, 1.0]])).tolist()
    [0.75, 0.0, 0.5]
    """
    rows = parts.sum(axis=1)
    known = rows > 0
    return np.where(known, np.clip(parts[:, 1] / np.where(known, rows, 1.0), 0.0, 1.0), 0.5)


def plain_errors(means: Floats, rows: Floats, scale: float) -> Floats:
    """Expected error of the plain estimate to first order, at most half the range."""
    noise = scale * np.sqrt(2 * (means**2 + (1 - means) ** 2))
    return np.asarray(np.minimum(noise / np.maximum(rows, 1e-9), 0.5))


def shrunk_means(parts: Floats, scale: float) -> Shrunk:
    """Means of all groups from noisy parts (lower, upper) with Laplace noise of one scale, in rows.

    >>> alike = np.tile([[8.0, 12.0], [14.0, 6.0], [9.0, 11.0], [12.0, 8.0]], (10, 1))
    >>> found = shrunk_means(alike, scale=5.0).means
    >>> bool(np.ptp(found) < 0.7 * np.ptp(plain_means(alike)))
    True
    """
    means, sizes = plain_means(parts), np.maximum(parts.sum(axis=1), 0.0)
    errors = plain_errors(means, sizes, scale)
    low, high = np.full(len(parts), np.nan), np.full(len(parts), np.nan)
    small = parts.sum(axis=1) < SMALL * scale
    if small.sum() >= FEWEST:
        learned = _Prior.learned(parts / scale, 1 / scale)
        for block in np.array_split(np.flatnonzero(small), -(-int(small.sum()) // _BLOCK)):
            found = learned.posterior(parts[block] / scale)
            means[block], errors[block], low[block], high[block] = found[:4]
            sizes[block] = found[4] * scale
    large = parts.sum(axis=1) >= SMALL * scale
    if large.any():
        rows = parts[large].sum(axis=1)
        variance = 2 * (means[large] ** 2 + (1 - means[large]) ** 2) * (scale / rows) ** 2
        means[large] = np.clip(drawn_together(means[large], variance, rows), 0.0, 1.0)
    return Shrunk(means, sizes, errors, low, high)


def drawn_together(values: Floats, variances: Floats, rows: Floats) -> Floats:
    """Values with noise of known variances, drawn to a common mean as far as Stein's estimate of the error says.

    >>> rows = np.full(50, 100.0)
    >>> apart = np.linspace(0, 1, 50)
    >>> bool(np.abs(drawn_together(apart, np.full(50, 1e-6), rows) - apart).max() < 1e-4)
    True
    >>> alike = np.where(np.arange(50) % 2, 0.4, 0.6)
    >>> bool(np.ptp(drawn_together(alike, np.full(50, 0.01), rows)) < 0.02)
    True
    """
    total = float(variances.sum())
    # The estimate of the error is itself noisy, the more so the fewer groups make most of it.
    sure = 2 * float(np.sqrt(2 * (variances**2).sum()))
    chosen = slice(None, None, -(-values.size // MOST_FITTED))
    y, v, n = values[chosen], variances[chosen], rows[chosen]
    part = total / float(v.sum())
    spread = max(float(np.ptp(y)) ** 2, float(v.max()))
    best: tuple[float, float, float, float] | None = None
    least = total - sure
    for within in (0.0, *np.geomspace(0.001, 0.25, 7).tolist()):
        for between in (0.0, *np.geomspace(float(v.min()) / 10, 10 * spread, 24).tolist()):
            weight = 1 / (v + between + within / n)
            middle = float((weight * y).sum() / weight.sum())
            pull = v * weight
            risk = part * float((pull**2 * (y - middle) ** 2 + v * (1 - 2 * pull)).sum())
            if risk < least:
                least, best = risk, (middle, between, within, risk)
    if best is None:
        return values
    middle, between, within, _ = best
    return np.asarray(values - variances / (variances + between + within / rows) * (values - middle))


# --- small groups ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Prior:
    """A prior over sizes (in noise scales) and means: the weight of every point of a grid."""

    sizes: Floats
    shares: Floats
    weights: Floats

    @classmethod
    def learned(cls, parts: Floats, row: float) -> _Prior:
        """From noisy parts in noise scales; `row` is what one row is in them."""
        rows = parts.sum(axis=1)
        fitted = np.flatnonzero(rows < FIT)
        fitted = fitted[:: -(-fitted.size // MOST_FITTED)]
        sizes, shares = np.meshgrid(
            _sizes(row, min(FIT, float(rows[fitted].max())) + 6.0), np.linspace(0.0, 1.0, SHARES), indexing="ij"
        )
        flat = cls(sizes.reshape(-1), shares.reshape(-1), _start(sizes.shape[0]).reshape(-1))
        kernel = flat.kernel(parts[fitted])
        learned = fit_prior(kernel, np.ones(fitted.size), flat.weights, steps=STEPS, pull=PULL)
        return cls(flat.sizes, flat.shares, learned)

    def kernel(self, parts: Floats) -> Floats:
        """The likelihood of noisy parts at every point, up to a factor per group."""
        lower, upper = self.sizes * (1 - self.shares), self.sizes * self.shares
        logs = -np.abs(parts[:, :1] - lower) - np.abs(parts[:, 1:] - upper)
        logs -= logs.max(axis=1, keepdims=True)
        return np.asarray(np.exp(logs))

    def posterior(self, parts: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Mean, error and interval of the share given that somebody is in the group, and the mean size."""
        likely = self.kernel(parts)
        joint = likely * self.weights
        sizes = joint @ self.sizes / np.maximum(joint.sum(axis=1), 1e-300)
        there = self.sizes > 0
        points = self.shares[there]
        mean, spread = _moments(joint[:, there], points)
        wary = likely[:, there] * ((1 - _FLAT) * self.weights[there] + _FLAT / there.sum())
        by_share = wary.reshape(len(parts), -1, SHARES).sum(axis=1)
        reached = np.cumsum(by_share, axis=1) / by_share.sum(axis=1, keepdims=True)
        grid, step = np.linspace(0.0, 1.0, SHARES), 1.0 / (SHARES - 1)
        low = grid[(reached < _SIDE).sum(axis=1)] - step / 2
        high = grid[np.minimum((reached < 1 - _SIDE).sum(axis=1), SHARES - 1)] + step / 2
        return mean, spread, np.clip(np.minimum(low, mean), 0, 1), np.clip(np.maximum(high, mean), 0, 1), sizes


def _start(sizes: int) -> Floats:
    """Where the EM starts: some groups are empty, all other sizes alike; means alike but for the ends of the range.

    One row of a yes-or-no column lies at an end, and so do many small groups.
    """
    of_size = np.full(sizes, (1 - EMPTY) / (sizes - 1))
    of_size[0] = EMPTY
    of_share = np.ones(SHARES)
    of_share[[0, -1]] = ENDS
    return np.outer(of_size, of_share / of_share.sum())


def _moments(joint: Floats, points: Floats) -> tuple[Floats, Floats]:
    total = np.maximum(joint.sum(axis=1), 1e-300)
    mean = joint @ points / total
    return mean, np.sqrt(np.maximum(joint @ points**2 / total - mean**2, 0.0))


def _sizes(row: float, top: float) -> Floats:
    """Sizes of groups in noise scales: none, one row, and on in steps that the noise can tell apart; whole rows if so."""
    found = [0.0, *np.geomspace(row, 0.5, 4).tolist()] if row < 0.5 else [0.0, row]
    while found[-1] < top:
        step = 0.5 if found[-1] < 3 else 1.0 if found[-1] < 20 else 1.5
        found.append(found[-1] + (step if row < 0.5 else row * max(1.0, np.round(step / row))))
    return np.array(found)
