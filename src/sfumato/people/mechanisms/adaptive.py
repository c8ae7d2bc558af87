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
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.people.estimate import Bracket, Estimate
from sfumato.people.linear import LinearPlan, describe_cap, weighted_mean
from sfumato.people.mechanisms.robust import robust_plan
from sfumato.people.question import Question
from sfumato.people.reading import Reader
from sfumato.people.shrinkage import Shrinkage
from sfumato.privacy import Charge, Meter, Nano
from sfumato.registry import Mechanism

_CAPS = 400


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

    @property
    def covered(self) -> float:
        """The share of the answer that the safe sum sees: 1 unless some budgets are below r."""
        return float(np.dot(self.question.budgets.counts, self.safe.influence))

    @property
    def safe_scale(self) -> float:
        """s, in the unit of the answer."""
        heads = self.safe.head_variance(self.question.largest)
        return float(np.sqrt(self.safe.noise_scales[0] ** 2 + heads / 2))

    def shrinkage(self, variance: float) -> Shrinkage:
        """ψ, where the people's totals have this variance."""
        assert self.keen is not None
        noise = 2 * float(np.square(self.keen.noise_scales).sum()) + self.keen.head_variance(self.question.likely)
        return Shrinkage.of(float(np.sqrt(self.keen.spread(variance) ** 2 + noise)) / self.safe_scale)

    @cached_property
    def expected_rmse(self) -> float:
        """If budgets and values are independent; see `error_at` for when they are not."""
        return self.error_at(0.0)

    def error_at(self, gap: float) -> float:
        """The expected error if the keen sum's people differ by `gap` (a share of the range) from all people."""
        if self.keen is None:
            return self.safe.expected_rmse
        q = self.question
        b = gap * q.people * q.span * q.unit / self.safe_scale
        error = float(self.shrinkage(q.variance).error(b)) * np.sqrt(2) * self.safe_scale
        return float(np.hypot(error, self.safe.rounding_bound))

    @property
    def worst_rmse(self) -> float:
        """The largest expected error over all gaps."""
        if self.keen is None:
            return self.safe.expected_rmse
        worst = self.shrinkage(self.question.variance).worst * np.sqrt(2) * self.safe_scale
        return float(np.hypot(worst, self.bias_bound) + self.safe.rounding_bound)

    @property
    def bias_bound(self) -> float:
        """Of the safe sum: what nobody's budget can decide."""
        return self.safe.bias_bound

    def run(self, reader: Reader, meter: Meter) -> Estimate:
        """Two noisy sums, then the shrinkage."""
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
            parameters={
                "safe": dict(self.safe.parameters),
                "keen": dict(self.keen.parameters),
            },
            warnings=first.warnings,
            details={"safe_value": first.value, "keen_value": second.value},
            any_data=safe,
            if_independent=Bracket(second.value, second.law, 0.0),
        )


def adaptive_plan(question: Question) -> AdaptivePlan:
    """Both sums: r by the worst case of the safe one, the cap by the expected error of the keen one."""
    safe = robust_plan(question)
    used = safe.rounds[0].weights
    left = question.levels // question.cost - used
    if not int(np.dot(left > 0, question.budgets.counts > 0)):
        return AdaptivePlan(question, safe, None)
    cap = _best_cap(question, left) if question.budgets.noise is None else _searched_cap(question, left)
    keen = weighted_mean("adaptive, keen", question, np.minimum(left, cap), cap=describe_cap(Nano(cap * question.cost)))
    return AdaptivePlan(question, replace(safe, mechanism="adaptive, safe"), keen)


def _searched_cap(question: Question, left: NDArray[np.int64]) -> int:
    """The same where head counts are noisy, by the error formula of the sum itself."""
    caps = np.unique(np.geomspace(max(1, int(left[left > 0].min())), int(left.max()), 60).astype(np.int64)).tolist()
    return min(map(int, caps), key=lambda cap: weighted_mean("", question, np.minimum(left, cap)).expected_rmse)


def _best_cap(question: Question, left: NDArray[np.int64]) -> int:
    """The cap on what is left that gives the keen sum the least expected error, on a geometric grid."""
    counts = question.budgets.counts.astype(np.float64)
    weights = left.astype(np.float64)
    caps = np.geomspace(max(1.0, float(weights[weights > 0].min())), float(weights.max()), _CAPS)
    order = np.argsort(weights)
    w, c = weights[order], counts[order]
    heads, mass, square = (np.concatenate([[0.0], np.cumsum(x)]) for x in (c, c * w, c * w * w))
    below = np.searchsorted(w, caps)
    above = heads[-1] - heads[below]
    total = mass[below] + caps * above
    squares = square[below] + caps**2 * above
    noise = 2 * (1e9 * question.divisor) ** 2
    error = question.variance * (squares / total**2 - 1 / question.people) + noise / total**2
    return max(1, int(caps[int(np.argmin(error))]))


MECHANISM = Mechanism(
    "adaptive",
    ("count", "sum", "mean"),
    adaptive_plan,
    "precise if budgets and values are independent, and never much worse than an answer that assumes nothing",
)
