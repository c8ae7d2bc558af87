"""All mechanisms by name, and the one way to run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from sfumato.errors import InputError
from sfumato.histograms.bins import Bins
from sfumato.histograms.budgets import Counts, exact_counts, moves, rates_for
from sfumato.histograms.estimate import Estimate
from sfumato.histograms.identity import identity
from sfumato.histograms.result import Histogram
from sfumato.histograms.uniform import uniform
from sfumato.privacy import Epsilon, Meter


@dataclass(frozen=True)
class Mechanism:
    """``run(counts, rates=, meter=, **options) -> Estimate``, and whether it needs bins in a meaningful order."""

    run: Callable[..., Estimate]
    note: str
    needs_order: bool = False


MECHANISMS: Mapping[str, Mechanism] = {
    "identity": Mechanism(identity, "independent noise on every bin; the only error is the noise"),
    "uniform": Mechanism(uniform, "one noisy total, spread evenly; for when the noise drowns every bin"),
}


def release_histogram(
    counts: Counts,
    *,
    epsilon: Epsilon,
    bins: Bins | int,
    meter: Meter,
    mechanism: str = "identity",
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
        A name in `MECHANISMS`.
    bin_budgets : one ε per bin, optional
        What a record in each bin may lose (at most epsilon): bins that matter more get more noise.

    Examples
    --------
    >>> h = release_histogram([5, 0, 12], epsilon=1, bins=3, meter=Meter(), bin_budgets=[1, 0.1, 1])
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
            f"{mechanism!r} needs bins in a meaningful order and {bins.names[-1]!r} has none; use 'geb' or 'ahp'"
        )
    rates = rates_for(meter, epsilon=epsilon, bins=bins, bin_budgets=bin_budgets)
    return chosen.run(exact_counts(counts, bins), rates=rates, meter=meter, **options)
