"""The level of every bin from the bins around it: an average over all dyadic partitions of the line, by their evidence.

A partition says: inside a stretch all counts have one level. Its evidence has a closed form (a normal approximation of the
noise): the level is 0, or near 0, or deviates from the mean level, by one of a few sizes, all equally likely beforehand, and
is never negative. Going up a binary tree, a node is either one stretch or its two halves, half and half beforehand; so the
evidence of the mixture over all ``> 2^(n/2)`` partitions takes one pass, as in context-tree weighting (Willems, Shtarkov &
Tjalkens 1995), and going down again gives every bin the average level over all of them. Where the tree is put on the line is
averaged over as well. That counts may scatter around a level is for `around` to say: a wider noise here, learned from the
neighbourhood, would be learned from the edges of stretches and blur them.

*Nothing about itself.* Whoever asks how well levels predict needs levels that have not seen the bin's own noise. So the
bins are dealt into folds, and a bin's `others` level is computed with all bins of its fold left out. All of it is
post-processing of noisy counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.budgets import Floats, Ints
from sfumato.histograms.estimation.blurred import HALF_LOG_TAU, log_normal_share
from sfumato.privacy import NANO
from sfumato.privacy.noise import laplace_variance

FOLDS, PLACES = 8, 8
MANY = 16_384  # bins above which fewer places of the tree are tried
SIZES = (0.1, 0.4, 1.5, 6.0)  # of a level's deviation from the mean level, in typical deviations
SMALL = (0.03, 0.15)  # of a level that lies near 0, in the same unit
LONE = 6.0  # noise scales above the median of five at which a bin stands alone: it says nothing about its neighbours
GOLDEN = 0.6180339887498949


@dataclass(frozen=True, eq=False)
class Levels:
    """`others`: the level of each bin as the other folds see it. `all`: as all bins see it."""

    others: Floats
    all: Floats


def levels(noisy: Ints, rates: Ints) -> Levels:
    """The levels of all bins, from their noisy counts.

    >>> found = levels(np.repeat([0, 900], 64), np.full(128, 10**8))
    >>> bool(found.all[10] < 1) and bool(abs(found.all[100] - 900) < 5)
    True
    """
    y, variance = noisy.astype(np.float64), laplace_variance(rates)
    kept = ~_lone(y, NANO / rates)
    middle = max(float(y[kept].mean()), 1e-3 * float(np.sqrt(variance.mean())))
    size = np.sqrt(max(float((y[kept] ** 2 - variance[kept]).mean()), 0.0) + middle**2)
    known = np.where(kept, 1 / variance, 0.0)
    few = y.size > MANY
    others = _mixture(y - middle, known, middle, size, np.arange(y.size) % FOLDS, 1 if few else PLACES // 4)
    everybody = _mixture(y - middle, known, middle, size, None, PLACES // 4 if few else PLACES)
    return Levels(others, everybody)


def _lone(y: Floats, scale: Floats) -> NDArray[np.bool_]:
    around = np.pad(y, 2, mode="reflect" if y.size > 2 else "edge")
    middle = np.median(np.stack([around[k : k + y.size] for k in range(5)]), axis=0)
    high = np.maximum(middle, 0.0)
    return np.asarray((y > middle + LONE * scale + high) | (y < middle - LONE * scale - high / 2))


def _mixture(y: Floats, known: Floats, middle: float, size: float, fold: Ints | None, places: int) -> Floats:
    """Levels averaged over where the tree is put, each place weighted by its evidence."""
    n = y.size
    width = 2 << max(int(np.ceil(np.log2(max(n, 2)))), 1)
    begins = (np.arange(places) * GOLDEN % 1 * (width - n)).astype(np.int64)
    folds = 1 if fold is None else FOLDS
    pulls, weights = np.zeros((places, folds, width)), np.zeros((places, folds, width))
    for place, begin in enumerate(begins):
        for left_out in range(folds):
            part = known if fold is None else np.where(fold == left_out, 0.0, known)
            weights[place, left_out, begin : begin + n] = part
            pulls[place, left_out, begin : begin + n] = part * y
    found, evidence = _over_partitions(pulls.reshape(-1, width), weights.reshape(-1, width), middle, size)
    trust = evidence.reshape(places, folds)
    trust = np.exp(trust - trust.max(axis=0))
    trust /= trust.sum(axis=0)
    found = found.reshape(places, folds, width)
    own = np.zeros(n, dtype=np.int64) if fold is None else fold
    spots = np.arange(n)
    return middle + np.asarray(sum(trust[p, own] * found[p, own, b + spots] for p, b in enumerate(begins)))


def _over_partitions(pulls: Floats, weights: Floats, middle: float, size: float) -> tuple[Floats, Floats]:
    """Mean level less `middle` over all partitions of each row, and each row's evidence.

    `pulls` are the bins' deviations from `middle` times their `weights` (one over variance); the shortest stretch is a pair.
    """
    evidence: list[Floats] = []  # of a node: all its partitions
    whole: list[Floats] = []  # of a node as one stretch
    mean: list[Floats] = []
    while pulls.shape[1] > 1:
        pulls, weights = pulls[:, ::2] + pulls[:, 1::2], weights[:, ::2] + weights[:, 1::2]
        one, level = _one_stretch(pulls, weights, middle, size)
        halves = one if not evidence else evidence[-1][:, ::2] + evidence[-1][:, 1::2]
        whole.append(one)
        mean.append(level)
        evidence.append(np.logaddexp(one, halves) - np.log(2))
    reached, out = np.ones((pulls.shape[0], 1)), np.zeros((pulls.shape[0], 1))
    for depth in range(len(whole) - 1, -1, -1):
        ends = np.exp(whole[depth] - np.log(2) - evidence[depth]) if depth else np.ones_like(reached)
        out = np.repeat(out + reached * ends * mean[depth], 2, axis=1)
        reached = np.repeat(reached * (1 - ends), 2, axis=1)
    return out, evidence[-1][:, 0]


def _one_stretch(pulls: Floats, weights: Floats, middle: float, size: float) -> tuple[Floats, Floats]:
    """Log-evidence that all bins have one level (against all at `middle`), and that level less `middle`."""
    evidence = [-pulls * middle - weights * middle**2 / 2]  # nothing at all
    level = [np.full_like(pulls, -middle)]
    for centre, factor in (*((0.0, factor) for factor in SIZES), *((-middle, factor) for factor in SMALL)):
        prior = (factor * size) ** 2
        precision = weights + 1 / prior
        best, spread = (pulls + centre / prior) / precision, 1 / np.sqrt(precision)
        edge = (best + middle) / spread  # levels are not negative: a normal cut off at 0
        share = log_normal_share(edge)
        beforehand = log_normal_share(np.array((centre + middle) / np.sqrt(prior))) + centre**2 / prior / 2
        evidence.append(precision * best**2 / 2 - np.log(precision * prior) / 2 + share - beforehand)
        level.append(best + spread * np.exp(-(edge**2) / 2 - HALF_LOG_TAU - share))
    stacked = np.array(evidence)
    top = stacked.max(axis=0)
    trust = np.exp(stacked - top)
    total = trust.sum(axis=0)
    return top + np.log(total / len(stacked)), np.asarray((trust * np.array(level)).sum(axis=0) / total)
