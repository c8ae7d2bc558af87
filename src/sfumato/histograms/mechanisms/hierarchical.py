"""`hierarchical`: noisy totals on a tree of intervals, made consistent. For range queries over ordered bins.

A range of many bins is a sum of few nodes, so its noise grows with the logarithm of its length instead of its length. The
branching b minimises the mean error of ranges as in Qardaji, Yang & Li 2013 (Hb); every level below the root gets the
same share of the budget; least squares makes the tree consistent (Hay et al. 2010), here with a variance per node so that
budgets may differ per bin.

**Guarantee.** A record in bin i loses at most ``rates[i]``.

*Proof.* A record is in one node of each of the h levels and moves its total by one unit. A node's noise has the rate
``min over its bins of rates // h``, so the levels cost a record in bin i at most ``h (rates[i] // h)``. Least squares
is computed from the noisy totals and public variances.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import ceil, log

import numpy as np

from sfumato.errors import InputError
from sfumato.histograms.budgets import Floats, Ints, addable
from sfumato.histograms.estimation.estimate import HistogramEstimate
from sfumato.histograms.estimation.measurements import Measurement
from sfumato.histograms.mechanisms.identity import identity_rmse
from sfumato.privacy import Exact, Meter
from sfumato.privacy.noise import laplace_variance
from sfumato.registry import Mechanism, Parameter

MOST_BRANCHES = 1024


def best_branching(n: int) -> tuple[int, int]:
    """Branching and number of levels with the least mean variance over all ranges of n bins.

    >>> best_branching(4096), best_branching(10)
    ((16, 3), (10, 1))
    """
    options = []
    for b in range(2, min(max(n, 2), MOST_BRANCHES) + 1):
        h = max(1, ceil(log(n) / log(b) - 1e-9)) if n > 1 else 1
        options.append(((b - 1) * h**3 - 2 * (b + 1) * h**2 / 3, b, h))
    _, b, h = min(options)
    return b, h


def hierarchical(counts: Exact[Ints], *, rates: Ints, meter: Meter, branching: int | None = None) -> HistogramEstimate:
    """Measure every level of the tree, then reconcile.

    >>> hierarchical(Exact(np.arange(16)), rates=np.full(16, 10**9), meter=Meter()).counts.shape
    (16,)
    """
    n = rates.size
    b, h = best_branching(n) if branching is None else _given(branching, n)
    levels, losses = measure_tree(counts, rates=rates, meter=meter, branching=b, height=h)
    leaves, variance = reconcile(levels, branching=b)
    return HistogramEstimate(
        mechanism="hierarchical",
        counts=leaves,
        noise=np.sqrt(variance),
        losses=losses,
        measurements=levels,
        parameters={"branching": b, "levels": h},
        expected_rmse=float(np.sqrt(variance.mean())),
        tree=True,
    )


def _given(branching: int, n: int) -> tuple[int, int]:
    if branching < 2:
        raise InputError(f"a tree needs a branching of at least 2, got {branching}")
    return branching, max(1, ceil(log(max(n, 2)) / log(branching) - 1e-9))


def measure_tree(
    counts: Exact[Ints], *, rates: Ints, meter: Meter, branching: int, height: int
) -> tuple[tuple[Measurement, ...], Ints]:
    """Noisy totals per level, coarse first, and the loss of each bin's record."""
    each = rates // height
    levels = [
        measure_level(counts, rates=each, meter=meter, width=branching ** (height - level), label=f"tree level {level}")
        for level in range(1, height + 1)
    ]
    return tuple(levels), losses_of(levels)


def measure_level(counts: Exact[Ints], *, rates: Ints, meter: Meter, width: int, label: str) -> Measurement:
    """Noisy totals of `width` bins each; a total has the smallest of its bins' `rates`."""
    if int(rates.min()) < 1:
        raise InputError("the budget is too small for the levels of the tree; raise epsilon")
    starts = np.arange(0, rates.size, width)
    rate = np.minimum.reduceat(rates, starts)
    totals = meter.laplace(counts.map(partial(_totals, starts=starts)), rate=rate, label=label)
    return Measurement(np.arange(rates.size) // width, totals, rate)


def losses_of(levels: Sequence[Measurement]) -> Ints:
    """What each bin's record loses to all levels: it is in one node of each."""
    return np.asarray(sum(level.rates[level.labels] for level in levels))


def _totals(counts: Ints, starts: Ints) -> Ints:
    return np.add.reduceat(addable(counts), starts)


def reconcile(levels: tuple[Measurement, ...], *, branching: int) -> tuple[Floats, Floats]:
    """Least-squares leaves of the noisy tree and the variance of each.

    Upwards, a node's own total and the sum of its children are averaged by inverse variance; downwards, what a parent
    knows better than its children is shared among them in proportion to their variance.
    """
    value = [m.totals.astype(np.float64) for m in levels]
    variance = [laplace_variance(m.rates) + 1e-300 for m in levels]
    below: list[tuple[Floats, Floats]] = []
    for k in range(len(levels) - 2, -1, -1):
        starts = np.arange(0, value[k + 1].size, branching)
        sums, spread = np.add.reduceat(value[k + 1], starts), np.add.reduceat(variance[k + 1], starts)
        below.append((sums, spread))
        weight = spread / (spread + variance[k])
        value[k] = weight * value[k] + (1 - weight) * sums
        variance[k] = weight * variance[k]
    below.reverse()
    final, known = value[0], variance[0]
    for k, (sums, spread) in enumerate(below):
        parent = np.arange(value[k + 1].size) // branching
        part = variance[k + 1] / spread[parent]
        final, known = (
            value[k + 1] + part * (final - sums)[parent],
            # the children's own variance, less what the parent takes out of it
            variance[k + 1] - part**2 * (spread - known)[parent],
        )
    return final, known


def one_level(rates: Ints, total: int | None) -> tuple[float, str]:
    """The error of a bin measured on its level alone."""
    _, h = best_branching(rates.size)
    single = identity_rmse(np.maximum(rates // h, 1))
    return single, " (error of a bin before the tree is reconciled, which lowers it)"


MECHANISM = Mechanism(
    "hierarchical",
    ("histogram",),
    hierarchical,
    "a tree of totals; the error of any range grows with its logarithm only",
    parameters=(Parameter("branching", "whole", "children of a node; the best if left out", low=2, high=MOST_BRANCHES),),
    needs=("order",),
    expected=one_level,
    rank={"shape": 8, "ranges": 2},
    paper="Hay, Rastogi, Miklau & Suciu 2010; Qardaji, Yang & Li 2013",
)
