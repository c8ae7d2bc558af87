"""`auto_shape`, the default for the shape of ordered bins: every bin measured, all explanations weighed.

There is no choice between ways of measuring. All of the budget but a sliver goes to single bins (geometric noise, as in
`identity`), and what used to be gained by measuring stretches is gained afterwards: an average over all partitions into
stretches predicts each bin from its neighbours (`partitions`). Several explanations of the noisy counts then compete and are
averaged by their evidence: all bins are equal; counts lie at the predicted level, or around it, or a few stand out from
it (`around`); counts have a prior of their own (`geb`) or one per stratum of what the neighbours suggest (`covariate`).

The sliver measures the total, which single bins know badly where there are many of them: half a percent of the budget, and
more (3%, then 8%) only while the total does not stand out from its own noise. So a strong signal pays half a percent.

**Guarantee.** A record in bin i loses at most ``rates[i]``.

*Proof.* A record moves the total by one unit; the k-th look at it has rate ``LOOKS[k] min(rates)``, and whether there is a
next one follows from the noisy totals before. So looks cost a record in any bin the same sum L of rates, at most 11.5% of
the smallest rate. It also moves one bin's count by one unit, whose noise has the rate ``rates[i] - L``. Both add up to
``rates[i]``. Everything else is computed from these noisy values and public facts.
"""

from __future__ import annotations

import numpy as np

from sfumato.histograms.budgets import Floats, Ints, addable
from sfumato.histograms.estimation.around import explain_by_levels
from sfumato.histograms.estimation.estimate import HistogramEstimate
from sfumato.histograms.estimation.measurements import Measurement
from sfumato.histograms.estimation.partitions import Levels, levels
from sfumato.histograms.mechanisms.geb import shrink
from sfumato.histograms.mechanisms.identity import at_most_plain_noise
from sfumato.privacy import NANO, Exact, Meter
from sfumato.privacy.noise import laplace_variance
from sfumato.registry import Mechanism

LOOKS = (5, 30, 80)  # thousandths of the smallest rate for the total, one after the other
CLEAR = 2.0  # standard deviations by which the total must stand out for no further look
FEWEST_TO_LOOK = 128  # below, the bins themselves know their total
FEWEST_TO_EXPLAIN = 64  # below, there are too few bins to learn from: `geb`
REACH, MARGIN = 60.0, 9.0  # noise scales beyond which a count is left alone; those a little beyond take part
DROWNED = 30.0
UNSURE = 0.5  # part of the largest error that bins which do not stand out may have in common, squared
FINE, TOWARDS_WHOLE = 2.0, 0.6  # noise scale up to which, and how far, counts are drawn to whole numbers


def auto_shape(counts: Exact[Ints], *, rates: Ints, meter: Meter) -> HistogramEstimate:
    """The default for the shape of a histogram.

    >>> auto_shape(Exact(np.arange(100) // 10), rates=np.full(100, 10**9), meter=Meter()).counts.shape
    (100,)
    """
    looks = look_at_total(counts, rates, meter)
    left = rates - sum(int(look.rates[0]) for look in looks)
    noisy = meter.laplace(counts, rate=left, label="histogram counts")
    bins = Measurement.of_bins(noisy, left)
    total, variance = known_total((*looks, bins))
    total = clear_part(total, variance)
    mean, spread = explain(noisy, left, total)
    mean = to_whole_numbers(hold_total(mean, spread, left, total, variance), left)
    return HistogramEstimate(
        mechanism="auto_shape",
        counts=mean,
        noise=np.sqrt(spread),
        losses=rates,
        measurements=(bins, *looks),
        parameters={"looks": len(looks)},
    )


def look_at_total(counts: Exact[Ints], rates: Ints, meter: Meter) -> tuple[Measurement, ...]:
    """Noisy totals, until they stand out; none where the budget or the number of bins is too small for a look."""
    looks: list[Measurement] = []
    for share in LOOKS if rates.size >= FEWEST_TO_LOOK else ():
        rate = np.array([int(rates.min()) * share // 1000])
        if rate[0] < 1:
            break
        total = meter.laplace(counts.map(lambda found: addable(found).sum(keepdims=True)), rate=rate, label="total")
        looks.append(Measurement(np.zeros(rates.size, dtype=np.int64), total, rate))
        value, variance = known_total(tuple(looks))
        if value > CLEAR * np.sqrt(variance):
            break
    return tuple(looks)


def known_total(measured: tuple[Measurement, ...]) -> tuple[float, float]:
    """The number of records from all that was measured, by inverse variance, and its variance.

    >>> known_total((Measurement.of_bins(np.array([3, 5]), np.array([10**9, 10**9])),))[0]
    8.0
    """
    sums = np.array([float(m.totals.astype(np.float64).sum()) for m in measured])
    weights = np.array([1.0 / float(laplace_variance(m.rates).sum() + 1e-12) for m in measured])
    return float((weights * sums).sum() / weights.sum()), float(1.0 / weights.sum())


def explain(noisy: Ints, rates: Ints, total: float) -> tuple[Floats, Floats]:
    """Posterior mean and variance of every count; what is far out of the noise keeps its noisy count."""
    scale = NANO / rates
    mean, variance = np.maximum(noisy, 0).astype(np.float64), laplace_variance(rates)
    near = np.flatnonzero(noisy <= (REACH + MARGIN) * scale)
    if near.size < FEWEST_TO_EXPLAIN:
        return shrink(noisy, rates)
    predicted = levels(noisy, rates)
    around = Levels(predicted.others[near], predicted.all[near])
    found, spread = explain_by_levels(noisy[near].astype(np.float64), scale[near], around, total / noisy.size)
    inner = noisy[near] <= REACH * scale[near]
    mean[near[inner]], variance[near[inner]] = found[inner], spread[inner]
    return mean, variance


def clear_part(total: float, variance: float) -> float:
    """A total that drowns in its own noise is taken for less than it says.

    >>> clear_part(1000.0, 10.0), round(clear_part(10.0, 100.0), 2), clear_part(-5.0, 1.0)
    (1000.0, 0.32, 0.0)
    """
    clear = max(total, 0.0) ** 4
    return round(max(total, 0.0) * clear / (clear + DROWNED * variance**2), 3)


def hold_total(mean: Floats, spread: Floats, rates: Ints, total: float, variance: float) -> Floats:
    """The estimate moved towards the measured total, each bin in proportion to how unsure it is; none becomes negative.

    Errors of bins that do not stand out are partly common, because their prior was learned from all of them: together they
    err by at most what they hold, and not by more than the noise of their sum.

    >>> hold_total(np.array([4.0, 100.0]), np.array([4.0, 1e-9]), np.full(2, 10**9), 110.0, 1e-9).round().tolist()
    [9.0, 101.0]
    """
    unclear = np.minimum(mean, NANO / rates)
    held = float(unclear.sum())
    common = UNSURE * min(held, float(np.sqrt(laplace_variance(rates).sum()))) ** 2
    unsure = spread + common * unclear / max(held, 1e-300)
    have, doubt = float(mean.sum()), float(unsure.sum()) + 1e-12
    if have <= 0:
        return mean
    aim = have + (total - have) * doubt / (doubt + variance)
    move = np.where(mean > 0, unsure / np.maximum(mean, 1e-12), 0.0)
    move /= max(float(move.max()), 1e-300)
    power = 0.0
    for _ in range(40):  # Newton for Σ mean exp(power move) = aim
        moved = mean * np.exp(np.clip(power * move, -50.0, 50.0))
        slope = float((moved * move).sum())
        miss = float(moved.sum()) - aim
        if slope <= 0 or abs(miss) < 1e-6 * max(aim, 1.0):
            break
        power += float(np.clip(-miss / slope, -2.0, 2.0))
    return np.asarray(mean * np.exp(np.clip(power * move, -50.0, 50.0)))


def to_whole_numbers(mean: Floats, rates: Ints) -> Floats:
    """Counts drawn towards whole numbers where the noise is so small that it is often exactly 0."""
    fine = (NANO / rates < FINE) & (mean > FINE)
    return np.where(fine, mean + TOWARDS_WHOLE * (np.rint(mean) - mean), mean)


MECHANISM = Mechanism(
    "auto_shape",
    ("histogram",),
    auto_shape,
    "for the shape: noise on every bin, explanations averaged by evidence",
    needs=("order",),
    expected=at_most_plain_noise,
    rank={"shape": 1},
)
