"""`geb`: geometric noise on every bin at the full budget, then empirical Bayes. The default for unordered bins.

AHP spends 85% of its budget to learn which bins are alike and the rest to measure them. Nothing forces that: one noisy pass
at the full budget says which bins are alike *and* what they are worth. A prior over counts is learned from all noisy
bins (see `npmle`) and every bin takes its posterior mean. Where the noise drowns everything the learned prior is itself
noise; so the estimate is averaged, by evidence, with "all bins are equal" (with a head start of 3 nats).

**Guarantee.** A record in bin i loses ``rates[i]``.

*Proof.* All that touches the counts is `identity`; the rest is computed from its output.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.histograms.budgets import Floats, Ints
from sfumato.histograms.estimate import Estimate
from sfumato.histograms.measurements import Measurement
from sfumato.histograms.npmle import fit_prior, gather, posterior, spread_back, start_prior
from sfumato.privacy import NANO, Meter

EM_STEPS = 150
HEAD_START = 3.0


def geb(counts: Callable[[], Ints], *, rates: Ints, meter: Meter) -> Estimate:
    """Noise every bin, shrink every bin.

    >>> geb(lambda: np.array([0, 0, 90, 91]), rates=np.full(4, 10**9), meter=Meter()).counts.min() >= 0
    True
    """
    noisy = meter.laplace(counts, rate=rates, label="histogram counts")
    mean, variance = shrink(noisy, rates)
    return Estimate(
        mechanism="geb",
        counts=mean,
        noise=np.sqrt(variance),
        losses=rates,
        measurements=(Measurement.of_bins(noisy, rates),),
    )


def shrink(noisy: Ints, rates: Ints, *, head_start: float = HEAD_START) -> tuple[Floats, Floats]:
    """Posterior mean and variance of every count, from noisy counts alone."""
    cells = gather(noisy, rates)
    if cells.fitted.size < 2:
        return np.maximum(noisy, 0).astype(np.float64), np.square(NANO / rates) * 2.0
    weights = cells.weights()
    prior = fit_prior(cells.kernel, weights, start_prior(cells.grid), steps=EM_STEPS)
    mean, variance, evidence = posterior(cells, prior)
    counts, spread = spread_back(cells, noisy, rates, mean[cells.member], variance[cells.member])
    learned = float((weights * evidence).sum())
    equal, level = _all_equal(noisy, rates, cells.fitted)
    trust = 1.0 / (1.0 + np.exp(np.clip(equal + head_start - learned, -50.0, 50.0)))
    return trust * counts + (1 - trust) * level, trust * spread


def _all_equal(noisy: Ints, rates: Ints, fitted: Ints) -> tuple[float, float]:
    """Evidence of "every count is the same" for the fitted bins, less what the bins out of reach speak against it."""
    e = rates / NANO
    level = max(float(noisy.mean()), 0.0)
    far = np.ones(noisy.size, dtype=bool)
    far[fitted] = False
    each = np.log(np.tanh(e / 2)) - e * np.abs(noisy - level)
    # A bin out of reach has the evidence of its own noise under the learned model; here it has that of a huge deviation.
    return float(each[~far].sum() + (each[far] - np.log(np.tanh(e[far] / 2))).sum()), level


