"""Sampling (Jorgensen, Yu & Cormode 2015): keep each record with a probability that follows its budget, then one count.

Record u is kept with probability ``p_u = (e^ε_u - 1)/(e^t - 1)`` (1 if ε_u >= t), the sum of the sample gets noise for
ε = t, and the result is divided by the *public* ``Σ p_u``; without that division the answer is far too small.

Guarantee. Inside the sample a person loses t; not knowing whether they are in it makes that ``ln(1 + p_u (e^t - 1)) = ε_u``,
exact for absence. Probabilities are multiples of 2^-63, rounded down until the Meter's price, rounded up, fits the budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.people.bias import bias_warnings
from sfumato.people.error_law import LaplacePlusNormal
from sfumato.people.estimate import Estimate
from sfumato.people.gaps import bias_at
from sfumato.people.linear import describe_cap, lattice_words
from sfumato.people.partition import round_down
from sfumato.people.question import Question
from sfumato.people.reading import Reader, fitted
from sfumato.privacy import NANO, Charge, Epsilon, Meter, Nano, positive_nano
from sfumato.privacy.losses import amplified
from sfumato.registry import Mechanism, Parameter

WHOLE = 1 << 63
_NOTCHES = 4
MOST_VALUES = 4096  # values of the measure that are sampled one by one


@dataclass(frozen=True, eq=False)
class SamplingPlan:
    """A sample at one threshold, fixed from public facts."""

    question: Question
    threshold: Nano
    mechanism: str = "sampling"
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def rate(self) -> int:
        """Nano-ε per unit of the sampled sum."""
        return self.threshold // self.question.record_reach

    @cached_property
    def thresholds(self) -> NDArray[np.uint64]:
        """Sampling probability per person group, times 2^63."""
        return keep_thresholds(self.question.levels, self.rate * self.question.record_reach)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        return np.asarray(self.thresholds / float(WHOLE))

    @cached_property
    def charge(self) -> Charge:
        loss = np.full(self.question.budgets.groups, self.rate * self.question.record_reach, dtype=np.int64)
        return Charge.of_people(amplified(loss, _as_metered(self.thresholds)))

    @cached_property
    def expected_size(self) -> float:
        return float(np.dot(self.question.budgets.counts, self.probabilities))

    def _variance(self, variance: float, square: float) -> float:
        """Of the mean: unequal weights, the draw of the sample (`square`: mean squared value), the noise."""
        q, p, size = self.question, self.probabilities, self.expected_size
        counts = q.budgets.counts
        unequal = variance * max(0.0, float(np.dot(counts, p * p)) / size**2 - 1 / q.people)
        drawn = square * float(np.dot(counts, p * (1 - p))) / size**2
        return unequal + drawn

    @property
    def expected_rmse(self) -> float:
        q = self.question
        square = q.record_reach**2 * (0.5 if q.selectivity is None else q.selectivity)
        noise = 2 * (NANO / self.rate / self.expected_size) ** 2
        return float(np.hypot(q.people * q.unit * np.sqrt(self._variance(q.variance, square) + noise), q.rounding_bound))

    @property
    def bias_bound(self) -> float:
        q = self.question
        gap = float(np.dot(q.budgets.counts, np.abs(self.probabilities / self.expected_size - 1 / q.people)))
        return 0.0 if gap < 1e-9 else q.people * q.unit * q.span / 2 * gap

    @property
    def assumes_independence(self) -> bool:
        return self.bias_bound > 0

    @property
    def worst_rmse(self) -> float:
        """The bias bound beside the error of the draw and the noise."""
        return float(np.hypot(self.expected_rmse, self.bias_bound))

    def error_at(self, gap: float) -> float:
        """The error at a gap between the stricter people and the rest; `gaps` says what that is."""
        return float(np.hypot(self.expected_rmse, bias_at(self.question, self.probabilities / self.expected_size, gap)))

    def run(self, reader: Reader, meter: Meter) -> Estimate:
        """Sample exactly, add noise to the sampled sum, divide by the public expected size."""
        q = self.question

        table = reader.group_values().map(lambda found: fitted(found, q.budgets.groups))
        values = [x for x in range(q.low, q.high + 1) if x != 0]
        with meter.sampled(self.thresholds) as sample:
            first, *rest = (sample(table[:, x - q.low]) for x in values)
            kept = first.zip(*rest)
            total = kept.map(lambda drawn: [sum(x * int(n.sum()) for x, n in zip(values, drawn, strict=True))])
            noisy = meter.laplace(total, rate=self.rate, weights=q.record_reach, label="sampling")
        mean = float(noisy[0]) / self.expected_size
        scale = q.people * q.unit * NANO / self.rate / self.expected_size
        inside = min(max(mean, float(q.low)), float(q.high))
        square = max(-q.low, q.high) * max(abs(inside), q.span / (q.people + 1))
        spread = q.people * q.unit * float(np.sqrt(self._variance(max((q.high - inside) * (inside - q.low), 0.0), square)))
        return Estimate(
            value=q.people * mean * q.unit,
            people=q.people,
            law=LaplacePlusNormal((scale,), spread),
            guarantee=meter.guarantee(),
            mechanism=self.mechanism,
            expected_rmse=self.expected_rmse,
            kind=q.kind,
            bias_bound=self.bias_bound,
            bounds=(q.people * q.low * q.unit, q.people * q.high * q.unit),
            column=q.column,
            clamped=q.clamped,
            rounding=q.rounding_bound,
            parameters={
                "threshold": describe_cap(self.threshold),
                "expected_sample": round(self.expected_size),
                **lattice_words(q, q.rounding_bound),
            },
            warnings=bias_warnings(self.bias_bound, self.expected_rmse, q),
        )


def _as_metered(thresholds: NDArray[np.uint64]) -> NDArray[np.float64]:
    return np.minimum(thresholds / 2.0**63 * (1 + 2.0**-50), 1.0)


def keep_thresholds(levels: NDArray[np.int64], loss: int) -> NDArray[np.uint64]:
    """Largest probabilities (times 2^63) at which a loss inside the sample stays within each level.

    >>> (keep_thresholds(np.array([10**8, 10**9]), 10**9) / 2.0**63).round(4).tolist()
    [0.0612, 1.0]
    """
    e, t = levels / NANO, loss / NANO
    # (e^ε - 1)/(e^t - 1), written so that a large t does not overflow; shrunk by more than the Meter's widening.
    share = np.exp(np.minimum(e - t, 0.0)) * -np.expm1(-np.minimum(e, t)) / -np.expm1(-t)
    whole = np.where(levels >= loss, float(WHOLE), np.floor(share * (1 - 2.0**-40) * WHOLE)).astype(np.uint64)
    losses = np.full(levels.size, loss, dtype=np.int64)
    notches = 0
    while (over := amplified(losses, _as_metered(whole)) > levels).any():
        # A price is rounded up to whole nano-ε: tiny budgets may need one more notch down. Where notches do not help (a
        # probability near 2^-63 beside a loss of hundreds of ε) halves do, down to nobody.
        step = 1 / np.maximum(2.0, levels[over]) if notches < _NOTCHES else 0.5
        whole[over] = (whole[over] * (1 - step)).astype(np.uint64)
        notches += 1
    return whole


def sampling_plan(question: Question, *, threshold: Epsilon | None = None) -> SamplingPlan:
    """The sample at `threshold` (ε); without one, the best of 200 by the public error formula."""
    question.need_exact_heads("sampling")
    if question.rows_per_person > 1:
        raise InputError("sampling keeps or drops people, but a person here owns several rows; choose another mechanism")
    if question.high - question.low > MOST_VALUES:
        raise InputError(f"sampling needs a measure of at most {MOST_VALUES} values; use a coarser lattice")
    if threshold is not None:
        level = positive_nano(threshold, "threshold")
        if not question.record_reach <= level:
            raise InputError(f"threshold {describe_cap(level)} buys no unit of this measure; raise it")
        return SamplingPlan(question, level)
    low, high = int(question.levels[0]), int(question.levels[-1])
    grid = {Nano(int(t)) for t in (*np.geomspace(low, high, 200), low, high)}
    usable = sorted(t for t in grid if t >= question.record_reach)
    if not usable:
        raise InputError("no budget of this roster buys one unit of the measure; use a coarser lattice for it")
    search = _coarse(question)
    return SamplingPlan(question, min(usable, key=lambda t: quick_variance(search, t)))


def _coarse(question: Question) -> Question:
    """The same question on few levels, to search on: the threshold is a parameter, not a promise."""
    if question.budgets.groups <= 2000:
        return question
    return question.among(round_down(question.budgets, decimals=4)[0])


def quick_variance(
    question: Question, threshold: Nano, *, variance: float | None = None, share: float | None = None
) -> float:
    """The error formula (mean square error of the mean) without exact probabilities."""
    e, t, n = question.epsilons, threshold / NANO, question.people
    counts = question.budgets.counts
    p = np.where(e >= t, 1.0, np.exp(np.minimum(e - t, 0.0)) * -np.expm1(-np.minimum(e, t)) / -np.expm1(-t))
    size = float(np.dot(counts, p))
    guess = 0.5 if question.selectivity is None else question.selectivity
    square = question.record_reach**2 * (guess if share is None else share)
    spread = question.variance if variance is None else variance
    unequal = spread * max(0.0, float(np.dot(counts, p * p)) / size**2 - 1 / n)
    drawn = square * float(np.dot(counts, p * (1 - p))) / size**2
    return unequal + drawn + 2 * (question.record_reach / (t * size)) ** 2


MECHANISM = Mechanism(
    "sampling",
    ("count", "sum", "mean"),
    sampling_plan,
    "each record kept with a probability that follows its budget, one budget for the sample",
    parameters=(Parameter("threshold", "epsilon", "the ε of the sample; the best of 200 if left out"),),
    paper="Jorgensen, Yu & Cormode 2015",
)
