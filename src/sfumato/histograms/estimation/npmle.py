"""Empirical Bayes on noisy counts: learn how counts are spread from the noisy counts themselves, then shrink each one.

The noise is known exactly, so the noisy counts y are draws from ``∫ P(y | count) dG(count)`` with an unknown prior G. Its
nonparametric maximum-likelihood estimate (Kiefer & Wolfowitz 1956; by EM on a grid) is concave to find and needs no
tuning; the posterior mean under it is close to the best that any rule acting on one bin at a time can do (figures in
the docs). All of it is post-processing of the noisy counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.budgets import Floats, Ints
from sfumato.privacy import NANO
from sfumato.privacy.noise import laplace_variance

REACH = 80.0  # counts further than this many noise scales from 0 are left alone: their prior is locally flat
MARGIN = 10.0  # counts this much further still take part in the fit
CELL, STEP = 0.1, 0.25  # width of a cell of noisy counts and step of the prior's grid, in noise scales
EM_STEPS, PULL = 100, 10.0
NOTHING = 1e-60  # probabilities below are rounded: products of such numbers are a hundred times slower to compute
MOST_RATES = 12  # kinds of bins that are told apart when budgets differ


@dataclass(frozen=True, eq=False)
class Cells:
    """Noisy counts gathered in narrow cells: a million bins are about a thousand cells.

    `kernel[c, g]` is the probability of a noisy count in cell c given the true count `grid[g]`.
    """

    grid: Floats
    scale: float  # the smallest noise scale, in records
    kernel: Floats
    member: Ints  # cell of each fitted bin
    fitted: Ints  # positions of the fitted bins

    def weights(self, chosen: Ints | None = None) -> Floats:
        """How many of the fitted bins (or of some of them, by index into `fitted`) are in each cell."""
        cells = self.member if chosen is None else self.member[chosen]
        return np.bincount(cells, minlength=self.kernel.shape[0]).astype(np.float64)


def gather(noisy: Ints, rates: Ints, *, step: float = STEP) -> Cells:
    """Cells, grid and likelihood for the bins within reach."""
    kind, scale = _kinds(rates)
    epsilon = 1.0 / scale[kind]
    fitted = np.flatnonzero(noisy * epsilon <= REACH + MARGIN)
    y, kind = noisy[fitted], kind[fitted]
    width = np.maximum(1, np.rint(CELL * scale)).astype(np.int64)
    low = y.min(initial=0)
    code = (y - low) // width[kind] * len(scale) + kind
    cells, member, size = np.unique(code, return_inverse=True, return_counts=True)
    centre = np.bincount(member, weights=y, minlength=cells.size) / size
    e = 1.0 / scale[cells % len(scale)]
    grid = _grid(scale, float(y.max(initial=0)), step)
    kernel = np.tanh(e / 2)[:, None] * np.exp(-e[:, None] * np.abs(centre[:, None] - grid[None, :]))
    # A count far below 0 has no likelihood to speak of anywhere; keep the EM from dividing by zero.
    return Cells(grid, float(scale.min()), np.maximum(kernel, NOTHING), member.reshape(-1), fitted)


def _kinds(rates: Ints) -> tuple[Ints, Floats]:
    """The kind of each bin by its rate and the noise scale of each kind; many rates are merged to a few kinds."""
    levels, kind = np.unique(rates, return_inverse=True)
    if levels.size > MOST_RATES:
        edges = np.linspace(np.log(levels[0]), np.log(levels[-1]), MOST_RATES + 1)[1:-1]
        merged = np.searchsorted(edges, np.log(levels))
        _, merged = np.unique(merged, return_inverse=True)
        scale = np.bincount(merged, weights=NANO / levels) / np.bincount(merged)
        return merged[kind].astype(np.int64), scale
    return kind.reshape(-1).astype(np.int64), NANO / levels


def _grid(scale: Floats, top: float, step: float) -> Floats:
    """Counts from 0 to the largest fitted one, in steps of a quarter of the noise scale, never finer than one count."""
    parts = [np.zeros(1)]
    start = 0.0
    for s in np.sort(scale)[[0, -1]] if scale[0] != scale[-1] else scale[:1]:
        width = max(1.0, step * s)
        stop = max(min(top, (REACH + MARGIN) * s), width)
        if stop > start:
            parts.append(start + width * np.arange(1, int(np.ceil((stop - start) / width)) + 1))
            start = float(parts[-1][-1])
    return np.concatenate(parts)


def learn_prior(cells: Cells, allowed: NDArray[np.bool_]) -> Floats:
    """The prior over the allowed counts: first a smooth decay, then towards the nonparametric maximum likelihood.

    The smooth part mixes exponentials of a dozen scales with an atom at 0; the second part starts from it and keeps
    `PULL` imaginary bins drawn from it, which steadies the tail where few bins speak.
    """
    grid = cells.grid
    scales = np.geomspace(max(1.0, 0.3 * cells.scale), 40.0 * cells.scale, 12)
    decays = np.where(allowed, np.exp(-grid / scales[:, None]), 0.0)
    decays = np.vstack([grid == 0, decays / decays.sum(axis=1, keepdims=True)])
    weights = cells.weights()
    shares = fit_prior(cells.kernel @ decays.T, weights, np.full(len(decays), 1.0 / len(decays)), steps=EM_STEPS)
    spread = np.where(allowed, 0.5 / allowed.sum(), 0.0)
    spread[0] += 0.5
    return fit_prior(cells.kernel, weights, 0.999 * (shares @ decays) + 0.001 * spread, steps=EM_STEPS, pull=PULL)


def fit_prior(kernel: Floats, weights: Floats, prior: Floats, *, steps: int, pull: float = 0.0) -> Floats:
    """EM steps towards the maximum-likelihood prior; `pull` adds that many bins drawn from the prior it starts from."""
    seen = weights > 0
    k, w = kernel[seen], weights[seen]
    total = w.sum() + pull
    current = prior
    for _ in range(steps):
        current = (current * (k.T @ (w / (k @ current))) + pull * prior) / total
        current[current < NOTHING] = 0.0
    return current


def posterior(cells: Cells, prior: Floats) -> tuple[Floats, Floats, Floats]:
    """Per cell: posterior mean, posterior variance, logarithm of the evidence."""
    joint = cells.kernel * prior
    evidence = joint.sum(axis=1)
    mean = joint @ cells.grid / evidence
    variance = np.maximum(joint @ cells.grid**2 / evidence - mean**2, 1e-9)
    return mean, variance, np.log(evidence)


def spread_back(cells: Cells, noisy: Ints, rates: Ints, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Posterior mean and variance per bin from those of the fitted bins; bins out of reach keep their noisy count."""
    counts = np.maximum(noisy.astype(np.float64), 0.0)
    spread = laplace_variance(rates)
    near = noisy[cells.fitted] * (rates[cells.fitted] / NANO) <= REACH
    counts[cells.fitted[near]] = mean[near]
    spread[cells.fitted[near]] = variance[near]
    return counts, spread
