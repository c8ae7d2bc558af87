"""`auto_shape` and `auto_ranges`, the defaults: they choose between two ways of measuring, privately, and take the better.

Over ordered bins two things can be done with a budget. *Stretches*: find stretches of nearly equal bins and measure
only their totals (`dawa`); unbeatable while single bins drown in the noise. *Bins*: measure every bin (`covariate` for
the shape, `hierarchical` for ranges) and improve afterwards; unbeatable once they stand out. How many records there are
per bin does not decide it (a few high spikes have a low mean and stand out all the same). What does is the comparison
of two errors:

- the best partition's error: its sum of absolute deviations plus the noise on its totals;
- what bin by bin noise leaves: about the count or one noise scale, whichever is smaller, in each bin.

Their difference is one number that a record moves by little. It is measured with 3% of the budget (5% below 2048 bins)
and compared with 0; small histograms (below 512 bins), where 5% says nothing, skip the choice. Unordered bins leave none:
there `geb` is the default.

**Guarantee.** A record in bin i loses at most ``rates[i]``.

*Proof.* A record moves the deviations of the one interval around it in any partition by at most 2, hence their minimum
over partitions by at most 2 (32 lattice units), and one capped count, weighted 13/16, by at most one (13 units). So the
difference moves by at most 45 units, and noise of rate ``share // 45`` per unit costs at most the share. The choice is
made from the noisy difference. Whichever mechanism follows spends at most the rest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.errors import InputError
from sfumato.histograms.budgets import Ints
from sfumato.histograms.estimation.estimate import HistogramEstimate
from sfumato.histograms.mechanisms.dawa import LATTICE, SHAPE_PERCENT, dawa, deviations, intervals
from sfumato.histograms.mechanisms.hierarchical import hierarchical
from sfumato.privacy import NANO, Exact, Meter
from sfumato.privacy.partition import least_cost
from sfumato.registry import Mechanism

FEWEST_TO_CHOOSE = 512
BIN_WEIGHT = 13  # sixteenths: what bin by bin noise leaves, after empirical Bayes, per capped count
LEAN = 1.0  # noise scales by which stretches are preferred: where the difference drowns, so do the bins


def auto_ranges(counts: Exact[Ints], *, rates: Ints, meter: Meter) -> HistogramEstimate:
    """The default for sums over ranges of ordered bins.

    >>> auto_ranges(Exact(np.arange(100) // 10), rates=np.full(100, 10**9), meter=Meter()).mechanism
    'dawa'
    """
    if rates.size < FEWEST_TO_CHOOSE:
        return dawa(counts, rates=rates, meter=meter)
    stretches, left, spent = prefer_stretches(counts, rates=rates, meter=meter)
    return _after(spent, (dawa if stretches else hierarchical)(counts, rates=left, meter=meter))


def _after(spent: int, made: HistogramEstimate) -> HistogramEstimate:
    chosen = {**made.parameters, "chosen": made.mechanism}
    return replace(made, losses=made.losses + spent, parameters=chosen)


def prefer_stretches(counts: Exact[Ints], *, rates: Ints, meter: Meter) -> tuple[bool, Ints, int]:
    """Whether to measure stretches, the rates that are left, and what a record lost to the question."""
    percent = 5 if rates.size < 2048 else 3
    rate = int(rates.min()) * percent // 100 // (2 * LATTICE + BIN_WEIGHT)
    if rate < 1:
        raise InputError("the budget is too small to choose a mechanism; raise epsilon or name one")
    typical = float(np.median(rates))
    noisy = meter.laplace(
        counts.map(lambda found: np.array([error_difference(found, typical)])),
        rate=rate,
        weights=2 * LATTICE + BIN_WEIGHT,
        label="which mechanism",
    )
    spent = rate * (2 * LATTICE + BIN_WEIGHT)
    return bool(noisy[0] < LEAN * NANO / rate), rates - spent, spent


def error_difference(counts: Ints, rate: float) -> int:
    """The best partition's error less that of single bins, in sixteenths of a record; `rate` is the budget in nano-ε."""
    lines = intervals(counts.size)
    total_rate = rate * (100 - SHAPE_PERCENT) / 100
    cost = deviations(counts, lines) + round(LATTICE * NANO / total_rate)
    partition = int(cost[least_cost(lines.starts, lines.stops, cost)].sum())
    most = int(NANO / rate)
    capped = int(np.clip(counts, -most, most).sum())
    return partition - BIN_WEIGHT * capped


MECHANISMS = (
    Mechanism(
        "auto_ranges",
        ("histogram",),
        auto_ranges,
        "for sums over ranges: stretches or a tree of bins, chosen privately",
        needs=("order",),
        rank={"ranges": 1},
    ),
)
