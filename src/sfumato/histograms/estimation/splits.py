"""Empirical Bayes down a tree of noisy totals: how does a node's total divide among its children?

`reconcile` believes every difference that the noise makes. Here a child's part of its parent has a prior. A child that
covers a share s of its parent's bins holds ``θ s`` of its records: nothing at θ = 0, its even part at θ = 1, everything at
θ = 1/s. The spread of θ over these three points and a public list of steps between them is learned from all children of a
level together (by EM, with one imaginary child that says "even" at four tenths). Then every child takes its posterior
mean, and what is left to the parent's total is divided in proportion to the children's uncertainty.

So where the noise exceeds what the nodes of a level hold, they divide evenly and the estimate tends to `uniform`; where
some bins tower above the rest the others fall to nearly nothing; where everything stands out the noisy totals are kept.
All of it is computed from noisy totals and public variances.

*Upwards first.* A node's own noisy total and the sum of its children are averaged by inverse variance, as in least
squares. The noise of that average is taken for Laplace noise of the same variance, which a leaf has exactly. Then
likelihood, mean and variance of a step are integrals in closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.histograms.budgets import Floats, Ints
from sfumato.histograms.estimation.measurements import Measurement
from sfumato.privacy.noise import laplace_variance

# Steps of θ: narrow around an even division, then wider and wider up to all of a wide parent in one child.
_NEAR = np.array([0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7])
_FAR = np.array([2.0, 2.5, 3.2, 4.0, 5.5, 8.0, 11.0, 16.0, 24.0])
STEPS = np.concatenate([[0, 0.02, 0.06, 0.15], 1 - _NEAR[::-1], 1 + _NEAR, _FAR, 2.0 ** np.arange(5, 33)])
EMPTY, EVEN, ALL = 0.1, 0.4, 0.01  # what the imaginary child gives to the three points; the rest falls off like exp(-θ)
EM_STEPS, IMAGINARY = 30, 1.0
MOST_TO_LEARN = 20_000  # children from which a level learns: a few dozen weights need no more
LEAST = 1e-6  # records: a total below is taken for this many


def _first_belief() -> Floats:
    """The imaginary child: mean about 1, and a tail that falls off like a cube, for one step can hold everything."""
    middle = (STEPS[1:] + STEPS[:-1]) / 2
    rest = 0.5 * -np.diff(np.exp(-STEPS)) + 1e-4 * np.diff(STEPS) / (1 + middle) ** 3
    belief = np.concatenate([[EMPTY, EVEN, ALL], rest])
    return np.asarray(belief / belief.sum())


FIRST_BELIEF = _first_belief()


@dataclass(frozen=True, eq=False)
class Level:
    """One level of a tree of intervals: where its nodes start, their noisy totals and the variance of each."""

    starts: Ints
    totals: Floats
    variance: Floats

    @classmethod
    def of(cls, measured: Measurement) -> Level:
        """The level behind noisy totals of consecutive stretches (`measured`)."""
        starts = np.flatnonzero(np.diff(measured.labels, prepend=-1))
        return cls(starts, measured.totals.astype(np.float64), laplace_variance(measured.rates) + 1e-12)


def divide(levels: Sequence[Level], *, bins: int, total: float, variance: float) -> tuple[Floats, Floats]:
    """Estimated total of every node of the finest level and its variance.

    `levels` are nested, coarse first; `total` is a noisy total of all bins of the given `variance`.

    >>> coarse = Level(np.array([0, 2]), np.array([40.0, 0.0]), np.full(2, 2.0))
    >>> fine = Level(np.arange(4), np.array([20.0, 21.0, 1.0, -2.0]), np.full(4, 2.0))
    >>> divide([coarse, fine], bins=4, total=40.0, variance=2.0)[0].round(0).tolist()
    [20.0, 20.0, 0.0, 0.0]
    """
    up = _upwards(levels)
    known = float(up[0].variance.sum())
    root = (total * known + float(up[0].totals.sum()) * variance) / (known + variance)
    starts, size, parents = np.zeros(1, dtype=np.int64), np.array([bins]), np.array([max(root, LEAST)])
    spread = np.array([variance])
    for level in up:
        children = np.diff(np.append(level.starts, bins))
        parent = np.searchsorted(starts, level.starts, side="right") - 1
        first = np.searchsorted(level.starts, starts)
        share = children / size[parent]
        mean, spread = posterior(level.totals, level.variance, np.maximum(parents[parent] * share, LEAST), share)
        left = parents - np.add.reduceat(mean, first)
        mean = np.maximum(mean + (spread / np.add.reduceat(spread, first)[parent]) * left[parent], 0.0)
        # what fell below nothing was taken from its siblings: give it back
        mean *= (parents / np.maximum(np.add.reduceat(mean, first), 1e-300))[parent]
        starts, size, parents = level.starts, children, mean
    return parents, spread


def _upwards(levels: Sequence[Level]) -> list[Level]:
    """Every node's best unbiased total from what was measured at it and below it."""
    out = [levels[-1]]
    for level in levels[-2::-1]:
        first = np.searchsorted(out[0].starts, level.starts)
        sums, spread = np.add.reduceat(out[0].totals, first), np.add.reduceat(out[0].variance, first)
        own = spread / (spread + level.variance)
        out.insert(0, Level(level.starts, own * level.totals + (1 - own) * sums, own * level.variance))
    return out


def posterior(totals: Floats, variance: Floats, even: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Posterior mean and variance of children with noisy `totals`, whose even part of the parent would be `even`.

    >>> mean, _ = posterior(np.array([9.0, -4.0, 3.0, 90.0]), np.full(4, 50.0), np.full(4, 25.0), np.full(4, 0.25))
    >>> bool(mean[3] > 70 and mean[:3].max() < 20)
    True
    """
    steps = STEPS[: np.searchsorted(STEPS, 1.0 / float(share.min())) + 1]
    start = FIRST_BELIEF[: steps.size + 2]
    some = slice(None, None, -(-totals.size // MOST_TO_LEARN))
    likelihood = _integrals(totals[some], variance[some], even[some], share[some], steps)[0]
    belief = start
    for _ in range(EM_STEPS):
        weight = 1.0 / (likelihood @ belief)
        belief = (belief * (weight @ likelihood) + IMAGINARY * start) / (weight.size + IMAGINARY)
    mean, square = np.empty(totals.size), np.empty(totals.size)
    for begin in range(0, totals.size, MOST_TO_LEARN):
        part = slice(begin, begin + MOST_TO_LEARN)
        likelihood, means, squares = _integrals(totals[part], variance[part], even[part], share[part], steps)
        trust = likelihood * belief
        trust /= trust.sum(axis=1, keepdims=True)
        mean[part] = (trust * means).sum(axis=1)
        square[part] = (trust * squares).sum(axis=1)
    return mean, np.maximum(square - mean**2, 1e-9)


def _integrals(
    totals: Floats, variance: Floats, even: Floats, share: Floats, steps: Floats
) -> tuple[Floats, Floats, Floats]:
    """Likelihood of the three points and of every step, mean and mean square of the child's total in each."""
    scale = np.sqrt(variance / 2)[:, None]
    # Beyond the ends of what is possible Laplace noise decays alike for all steps: a total there says what the end says.
    at = np.clip(totals, 0.0, even / share)[:, None]
    edges = np.minimum(steps[None, :], 1.0 / share[:, None]) * even[:, None]
    off = (edges - at) / scale
    far = np.abs(off)
    decay = np.exp(-far)
    low, high = decay[:, :-1], decay[:, 1:]
    left, right = off[:, 1:] <= 0, off[:, :-1] >= 0
    mass = np.where(right, low - high, np.where(left, high - low, 2.0 - low - high)) / 2
    first = -0.5 * np.diff((far + 1.0) * decay, axis=1)
    second = np.diff(np.sign(off) * (1.0 - (off**2 / 2 + far + 1.0) * decay), axis=1)
    width = np.diff(edges, axis=1) / scale
    seen = (mass > 1e-200) & (width > 0)
    inside = np.where(seen, mass, 1.0)
    step = np.where(seen, mass / np.where(seen, width, 1.0), 0.0)
    places = np.column_stack([np.zeros(at.size), even, even / share])
    points = 0.5 * np.exp(-np.abs(places - at) / scale)
    likelihood = np.hstack([points, step])
    shift, spread = scale * first / inside, scale**2 * second / inside
    means = np.hstack([places, np.where(seen, at + shift, 0.0)])
    squares = np.hstack([places**2, np.where(seen, at**2 + 2 * at * shift + spread, 0.0)])
    return likelihood / likelihood.max(axis=1, keepdims=True), means, squares
