"""The one way to run a histogram mechanism.

A mechanism is ``make(counts, *, rates, meter, **parameters) -> HistogramEstimate``: `counts` is an `Exact` of one int64
per bin, which only the Meter opens; ``rates[i]`` is what a record in bin i may lose per row, in nano-ε.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from sfumato.errors import InputError
from sfumato.histograms.bins import Bins
from sfumato.histograms.budgets import Counts, exact_counts, lost_by_bin, rates_for
from sfumato.histograms.estimation.estimate import HistogramEstimate
from sfumato.histograms.result import Histogram
from sfumato.offers import AUTO
from sfumato.privacy import Epsilon, Meter
from sfumato.registry import Mechanism, ranked
from sfumato.registry import mechanism as registered


def release_histogram(
    counts: Counts,
    *,
    epsilon: Epsilon,
    bins: Bins | int,
    meter: Meter,
    mechanism: str = AUTO,
    bin_budgets: ArrayLike | None = None,
    **parameters: Any,
) -> Histogram:
    """Release a histogram.

    Parameters
    ----------
    counts : Exact of integers
        The private counts, one per bin, as a table gives them. Integers, or a function that returns them, are wrapped
        first thing. Counts beyond 64 bits are held at the end of the range.
    epsilon : Epsilon
        What a person may lose at most.
    bins : Bins or int
        The public domain; a number stands for that many ordered bins.
    meter : Meter
        Draws the noise and adds up the loss.
    mechanism : str
        A mechanism's name; "auto" takes the best for the shape.
    bin_budgets : one ε per bin, optional
        What a person may lose by their rows in each bin (at most epsilon), compared with these rows absent: bins that
        matter more get more noise. Against replacement all must be alike.
    parameters
        Of the mechanism: `clustering` (ahp), `delta`, `order` (dpa, sdpa), `branching` (hierarchical).

    Returns
    -------
    Histogram

    Examples
    --------
    >>> h = release_histogram([5, 0, 12], epsilon=1, bins=3, meter=Meter(), mechanism="identity", bin_budgets=[1, 0.1, 1])
    >>> h.guarantee.epsilon, h.bin_losses.tolist()
    (Decimal('1'), [1000000000, 100000000, 1000000000])
    """
    domain = Bins.numbered(bins) if isinstance(bins, int) else bins
    estimate = run_mechanism(
        counts, epsilon=epsilon, bins=domain, meter=meter, mechanism=mechanism, bin_budgets=bin_budgets, **parameters
    )
    lost = lost_by_bin(estimate.losses, meter.terms)
    return Histogram.of(estimate, bins=domain, guarantee=meter.guarantee(), bin_losses=lost)


def run_mechanism(
    counts: Counts,
    *,
    epsilon: Epsilon,
    bins: Bins,
    meter: Meter,
    mechanism: str = AUTO,
    bin_budgets: ArrayLike | None = None,
    **parameters: Any,
) -> HistogramEstimate:
    """The estimate alone: inside a parallel block no guarantee can be stated yet."""
    chosen = best_for(bins) if mechanism == AUTO else registered("histogram", mechanism)
    if not applicable(chosen, bins):
        raise InputError(
            f"{mechanism!r} needs bins in a meaningful order and {bins.names[-1]!r} has none; use 'auto', 'geb' or 'ahp'"
        )
    rates = rates_for(meter, epsilon=epsilon, bins=bins, bin_budgets=bin_budgets)
    made: HistogramEstimate = chosen.make(exact_counts(counts, bins), rates=rates, meter=meter, **parameters)
    return made


def applicable(mechanism: Mechanism, bins: Bins) -> bool:
    """Whether a mechanism can be used on these bins."""
    return "personal budgets" not in mechanism.needs and (bins.ordered or "order" not in mechanism.needs)


def best_for(bins: Bins, purpose: str = "shape") -> Mechanism:
    """The best mechanism by the measured comparison."""
    return next(m for m in ranked("histogram", purpose) if applicable(m, bins))
