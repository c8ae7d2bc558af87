"""DPA and SDPA exactly as published: the order of the *true* counts decides how much noise a bin gets. Not private.

Kept to show two things: what their gain is once the loss is counted honestly, and that the audit catches them. The Meter
refuses them with secure noise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.budgets import Floats, Ints
from sfumato.histograms.mechanisms.ahp import FIRST_PERCENT, ahp, sorted_clusters, sums
from sfumato.privacy import Epsilon, Exact, Meter, positive_nano
from sfumato.privacy.noise import laplace_variance

REASON = "as published, the noise of a bin depends on the rank of its true count, which no ε covers"


def published(counts: Ints, *, epsilon: Epsilon, shares: Floats, meter: Meter, times: int = 1) -> NDArray[np.float64]:
    """AHP (greedy, as in the slides) with budgets ``shares * n * epsilon`` along the ascending true counts, `times` times.

    `epsilon` is the claim; the result has one row per time.
    """
    meter.unsound(REASON)
    claim = positive_nano(epsilon)
    n = counts.size
    budget = np.empty(n)
    budget[np.argsort(counts, kind="stable")] = shares * n * claim
    first = np.maximum(budget * FIRST_PERCENT / 100, 1).astype(np.int64)
    second = claim - claim * FIRST_PERCENT // 100
    noisy = meter.laplace(np.tile(counts, (times, 1)), rate=np.tile(first, (times, 1)), label="counts")
    penalty = float(laplace_variance(second))
    labels = [sorted_clusters(row, first, penalty=penalty, clustering="greedy") for row in noisy]
    sizes = [np.bincount(row) for row in labels]
    exact = np.concatenate([sums(counts, row, size.size) for row, size in zip(labels, sizes, strict=True)])
    totals = meter.laplace(exact, rate=np.full(exact.size, second), label="cluster totals")
    ends = np.cumsum([size.size for size in sizes])
    parts = np.split(totals, ends[:-1])
    return np.array([(t / size)[row] for t, size, row in zip(parts, sizes, labels, strict=True)])


def leaking_ahp(shares: Floats, epsilon: Epsilon) -> Callable[..., NDArray[np.float64]]:
    """AHP simply given the loss that the published variant really has (its largest bin budget), for a fair comparison."""
    rate = int(positive_nano(epsilon) * float(shares.max()) * shares.size)

    def run(counts: Ints, *, meter: Meter) -> NDArray[np.float64]:
        return ahp(Exact(counts), rates=np.full(counts.size, rate), meter=meter, clustering="greedy").counts

    return run
