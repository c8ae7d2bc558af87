"""`dawa`, `dawa_shape`: cut the line into stretches of nearly equal bins, then measure those (Li, Hay, Miklau & Wang
2014).

1. Choose a partition of the ordered bins into intervals: an interval costs the sum of absolute deviations from its mean
   (the error of spreading its total evenly) plus 1/ε2 (the error of the noise on the total). 2. Noise the totals.

**Guarantee.** A record in bin i loses at most ``rates[i]``: a share of the smallest rate for the partition, the rest of
its own for the totals.

*Proof.* Adding a record to a bin of an interval of length L moves its sum of absolute deviations by at most ``2 (1 -
1/L)``: its own bin moves by 1 - 1/L against the mean, the L - 1 others by 1/L each. On the lattice of 1/16 counts,
rounded down, that is at most ``ceil(32 (1 - 1/L))`` units. The choice of the partition is priced by
`privacy.partition`, which needs *twice* the noise that the authors' code adds (an example with 4 bins shows a loss of
1.30 where 1 was claimed). Given the partition, the stretches are bins of a histogram, measured by `hierarchical` or
`identity`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from sfumato.errors import InputError
from sfumato.histograms.budgets import Ints, share
from sfumato.histograms.estimation.estimate import HistogramEstimate
from sfumato.histograms.estimation.measurements import Measurement
from sfumato.histograms.mechanisms.ahp import sums
from sfumato.histograms.mechanisms.geb import shrink
from sfumato.histograms.mechanisms.hierarchical import best_branching, measure_tree, reconcile
from sfumato.privacy import NANO, Exact, Meter, Nano
from sfumato.registry import Mechanism

RANGE_PERCENT, SHAPE_PERCENT = 25, 50  # of the budget for the partition
LATTICE = 16  # costs are counted in sixteenths of a record
OFFSETS = 4  # an interval of length L may start at every multiple of L/4
PATIENCE = 2.0  # mean noises that a cut must win: less, and the partition follows lucky noise
FEWEST_FOR_TREE = 16


@dataclass(frozen=True, eq=False)
class Intervals:
    """The public list of intervals among which the partition is chosen: lengths are powers of two."""

    starts: Ints
    stops: Ints

    @property
    def lengths(self) -> Ints:
        return self.stops - self.starts


@lru_cache(maxsize=8)
def intervals(n: int) -> Intervals:
    """All intervals of power-of-two length that start at a multiple of a quarter of it, and the whole line.

    >>> intervals(4).lengths.tolist()
    [1, 1, 1, 1, 2, 2, 2, 4]
    """
    starts, lengths = [], []
    length = 1
    while length <= n:
        begin = np.arange(0, n - length + 1, max(1, length // OFFSETS))
        starts.append(begin)
        lengths.append(np.full(begin.size, length))
        length *= 2
    if length // 2 < n:
        starts.append(np.zeros(1, dtype=np.int64))
        lengths.append(np.array([n]))
    begin = np.concatenate(starts)
    return Intervals(begin, begin + np.concatenate(lengths))


def deviations(counts: Ints, lines: Intervals) -> Ints:
    """``floor(LATTICE * Σ |count - mean|)`` of every interval, in exact integers.

    Counts are held below a public bound at which no sum can leave 64 bits; holding moves no two tables further apart.

    >>> deviations(np.array([0, 2]), intervals(2)).tolist()
    [0, 0, 32]
    >>> deviations(np.array([0, 2**62]), intervals(2)).tolist()[-1] > 0
    True
    """
    most = (1 << 57) // counts.size**2
    counts = np.clip(counts, -most, most)
    out = np.zeros(lines.starts.size, dtype=np.int64)
    lengths = lines.lengths
    prefix = np.concatenate([[0], np.cumsum(counts)])
    for length in np.unique(lengths).tolist():
        which = np.flatnonzero(lengths == length)
        if length == 1:
            continue
        for some in np.array_split(which, max(1, which.size * length // 2_000_000)):
            begin = lines.starts[some]
            total = prefix[begin + length] - prefix[begin]
            # length * deviation = Σ |length * count - total| is a whole number
            spread = np.abs(counts[begin[:, None] + np.arange(length)] * length - total[:, None]).sum(axis=1)
            whole, rest = np.divmod(spread, length)
            out[some] = whole * LATTICE + rest * LATTICE // length
    return out


def stretches(counts: Exact[Ints], *, nano: Nano, total_rate: int, bins: int, meter: Meter) -> Ints:
    """The stretch of each bin, chosen at a price of `nano`; `total_rate` is the rate at which totals will be noised."""
    lines = intervals(bins)
    moves = interval_moves(lines)
    rates = nano // (moves + max(int(moves.max()), 1))
    if int(rates.min()) < 1:
        raise InputError("the budget is too small to choose stretches; raise epsilon or use 'geb'")
    # The noise lowers every interval's cost by its mean, and the best of many by more: a public fee per interval undoes it.
    fee = np.rint(LATTICE * NANO / total_rate + (1 + PATIENCE) / np.expm1(rates / NANO)).astype(np.int64)
    chosen = meter.partition(
        lines.starts,
        lines.stops,
        counts.map(lambda found: deviations(found, lines) + fee),
        rate=rates,
        moves=moves,
        label="stretches",
    )
    return np.repeat(np.arange(chosen.size), lines.lengths[chosen])


def interval_moves(lines: Intervals) -> Ints:
    """By how many lattice units one record moves an interval's cost: ``ceil(2 LATTICE (1 - 1/L))``."""
    return -(-2 * LATTICE * (lines.lengths - 1) // lines.lengths)


def _cut(counts: Exact[Ints], rates: Ints, meter: Meter, percent: int) -> tuple[Ints, Ints, Nano]:
    """Stretch of each bin, the rate left for each stretch, and the price of the cut."""
    first, _ = share(rates.min(keepdims=True), percent)
    nano = Nano(int(first[0]))
    second = rates - nano
    labels = stretches(counts, nano=nano, total_rate=int(second.min()), bins=rates.size, meter=meter)
    return labels, np.minimum.reduceat(second, np.flatnonzero(np.diff(labels, prepend=-1))), nano


def dawa(counts: Exact[Ints], *, rates: Ints, meter: Meter) -> HistogramEstimate:
    """Cut, measure the stretches (by a tree where there are many), spread evenly. For range queries.

    >>> dawa(Exact(np.array([9, 9, 9, 9, 0, 0, 0, 0])), rates=np.full(8, 10**9), meter=Meter()).counts.shape
    (8,)
    """
    labels, left, nano = _cut(counts, rates, meter, RANGE_PERCENT)
    if left.size < FEWEST_FOR_TREE:
        b, h = max(left.size, 2), 1
    else:
        b, h = best_branching(left.size)
    tree, losses = measure_tree(
        counts.map(partial(sums, labels=labels, groups=left.size)), rates=left, meter=meter, branching=b, height=h
    )
    totals, variance = reconcile(tree, branching=b)
    size = np.bincount(labels)
    return HistogramEstimate(
        mechanism="dawa",
        counts=(totals / size)[labels],
        noise=(np.sqrt(variance) / size)[labels],
        losses=nano + losses[labels],
        measurements=tuple(Measurement(m.labels[labels], m.totals, m.rates) for m in tree),
        parameters={"stretches": int(size.size), "levels": h},
        tree=True,
    )


def dawa_shape(counts: Exact[Ints], *, rates: Ints, meter: Meter) -> HistogramEstimate:
    """Cut, measure the stretches, shrink their totals by empirical Bayes, spread evenly. For the shape.

    >>> dawa_shape(Exact(np.array([9, 9, 9, 9, 0, 0, 0, 0])), rates=np.full(8, 10**9), meter=Meter()).counts.shape
    (8,)
    """
    labels, left, nano = _cut(counts, rates, meter, SHAPE_PERCENT)
    totals = meter.laplace(
        counts.map(partial(sums, labels=labels, groups=left.size)), rate=left, label="totals of stretches"
    )
    mean, variance = shrink(totals, left, simpler=False)
    size = np.bincount(labels)
    return HistogramEstimate(
        mechanism="dawa_shape",
        counts=(mean / size)[labels],
        noise=(np.sqrt(variance) / size)[labels],
        losses=nano + left[labels],
        measurements=(Measurement(labels, totals, left),),
        parameters={"stretches": int(size.size)},
    )


MECHANISMS = (
    Mechanism(
        "dawa_shape",
        ("histogram",),
        dawa_shape,
        "stretches of nearly equal bins; for when single bins drown in the noise",
        needs=("order",),
        rank={"shape": 3, "ranges": 9},
        paper="Li, Hay, Miklau & Wang 2014",
    ),
    Mechanism(
        "dawa",
        ("histogram",),
        dawa,
        "stretches of nearly equal bins, measured for ranges",
        needs=("order",),
        rank={"shape": 9, "ranges": 3},
        paper="Li, Hay, Miklau & Wang 2014",
    ),
)
