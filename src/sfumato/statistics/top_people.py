"""The most frequent values where people have budgets of their own: a personal histogram of all values, then its largest.

**Guarantee.** That of the histogram: person u loses at most ε_u (see `people.histogram` and
`people.mechanisms.adaptive_cells`). Which cells are the largest is computed from released figures. With counts, half of
everybody's budget goes to the list and half to a second histogram over all values, of which the listed ones are shown:
its noise knows nothing of the choice.

How good the list is, is told by the first histogram itself: with the confidence (1 - c) / N per cell all N cells lie in
their intervals together, so no listed value is rarer than the k-th most frequent by more than the largest upper end of what
is not listed less the smallest lower end of what is. With `adaptive` these intervals hold for any data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.bins import Bins
from sfumato.people.histogram import PersonalHistogram, PersonalHistogramPlan, plan_histogram
from sfumato.people.mechanisms.adaptive_cells import AdaptiveHistogramPlan, plan_adaptive_histogram
from sfumato.privacy import Charge, Exact, Meter
from sfumato.privacy.terms import Terms
from sfumato.registry import Mechanism
from sfumato.statistics.top import beaten, root_mean_square
from sfumato.statistics.top_result import TopValues

Ints = NDArray[np.int64]
Sums = Callable[[Ints], Exact[Ints]]
_NOT_ANY = "How good the list is rests on budgets that are independent of the values."


@dataclass(frozen=True, eq=False)
class PersonalTopPlan:
    """One histogram for the list and, if counts are asked, one for these.

    Attributes
    ----------
    histogram : PersonalHistogramPlan or AdaptiveHistogramPlan
        At the part of everybody's budget that one histogram gets.
    k : int
    counted : bool
        Whether a second histogram says how often each listed value occurs.
    """

    histogram: PersonalHistogramPlan | AdaptiveHistogramPlan
    k: int
    counted: bool

    @property
    def charge(self) -> Charge:
        """What each person group loses."""
        people = self.histogram.charge.people
        assert people is not None
        return Charge.of_people(people * (2 if self.counted else 1))

    @property
    def _factor(self) -> float:
        """The shortfall of a list in errors of one cell: as if all noise were Laplace."""
        return float(root_mean_square(beaten, self.histogram.bins.size, self.k) / np.sqrt(2))

    @property
    def expected_rmse(self) -> float:
        """Rows by which a listed value is rarer than the k-th, about."""
        return self._factor * self.histogram.expected_rmse

    def error_at(self, gap: float) -> float:
        """The same where the stricter people and the rest differ."""
        return self._factor * self.histogram.error_at(gap)

    @property
    def worst_rmse(self) -> float:
        """The same over all data."""
        return self._factor * self.histogram.worst_rmse

    @property
    def bias_bound(self) -> float:
        """How far two cells may be off beside the noise."""
        return 2 * self.histogram.bias_bound

    @property
    def assumes_independence(self) -> bool:
        """Whether the figures rest on it."""
        return self.histogram.assumes_independence

    def run(self, sums: Sums, meter: Meter) -> TopValues:
        """The list from one histogram, the counts from another."""
        first = self.histogram.run(sums, meter)
        chosen = np.argsort(-first.flat, kind="stable")[: self.k]
        second = self.histogram.run(sums, meter) if self.counted else None
        low, high = (None, None) if second is None else (end.reshape(-1)[chosen] for end in second.interval(0.95))
        limits = {str(c): shortfall(first, chosen, c) for c in (0.5, 0.95, 0.99)}
        return TopValues(
            bins=first.bins,
            places=chosen.astype(np.int64),
            guarantee=meter.guarantee(),
            mechanism=first.mechanism,
            shortfalls=limits,
            counts=None if second is None else second.flat[chosen],
            low=low,
            high=high,
            parameters={"k": self.k, "values": first.bins.size, **first.parameters},
            expected_rmse=self.expected_rmse,
            warnings=(*first.warnings, *((_NOT_ANY,) if self.assumes_independence else ())),
        )


def shortfall(histogram: PersonalHistogram, chosen: Ints, confidence: float) -> float:
    """How much rarer a listed value may be than the k-th, by intervals that hold all together; see the module."""
    low, high = histogram.interval(1 - (1 - confidence) / histogram.bins.size)
    listed = np.zeros(histogram.bins.size, dtype=bool)
    listed[chosen] = True
    return float(max(0.0, high.reshape(-1)[~listed].max(initial=0.0) - low.reshape(-1)[listed].min()))


def _plan(make: Callable[[Terms, Bins], PersonalHistogramPlan | AdaptiveHistogramPlan]) -> Callable[..., PersonalTopPlan]:
    def plan(terms: Terms, bins: Bins, k: int, counted: bool) -> PersonalTopPlan:
        budgets = terms.budgets
        assert budgets is not None
        half = replace(terms, budgets=budgets.share(Fraction(1, 2))) if counted else terms
        made = make(half, bins)
        return PersonalTopPlan(replace(made, terms=terms), k, counted)

    return plan


def plan_adaptive_top(terms: Terms, bins: Bins, k: int, counted: bool) -> PersonalTopPlan:
    """`adaptive`."""
    return _plan(plan_adaptive_histogram)(terms, bins, k, counted)


def plan_affine_top(terms: Terms, bins: Bins, k: int, counted: bool) -> PersonalTopPlan:
    """`affine`."""
    return _plan(plan_histogram)(terms, bins, k, counted)


MECHANISMS = tuple(
    Mechanism(name, ("top",), make, summary, needs=("personal budgets",))
    for name, make, summary in (
        (
            "adaptive",
            plan_adaptive_top,
            "the largest of a histogram that is right for any data and keen where budgets agree",
        ),
        ("affine", plan_affine_top, "the largest of a histogram in which everybody weighs what they granted, up to a cap"),
    )
)
