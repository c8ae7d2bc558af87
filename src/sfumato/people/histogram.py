"""A histogram in which everybody enters with their own budget: the affine count, bin by bin.

    count_j = n ( Σ_u m_u [u in bin j] + Lap(1) ) / Σ_u m_u,    m_u = min(ε_u, r)

Guarantee. A record of person u sits in one bin and moves its sum by m_u; the noise of every bin has scale one, so u
loses m_u times the rows they own, which the weights keep at most ε_u. The cap, the divisor and n come from the public
roster.

Error of a bin with share p of the people, if budgets are independent of the values: noise ``2 (n / Σ m)²`` plus
``n² p (1 - p) (Σ m²/(Σ m)² - 1/n)`` from unequal weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import BudgetError, InputError
from sfumato.histograms.bins import Bins
from sfumato.histograms.result import Histogram, RangeAnswer
from sfumato.people.cells import CellBracket, bracket_interval
from sfumato.people.estimate import Bracket
from sfumato.people.gaps import bias_at
from sfumato.people.headline import ALARM, ANY_DATA
from sfumato.people.mechanisms.affine import optimal_cap
from sfumato.people.question import Question
from sfumato.privacy import NANO, Charge, Exact, Meter, PersonBudgets, as_epsilon
from sfumato.privacy.integers import exact_dot
from sfumato.privacy.terms import Terms
from sfumato.registry import Mechanism

if TYPE_CHECKING:
    import pandas as pd

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class PersonalRange:
    """Number of people in some bins, with its intervals.

    Attributes
    ----------
    value : float
        The estimate: the sum of the bins.
    if_independent : Bracket
        What the interval is made of if budgets are independent of the values.
    any_data : Bracket, optional
        The same for any data, where the mechanism has it.
    """

    value: float
    if_independent: Bracket = field(repr=False)
    any_data: Bracket | None = field(default=None, repr=False)

    def interval(self, confidence: float = 0.95, *, independent: bool = False) -> tuple[float, float]:
        """Covers the true number with a probability of about `confidence`.

        For any data where the mechanism has `any_data`; else, or with `independent`, if budgets do not depend on the values.
        """
        narrow = independent or self.any_data is None
        return bracket_interval(self.if_independent if narrow else self.any_data, confidence)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class PersonalHistogram(Histogram):
    """A histogram over the people of a roster.

    Attributes
    ----------
    counts, bins, guarantee, mechanism, noise, measurements, parameters, expected_rmse, warnings, tree
        See `Histogram`.
    bin_losses : int64 array
        The largest loss of anybody, in every bin, in nano-ε.
    people : int
        Size of the public roster.
    noise_scale : float
        Scale of the noise of one bin, in people: of the weighted histogram.
    imbalance : float
        ``Σ m² / (Σ m)² - 1/n`` for its weights m of n people: what unequal weights add to the error.
    any_data, if_independent : CellBracket, optional
        Where the mechanism has both: the counts that hold for any data, and those that hold if budgets are independent of
        the values. The first make the interval.
    head_scales : tuple of float
        What the noise in each head count of a private roster adds to a bin that holds everybody (see `linear`).
    """

    people: int = 0
    noise_scale: float = 0.0
    imbalance: float = 0.0
    any_data: CellBracket | None = field(default=None, repr=False)
    if_independent: CellBracket | None = field(default=None, repr=False)
    head_scales: tuple[float, ...] = ()

    def select(self, mask: NDArray[np.bool_]) -> RangeAnswer:
        flat = np.asarray(mask, dtype=bool).reshape(-1)
        if flat.size != self.bins.size:
            raise InputError(f"a selection of {flat.size} bins for a histogram of {self.bins.size}")
        safe = None if self.any_data is None else self.any_data.over(flat)
        # the same two names as a RangeAnswer, with another law of the error
        return PersonalRange(float(self.flat[flat].sum()), self._keen.over(flat), safe)  # type: ignore[return-value]

    def interval(
        self, confidence: float = 0.95, *, independent: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper ends for every bin on its own, each of which holds with a probability of about `confidence`.

        Where the histogram carries `any_data` they hold for any data, and `independent=True` asks for the narrower ones that
        hold if budgets are independent of the values. Without it they always rest on that.
        """
        seen = self._keen if independent or self.any_data is None else self.any_data
        low, high = seen.interval(confidence)
        return low.reshape(self.bins.shape), high.reshape(self.bins.shape)

    @property
    def alarm(self) -> str | None:
        """Where the two noisy histograms of `adaptive` differ by more than chance: what to tell a reader first."""
        agree = self.parameters.get("bins_agree")
        if agree is None or agree >= ALARM:
            return None
        return (
            f"Consent and values seem to go together here (the bins agree with a probability of {agree:.2g}): the interval "
            f"for any data is the one to use. The counts are {self.mechanism}'s: the more two answers differ, the more they "
            "rest on the one that assumes nothing."
        )

    def shown_interval(self) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
        if self.any_data is None:
            return super().shown_interval()
        low, high = self.any_data.interval(0.95)
        return low, high, f"95% interval {ANY_DATA}"

    def to_frame(self) -> pd.DataFrame:
        """One row per bin; the 95% interval for any data stands beside the count where there is one."""
        frame = super().to_frame()
        if self.any_data is not None:
            low, high, _ = self.shown_interval()
            place = int(frame.columns.get_loc("count")) + 1  # type: ignore[arg-type]
            frame.insert(place, "low", low)
            frame.insert(place + 1, "high", high)
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers; see `Histogram.to_dict`."""
        more: dict[str, Any] = {"people": self.people, "noise_scale": self.noise_scale, "imbalance": self.imbalance}
        if self.alarm is not None:
            more["alarm"] = self.alarm
        if self.head_scales:
            more["head_scales"] = list(self.head_scales)
        both = {"any_data": self.any_data, "if_independent": self.if_independent}
        return {**super().to_dict(), **more, **{k: v.to_dict() for k, v in both.items() if v is not None}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The histogram that `to_dict` wrote down as `data`."""
        more: dict[str, Any] = {name: data[name] for name in ("people", "noise_scale", "imbalance")}
        both: dict[str, Any] = {
            k: CellBracket.from_dict(data[k]) for k in ("any_data", "if_independent") if data.get(k) is not None
        }
        return cls(**cls._fields_of(data), **more, **both, head_scales=tuple(data.get("head_scales", ())))

    @property
    def _keen(self) -> CellBracket:
        """What holds if budgets are independent of the values."""
        if self.if_independent is not None:
            return self.if_independent
        rows = self.guarantee.rows_per_person
        return CellBracket(self.flat, self.people, self.noise_scale, self.imbalance, rows=rows, heads=self.head_scales)


@dataclass(frozen=True, eq=False)
class PersonalHistogramPlan:
    """Weights fixed from the public roster before anything is read."""

    terms: Terms
    bins: Bins
    weights: Integers

    @property
    def budgets(self) -> PersonBudgets:
        assert self.terms.budgets is not None
        return self.terms.budgets

    @property
    def weightings(self) -> tuple[Integers, ...]:
        """The weights that `run` asks for."""
        return (self.weights,)

    @property
    def charge(self) -> Charge:
        return Charge.of_people(self.weights * self.terms.factor)

    @cached_property
    def mass(self) -> int:
        """Σ m over the people, in nano-ε."""
        return exact_dot(self.weights, self.budgets.counts)

    @property
    def noise_scale(self) -> float:
        """Scale of the noise of one bin, in people."""
        return NANO * self.budgets.people / self.mass

    @cached_property
    def imbalance(self) -> float:
        squares = float(np.dot(self.weights.astype(np.float64) ** 2, self.budgets.counts))
        return max(0.0, squares / float(self.mass) ** 2 - 1 / self.budgets.people)

    @property
    def head_scales(self) -> tuple[float, ...]:
        """What the noise in each head count adds to a bin that holds everybody."""
        if self.budgets.noise is None:
            return ()
        share = self.budgets.people * self.weights / self.mass
        return tuple((np.abs(share - 1) * self.terms.rows_per_person * self.budgets.noise).tolist())

    @property
    def expected_rmse(self) -> float:
        """Per bin, as if the people were spread evenly over the bins."""
        share = 1 / self.bins.size
        spread = self.budgets.people**2 * share * (1 - share) * self.imbalance
        heads = 2 * share**2 * float(np.square(self.head_scales).sum())
        return float(np.sqrt(spread + 2 * self.noise_scale**2 + heads))

    @cached_property
    def bias_bound(self) -> float:
        """The most that a bin can be off on average, over all data."""
        n = self.budgets.people
        return float(np.dot(self.budgets.counts, np.abs(self.weights / self.mass - 1 / n))) * n / 2

    @property
    def assumes_independence(self) -> bool:
        return self.imbalance > 1e-12

    @property
    def worst_rmse(self) -> float:
        """Of a bin, over all data."""
        return float(np.hypot(self.bias_bound, np.sqrt(2) * self.noise_scale))

    def error_at(self, gap: float) -> float:
        """Of a bin whose share differs by `gap` between the stricter people and the rest; `gaps` says what that is."""
        return float(np.hypot(self.expected_rmse, gap * self.bias_of_gap))

    @cached_property
    def bias_of_gap(self) -> float:
        """What a gap of 1 adds to the error of a bin; see `gaps`."""
        return bias_at(Question(self.terms), self.weights / self.mass, 1.0)

    def run(self, sums: Callable[[Integers], Exact[Integers]], meter: Meter) -> PersonalHistogram:
        """`sums` returns the weighted sum of every bin for a weight per person group."""
        noisy = meter.laplace(
            sums(self.weights).map(lambda found: found.reshape(-1)),
            rate=np.ones(self.bins.size, dtype=np.int64),
            weights=self.weights,
            label="weighted histogram",
        )
        n = self.budgets.people
        counts = noisy.astype(np.float64) * n / self.mass
        share = np.clip(counts / n, 1 / n, 1 - 1 / n)
        heads = 2 * share**2 * float(np.square(self.head_scales).sum())
        left = np.sqrt(2 * self.noise_scale**2 + n**2 * share * (1 - share) * self.imbalance + heads)
        return PersonalHistogram(
            counts=counts,
            bins=self.bins,
            guarantee=meter.guarantee(),
            mechanism="affine",
            noise=left,
            bin_losses=np.full(self.bins.size, self.charge.total, dtype=np.int64),
            measurements=(),
            parameters={"cap": str(as_epsilon(int(self.weights.max())))},
            expected_rmse=self.expected_rmse,
            warnings=(
                f"Everybody enters with their own budget: counts are right on average if budgets are independent of the "
                f"values; in the worst case a bin is off by {math.ceil(self.bias_bound):,} people.",
            )
            if self.imbalance > 1e-12
            else (),
            people=n,
            noise_scale=self.noise_scale,
            imbalance=self.imbalance,
            head_scales=self.head_scales,
        )


def plan_histogram(held_to: Terms | PersonBudgets, bins: Bins) -> PersonalHistogramPlan:
    """The affine histogram over a roster; the cap is the best for people spread evenly over the bins.

    A roster alone stands for one row per person.

    >>> roster = PersonBudgets.from_tiers({"strict": (0.01, 5400), "standard": (0.2, 3700), "open": (1.0, 900)})
    >>> plan = plan_histogram(roster, Bins.numbered(20))
    >>> plan.charge.people.tolist()
    [10000000, 200000000, 240107384]
    """
    terms = Terms.of(held_to)
    budgets = terms.budgets
    if budgets is None:
        raise InputError("a personal histogram needs everyone's budget: terms with `budgets`")
    share = 1 / max(bins.size, 2)
    cap = min(optimal_cap(budgets, variance=share * (1 - share)), int(budgets.levels[-1]))
    if budgets.noise is not None:
        cap = _searched_cap(terms, bins, budgets)
    weights = np.minimum(budgets.levels, cap) // terms.factor
    if int(weights.max()) < 1:
        raise BudgetError("no budget of this roster buys one row; raise the budgets or lower rows_per_person")
    plan = PersonalHistogramPlan(terms, bins, weights)
    if plan.mass * terms.rows_per_person >= 2**62:
        raise InputError("the weighted sums of this roster do not fit in 64 bits; lower the largest budgets")
    return plan


def _searched_cap(terms: Terms, bins: Bins, budgets: PersonBudgets) -> int:
    """The best cap where head counts are noisy, by the error formula."""
    caps = np.unique(np.geomspace(int(budgets.levels[0]), int(budgets.levels[-1]), 60).astype(np.int64)).tolist()

    def error(cap: int) -> float:
        weights = np.minimum(budgets.levels // terms.factor, cap // terms.factor)
        return PersonalHistogramPlan(terms, bins, weights).expected_rmse if weights.any() else float("inf")

    return min(map(int, caps), key=error)


MECHANISM = Mechanism(
    "affine",
    ("histogram",),
    plan_histogram,
    "everybody at their own budget up to a cap, one noise per bin",
    needs=("personal budgets",),
)
