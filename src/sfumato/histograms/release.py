"""All mechanisms by name, and the one way to run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from sfumato.errors import InputError
from sfumato.histograms.bins import Bins
from sfumato.histograms.budgets import Counts, exact_counts, moves, rates_for
from sfumato.histograms.estimation.estimate import Estimate
from sfumato.histograms.mechanisms.ahp import ahp
from sfumato.histograms.mechanisms.auto import auto, auto_ranges
from sfumato.histograms.mechanisms.covariate import covariate
from sfumato.histograms.mechanisms.dawa import dawa, dawa_shape
from sfumato.histograms.mechanisms.dynamic import dpa, sdpa
from sfumato.histograms.mechanisms.geb import geb
from sfumato.histograms.mechanisms.hierarchical import hierarchical
from sfumato.histograms.mechanisms.identity import identity
from sfumato.histograms.mechanisms.noisefirst import noisefirst
from sfumato.histograms.mechanisms.uniform import uniform
from sfumato.histograms.result import Histogram
from sfumato.privacy import Epsilon, Meter


@dataclass(frozen=True)
class Mechanism:
    """``run(counts, rates=, meter=, **options) -> Estimate``, and whether it needs bins in a meaningful order."""

    run: Callable[..., Estimate]
    note: str
    needs_order: bool = False


MECHANISMS: Mapping[str, Mechanism] = {
    "auto": Mechanism(auto, "for the shape: stretches or single bins, chosen privately; geb where bins have no order"),
    "auto_ranges": Mechanism(auto_ranges, "for sums over ranges: stretches or a tree of bins, chosen privately", True),
    "covariate": Mechanism(covariate, "noise on every bin, then shrunk towards what its neighbours suggest", True),
    "geb": Mechanism(geb, "noise on every bin, then shrunk by empirical Bayes; needs no order"),
    "dawa_shape": Mechanism(dawa_shape, "stretches of nearly equal bins; for when single bins drown in the noise", True),
    "dawa": Mechanism(dawa, "stretches of nearly equal bins, measured for ranges", True),
    "hierarchical": Mechanism(hierarchical, "a tree of totals; the error of any range grows with its logarithm only", True),
    "ahp": Mechanism(ahp, "noise, sort, cluster, noise the clusters; needs no order"),
    "noisefirst": Mechanism(noisefirst, "noise on every bin, neighbouring bins merged", True),
    "identity": Mechanism(identity, "independent noise on every bin; the only error is the noise"),
    "dpa": Mechanism(dpa, "AHP with budgets that fall along a public order: protects late bins more"),
    "sdpa": Mechanism(sdpa, "DPA at its steepest"),
    "uniform": Mechanism(uniform, "one noisy total, spread evenly"),
}


def release_histogram(
    counts: Counts,
    *,
    epsilon: Epsilon,
    bins: Bins | int,
    meter: Meter,
    mechanism: str = "auto",
    bin_budgets: ArrayLike | None = None,
    **options: Any,
) -> Histogram:
    """Release a histogram.

    Parameters
    ----------
    counts : integers, or a function that returns them
        The private counts, one per bin; the function is called after the price was accepted.
    epsilon : Epsilon
        What a person may lose at most.
    bins : Bins or int
        The public domain; a number stands for that many ordered bins.
    meter : Meter
        Draws the noise and adds up the loss.
    mechanism : str
        A name in `MECHANISMS`; "auto" for the shape, "auto_ranges" for sums over ranges.
    bin_budgets : one ε per bin, optional
        What a record in each bin may lose (at most epsilon): bins that matter more get more noise.
    options
        Of the mechanism: `clustering` (ahp), `delta`, `order` (dpa, sdpa), `branching` (hierarchical).

    Examples
    --------
    >>> h = release_histogram([5, 0, 12], epsilon=1, bins=3, meter=Meter(), mechanism="identity", bin_budgets=[1, 0.1, 1])
    >>> h.guarantee.epsilon, h.bin_losses.tolist()
    (Decimal('1'), [1000000000, 100000000, 1000000000])
    """
    domain = Bins.numbered(bins) if isinstance(bins, int) else bins
    estimate = run_mechanism(
        counts, epsilon=epsilon, bins=domain, meter=meter, mechanism=mechanism, bin_budgets=bin_budgets, **options
    )
    factor = moves(rows_per_person=meter.rows_per_person, neighbours=meter.neighbours)
    return Histogram.of(estimate, bins=domain, guarantee=meter.guarantee(), factor=factor)


def run_mechanism(
    counts: Counts,
    *,
    epsilon: Epsilon,
    bins: Bins,
    meter: Meter,
    mechanism: str,
    bin_budgets: ArrayLike | None = None,
    **options: Any,
) -> Estimate:
    """The estimate alone: inside a parallel block no guarantee can be stated yet."""
    chosen = MECHANISMS.get(mechanism)
    if chosen is None:
        raise InputError(f"no histogram mechanism {mechanism!r}; there are {', '.join(MECHANISMS)}")
    if chosen.needs_order and not bins.ordered:
        raise InputError(
            f"{mechanism!r} needs bins in a meaningful order and {bins.names[-1]!r} has none; use 'auto', 'geb' or 'ahp'"
        )
    if mechanism == "auto":
        options["ordered"] = bins.ordered
    rates = rates_for(meter, epsilon=epsilon, bins=bins, bin_budgets=bin_budgets)
    return chosen.run(exact_counts(counts, bins), rates=rates, meter=meter, **options)
