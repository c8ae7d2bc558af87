"""How quantiles will be chosen: shares of the price, weights per person group, expected errors. Public facts only.

One ε for all: every record weighs one. Where budgets differ a record of group g weighs ``w_g = ⌊100 min(ε_g, r) / r⌋``
hundredths for a cap r, and the price is r for a full weight: group g loses w_g/100 of it, at most ε_g (`ranks`: spread
and noise are linear in the weight).

`choice` takes the r whose worst case is least. At the smallest budget everybody has the same weight and nothing is
assumed; a larger r sees people with less than r in part, and what they lack, U, may lie anywhere, so a rank may be off by
``max(q, 1 - q) U`` beside the noise. The interval includes it: it holds for any data.

`weighted` takes the r with the least expected error if budgets are independent of the values. Then the weighted rank of a
point differs from its rank by ``n √(q (1 - q) (Σ w²/(Σ w)² - 1/n))`` (root mean square) beside the noise. If they are not
independent it is the quantile of the generous.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.errors import BudgetError
from sfumato.people.gaps import bias_at
from sfumato.people.question import Question
from sfumato.privacy import NANO, Charge, Exact, Meter, Nano, PersonBudgets
from sfumato.privacy.terms import Terms
from sfumato.privacy.units import epsilon_text
from sfumato.statistics.quantile_intervals import Around, Unseen, count_around, intervals
from sfumato.statistics.quantile_search import Halving, levels, plan_search, rank_errors, search
from sfumato.statistics.ranks import Floats, Integers

FULL = 100  # the largest weight
COUNTING = 0.4  # of an interval's share: the noisy counts between the chosen points; the rest chooses its ends
_ROUNDING = 4_000  # nano-ε of a price that pay for rounding the loss of every step up, in every group
_LEAST = 100_000  # nano-ε: below it a step of the search would have none


@dataclass(frozen=True, eq=False)
class Found:
    """What came out, as points of the lattice.

    Attributes
    ----------
    points : int64 array
        One per target.
    ends : int64 array or None
        Lower and upper end of each interval.
    around : Around or None
        The noisy weights between the points.
    """

    points: Integers
    ends: Integers | None = None
    around: Around | None = None


@dataclass(frozen=True, eq=False)
class QuantilePlan:
    """Quantiles of one column, fixed from public facts.

    Attributes
    ----------
    terms : Terms
    targets : tuple of Fraction
        In increasing order.
    size : int
        Points of the lattice.
    nano : int
        What a row of full weight may lose.
    interval : float
        The share of it that goes to the intervals.
    weights : int64 array or None
        What a row of each person group weighs, `FULL` at most.
    mechanism : str
    """

    terms: Terms
    targets: tuple[Fraction, ...]
    size: int
    nano: int
    interval: float
    weights: Integers | None = None
    mechanism: str = "choice"

    def __post_init__(self) -> None:
        if self.nano < _LEAST:
            raise BudgetError(
                f"ε {epsilon_text(Nano(self.nano * self.terms.factor))} is too small for quantiles of this table; raise it, "
                "or lower rows_per_person"
            )

    @property
    def charge(self) -> Charge:
        """What everybody, or each person group, loses at most."""
        if self.weights is None:
            return Charge(Nano(self.nano * self.terms.factor))
        lost = self.weights * self.nano // FULL + np.where(self.weights > 0, _ROUNDING // FULL, 0)
        return Charge.of_people(lost * self.terms.factor)

    @property
    def assumes_independence(self) -> bool:
        return self.mechanism == "weighted"

    @cached_property
    def steps(self) -> Halving:
        """The search, at what the intervals leave."""
        return plan_search(self.targets, self.nano - int(self.nano * self.interval))

    # --- people who weigh less ---------------------------------------------------------------------------------------

    @property
    def budgets(self) -> PersonBudgets | None:
        return self.terms.budgets if self.weights is not None else None

    @cached_property
    def _full_heads(self) -> float:
        """Σ w over the people, in full weights."""
        assert self.budgets is not None
        assert self.weights is not None
        return float(np.dot(self.budgets.counts, self.weights)) / FULL

    @property
    def records(self) -> float:
        """Records per full weight: 1 where everybody has it."""
        if self.budgets is None:
            return 1.0
        return self.budgets.people / max(self._full_heads, 1e-9)

    @cached_property
    def unseen(self) -> Unseen:
        """What the weights do not show: for any data, or by chance if budgets are independent of the values."""
        if self.budgets is None or self.weights is None:
            return Unseen()
        lacking = 1 - self.weights / FULL
        if self.assumes_independence:
            squares = float(np.dot(self.budgets.counts, np.square(self.weights / FULL)))
            return Unseen(imbalance=max(0.0, squares / self._full_heads**2 - 1 / max(self.budgets.people, 1)))
        heads = float(np.dot(self.budgets.counts, lacking))
        if self.budgets.noise is not None:  # of a private roster: the counts themselves are noisy
            heads += float(np.dot(4 * self.budgets.noise, lacking))
        return Unseen(weight=heads * FULL * self.terms.rows_per_person)

    # --- errors ------------------------------------------------------------------------------------------------------

    @cached_property
    def rank_rmse(self) -> Floats:
        """By how many records each value misses its rank, as a root mean square, where values are spread out."""
        noise = rank_errors(self.steps, len(self.targets)) * self.records
        if not self.unseen.imbalance or self.budgets is None:
            return noise
        shares = np.array([float(q) for q in self.targets])
        return np.asarray(np.hypot(noise, self.budgets.people * np.sqrt(shares * (1 - shares) * self.unseen.imbalance)))

    @property
    def expected_rmse(self) -> float:
        """The same over all targets."""
        return float(np.sqrt(np.mean(np.square(self.rank_rmse))))

    @property
    def bias_bound(self) -> float:
        """How many records a rank may be off beside the noise, for any data."""
        if self.budgets is None or self.weights is None:
            return 0.0
        furthest = max(float(max(q, 1 - q)) for q in self.targets)
        return furthest * float(np.dot(self.budgets.counts, 1 - self.weights / FULL))

    def error_at(self, gap: float) -> float:
        """The error if the share below the value differs by `gap` between the stricter people and the rest."""
        if self.budgets is None or self.weights is None:
            return self.expected_rmse
        return float(np.hypot(self.expected_rmse, gap * self._bias_of_gap))

    @cached_property
    def _bias_of_gap(self) -> float:
        assert self.weights is not None
        return bias_at(Question(self.terms), self.weights / FULL / self._full_heads, 1.0)

    @property
    def worst_rmse(self) -> float:
        """The largest error over all data where values are spread out."""
        noise = float(np.sqrt(np.mean(np.square(rank_errors(self.steps, len(self.targets)))))) * self.records
        return float(np.hypot(noise, self.bias_bound))

    # --- running -----------------------------------------------------------------------------------------------------

    def run(self, counts: Exact[Integers], meter: Meter, *, whole: bool = True) -> Found:
        """Choose the points; `counts` has the weight of the rows on every point, `whole` says that these are all rows."""
        points = search(meter, counts, self.steps, targets=len(self.targets), weights=self.weights, whole=whole)
        spare = int(self.nano * self.interval)
        counting = int(spare * COUNTING)
        if spare < 20 * FULL:  # too little for a noise and a choice each
            return Found(points)
        about = {"weights": self.weights}
        around = count_around(meter, counts, points, nano=counting, unseen=self.unseen, **about)
        ends = intervals(meter, counts, around, self.targets, points, size=self.size, nano=spare - counting, **about)
        return Found(points, ends, around)


def plan_choice(
    terms: Terms, targets: tuple[Fraction, ...], size: int, *, nano: int | None, interval: float
) -> QuantilePlan:
    """The plan that is right for any data: one ε (`nano`), or by the budgets of the terms.

    >>> roster = PersonBudgets.from_tiers({"strict": (0.01, 5400), "standard": (0.2, 3700), "open": (1.0, 900)})
    >>> plan = plan_choice(Terms(budgets=roster), (Fraction(1, 2),), 100, nano=None, interval=0.05)
    >>> plan.weights.tolist(), plan.charge.people.tolist()
    ([100, 100, 100], [9996040, 9996040, 9996040])
    """
    if nano is not None:
        return QuantilePlan(terms, targets, size, nano // terms.factor, interval)
    return min(_capped(terms, targets, size, interval, "choice"), key=lambda plan: plan.worst_rmse)


def plan_weighted(terms: Terms, targets: tuple[Fraction, ...], size: int, *, interval: float) -> QuantilePlan:
    """Everybody at their own budget up to the cap that is best if budgets are independent of the values."""
    return min(_capped(terms, targets, size, interval, "weighted"), key=lambda plan: plan.expected_rmse)


def _capped(terms: Terms, targets: tuple[Fraction, ...], size: int, interval: float, mechanism: str) -> list[QuantilePlan]:
    """Plans for caps between the smallest and the largest budget."""
    budgets = terms.budgets
    assert budgets is not None
    present = budgets.levels[budgets.counts > 0] if budgets.counts.any() else budgets.levels
    grid = np.geomspace(int(present[0]), int(present[-1]), 40).astype(np.int64)
    caps = np.unique(np.concatenate([present if present.size <= 40 else present[[0, -1]], grid]))
    found = []
    for cap in caps.tolist():
        nano = cap // terms.factor - _ROUNDING
        weights = np.minimum(budgets.levels * FULL // cap, FULL)
        if nano >= _LEAST and int(np.dot(weights, budgets.counts)) > 0:
            found.append(QuantilePlan(terms, targets, size, nano, interval, weights, mechanism))
    if not found:
        raise BudgetError(
            f"no budget of this roster buys {len(targets)} quantile{'s' if len(targets) > 1 else ''} "
            f"({levels(len(targets))} steps of at least ε {_LEAST / NANO:g} for each row of a person); raise the budgets"
        )
    return found
