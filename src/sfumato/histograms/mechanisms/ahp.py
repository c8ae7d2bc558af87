"""`ahp`: accurate histogram publication by clustering (Zhang, Chen, Xu, Meng & Xie 2014), with the optimal clustering.

1. Noise every bin with 85% of its budget. 2. Set what does not stand out (at most ``0.35 ln(n) / ε1``) to zero, sort,
cluster neighbours in the sorted order. 3. Noise every cluster's true total with the other 15%, divide by its size.

**Guarantee.** A record in bin i loses at most ``rates[i]``.

*Proof.* Step 1 costs ``0.85 rates[i]`` (see `identity`). Order, threshold and clusters are computed from its output, so
they are free. Given the clusters, a record is in one of them and moves one total by one unit, whose noise has the smallest
second share among the cluster's bins: at most ``rates[i] - 0.85 rates[i]``. The two add up.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from sfumato.errors import InputError
from sfumato.histograms.budgets import Ints, addable, share
from sfumato.histograms.estimation.clustering import greedy_clusters, optimal_clusters
from sfumato.histograms.estimation.estimate import HistogramEstimate
from sfumato.histograms.estimation.measurements import Measurement
from sfumato.privacy import NANO, Exact, Meter
from sfumato.privacy.noise import laplace_variance
from sfumato.registry import Mechanism, Parameter

FIRST_PERCENT = 85
THRESHOLD = 0.35


def ahp(
    counts: Exact[Ints],
    *,
    rates: Ints,
    meter: Meter,
    clustering: Literal["optimal", "greedy"] = "optimal",
) -> HistogramEstimate:
    """Noise, sort, cluster, noise the clusters.

    >>> ahp(Exact(np.array([0, 0, 90, 91])), rates=np.full(4, 10**9), meter=Meter()).counts.shape
    (4,)
    """
    if clustering not in ("optimal", "greedy"):
        raise InputError(f"clustering is 'optimal' or 'greedy', got {clustering!r}")
    first, second = share(rates, FIRST_PERCENT)
    noisy = meter.laplace(counts, rate=first, label="counts, to find clusters")
    labels = sorted_clusters(noisy, first, penalty=float(laplace_variance(second).mean()), clustering=clustering)
    size = np.bincount(labels)
    rate = np.full(size.size, np.iinfo(np.int64).max)
    np.minimum.at(rate, labels, second)
    totals = meter.laplace(counts.map(partial(sums, labels=labels, groups=size.size)), rate=rate, label="cluster totals")
    return HistogramEstimate(
        mechanism="ahp",
        counts=(totals / size)[labels],
        noise=(np.sqrt(laplace_variance(rate)) / size)[labels],
        losses=first + rate[labels],
        measurements=(Measurement.of_bins(noisy, first), Measurement(labels, totals, rate)),
        parameters={"clustering": clustering, "clusters": int(size.size)},
    )


def sorted_clusters(noisy: Ints, rates: Ints, *, penalty: float, clustering: str = "optimal") -> Ints:
    """The cluster of each bin, from noisy counts alone."""
    threshold = THRESHOLD * np.log(max(noisy.size, 2)) * NANO / rates
    kept = np.where(noisy <= threshold, 0, noisy)
    order = np.argsort(kept, kind="stable")
    starts = (optimal_clusters if clustering == "optimal" else greedy_clusters)(kept[order], penalty)
    labels = np.empty(noisy.size, dtype=np.int64)
    labels[order] = np.repeat(np.arange(starts.size), np.diff(np.append(starts, noisy.size)))
    return labels


def sums(counts: Ints, labels: Ints, groups: int) -> Ints:
    """Exact integer totals per group."""
    totals = np.zeros(groups, dtype=np.int64)
    np.add.at(totals, labels, addable(counts))
    return totals


CLUSTERING = Parameter(
    "clustering", "text", "the best, or the paper's greedy ones", "optimal", choices=("optimal", "greedy")
)
MECHANISM = Mechanism(
    "ahp",
    ("histogram",),
    ahp,
    "noise, sort, cluster, noise the clusters; needs no order",
    parameters=(CLUSTERING,),
    rank={"shape": 5, "ranges": 8},
    paper="Zhang, Chen, Xu, Meng & Xie 2014",
)
