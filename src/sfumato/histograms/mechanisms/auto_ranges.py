"""`auto_ranges`, the default for sums over ranges: a tree whose levels follow the signal, divided by empirical Bayes.

What can be seen is decided by N ε, the number of records in units of the noise. So N is measured first, with 15% of the
budget. It is also the root of the tree, whose error every long range has a part in. The rest is laid out for it (`plan`):

- *Cells.* Over k cells of equal width a random range adds the noise of k/3 of them, a squared error of ``2k/(3 ε²)``. At
  both ends it cuts a cell; N/k records at one unknown place cost ``(N/k)²/3`` there, records half as uneven a quarter of
  it. The sum is least at ``k = (N ε / 2)^(2/3)`` cells. They are measured by the tree of `hierarchical` over k leaves.
- *Within cells* a quarter of the rest looks for what towers above its cell: one level of single bins, or two where a cell
  has more than 64. They are left out where even all N records in one bin would drown: ``N ε share < ln w``, where ln w is
  about the largest of the noises of a cell of w bins.
- From ``k = n/2`` on the cells are the bins.

The noisy totals then go through `estimation.splits`: a part that cannot be told from an even division is divided evenly.
So there is no switch between mechanisms: at a faint signal the estimate tends to `uniform`, at a strong one to
`hierarchical`, and bins that tower above their neighbours are found in between.

**Guarantee.** A record in bin i loses at most ``rates[i]``.

*Proof.* The noisy N costs every record ``first = min(rates) * 15 // 100``: a record moves N by one. The layout is computed
from it and from public numbers. Given the layout, a record of bin i is in one node of every level and moves its total by
one; a node's noise has the rate ``min over its bins of (rates - first) * share // 1000``, and the shares of the levels
add up to at most 1000. So the levels cost it at most ``rates[i] - first``. The rest is computed from noisy totals.
"""

from __future__ import annotations

from math import ceil, log, sqrt

import numpy as np

from sfumato.errors import InputError
from sfumato.histograms.budgets import Ints, addable
from sfumato.histograms.estimation.estimate import HistogramEstimate
from sfumato.histograms.estimation.measurements import Measurement
from sfumato.histograms.estimation.splits import Level, divide
from sfumato.histograms.mechanisms.hierarchical import best_branching, losses_of, measure_level
from sfumato.privacy import NANO, Exact, Meter
from sfumato.privacy.noise import laplace_variance
from sfumato.registry import Mechanism

TOTAL_PERCENT = 15
WITHIN = 250  # thousandths of the budget for what is within cells
WIDE_CELL = 64  # bins from which a cell is looked into in two steps


def auto_ranges(counts: Exact[Ints], *, rates: Ints, meter: Meter) -> HistogramEstimate:
    """Measure N, lay out a tree for it, measure its levels, divide from the top.

    >>> made = auto_ranges(Exact(np.arange(100) // 10), rates=np.full(100, 10**9), meter=Meter())
    >>> made.counts.shape, bool(made.counts.min() >= 0)
    ((100,), True)
    """
    first = int(rates.min()) * TOTAL_PERCENT // 100
    if first < 1:
        raise InputError("the budget is too small to measure the number of records; raise epsilon")
    noisy = meter.laplace(counts.map(_sum), rate=first, label="number of records")
    left = rates - first
    widths, shares = plan(rates.size, float(noisy[0]) * float(np.median(left)) / NANO)
    levels, losses = measure_levels(counts, rates=left, meter=meter, widths=widths, shares=shares)
    totals, variance = divide(
        [Level.of(level) for level in levels],
        bins=rates.size,
        total=float(noisy[0]),
        variance=float(laplace_variance(np.array([first]))[0]),
    )
    labels = levels[-1].labels
    size = np.bincount(labels)
    return HistogramEstimate(
        mechanism="auto_ranges",
        counts=(totals / size)[labels],
        noise=(np.sqrt(variance) / size)[labels],
        losses=first + losses,
        measurements=levels,
        parameters={"widths": list(widths), "shares": list(shares)},
        tree=True,
    )


def plan(bins: int, signal: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Widths of the nodes of every level, coarse first, and the levels' shares in thousandths, for a signal of N ε.

    >>> plan(1024, 20.0), plan(1024, 200.0)
    (((210,), (1000,)), ((47, 1), (750, 250)))
    >>> plan(1024, 1e5)
    ((32, 1), (500, 500))
    """
    signal = max(signal, 1.0)
    cells = round((signal / 2) ** (2 / 3))
    if 2 * cells >= bins:
        return _evenly(bins, 1)
    width = ceil(bins / max(cells, 1))
    within: tuple[int, ...] = (1,)
    if width > WIDE_CELL:
        inner = ceil(sqrt(width))
        width, within = inner * ceil(width / inner), (inner, 1)
    seen = signal * WITHIN / 1000 / len(within) >= log(width)
    widths, shares = _evenly(ceil(bins / width), width, 1000 - WITHIN if seen else 1000)
    return (widths + within, shares + (WITHIN // len(within),) * len(within)) if seen else (widths, shares)


def _evenly(nodes: int, width: int, whole: int = 1000) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tree of `hierarchical` over this many leaves of some width, with equal shares of `whole`."""
    branching, height = best_branching(nodes)
    return tuple(width * branching ** (height - level) for level in range(1, height + 1)), (whole // height,) * height


def measure_levels(
    counts: Exact[Ints], *, rates: Ints, meter: Meter, widths: tuple[int, ...], shares: tuple[int, ...]
) -> tuple[tuple[Measurement, ...], Ints]:
    """Noisy totals per level, coarse first, and the loss of each bin's record."""
    levels = [
        measure_level(counts, rates=rates * share // 1000, meter=meter, width=width, label=f"totals of {width} bins")
        for width, share in zip(widths, shares, strict=True)
    ]
    return tuple(levels), losses_of(levels)


def _sum(counts: Ints) -> Ints:
    return np.asarray(addable(counts).sum(keepdims=True))


MECHANISM = Mechanism(
    "auto_ranges",
    ("histogram",),
    auto_ranges,
    "for sums over ranges: a tree laid out for the number of records, divided by empirical Bayes",
    needs=("order",),
    rank={"ranges": 1},
)
