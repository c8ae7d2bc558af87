"""What each mechanism would cost and how well it would do, from public facts alone. Nothing is read, nothing is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sfumato.errors import InputError
from sfumato.histograms.bins import Bins
from sfumato.histograms.budgets import Counts, Ints, bin_rates, moves
from sfumato.histograms.mechanisms.hierarchical import best_branching
from sfumato.histograms.mechanisms.identity import identity_rmse
from sfumato.histograms.release import MECHANISMS, release_histogram
from sfumato.histograms.result import Histogram
from sfumato.privacy import Charge, Epsilon, Meter
from sfumato.privacy.noise import laplace_variance

Purpose = Literal["shape", "ranges"]
# Best first, by the measured comparison in the documentation.
ORDER: Mapping[str, tuple[str, ...]] = {
    "shape": ("auto", "covariate", "dawa_shape", "geb", "ahp", "noisefirst", "identity", "hierarchical", "dawa"),
    "ranges": ("auto_ranges", "hierarchical", "dawa", "covariate", "geb", "identity", "noisefirst", "ahp", "dawa_shape"),
}


@dataclass(frozen=True, eq=False)
class Option:
    """One way to make the histogram.

    `charge` is what the ledger must reserve. `expected_rmse` is the error of one bin where public facts decide it, or a
    bound that the mechanism's improvement only lowers in the mean (`note` says which), else None.
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
        The number of records, if it is public: no bin errs by more than that.
    bin_budgets : one ε per bin, optional
        What a record in each bin may lose.
    purpose : "shape" or "ranges"
        What the histogram is for: its distribution, or sums over ranges of bins.

    Examples
    --------
    >>> [option.mechanism for option in preview_histogram(epsilon=0.5, bins=100)][:3]
    ['auto', 'covariate', 'dawa_shape']
    >>> preview_histogram(epsilon=0.5, bins=100, ordered=False)[0].charge.total
    500000000
    """
    if purpose not in ORDER:
        raise InputError(f"purpose is 'shape' or 'ranges', got {purpose!r}")
    domain = Bins.numbered(bins, ordered=ordered is not False) if isinstance(bins, int) else bins
    if ordered is not None and ordered != domain.ordered:
        raise InputError(f"the bins are {'ordered' if domain.ordered else 'not ordered'}; say so in their last column")
    if total is not None and total < 0:
        raise InputError(f"a public total must not be negative, got {total}")
    if purpose == "ranges" and not domain.ordered:
        raise InputError(f"ranges need bins in a meaningful order and {domain.names[-1]!r} has none; ask for the shape")
    factor = moves(rows_per_person=rows_per_person, neighbours=neighbours)
    rates = bin_rates(epsilon=epsilon, bins=domain, factor=factor, bin_budgets=bin_budgets)
    charge = Charge(int(rates.max()) * factor)
    options = []
    for name in ORDER[purpose]:
        mechanism = MECHANISMS[name]
        if domain.ordered or not mechanism.needs_order:
            rmse, how = _expected(name, rates, total)
            request = {"epsilon": epsilon, "bins": domain, "bin_budgets": bin_budgets, "mechanism": name}
            options.append(Option(name, charge, rmse, f"{mechanism.note}{how}", request))
    return options


def _expected(name: str, rates: Ints, total: int | None) -> tuple[float | None, str]:
    """Error per bin that public facts decide, and a remark."""
    if name == "identity":
        exact = identity_rmse(rates)
        return exact, ""
    if name == "hierarchical":
        _, h = best_branching(rates.size)
        single = float(np.sqrt(laplace_variance(np.maximum(rates // h, 1)).mean()))
        return single, " (error of a bin before the tree is reconciled, which lowers it)"
    if name in ("geb", "covariate", "noisefirst", "auto"):
        bound = identity_rmse(rates)
        capped = bound if total is None else min(bound, float(total))
        return capped, " (error at most about that of plain noise; the data decides how much better)"
    return None, " (error decided by the data)"
