"""Affine weights: everybody enters one weighted sum with their own budget, up to a cap; one unit of noise.

    mean = ( Σ m_u x_u + Lap(1) ) / Σ m_u,    m_u = min(ε_u, r)

Guarantee. Person u moves the sum by at most m_u, the noise has scale one: u loses exactly m_u <= ε_u (see `linear`).

Why this form wins. Any linear ensemble of partitions or rounds is a weighted sum with several noises; one noise of the
largest scale serves the same promises. Sampling is dominated by its expected weights. Within the form, the error
``σ² Σ m²/(Σ m)² + 2/(Σ m)²`` is least when m is the budget cut at r with ``Σ_{ε_u < r} ε_u (r - ε_u) = 2/σ²``: up to there
the noise that a heavier sum saves outweighs the imbalance it brings (σ² the variance of the values, 1/4 at most).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.people.linear import LinearPlan, capped_weights, describe_cap, weighted_mean
from sfumato.people.question import Question
from sfumato.privacy import NANO, Epsilon, Nano, PersonBudgets, as_epsilon, positive_nano
from sfumato.registry import Mechanism, Parameter


def optimal_cap(budgets: PersonBudgets, *, variance: float = 0.25) -> Nano:
    """The cap r in nano-ε; nobody is capped if r exceeds the largest budget.

    `variance` is that of the values after scaling them to [0, 1].

    >>> optimal_cap(PersonBudgets.from_tiers({"strict": (0.01, 5400), "standard": (0.2, 3700), "open": (1.0, 900)}))
    158148148
    """
    return cap_at(budgets.epsilons, budgets.counts, variance)


def cap_at(e: NDArray[np.float64], heads: NDArray[np.int64] | NDArray[np.float64], variance: float) -> Nano:
    """The same for budgets `e` of so many people each, in increasing order."""
    target, counts = 2 / variance, heads.astype(np.float64)
    first = np.concatenate([[0.0], np.cumsum(counts * e)])
    second = np.concatenate([[0.0], np.cumsum(counts * e * e)])
    reached = e * first[:-1] - second[:-1]  # the left side at r = e_i; it never falls
    below = int(np.searchsorted(reached, target))
    if first[below] == 0.0:  # nobody below the cap: there is nobody to balance against
        return Nano(int(e[-1] * NANO))
    cap = (target + second[below]) / first[below]
    return Nano(int(min(cap * NANO, 4.0e18)))


def _searched_cap(question: Question) -> Nano:
    """The best cap where head counts are noisy: the closed form knows nothing of their noise."""
    caps = np.unique(np.geomspace(int(question.levels[0]), int(question.levels[-1]), 60).astype(np.int64)).tolist()

    def error(cap: int) -> float:
        weights = capped_weights(question, Nano(cap))
        return weighted_mean("affine", question, weights).expected_rmse if weights.any() else float("inf")

    return Nano(min(caps, key=error))


def affine_plan(question: Question, *, cap: Epsilon | None = None) -> LinearPlan:
    """The affine release; `cap` (ε) is the optimal one unless given."""
    share = question.variance / question.span**2 * (question.span / question.reach) ** 2
    if cap is None and question.budgets.noise is not None:
        cap = as_epsilon(_searched_cap(question))
    found = cap_at(question.epsilons, question.budgets.counts, share) if cap is None else positive_nano(cap, "cap")
    found = min(found, Nano(int(question.levels[-1])))
    weights = capped_weights(question, found)
    return weighted_mean("affine", question, weights, cap=describe_cap(found))


MECHANISM = Mechanism(
    "affine",
    ("count", "sum", "mean"),
    affine_plan,
    "everybody at their own budget up to a cap, one noise",
    parameters=(Parameter("cap", "epsilon", "nobody weighs more than this ε; the best by the error formula if left out"),),
)
