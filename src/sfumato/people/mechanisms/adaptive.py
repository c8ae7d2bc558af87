"""Adaptive: precise where budgets and values are independent, and never much worse than an answer that assumes nothing.

Two weighted sums, both of one noise. The *safe* one takes everybody up to the same low budget r, so that it is right for any
data (`robust`); the *keen* one takes what budgets leave beyond r, up to a cap, so that it is precise if budgets and values
are independent, and wrong by an unknown b if they are not:

    safe V = n (Σ min(ε_u, r) x_u + Lap) / Σ min(ε_u, r),     keen R = n (Σ m_u x_u + Lap) / Σ m_u,   m_u = min(ε_u - r, cap)

The answer starts from R and goes as far towards V as their distance d says: ``R + s ψ(d / s)``, s the scale of the safe
noise. ψ is a point of the best possible frontier between the two ends (`shrinkage`), from public noise levels alone.

Guarantee. Person u weighs min(ε_u, r) in the first sum and at most ε_u - r in the second: they lose at most ε_u. All that
follows is computed from the two noisy sums and the public roster: post-processing.

Intervals. The first one printed is that of the safe sum, with the bias it may have where some budgets are below r: it holds
for any data. No interval can adapt (Low 1997), so the narrow one, around R, is printed second and says what it assumes.

Alarm. Under independence d has a known law (two Laplace noises and sampling), so the probability of a larger distance is a
p-value that costs nothing. It is in the details, and below `headline.ALARM` it changes what is said first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.people.error_law import LaplacePlusNormal
from sfumato.people.estimate import Bracket, Estimate
from sfumato.people.gaps import cuts, patterns
from sfumato.people.headline import P_VALUE
from sfumato.people.linear import LinearPlan, describe_cap, lattice_words, weighted_mean
from sfumato.people.mechanisms.affine import affine_plan
from sfumato.people.mechanisms.robust import robust_plan
from sfumato.people.mechanisms.simple import minimum_plan
from sfumato.people.question import Question
from sfumato.people.reading import Reader, Together
from sfumato.people.shrinkage import Shrinkage
from sfumato.privacy import Charge, Meter, Nano, PersonBudgets
from sfumato.registry import Mechanism

_CAPS = 400
PRICE = 1.3  # the largest error is at most this many times that of Minimum, which is unbiased for any data


@dataclass(frozen=True, eq=False)
class AdaptivePlan:
    """Two sums, fixed from public facts. Without a keen one (all budgets alike) the safe one is the answer."""

    question: Question
    safe: LinearPlan
    keen: LinearPlan | None
    mechanism: str = "adaptive"

    @property
    def charge(self) -> Charge:
        """What each person group loses in both."""
        weights = [part.weights for plan in (self.safe, self.keen) if plan is not None for part in plan.rounds]
        return Charge.of_people(np.sum(weights, axis=0) * self.question.cost)

    @cached_property
    def covered(self) -> float:
        """The share of the answer that the safe sum sees: 1 unless some budgets are below r."""
        return float(np.dot(self.question.heads, self.safe.influence))

    @cached_property
    def safe_scale(self) -> float:
        """s, in the unit of the answer."""
        heads = self.safe.head_variance(self.question.largest)
        return float(np.sqrt(self.safe.noise_scales[0] ** 2 + heads / 2))

    def _spread(self, variance: float) -> float:
        """A: the error of the keen sum under independence, in scales of the safe noise."""
        assert self.keen is not None
        noise = 2 * float(np.square(self.keen.noise_scales).sum()) + self.keen.head_variance(self.question.likely)
        return float(np.sqrt(self.keen.spread(variance) ** 2 + noise)) / self.safe_scale

    @cached_property
    def weight(self) -> float:
        """λ, from public facts: equal regrets towards affine at independence and towards robust in the worst case."""
        sd = float(np.sqrt(2)) * self.safe_scale
        keenest = affine_plan(self.question).expected_rmse
        bias, dearest = self.safe.bias_bound, PRICE * minimum_plan(self.question).expected_rmse

        def regret(made: Shrinkage) -> float:
            return made.if_independent * sd / keenest

        def price(made: Shrinkage) -> float:
            if made.worst * sd + bias > dearest:  # the bias at a gap of half the range
                return float("inf")
            return float(np.hypot(made.worst * sd, bias) / np.hypot(sd, bias))

        return Shrinkage.balanced(self._spread(self.question.variance), regret, price).weight

    def _worst(self, made: Shrinkage) -> float:
        """The largest error over all data: what ψ makes of b, and the most that may be unseen beside such a b."""
        ends, unseen = self._patterns
        places = np.append(made.gaps, [np.nextafter(made.gaps[-1], np.inf), np.nextafter(made.far, 0)])
        within = np.concatenate([-places[::-1], places]) * self.safe_scale
        b = np.concatenate([ends, within[(within > ends[0]) & (within < ends[-1])]])
        error = made.error(b / self.safe_scale) * np.sqrt(2) * self.safe_scale
        return float((error + np.interp(b, ends, unseen)).max()) + self.safe.rounding_bound

    @cached_property
    def _patterns(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return patterns(self.question, self._parting, self._joined - 1 / self.question.people)

    def shrinkage(self, variance: float) -> Shrinkage:
        """ψ, where the people's totals have this variance."""
        return self._planned if variance == self.question.variance else self._shrinkage(variance)

    @cached_property
    def _planned(self) -> Shrinkage:
        return self._shrinkage(self.question.variance)

    def _shrinkage(self, variance: float) -> Shrinkage:
        return Shrinkage.of(self._spread(variance), weight=self.weight)

    @cached_property
    def _parting(self) -> NDArray[np.float64]:
        """Influence of a person of each group on the distance of the two sums, whose expectation is b."""
        assert self.keen is not None
        return self.safe.influence - self.covered * self.keen.influence

    @property
    def _joined(self) -> NDArray[np.float64]:
        """The same on the answer that goes all the way to the safe sum, the keen one standing for whom it does not see."""
        assert self.keen is not None
        return self.safe.influence + (1 - self.covered) * self.keen.influence

    @property
    def assumes_independence(self) -> bool:
        return False

    @cached_property
    def expected_rmse(self) -> float:
        """If budgets and values are independent; see `error_at` for when they are not."""
        return self.error_at(0.0)

    def error_at(self, gap: float) -> float:
        """The error at a gap between the stricter people and the rest; `gaps` says what that is."""
        if self.keen is None:
            return self.safe.expected_rmse
        across, along = self._cuts if gap else (np.zeros(1), np.zeros(1))
        b = gap * across / self.safe_scale
        error = self.shrinkage(self.question.variance).error(b) * np.sqrt(2) * self.safe_scale + gap * along
        return float(np.hypot(error.max(), self.safe.rounding_bound))

    @cached_property
    def _cuts(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What a gap of 1 makes of b, and how much it takes from the answer, for every cut of the roster and none."""
        q, none = self.question, [0.0]
        return np.concatenate([none, cuts(q, self._parting)]), np.concatenate([none, np.abs(cuts(q, self._joined))])

    @cached_property
    def worst_rmse(self) -> float:
        """The largest error over all data, whatever the pattern."""
        return self.safe.expected_rmse if self.keen is None else self._worst(self.shrinkage(self.question.variance))

    @property
    def bias_bound(self) -> float:
        """Of the safe sum: what nobody's budget can decide."""
        return self.safe.bias_bound

    def run(self, reader: Reader, meter: Meter) -> Estimate:
        """Two noisy sums, then the shrinkage."""
        asked = [part.weights for plan in (self.safe, self.keen) if plan is not None for part in plan.rounds]
        reader = Together(reader, tuple(asked))
        first = self.safe.run(reader, meter)
        safe = Bracket(first.value, first.law, first.bias_bound)
        if self.keen is None:
            return replace(first, mechanism=self.mechanism, any_data=safe, if_independent=safe, guarantee=meter.guarantee())
        second = self.keen.run(reader, meter)
        q, scale = self.question, self.safe_scale
        total, missing = q.people * q.unit, 1 - self.covered
        # The middle that `robust` fills in for unseen people is taken out again: here the keen sum stands for them.
        moved = (first.value - self.safe.centre * missing * total) - self.covered * second.value
        mean = min(max(second.value / total, float(q.low * q.rows_per_person)), float(q.high * q.rows_per_person))
        variance = max((q.high * q.rows_per_person - mean) * (mean - q.low * q.rows_per_person), q.span**2 / (q.people + 1))
        value = second.value + scale * float(self.shrinkage(variance)(moved / scale))
        return replace(
            first,
            value=value,
            law=second.law,
            guarantee=meter.guarantee(),
            mechanism=self.mechanism,
            expected_rmse=self.expected_rmse,
            rounding=q.rounding_bound,
            parameters={
                "safe": dict(self.safe.parameters),
                "keen": dict(self.keen.parameters),
                "weight": self.weight,
                **lattice_words(q, q.rounding_bound),
            },
            warnings=first.warnings,
            details={"safe_value": first.value, "keen_value": second.value, P_VALUE: self._p_value(moved, variance)},
            any_data=safe,
            if_independent=Bracket(second.value, second.law, 0.0),
        )

    def _p_value(self, distance: float, variance: float) -> float:
        """How often two sums of the same thing would lie so far apart."""
        assert self.keen is not None
        q = self.question
        sampling = q.people * q.unit * float(np.sqrt(variance * np.dot(q.budgets.counts, self._parting**2)))
        noises = (self.safe_scale, self.covered * float(self.keen.noise_scales[0]))
        return max(0.0, 1 - LaplacePlusNormal(noises, sampling).coverage(abs(distance)))


def adaptive_plan(question: Question) -> AdaptivePlan:
    """Both sums: r by the worst case of the safe one, the cap by the expected error of the keen one."""
    safe = robust_plan(question, unseen=1.0)  # the keen sum stands for the unseen: they may be off by the whole range
    used = safe.rounds[0].weights
    left = question.levels // question.cost - used
    if not int(np.dot(left > 0, question.budgets.counts > 0)):
        return AdaptivePlan(question, safe, None)
    if question.budgets.noise is None:
        cap = best_cap(question.budgets, left, question.variance, 2 * (1e9 * question.divisor) ** 2)
    else:
        cap = _searched_cap(question, left)
    keen = weighted_mean("adaptive, keen", question, np.minimum(left, cap), cap=describe_cap(Nano(cap * question.cost)))
    return AdaptivePlan(question, replace(safe, mechanism="adaptive, safe"), keen)


def _searched_cap(question: Question, left: NDArray[np.int64]) -> int:
    """The same where head counts are noisy, by the error formula of the sum itself."""
    caps = np.unique(np.geomspace(max(1, int(left[left > 0].min())), int(left.max()), 60).astype(np.int64)).tolist()
    return min(map(int, caps), key=lambda cap: weighted_mean("", question, np.minimum(left, cap)).expected_rmse)


def best_cap(budgets: PersonBudgets, left: NDArray[np.int64], variance: float, noise: float) -> int:
    """The cap on what is left that gives the keen sum the least expected error, on a geometric grid.

    `variance` is that of the people's values, `noise` that of the sum's noise.
    """
    counts = budgets.counts.astype(np.float64)
    weights = left.astype(np.float64)
    caps = np.geomspace(max(1.0, float(weights[weights > 0].min())), float(weights.max()), _CAPS)
    w, c = weights, counts
    if (np.diff(left) < 0).any():
        order = np.argsort(weights)
        w, c = weights[order], counts[order]
    heads, mass, square = (np.concatenate([[0.0], np.cumsum(x)]) for x in (c, c * w, c * w * w))
    below = np.searchsorted(w, caps)
    above = heads[-1] - heads[below]
    total = mass[below] + caps * above
    squares = square[below] + caps**2 * above
    error = variance * (squares / total**2 - 1 / budgets.people) + noise / total**2
    return max(1, int(caps[int(np.argmin(error))]))


MECHANISM = Mechanism(
    "adaptive",
    ("count", "sum", "mean"),
    adaptive_plan,
    "precise if budgets and values are independent, and never much worse than an answer that assumes nothing",
)
