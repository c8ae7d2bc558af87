"""`geb`: geometric noise on every bin at the full budget, then empirical Bayes. The default for unordered bins.

AHP spends 85% of its budget to learn which bins are alike and the rest to measure them. Nothing forces that: one noisy pass
at the full budget says which bins are alike *and* what they are worth. A prior over counts is learned from all noisy
bins (see `npmle`) and every bin takes its posterior mean.

Where the noise drowns everything the learned prior is itself noise. So the estimate is an average, weighted by evidence, of
the learned prior and of simpler explanations with a head start of 3 nats: all bins are equal; no bin holds only 1 to 3,
to 6, to 9 records (empty bins are then really empty). "No bin holds fewer than 6 noise scales" gets no head start.

**Guarantee.** A record in bin i loses ``rates[i]``.

*Proof.* All that touches the counts is `identity`; the rest is computed from its output.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.budgets import Floats, Ints
from sfumato.histograms.estimation.estimate import HistogramEstimate
from sfumato.histograms.estimation.measurements import Measurement
from sfumato.histograms.estimation.npmle import Cells, gather, keep_small_moves, learn_prior, posterior, spread_back
from sfumato.histograms.mechanisms.identity import at_most_plain_noise
from sfumato.privacy import NANO, Exact, Meter
from sfumato.privacy.noise import laplace_variance
from sfumato.registry import Mechanism

HEAD_START = 3.0
FEW_RECORDS = (3, 6, 9)
FEW_SCALES = 6.0


def geb(counts: Exact[Ints], *, rates: Ints, meter: Meter) -> HistogramEstimate:
    """Noise every bin, shrink every bin.

    >>> bool(geb(Exact(np.array([0, 0, 90, 91])), rates=np.full(4, 10**9), meter=Meter()).counts.min() >= 0)
    True
    """
    noisy = meter.laplace(counts, rate=rates, label="histogram counts")
    mean, variance = shrink(noisy, rates)
    return HistogramEstimate(
        mechanism="geb",
        counts=keep_small_moves(mean, variance, noisy, rates),
        noise=np.sqrt(variance),
        losses=rates,
        measurements=(Measurement.of_bins(noisy, rates),),
    )


def shrink(noisy: Ints, rates: Ints, *, simpler: bool = True) -> tuple[Floats, Floats]:
    """Posterior mean and variance of every count, from noisy counts alone; `simpler` explanations compete if asked."""
    cells = gather(noisy, rates)
    if cells.fitted.size < 2:
        return np.maximum(noisy, 0).astype(np.float64), laplace_variance(rates)
    models = [_explain(cells, noisy, rates, np.ones(cells.grid.size, dtype=bool))]
    if simpler:
        models = [(models[0][0] - HEAD_START, *models[0][1:]), _all_equal(noisy, rates, cells)]
        for top, handicap in _gaps(rates):
            if cells.grid[1] <= top < cells.grid[-1]:
                evidence, mean, variance = _explain(cells, noisy, rates, (cells.grid == 0) | (cells.grid > top))
                models.append((evidence - handicap, mean, variance))
    return average(models)


def average(models: list[tuple[float, Floats, Floats]]) -> tuple[Floats, Floats]:
    """Mean and variance over explanations, weighted by their evidence (given as a logarithm)."""
    best = max(m[0] for m in models)
    trust = np.exp(np.clip([m[0] - best for m in models], -100.0, 0.0))
    trust /= trust.sum()
    mean = np.asarray(sum(t * m[1] for t, m in zip(trust, models, strict=True)))
    return mean, np.asarray(sum(t * (m[2] + (m[1] - mean) ** 2) for t, m in zip(trust, models, strict=True)))


def _gaps(rates: Ints) -> list[tuple[float, float]]:
    """How many records no bin holds at most, and the handicap of that explanation in nats."""
    scales = FEW_SCALES * NANO / float(np.median(rates))
    gaps = [(float(top), 0.0) for top in FEW_RECORDS]
    return [*gaps, (scales, HEAD_START)] if scales > FEW_RECORDS[-1] else gaps


def _explain(cells: Cells, noisy: Ints, rates: Ints, allowed: NDArray[np.bool_]) -> tuple[float, Floats, Floats]:
    """Evidence, posterior means and variances under the prior learned on the allowed counts."""
    prior = learn_prior(cells, allowed)
    mean, variance, evidence = posterior(cells, prior)
    counts, spread = spread_back(cells, noisy, rates, mean[cells.member], variance[cells.member])
    return float(evidence[cells.member].sum()), counts, spread


def _all_equal(noisy: Ints, rates: Ints, cells: Cells) -> tuple[float, Floats, Floats]:
    """Evidence of "every count is the same", and that count with its variance.

    A bin out of reach counts under the learned prior with its own noise only; here it also pays for its deviation.
    """
    e = rates / NANO
    level = max(float(noisy.mean()), 0.0)
    each = -e * np.abs(noisy - level)
    each[cells.fitted] += np.log(np.tanh(e[cells.fitted] / 2))
    n = noisy.size
    return float(each.sum()), np.full(n, level), np.full(n, float(laplace_variance(rates).mean()) / n)


MECHANISM = Mechanism(
    "geb",
    ("histogram",),
    geb,
    "noise on every bin, then shrunk by empirical Bayes; needs no order",
    expected=at_most_plain_noise,
    rank={"shape": 4, "ranges": 5},
)
