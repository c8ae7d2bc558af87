"""Partition the roster, answer each part at its smallest budget, combine by precision; rounds for what is left over.

One round is one vector of sums, each person in one of them (see `linear`). The paper leaves the combination open: the mean
of part i has variance ``σ²/n_i + 2 (reach/(n_i ε_i))²``, and inverse variance is optimal. With T rounds the parts of
different rounds share people, so the variances become a covariance matrix and generalised least squares combines them;
negative weights are removed one after the other.

Guarantee. In every round person u enters one sum with weight at most what is left of ε_u, and that is subtracted before
the next round: ``Σ_t w_{t,u} reach <= ε_u``. Who has nothing left is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import BudgetError, InputError
from sfumato.people.linear import LinearPlan, Round
from sfumato.people.partition import (
    MOST_LEVELS,
    Partition,
    Utility,
    count_precision,
    dominated,
    in_order,
    privacy_aware,
    privacy_aware_all,
    published_count,
    round_down,
    utility_based,
)
from sfumato.people.question import Question
from sfumato.privacy import NANO, PersonBudgets
from sfumato.registry import Mechanism, Parameter

Cut = Callable[[PersonBudgets], Partition]
Ensemble = Literal["precision", "sum"]
MOST_PARTS = 20
EXHAUSTED = 1000  # nano-ε: whoever has less left than a millionth is dropped


def utility_plan(
    question: Question,
    *,
    parts: int | None = None,
    minimum_size: int = 1,
    rounds: int = 1,
    utility: Utility | Literal["precision", "published"] = "precision",
    ensemble: Ensemble = "precision",
    drop_dominated: bool = False,
) -> LinearPlan:
    """Parts that maximise the total utility, by default the precision; their number comes out by itself unless given."""
    useful = utility if callable(utility) else _utilities(question)[utility]

    def cut(left: PersonBudgets) -> Partition:
        fit = None if parts is None else min(parts, left.groups)
        return utility_based(left, useful, parts=fit, minimum_size=minimum_size)

    return _plan("partition", question, cut, rounds, ensemble, digits=3, drop=drop_dominated)


def _utilities(question: Question) -> dict[str, Utility]:
    reach = question.reach / question.span
    return {
        "precision": count_precision(variance=question.variance / question.span**2, reach=reach),
        "published": published_count(reach=reach),
    }


def privacy_aware_plan(
    question: Question,
    *,
    parts: int | None = None,
    minimum_size: int = 1,
    rounds: int = 1,
    ensemble: Ensemble = "precision",
    drop_dominated: bool = False,
) -> LinearPlan:
    """Parts that waste the least budget; without `parts`, the number of parts with the largest total precision."""
    precision = _utilities(question)["precision"]

    def cut(left: PersonBudgets) -> Partition:
        if parts is not None:
            return privacy_aware(left, parts=min(parts, left.groups), minimum_size=minimum_size)
        every = privacy_aware_all(left, parts=min(MOST_PARTS, left.groups), minimum_size=minimum_size)
        return max(every, key=lambda p: float(precision(p.sizes.astype(np.float64), p.epsilons).sum()))

    return _plan("privacy-aware", question, cut, rounds, ensemble, digits=4, drop=drop_dominated)


def _plan(
    name: str, question: Question, cut: Cut, rounds: int, ensemble: Ensemble, *, digits: int, drop: bool
) -> LinearPlan:
    if rounds < 1:
        raise InputError(f"rounds must be at least 1, got {rounds}")
    if ensemble == "sum" and (rounds > 1 or drop):
        raise InputError(
            "ensemble = 'sum' adds the parts up, so everybody is in one of them once: leave out rounds and drop_dominated, "
            "or say ensemble = 'precision'"
        )
    made: list[Round] = []
    left = question.levels.copy()
    for number in range(rounds):
        try:
            one = _one_round(question, left, cut, digits if number == 0 else digits + 1, drop)
        except InputError:
            if number == 0:
                raise
            break  # so few people have budget left that the minimum size cannot be met
        if one is None:
            break
        made.append(one)
        left = left - one.weights * question.cost
    if not made:
        raise BudgetError("no budget of this roster buys one unit of the measure; use a coarser lattice for it")
    coefficients = combine(question, made, ensemble)
    return LinearPlan(
        name,
        question,
        tuple(made),
        coefficients,
        parameters={"parts": [r.size for r in made], "rounds": len(made), **_describe(question, made)},
    )


def _one_round(question: Question, left: NDArray[np.int64], cut: Cut, digits: int, drop: bool) -> Round | None:
    floor = max(EXHAUSTED, question.cost) if (left < question.levels).any() else question.cost
    active = np.flatnonzero((left >= floor) & (question.budgets.counts > 0))
    if active.size == 0:
        return None
    levels, place = in_order(left[active])
    counts = np.bincount(place, weights=question.budgets.counts[active], minlength=levels.size).astype(np.int64)
    roster, coarse = _few_levels(PersonBudgets(levels, counts), digits)
    partition = cut(roster)
    keep = ~dominated(partition.sizes, partition.epsilons) if drop else np.ones(partition.parts, dtype=bool)
    number = np.where(keep, np.cumsum(keep) - 1, -1)
    part = partition.part_of[coarse][place]
    parts = np.full(question.budgets.groups, -1, dtype=np.int64)
    parts[active] = number[part]
    weights = np.zeros(question.budgets.groups, dtype=np.int64)
    weights[active] = np.where(number[part] >= 0, partition.levels[part] // question.cost, 0)
    return Round(weights, parts)


def _few_levels(budgets: PersonBudgets, digits: int) -> tuple[PersonBudgets, NDArray[np.int64]]:
    for decimals in range(digits, -1, -1):
        roster, coarse = round_down(budgets, decimals=decimals)
        if roster.groups <= MOST_LEVELS:
            return roster, coarse
    raise InputError(
        f"{budgets.groups} distinct tiny budgets; round the roster down first (PersonBudgets.of(..., decimals=4))"
    )


def combine(question: Question, rounds: list[Round], ensemble: Ensemble = "precision") -> NDArray[np.float64]:
    """Coefficients of the noisy sums in the mean: generalised least squares with weights that are not negative.

    With ``ensemble="sum"`` every part weighs as many as it has people: the answer is the sum of the parts' answers, right
    for any data, and never better than `minimum`.
    """
    counts = question.budgets.counts.astype(np.float64)
    sizes = np.concatenate([_per_part(r, counts) for r in rounds])
    mass = np.concatenate([_per_part(r, counts * r.weights) for r in rounds])
    noise = 2 * (NANO * question.divisor / mass) ** 2
    if ensemble == "sum":
        share = sizes / sizes.sum()
    elif len(rounds) == 1:
        precision = 1 / (question.variance / sizes + noise)
        share = precision / precision.sum()
    else:
        overlap = np.block([[_overlap(a, b, counts) for b in rounds] for a in rounds])
        covariance = question.variance * overlap / np.outer(sizes, sizes) + np.diag(noise)
        share = least_squares_shares(covariance)
    return np.asarray(share / mass)


def least_squares_shares(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares that add up to one, none negative, with the least variance ``s' C s``.

    >>> least_squares_shares(np.diag([1.0, 3.0])).tolist()
    [0.75, 0.25]
    """
    active = np.arange(covariance.shape[0])
    scale = np.sqrt(np.diag(covariance))
    while True:
        inner = covariance[np.ix_(active, active)] / np.outer(scale[active], scale[active])
        raw = np.linalg.solve(inner, 1 / scale[active]) / scale[active]
        if (raw >= 0).all():
            break
        active = active[raw >= 0]
    shares = np.zeros(covariance.shape[0])
    shares[active] = raw / raw.sum()
    return shares


def _overlap(first: Round, second: Round, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """People shared by each part of one round with each part of another."""
    both = (first.parts >= 0) & (second.parts >= 0)
    pair = first.parts[both] * second.size + second.parts[both]
    shared = np.bincount(pair, weights=counts[both], minlength=first.size * second.size)
    return shared.reshape(first.size, second.size).astype(np.float64)


def _per_part(part: Round, values: NDArray[np.float64]) -> NDArray[np.float64]:
    used = part.parts >= 0
    return np.bincount(part.parts[used], weights=values[used], minlength=part.size).astype(np.float64)


def _describe(question: Question, rounds: list[Round]) -> dict[str, object]:
    first = rounds[0]
    sizes = _per_part(first, question.budgets.counts.astype(np.float64)).astype(int).tolist()
    starts = [int(first.weights[first.parts == j].max()) * question.cost / NANO for j in range(first.size)]
    return {"part_people": sizes, "part_epsilons": starts}


_PARTS = (
    Parameter("parts", "whole", "into how many parts the roster is cut; the best number if left out", low=1, high=1000),
    Parameter("minimum_size", "whole", "the fewest people in a part", 1, low=1, high=2**53),
    Parameter("rounds", "whole", "how often what is left of the budgets is used again", 1, low=1, high=50),
    Parameter(
        "ensemble",
        "text",
        "how the parts are put together: by precision, or added up (unbiased for any data, and never better than minimum)",
        "precision",
        choices=("precision", "sum"),
    ),
    Parameter("drop_dominated", "flag", "whether parts that only add noise are left out", False),
)
_UTILITY = Parameter(
    "utility",
    "text",
    "what is largest over the parts: their precision, or the variance that the paper prints (it favours tiny parts)",
    "precision",
    choices=("precision", "published"),
)
MECHANISMS = (
    Mechanism(
        "partition",
        ("count", "sum", "mean"),
        utility_plan,
        "parts of similar budgets, combined by precision; tests whether the parts agree",
        parameters=(*_PARTS, _UTILITY),
    ),
    Mechanism(
        "privacy-aware",
        ("count", "sum", "mean"),
        privacy_aware_plan,
        "parts that waste the least budget, combined by precision",
        parameters=_PARTS,
    ),
)
