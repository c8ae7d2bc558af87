"""`covariate`: geometric noise on every bin at the full budget, then empirical Bayes that listens to the neighbours.

For ordered bins. Bins are put into a dozen strata by the mean of their *neighbours'* noisy counts (their own left out,
so that the stratum says nothing about the own noise), and every stratum learns its own prior, pulled towards the common
one by ten imaginary bins. How far "neighbour" reaches, or that neighbours do not help, is decided by how well the
strata's priors predict bins that they were not learned from (even bins against odd bins). As in `geb`, "no bin holds
only a few records" competes as a simpler explanation.

**Guarantee.** A record in bin i loses ``rates[i]``.

*Proof.* All that touches the counts is `identity`; the rest is computed from its output.
"""

from __future__ import annotations

import numpy as np

from sfumato.histograms.budgets import Floats, Ints
from sfumato.histograms.estimation.estimate import HistogramEstimate
from sfumato.histograms.estimation.measurements import Measurement
from sfumato.histograms.estimation.npmle import MARGIN, NOTHING, REACH, Cells, gather, learn_prior, spread_back
from sfumato.histograms.mechanisms.geb import FEW_RECORDS, shrink
from sfumato.histograms.mechanisms.identity import at_most_plain_noise
from sfumato.privacy import NANO, Exact, Meter
from sfumato.registry import Mechanism

WINDOWS = (1, 2, 4, 8, 16, 32, 64, 128)
STRATA, LEAST_PER_STRATUM, LEAST_BINS = 12, 48, 64
PULL, NATS_TO_WIN, NATS_PER_STRATUM = 10.0, 5.0, 2.0
TRIAL_STEPS, FINAL_STEPS = 25, 25
GRID_STEP = 0.5


def covariate(counts: Exact[Ints], *, rates: Ints, meter: Meter) -> HistogramEstimate:
    """Noise every bin, shrink every bin towards what its neighbours suggest.

    >>> covariate(Exact(np.arange(100) // 10), rates=np.full(100, 10**9), meter=Meter()).counts.shape
    (100,)
    """
    noisy = meter.laplace(counts, rate=rates, label="histogram counts")
    mean, variance, window = shrink_by_neighbours(noisy, rates)
    return HistogramEstimate(
        mechanism="covariate",
        counts=mean,
        noise=np.sqrt(variance),
        losses=rates,
        measurements=(Measurement.of_bins(noisy, rates),),
        parameters={"window": window},
    )


def shrink_by_neighbours(noisy: Ints, rates: Ints) -> tuple[Floats, Floats, int]:
    """Posterior mean and variance per bin and the window that was taken (0: neighbours do not help)."""
    cells = gather(noisy, rates, step=GRID_STEP)
    if cells.fitted.size < LEAST_BINS:
        return *shrink(noisy, rates), 0
    common = learn_prior(cells, np.ones(cells.grid.size, dtype=bool))
    halves = [np.flatnonzero(cells.fitted % 2 == side) for side in (0, 1)]
    level = np.minimum(noisy * (rates / NANO), REACH + 2 * MARGIN)
    alone = np.zeros(cells.fitted.size, dtype=np.int64)
    best, window, strata = _predicts(cells, alone, halves, common) + NATS_TO_WIN, 0, alone
    for reach in WINDOWS:
        if 4 * reach <= noisy.size:
            trial = _strata(_others_mean(level, reach)[cells.fitted])
            score = _predicts(cells, trial, halves, common)
            if score > best:
                best, window, strata = score, reach, trial
    if window == 0:
        return *shrink(noisy, rates), 0
    tops = [top for top in FEW_RECORDS if cells.grid[1] <= top < cells.grid[-1]]
    gaps = [learn_prior(cells, (cells.grid == 0) | (cells.grid > top)) for top in tops]
    mean, variance = _explain(cells, strata, [common, *gaps], [NATS_PER_STRATUM, *[0.0] * len(gaps)])
    return *spread_back(cells, noisy, rates, mean, variance), window


def _explain(cells: Cells, strata: Ints, commons: list[Floats], handicaps: list[float]) -> tuple[Floats, Floats]:
    """Posterior mean and variance of the fitted bins: an average over explanations by their evidence."""
    tally = _tally(cells, strata)
    at = (cells.member, strata)
    evidence, means, variances = [], [], []
    for common, handicap in zip(commons, handicaps, strict=True):
        priors = _fit(cells, tally, common, steps=FINAL_STEPS)
        joint = cells.kernel @ priors
        mean = (cells.kernel @ (priors * cells.grid[:, None])) / joint
        square = (cells.kernel @ (priors * (cells.grid**2)[:, None])) / joint
        # Every stratum's prior fits its own noise a little: the freer explanation pays for each of them.
        evidence.append(float((tally * np.log(joint)).sum()) - handicap * tally.shape[1])
        means.append(mean[at])
        variances.append(np.maximum(square - mean**2, 1e-9)[at])
    trust = np.exp(np.maximum(np.array(evidence) - max(evidence), -100.0))[:, None]
    trust /= trust.sum()
    overall = (trust * means).sum(axis=0)
    return overall, (trust * (np.array(variances) + (np.array(means) - overall) ** 2)).sum(axis=0)


def _others_mean(level: Floats, reach: int) -> Floats:
    """Mean over the bins at most `reach` away, the own bin left out."""
    n = level.size
    prefix = np.concatenate([[0.0], np.cumsum(level)])
    low = np.maximum(np.arange(n) - reach, 0)
    high = np.minimum(np.arange(n) + reach + 1, n)
    return np.asarray((prefix[high] - prefix[low] - level) / (high - low - 1))


def _strata(score: Floats) -> Ints:
    """About a dozen groups of bins of equal size by their neighbours' mean."""
    groups = int(min(STRATA, max(2, score.size // LEAST_PER_STRATUM)))
    rounded = np.round(score, 6)
    edges = np.unique(np.quantile(rounded, np.arange(1, groups) / groups))
    return np.searchsorted(edges, rounded, side="right").astype(np.int64)


def _tally(cells: Cells, strata: Ints, some: Ints | None = None) -> Floats:
    """Bins per cell and stratum."""
    groups = int(strata.max()) + 1
    member, stratum = (cells.member, strata) if some is None else (cells.member[some], strata[some])
    code = member * groups + stratum
    return np.bincount(code, minlength=cells.kernel.shape[0] * groups).reshape(-1, groups).astype(np.float64)


def _fit(cells: Cells, tally: Floats, common: Floats, *, steps: int) -> Floats:
    """One prior per stratum (columns), all EM steps at once."""
    seen = tally.sum(axis=1) > 0
    k, w = cells.kernel[seen], tally[seen]
    total = w.sum(axis=0) + PULL
    start = np.repeat(common[:, None], tally.shape[1], axis=1)
    current = start
    for _ in range(steps):
        current = (current * (k.T @ (w / (k @ current))) + PULL * start) / total
        current[current < NOTHING] = 0.0
    return current


def _predicts(cells: Cells, strata: Ints, halves: list[Ints], common: Floats) -> float:
    """Log-likelihood of each half of the bins under priors learned on the other half."""
    # The common prior has seen both halves, alike for every window, so it favours none of them.
    score = 0.0
    tallies = [_tally(cells, strata, half) for half in halves]
    for learn, test in ((0, 1), (1, 0)):
        priors = _fit(cells, tallies[learn], common, steps=TRIAL_STEPS)
        score += float((tallies[test] * np.log(cells.kernel @ priors)).sum())
    return score


MECHANISM = Mechanism(
    "covariate",
    ("histogram",),
    covariate,
    "noise on every bin, then shrunk towards what its neighbours suggest",
    needs=("order",),
    expected=at_most_plain_noise,
    rank={"shape": 2, "ranges": 4},
)
