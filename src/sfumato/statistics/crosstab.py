"""Tables whose margins add up: `margins` measures a planned set of margins, `cells` the cells alone; then least squares.

**Guarantee.** A table whose measured margins have the rates r_A (nano-ε per row) costs a row ``Σ_A r_A`` and a person that
times the rows they own, twice that against replacement.

*Proof.* A row sits in one cell of every margin, so a row more moves one coordinate of each measured margin by one unit; the
two-sided geometric noise of margin A answers for it at r_A (see `histograms.mechanisms.identity`). The measured margins are
released one after another, so their costs add up. Which are measured, and at which part of ε, comes from the number of cells
of each column and the margins asked, both public (`margin_plan`). Everything after the noise, the least squares fit
(`margin_fit`), setting negative cells right and rounding, works on released figures.

Barak et al. 2007 (margins that are consistent), Li et al. 2015 (matrix mechanism), McKenna et al. 2018 (HDMM), Xiao et al.
2023 (residual bases).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.histograms.bins import Bins
from sfumato.privacy import NANO, Charge, Exact, Meter, Nano
from sfumato.privacy.noise import laplace_variance
from sfumato.privacy.terms import Terms
from sfumato.registry import Mechanism
from sfumato.statistics.crosstab_result import CrossTable
from sfumato.statistics.margin_fit import effects, margin_of
from sfumato.statistics.margin_plan import PARTS, Columns, Floats, Precision, planned_shares

Ints = NDArray[np.int64]
Read = Callable[[Ints, Columns], Exact[Ints]]
"""Weighted counts of a margin, for a weight per person group and the positions of its columns."""


@dataclass(frozen=True, eq=False)
class TablePlan:
    """Rates of the margins to measure, fixed from public facts.

    Attributes
    ----------
    terms : Terms
    bins : Bins
        The cells of the whole table; not made, only described.
    asked : tuple of columns
        The margins that matter.
    rates : mapping of columns to int
        Nano-ε per row of each measured margin.
    mechanism : str
    """

    terms: Terms
    bins: Bins
    asked: tuple[Columns, ...]
    rates: Mapping[Columns, int]
    mechanism: str

    @property
    def charge(self) -> Charge:
        """What a person loses by all measured margins."""
        return Charge(Nano(sum(self.rates.values()) * self.terms.factor))

    @property
    def precision(self) -> Precision:
        """How good every margin will be."""
        return Precision(self.bins.shape, {a: float(laplace_variance(r)) for a, r in self.rates.items()})

    def errors(self) -> dict[Columns, float]:
        """Standard deviation of a cell of every margin asked."""
        precision = self.precision
        return {s: float(np.sqrt(precision.variance(s))) for s in self.asked}

    @property
    def expected_rmse(self) -> float:
        """Root of the mean over the margins asked of the squared error of a cell."""
        return mean_error(self.errors())

    def run(self, read: Read, meter: Meter) -> CrossTable:
        """Measure every planned margin, fit one table to them."""
        noisy: dict[Columns, Floats] = {}
        for margin, rate in self.rates.items():
            counts = read(np.ones(1, dtype=np.int64), margin).map(lambda found: found.reshape(-1))
            found = meter.laplace(counts, rate=rate, label=f"counts of {named(self.bins, margin)}")
            noisy[margin] = found.astype(np.float64).reshape([self.bins.shape[i] for i in margin])
        fitted = effects(noisy, self.precision)
        return CrossTable(
            counts={s: margin_of(fitted, self.bins.shape, s) for s in largest(self.asked)},
            bins=self.bins,
            asked=self.asked,
            guarantee=meter.guarantee(),
            mechanism=self.mechanism,
            scales={a: NANO / r for a, r in self.rates.items()},
            parameters={"rates": {named(self.bins, a): r / NANO for a, r in self.rates.items()}},
            expected_rmse=self.expected_rmse,
        )


def mean_error(errors: Mapping[Columns, float]) -> float:
    """The root of the mean square: one figure for all margins.

    >>> mean_error({(0,): 3.0, (1,): 4.0}).__round__(3)
    3.536
    """
    return float(np.sqrt(np.mean(np.square(list(errors.values())))))


def largest(margins: tuple[Columns, ...]) -> tuple[Columns, ...]:
    """Those that are part of no other.

    >>> largest(((0,), (1,), (0, 1), (2,)))
    ((0, 1), (2,))
    """
    return tuple(s for s in margins if not any(set(s) < set(other) for other in margins))


def named(bins: Bins, margin: Columns) -> str:
    """A margin in words."""
    return " x ".join(bins.names[i] for i in margin) or "all rows"


def shares_of(mechanism: str, bins: Bins, asked: tuple[Columns, ...]) -> dict[Columns, int]:
    """What `margins` and `cells` measure, in parts of `PARTS`."""
    if mechanism == "cells":
        return {tuple(range(len(bins.axes))): PARTS}
    return planned_shares(bins.shape, asked)


def plan_table(terms: Terms, bins: Bins, asked: tuple[Columns, ...], *, rate: int, mechanism: str = "margins") -> TablePlan:
    """The plan of a mechanism at so many nano-ε per row.

    Parameters
    ----------
    terms : Terms
        Whom it protects.
    bins : Bins
        The columns with their cells.
    asked : tuple of columns
        The margins that matter, by position.
    rate : int
        Nano-ε per row, for all measured margins together.
    mechanism : "margins" or "cells"

    Returns
    -------
    TablePlan

    Examples
    --------
    >>> from sfumato.histograms.bins import Axis, Bins
    >>> from sfumato.statistics.margin_plan import subsets
    >>> wards = Bins((Axis.categories("sex", ["F", "M"]), Axis.categories("ward", [f"w{i}" for i in range(40)])))
    >>> asked = tuple(subsets(range(2))[1:])
    >>> plans = [plan_table(Terms(), wards, asked, rate=10**9, mechanism=m) for m in ("margins", "cells")]
    >>> [round(plan.expected_rmse, 2) for plan in plans]
    [3.03, 5.14]
    """
    rates = {margin: rate * parts // PARTS for margin, parts in shares_of(mechanism, bins, asked).items()}
    if min(rates.values()) < 1:
        raise InputError(
            f"ε is too small to be divided among {len(rates)} measured margins; raise it, or ask for fewer `margins`"
        )
    return TablePlan(terms, bins, asked, rates, mechanism)


def plan_margins(terms: Terms, bins: Bins, asked: tuple[Columns, ...], rate: int) -> TablePlan:
    """`margins`."""
    return plan_table(terms, bins, asked, rate=rate)


def plan_cells(terms: Terms, bins: Bins, asked: tuple[Columns, ...], rate: int) -> TablePlan:
    """`cells`."""
    return plan_table(terms, bins, asked, rate=rate, mechanism="cells")


MECHANISMS = (
    Mechanism(
        "margins",
        ("table",),
        plan_margins,
        "a planned set of margins, each at its part of ε, and one table fitted to them by least squares",
        needs=("one epsilon",),
        paper="Barak et al. 2007; Xiao, He, Zhang & Kifer 2023",
    ),
    Mechanism(
        "cells",
        ("table",),
        plan_cells,
        "noise on every cell of the full table; margins are sums of noisy cells",
        needs=("one epsilon",),
        paper="Dwork, McSherry, Nissim & Smith 2006",
    ),
)
