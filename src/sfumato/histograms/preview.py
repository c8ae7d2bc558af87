"""What each mechanism would cost and how well it would do, from public facts alone. Nothing is read, nothing is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from numpy.typing import ArrayLike

from sfumato.errors import InputError
from sfumato.histograms.bins import Bins
from sfumato.histograms.budgets import Counts, bin_rates, moves
from sfumato.histograms.identity import identity_rmse
from sfumato.histograms.mechanisms import MECHANISMS, release_histogram
from sfumato.histograms.result import Histogram
from sfumato.privacy import Charge, Epsilon, Meter, nano_up

Purpose = Literal["shape", "ranges"]


@dataclass(frozen=True, eq=False)
class Option:
    """One way to make the histogram.

    `charge` is what the ledger must reserve; `expected_rmse` is the error per bin where public facts decide it, else None.
    """

    mechanism: str
    charge: Charge
    expected_rmse: float | None
    note: str
    request: Mapping[str, Any] = field(repr=False, default_factory=dict)

    def run(self, counts: Counts, meter: Meter) -> Histogram:
        """Make it; the meter's limit should be `charge`."""
        return release_histogram(counts, meter=meter, **self.request)


def preview_histogram(
    *,
    epsilon: Epsilon,
    bins: Bins | int,
    ordered: bool | None = None,
    total: int | None = None,
    bin_budgets: ArrayLike | None = None,
    purpose: Purpose = "shape",
    rows_per_person: int = 1,
    neighbours: str = "absence",
) -> list[Option]:
    """The options for a histogram, best first.

    Parameters
    ----------
    epsilon : Epsilon
    bins : Bins or int
        The public domain, or how many bins it has.
    ordered : bool, optional
        Whether neighbouring bins are alike; by default what the bins say.
    total : int, optional
        The number of records, if it is public.
    bin_budgets : one ε per bin, optional
        What a record in each bin may lose.
    purpose : "shape" or "ranges"
        What the histogram is for: its distribution, or sums over ranges of bins.

    Examples
    --------
    >>> best = preview_histogram(epsilon=0.5, bins=100)[-1]
    >>> best.charge.total
    500000000
    """
    domain = Bins.numbered(bins, ordered=ordered is not False) if isinstance(bins, int) else bins
    if ordered is not None and ordered != domain.ordered:
        raise InputError(f"the bins are {'ordered' if domain.ordered else 'not ordered'}; say so in their last column")
    if total is not None and total < 0:
        raise InputError(f"a public total must not be negative, got {total}")
    factor = moves(rows_per_person=rows_per_person, neighbours=neighbours)
    rates = bin_rates(epsilon=epsilon, bins=domain, factor=factor, bin_budgets=bin_budgets)
    request = {"epsilon": epsilon, "bins": domain, "bin_budgets": bin_budgets}
    charge = Charge(int(rates.max()) * factor)
    options = []
    for name, mechanism in MECHANISMS.items():
        if mechanism.needs_order and not domain.ordered:
            continue
        rmse = identity_rmse(rates) if name == "identity" else None
        options.append(Option(name, charge, rmse, mechanism.note, {**request, "mechanism": name}))
    assert charge.total <= nano_up(epsilon)
    return options
