"""Explanations of noisy counts, given a level that was predicted for each bin, averaged by their evidence.

An explanation is a prior for a bin's count. Its parts are: the predicted level with a relative scatter of none, a fifth or
more (and the scatter of counts, whose variance is their level); exactly 0; anywhere, by exponentials of several scales.
The shares of the parts are learned by EM, for all bins or per stratum of predicted levels. The explanations, simplest first:

- all bins hold the same;
- every bin lies at its level, or around it;
- a mixture of all parts: most bins at their level, some empty, some anywhere;
- the same, and no bin holds only a few records or noise scales (empty bins are then really empty);
- the mixture, freed to any prior (nonparametric maximum likelihood), for all bins or per stratum.

Each pays a handicap in nats for what it learned. Evidence is measured with levels that have not seen the bin's own noise
(`Levels.others`); the estimate uses those of all bins (`Levels.all`). All of it is post-processing of noisy counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.budgets import Floats
from sfumato.histograms.estimation.blurred import seen_through_noise
from sfumato.histograms.estimation.partitions import Levels

SCATTERS = np.array([0.0, 0.15, 0.4, 0.8])
NEAR = SCATTERS.size
ATOM = 1e-3  # deviation, in noise scales, that stands for none
STEP, GROWTH, FAR = 0.35, 0.2, 5.0  # grid of counts anywhere: steps in noise scales, growing; broader parts beyond FAR
DECAYS = 10
FEW_RECORDS, FEW_SCALES = (1.5, 3.0, 6.0, 9.0), (2.0, 4.0, 8.0, 16.0, 32.0)  # widths of gaps
AT_LEVEL, AROUND, MIXED, GAP, FREE, PER_STRATUM = 1.0, 2.0, 4.0, 5.0, 7.0, 2.0  # handicaps
STEPS, PULL, HALF = 60, 10.0, 0.5  # a part to which less than half a bin belongs is dropped in the end
STRATA, LEAST_PER_STRATUM = 12, 48
NEGLIGIBLE = 10.0  # nats behind the best at which an explanation is left out


@dataclass(frozen=True, eq=False)
class Explanation:
    """A prior over the parts (one for all bins, or one each), its log-evidence less its handicap, and, where it has a gap,
    the bins whose level lies beyond it."""

    prior: Floats
    evidence: float
    beyond: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Parts:
    """Likelihood of each bin under each part (`likely`, up to a factor per bin), its posterior mean (`means`) and mean
    square (`squares`) there.

    The first parts are those around the level, then come exactly 0 and the grid of counts anywhere (`centres`).
    `kinds` are the mixtures of parts that simple priors are made of: the scatters, 0, the exponentials.
    """

    likely: Floats
    means: Floats
    squares: Floats
    centres: Floats
    widths: Floats
    kinds: Floats

    def explained(self, prior: Floats, handicap: float, beyond: NDArray[np.bool_] | None = None) -> Explanation:
        """The explanation by a prior, with its evidence."""
        near = self.likely[:, :NEAR] @ prior[:NEAR] if prior.ndim == 1 else (self.likely * prior).sum(axis=1)
        if beyond is not None:
            near = np.where(beyond, near, 0.0)
        total = near + self.likely[:, NEAR:] @ prior[NEAR:] if prior.ndim == 1 else near
        return Explanation(prior, float(np.log(np.maximum(total, 1e-100)).sum()) - handicap, beyond)

    def posterior(self, model: Explanation) -> tuple[Floats, Floats]:
        """Mean and mean square of each count under an explanation."""
        joint = self.likely * model.prior
        if model.beyond is not None:
            joint[~model.beyond, :NEAR] = 0.0
        total = np.maximum(joint.sum(axis=1), 1e-100)
        return (joint * self.means).sum(axis=1) / total, (joint * self.squares).sum(axis=1) / total


def explain_by_levels(noisy: Floats, scale: Floats, levels: Levels, equal: float) -> tuple[Floats, Floats]:
    """Posterior mean and variance of each bin; `equal` is what all bins hold if they hold the same.

    >>> level = np.full(96, 50.0)
    >>> mean, _ = explain_by_levels(np.tile([45.0, 55.0], 48), np.full(96, 10.0), Levels(level, level), 50.0)
    >>> bool(abs(mean - 50).max() < 2)
    True
    """
    parts, top = _parts(noisy, scale, levels)
    evenly = float((seen_through_noise(noisy - equal, ATOM * scale, scale)[0] - top).sum())
    models = _explanations(parts, levels.others, float(scale.min()))
    best = max(evenly, *(m.evidence for m in models))
    total = float(np.exp(evenly - best))
    mean, square = np.full(noisy.size, total * equal), np.full(noisy.size, total * equal**2)
    for model in models:
        if model.evidence > best - NEGLIGIBLE:
            trust = float(np.exp(model.evidence - best))
            first, second = parts.posterior(model)
            total, mean, square = total + trust, mean + trust * first, square + trust * second
    mean, square = mean / total, square / total
    return mean, np.maximum(square - mean**2, 0.0)


def _explanations(parts: Parts, level: Floats, scale: float) -> list[Explanation]:
    """All but "every bin holds the same"."""
    at_level = np.zeros(parts.likely.shape[1])
    at_level[0] = 1.0
    around = np.zeros(parts.likely.shape[1])
    around[:NEAR] = _shares(parts.likely[:, :NEAR])
    by_kind = parts.likely @ parts.kinds.T
    mixed = _shares(by_kind, drop=HALF) @ parts.kinds
    free = _pulled(parts.likely, 0.999 * mixed + 0.001 / mixed.size, steps=40)
    models = [parts.explained(at_level, AT_LEVEL), parts.explained(around, AROUND), parts.explained(mixed, MIXED)]
    models += [parts.explained(free, FREE)]
    for few in sorted(few for few in (*FEW_RECORDS, *(few * scale for few in FEW_SCALES)) if few >= parts.centres[1]):
        above = (parts.centres - np.where(parts.widths < 1.0, 0.0, parts.widths) > 0.99 * few) & (parts.centres > few)
        models.append(_with_gap(parts, above, level > few))
        if not above.any():  # what is not at its level is empty, and larger gaps say the same
            break
    return models + _by_strata(parts, level, by_kind, free)


def _parts(noisy: Floats, scale: Floats, levels: Levels) -> tuple[Parts, Floats]:
    """All parts, and the log-likelihood that stands for 1 in each bin."""
    smallest = float(scale.min())
    centres, widths = _anywhere(smallest, float(noisy.max(initial=0.0)))
    density, shift, spread = seen_through_noise(noisy[:, None] - centres, widths, scale[:, None])
    logs = np.concatenate([_at_levels(noisy, scale, levels.others)[0], density], axis=1)
    _, at, around = _at_levels(noisy, scale, levels.all)
    means = np.maximum(np.concatenate([at, centres + shift], axis=1), 0.0)
    squares = means**2 + np.concatenate([around, spread], axis=1)
    top = logs.max(axis=1)
    likely = np.exp(np.maximum(logs - top[:, None], -120.0))
    decay = np.exp(-centres / np.geomspace(max(1.0, 0.3 * smallest), 40 * smallest, DECAYS)[:, None])
    decay *= np.maximum(np.diff(centres, prepend=0.0), 1.0)
    kinds = np.zeros((NEAR + 1 + DECAYS, likely.shape[1]))
    kinds[: NEAR + 1, : NEAR + 1] = np.eye(NEAR + 1)
    kinds[NEAR + 1 :, NEAR:] = decay / decay.sum(axis=1, keepdims=True)
    return Parts(likely, means, squares, centres, widths, kinds), top


def _at_levels(noisy: Floats, scale: Floats, level: Floats) -> tuple[Floats, Floats, Floats]:
    """Log-density, posterior mean and variance under each scatter around the level."""
    at = np.maximum(level, 1e-9 * scale)[:, None]
    spread = np.sqrt(np.minimum(at, at**2) + (SCATTERS * at) ** 2) + ATOM * scale[:, None]
    density, shift, variance = seen_through_noise(noisy[:, None] - at, spread, scale[:, None])
    return density, at + shift, variance


def _anywhere(scale: float, top: float) -> tuple[Floats, Floats]:
    """Centres and deviations of the parts of a prior that knows nothing of levels."""
    centres = [0.0]
    while centres[-1] < max(top, 2 * scale):
        centres.append(centres[-1] + max(1.0, STEP * scale, GROWTH * centres[-1]))
    grid = np.array(centres)
    widths = np.diff(grid, prepend=0.0)
    widths = np.where(widths <= 1.0, ATOM * scale, widths)
    return grid, np.where(grid > FAR * scale, 2 * widths, widths)


def _shares(likely: Floats, *, drop: float = 0.0) -> Floats:
    """Shares of the parts by EM; those to which fewer than `drop` bins belong fade out in its second half."""
    shares = np.full(likely.shape[1], 1.0 / likely.shape[1])
    for step in range(STEPS):
        belong = shares * (likely.T @ (1.0 / (likely @ shares)))
        shares = np.maximum(belong - drop * max(0, 2 * step - STEPS) / STEPS, 0.0)
        shares /= shares.sum()
    return shares


def _pulled(likely: Floats, start: Floats, *, steps: int) -> Floats:
    """EM from a prior, of which `PULL` imaginary bins stay."""
    prior = start
    for _ in range(steps):
        prior = (prior * (likely.T @ (1.0 / (likely @ prior))) + PULL * start) / (likely.shape[0] + PULL)
        prior[prior < 1e-30] = 0.0
    return prior


def _with_gap(parts: Parts, above: NDArray[np.bool_], beyond: NDArray[np.bool_]) -> Explanation:
    """The mixture with a gap in which no bin lies: 0, or a count `above` the gap; or, in bins `beyond` it, a level."""
    kinds = parts.kinds * np.concatenate([np.ones(NEAR, dtype=bool), above | (parts.centres == 0)])
    kinds = kinds[kinds.sum(axis=1) > 0]
    kinds /= kinds.sum(axis=1, keepdims=True)
    by_kind = parts.likely @ kinds.T
    by_kind[~beyond, :NEAR] = 0.0
    return parts.explained(_shares(np.maximum(by_kind, 1e-100), drop=HALF) @ kinds, GAP, beyond)


def _by_strata(parts: Parts, level: Floats, by_kind: Floats, free: Floats) -> list[Explanation]:
    """One mixture, or one free prior, per stratum of predicted levels."""
    groups = int(min(STRATA, level.size // LEAST_PER_STRATUM))
    if groups < 2:
        return []
    stratum = np.empty(level.size, dtype=np.int64)
    stratum[np.argsort(level, kind="stable")] = np.arange(level.size) * groups // level.size
    shares = _shares(by_kind)
    mixed, freed = [], []
    for k in range(groups):
        own = np.flatnonzero(stratum == k)
        mixed.append(_pulled(by_kind[own], shares + 1e-6, steps=40) @ parts.kinds)
        freed.append(_pulled(parts.likely[own], free, steps=20))
    return [
        parts.explained(np.array(mixed)[stratum], MIXED + PER_STRATUM * groups),
        parts.explained(np.array(freed)[stratum], FREE + 1.5 * PER_STRATUM * groups),
    ]
