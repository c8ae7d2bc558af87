"""Linear releases: people enter integer sums with public weights, the sums get one unit of noise each.

Minimum, Threshold, Stretching, Affine, Robust affine, partitions and T rounds are all of this form and differ in the
weights only. Noisy number j covers the person groups of one part with weight ``w_j`` per unit of contribution:

    S_j = d (floor(Σ_{u in j} w_u x_u / d) + Lap(1e9)),    answer = n (c + Σ_j k_j (S_j - c W_j)),   W_j = Σ_{u in j} w_u

The divisor d is 1 on a coarse lattice. On a fine one it is the largest contribution of one record (`Question.divisor`), so
that weights are budgets in nano-ε and lose nothing by being whole numbers, however many steps the lattice has.

Guarantee. Person u moves the sum of a part by at most ``w_u reach``, and the sum of only one part per round (parts are
disjoint). For integers a, b and d, ``|floor(a/d) - floor(b/d)| <= ceil(|a - b|/d)``, and d divides the reach, so the
divided sum moves by at most ``w_u reach/d`` units and u loses exactly ``Σ_rounds w_u reach/d`` nano-ε. The plan keeps that
at most ε_u: weights are budgets divided by ``reach/d``, rounded down. Boundaries, weights and the k_j come from the public
roster alone; the rest is post-processing.

Error. With ``a_u = Σ_j k_j w_u`` and values independent of budgets, the mean square error of the answer is n² times
``σ² (Σ a_u² - (Σ a_u)²/n) + (Σ a_u - 1)² (μ - c)² + 2e18 d² Σ k_j²``; the floor takes less than a billionth of the noise's
scale. For any data whatsoever the bias is at most ``n span/2 Σ |a_u - 1/n|``, and rounding values to the lattice moves the
answer by at most half a unit a row, which the interval includes.

*A private roster* has noisy head counts ``N_g = n_g + e_g`` (`head_counts`), and n, W_j and k_j are made of them. With
``A_g = n a_g`` the answer is off by ``- Σ_g (A_g - 1) e_g μ_g`` besides, μ_g the mean of group g: nothing where everybody
weighs the same (A = 1), and most where an answer speaks of a group by what others say. The e_g are Laplace noise of known
scale, so these are more Laplace terms: at the largest |μ_g| for any data, at the one mean if budgets are independent of the
values. (That A_g itself moves with e_g is of second order.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import BudgetError, InputError
from sfumato.people.error_law import LaplacePlusNormal
from sfumato.people.estimate import Bracket, Estimate
from sfumato.people.gaps import bias_at
from sfumato.people.question import Question
from sfumato.people.reading import Integers, Reader, part_sums
from sfumato.privacy import NANO, Charge, Exact, Meter, Nano
from sfumato.privacy.integers import as_int64
from sfumato.privacy.noise import laplace_variance
from sfumato.privacy.units import epsilon_text

UNIT_VARIANCE = float(laplace_variance(1))  # of noise of rate 1: 2e18 squared units


@dataclass(frozen=True, eq=False)
class Round:
    """One vector of noisy sums: a part number (-1: not used) and a weight per person group."""

    weights: Integers
    parts: Integers

    @cached_property
    def size(self) -> int:
        return int(self.parts.max(initial=-1)) + 1

    @cached_property
    def alone(self) -> bool:
        """Whether all who weigh anything are in a single part."""
        return self.size == 1 and not bool(self.weights[self.parts < 0].any())


def one_sum(weights: Integers) -> Round:
    """Everybody in a single weighted sum."""
    return Round(weights, np.where(weights > 0, 0, -1))


@dataclass(frozen=True, eq=False)
class LinearPlan:
    """A linear release, fixed from public facts before anything is read."""

    mechanism: str
    question: Question
    rounds: tuple[Round, ...]
    coefficients: NDArray[np.float64]
    centre: float = 0.0
    worst_case: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.coefficients.size != sum(r.size for r in self.rounds) or not self.coefficients.size:
            raise InputError("a linear plan needs one coefficient per noisy sum, and at least one sum")
        for part in self.rounds:
            _check_fits(self.question, part)

    @property
    def charge(self) -> Charge:
        """What each person group loses: weight times its cost, added over the rounds."""
        return Charge.of_people(np.sum([r.weights for r in self.rounds], axis=0) * self.question.cost)

    @cached_property
    def influence(self) -> NDArray[np.float64]:
        """``a_u`` per person group: the share of the answer that one person's value makes up."""
        total = np.zeros(self.question.budgets.groups)
        start = 0
        for part in self.rounds:
            each = np.append(self.coefficients[start : start + part.size], 0.0)  # the last is for part -1: not used
            total += (each[0] if part.alone else each[part.parts]) * part.weights
            start += part.size
        return total

    @property
    def noise_scales(self) -> NDArray[np.float64]:
        """Scale of each Laplace noise in the answer."""
        q = self.question
        return np.asarray(np.abs(self.coefficients) * NANO * q.divisor * q.people * q.unit)

    def spread(self, variance: float) -> float:
        """Standard deviation that unequal weights cause, if values are independent of budgets."""
        q = self.question
        return q.people * q.unit * float(np.sqrt(variance * self._imbalance))

    @cached_property
    def _imbalance(self) -> float:
        q, a = self.question, self.influence
        heads = q.heads
        return max(0.0, float(np.dot(heads, a**2)) - float(np.dot(heads, a)) ** 2 / q.people)

    def head_scales(self, size: float) -> NDArray[np.float64]:
        """Scale of what each noisy head count adds to the error, if its people's totals are `size` units on average."""
        q = self.question
        if q.budgets.noise is None:
            return np.zeros(0)
        share = q.people * self.influence
        rounded = np.abs(share) * q.rows_per_person * q.rounding
        return np.asarray(q.budgets.noise * (np.abs(share - 1) * size + rounded) * q.unit)

    def head_variance(self, size: float) -> float:
        """Variance of all of that."""
        return 2 * float(np.square(self.head_scales(size)).sum())

    @cached_property
    def bias_bound(self) -> float:
        """Largest distance of the expected answer from the truth, over all possible data."""
        q = self.question
        gap = float(np.dot(q.heads, np.abs(self.influence - 1 / q.people)))
        bound = q.people * q.unit * q.span / 2 * gap
        return 0.0 if gap < 1e-9 else bound

    @cached_property
    def rounding_bound(self) -> float:
        """Largest error by rounding values to the lattice, over all possible data."""
        q = self.question
        return float(np.dot(q.heads, np.abs(self.influence))) * q.rounding_bound

    @cached_property
    def expected_rmse(self) -> float:
        """From public facts: σ² and μ are guessed from the selectivity, or the worst possible; rounding is the worst."""
        q = self.question
        noise = 2 * float(np.square(self.noise_scales).sum())
        noise += self.head_variance(q.largest if self.worst_case else q.likely)
        if self.worst_case and q.selectivity is None:
            return float(np.sqrt((self.bias_bound + self.rounding_bound) ** 2 + noise))
        missing = float(np.dot(q.heads, self.influence)) - 1
        if q.selectivity is None:
            gap = max(abs(q.low * q.rows_per_person - self.centre), abs(q.high * q.rows_per_person - self.centre))
        else:
            gap = abs(q.low * q.rows_per_person + q.selectivity * q.span - self.centre)
        shrink = q.people * q.unit * missing * gap if abs(missing) > 1e-9 else 0.0
        return float(np.sqrt(self.spread(q.variance) ** 2 + (shrink + self.rounding_bound) ** 2 + noise))

    @property
    def assumes_independence(self) -> bool:
        """Whether the figure of its error is wrong where budgets and values go together."""
        return self.bias_bound > 0 and not self.worst_case

    @property
    def worst_rmse(self) -> float:
        """The largest error over all data: the whole bias, and the noise."""
        noise = 2 * float(np.square(self.noise_scales).sum())
        return max(self.expected_rmse, float(np.sqrt((self.bias_bound + self.rounding_bound) ** 2 + noise)))

    def error_at(self, gap: float) -> float:
        """The error at a gap between the stricter people and the rest; `gaps` says what that is."""
        bias = gap * self._bias_of_gap
        return min(float(np.hypot(self.expected_rmse, bias)), self.worst_rmse)

    @cached_property
    def _bias_of_gap(self) -> float:
        """bias(1), which bias(g) is a multiple of."""
        return bias_at(self.question, self.influence, 1.0)

    def run(self, reader: Reader, meter: Meter) -> Estimate:
        """Read the sums, add noise through the Meter, combine."""
        q = self.question
        noisy: list[NDArray[np.int64]] = []
        for number, part in enumerate(self.rounds):
            label = self.mechanism if len(self.rounds) == 1 else f"{self.mechanism}, round {number + 1}"
            noisy.append(
                meter.laplace(
                    _sums(reader, part, q.divisor),
                    rate=1,
                    weights=part.weights * q.record_cost,
                    touches="one",
                    label=label,
                )
            )
        sums = np.concatenate(noisy).astype(np.float64) * q.divisor
        totals = np.concatenate([_part_weights(q, part) for part in self.rounds])
        mean = self.centre + float(np.dot(self.coefficients, sums - self.centre * totals))
        return self._estimate(mean, sums / np.maximum(totals, 1), meter)

    def _estimate(self, mean: float, part_means: NDArray[np.float64], meter: Meter) -> Estimate:
        from sfumato.people.bias import bias_warnings, heterogeneity

        q = self.question
        n = q.people
        noise = LaplacePlusNormal(tuple(self.noise_scales.tolist()))
        spread = self.spread(_plausible_variance(q, mean, 2 * noise.rmse / (n * q.unit)))
        low, high = q.low * q.rows_per_person, q.high * q.rows_per_person
        found = heterogeneity(self, part_means)
        value = n * mean * q.unit
        whatever = Bracket(value, self._with_heads(noise, q.largest), self.bias_bound)
        if found is not None:  # the plain sum of the parts is noisier, but nothing can bias it
            plain = Bracket(found.unbiased, LaplacePlusNormal(found.unbiased_scales))
            whatever = min(whatever, plain, key=lambda b: b.law.halfwidth(0.95) + b.bias)
        law = LaplacePlusNormal(noise.scales, 0.0 if self.worst_case else spread)
        size = q.largest if self.worst_case else min(abs(mean) + 2 * noise.rmse / (n * q.unit), q.largest)
        return Estimate(
            value=value,
            people=n,
            law=self._with_heads(law, size),
            guarantee=meter.guarantee(),
            mechanism=self.mechanism,
            expected_rmse=self.expected_rmse,
            kind=q.kind,
            bias_bound=self.bias_bound,
            bias_in_interval=self.worst_case,
            bounds=(q.budgets.most_people * low * q.unit, q.budgets.most_people * high * q.unit),
            column=q.column,
            clamped=q.clamped,
            rounding=self.rounding_bound,
            parameters={**self.parameters, **lattice_words(q, self.rounding_bound)},
            warnings=bias_warnings(self.bias_bound, self.expected_rmse, q, worst_case=self.worst_case, found=found),
            details={} if found is None else found.to_dict(),
            any_data=whatever,
        )

    def _with_heads(self, law: LaplacePlusNormal, size: float) -> LaplacePlusNormal:
        return LaplacePlusNormal(law.scales, law.sd, tuple(self.head_scales(size).tolist()))


def capped_weights(question: Question, cap: Nano) -> Integers:
    """Weight per person group: the budget, at most `cap` (nano-ε), divided by what a weight costs and rounded down."""
    return np.minimum(question.levels, cap) // question.cost


def weighted_mean(mechanism: str, question: Question, weights: Integers, **parameters: Any) -> LinearPlan:
    """One weighted sum divided by its public total weight."""
    mass = float(np.dot(weights.astype(np.float64), question.budgets.counts))
    if mass == 0:
        raise BudgetError("no budget of this roster buys one unit of the measure; use a coarser lattice for it")
    return LinearPlan(mechanism, question, (one_sum(weights),), np.array([1 / mass]), parameters=parameters)


def lattice_words(question: Question, rounding: float) -> dict[str, Any]:
    """What a reader must know of the lattice: its unit, and how far rounding may have moved the answer. A count has none."""
    return {} if question.kind == "count" else {"lattice_unit": question.unit, "rounding_at_most": rounding}


def describe_cap(cap: Nano) -> str:
    return epsilon_text(cap)


def _check_fits(question: Question, part: Round) -> None:
    rough = float(np.dot(part.weights.astype(np.float64), question.budgets.counts)) * question.cost
    if rough >= 2.0**61:  # a factor of two below what 64 bits hold, so the rounding of `rough` does not matter
        raise InputError(
            "the weighted sum of this roster does not fit in 64 bits; lower the largest budgets "
            "(nothing is gained above ε 10 or so) or use a coarser lattice for the measure"
        )


def _sums(reader: Reader, part: Round, divisor: int) -> Exact[Integers]:
    """The divided sum of every part."""
    if part.alone:
        return reader.weighted_sum(part.weights).map(lambda total: _divided([total], divisor))
    return part_sums(reader, part.parts, part.weights).map(lambda totals: _divided(list(totals), divisor))


def _divided(totals: list[int], divisor: int) -> Integers:
    """Weighted sums can pass 64 bits, so they are Python's integers until they are divided; what the table holds beyond the
    public roster is held at the ends of the range, as everywhere."""
    return as_int64(np.array([total // divisor for total in totals], dtype=object))


def _part_weights(question: Question, part: Round) -> NDArray[np.float64]:
    used = part.parts >= 0
    mass = (part.weights * question.budgets.counts.astype(np.float64))[used]
    return np.bincount(part.parts[used], weights=mass, minlength=part.size).astype(np.float64)


def _plausible_variance(question: Question, mean: float, slack: float) -> float:
    """The largest variance of the people's totals whose mean may lie within `slack` of the noisy mean.

    Totals between two bounds with mean m have variance at most (high - m)(m - low); it is largest near the middle.
    """
    low, high = question.low * question.rows_per_person, question.high * question.rows_per_person
    nearest = min(max(question.middle, mean - slack), mean + slack)
    nearest = min(max(nearest, float(low)), float(high))
    return max((high - nearest) * (nearest - low), question.span**2 / (question.people + 1))
