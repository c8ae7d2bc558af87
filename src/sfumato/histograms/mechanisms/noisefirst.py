"""`noisefirst`: noise every bin at the full budget, then merge neighbouring bins (Xu, Zhang, Xiao, Yang & Yu 2012).

The merged stretches of the line minimise an estimate of the error that is left: squared deviations of the noisy counts in a
stretch overstate the true ones by (length - 1) noise variances, which are taken off, and one noise variance per stretch
remains.

**Guarantee.** A record in bin i loses ``rates[i]``.

*Proof.* All that touches the counts is `identity`; the merging is computed from its output.
"""

from __future__ import annotations

import numpy as np

from sfumato.histograms.budgets import Floats, Ints
from sfumato.histograms.estimation.estimate import HistogramEstimate
from sfumato.histograms.estimation.measurements import Measurement
from sfumato.histograms.mechanisms.identity import at_most_plain_noise
from sfumato.privacy import Exact, Meter
from sfumato.privacy.noise import laplace_variance
from sfumato.registry import Mechanism

LONGEST = 512  # longest stretch that is considered: keeps the work at n times this


def noisefirst(counts: Exact[Ints], *, rates: Ints, meter: Meter) -> HistogramEstimate:
    """Noise every bin, average over stretches of the line.

    >>> noisefirst(Exact(np.array([9, 9, 9, 0, 0])), rates=np.full(5, 10**9), meter=Meter()).counts.shape
    (5,)
    """
    noisy = meter.laplace(counts, rate=rates, label="histogram counts")
    variance = laplace_variance(rates)
    starts = merge(noisy.astype(np.float64), float(variance.mean()))
    length = np.diff(np.append(starts, rates.size))
    labels = np.repeat(np.arange(starts.size), length)
    return HistogramEstimate(
        mechanism="noisefirst",
        counts=(np.add.reduceat(noisy, starts) / length)[labels],
        noise=(np.sqrt(np.add.reduceat(variance, starts)) / length)[labels],
        losses=rates,
        measurements=(Measurement.of_bins(noisy, rates),),
        parameters={"stretches": int(starts.size)},
    )


def merge(noisy: Floats, variance: float) -> Ints:
    """Where the stretches start that minimise ``Σ (squared deviations - (length - 1) variance) + variance per stretch``.

    >>> merge(np.array([9.0, 9.0, 9.0, 0.0, 0.0]), 2.0).tolist()
    [0, 3]
    """
    n = noisy.size
    centred = noisy - noisy.mean()
    first = np.concatenate([[0.0], np.cumsum(centred)])
    second = np.concatenate([[0.0], np.cumsum(centred**2)])
    best = np.zeros(n + 1)
    parent = np.zeros(n + 1, dtype=np.int64)
    place = np.arange(n + 1)
    for stop in range(1, n + 1):
        low = max(0, stop - LONGEST)
        length = stop - place[low:stop]
        total = first[stop] - first[low:stop]
        cost = best[low:stop] + second[stop] - second[low:stop] - total * total / length - (length - 2) * variance
        k = int(cost.argmin())
        best[stop], parent[stop] = cost[k], low + k
    starts = []
    stop = n
    while stop > 0:
        stop = int(parent[stop])
        starts.append(stop)
    return np.array(starts[::-1], dtype=np.int64)


MECHANISM = Mechanism(
    "noisefirst",
    ("histogram",),
    noisefirst,
    "noise on every bin, neighbouring bins merged",
    needs=("order",),
    expected=at_most_plain_noise,
    rank={"shape": 6, "ranges": 7},
    paper="Xu, Zhang, Xiao, Yang, Yu & Winslett 2013",
)
