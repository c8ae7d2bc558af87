"""Robust affine: small error for *any* data, even where budgets and values go together.

    mean = c + Σ a_u (x_u - c) + Lap(b),    a_u = min(b ε_u, 1/n),  c the middle of the range

With ``r = 1/(n b)`` this is one weighted sum with weights min(ε_u, r), divided by ``n r`` rather than by its total weight:
nobody ever weighs more than 1/n, so people with small budgets are drawn to the middle instead of being out-voted.

Guarantee. Weights never exceed ε_u (see `linear`). Bias at most ``span/2 Σ (1/n - a_u)`` for any data; b minimises that
bias squared plus the noise variance ``2 b²``. In r the objective is piecewise smooth with one valley, searched on a
geometric grid and refined once: r is a parameter, not a promise, so a near-optimum costs nothing but a little error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.people.linear import LinearPlan, capped_weights, describe_cap, one_sum
from sfumato.people.question import Question
from sfumato.privacy import NANO, Epsilon, Nano, positive_nano
from sfumato.registry import Mechanism, Parameter


def robust_cap(question: Question, *, unseen: float = 0.5) -> Nano:
    """The r (nano-ε) with the least worst-case error, where an unseen person may be off by `unseen` of the range."""
    e = question.epsilons
    counts = question.budgets.counts.astype(np.float64)
    heads = np.concatenate([[0.0], np.cumsum(counts)])
    mass = np.concatenate([[0.0], np.cumsum(counts * e)])
    n = question.people
    reach = question.reach / question.span

    def worst(caps: NDArray[np.float64]) -> NDArray[np.float64]:
        j = np.searchsorted(e, caps)
        bias = unseen * (heads[j] - mass[j] / caps) / n
        return np.asarray(bias**2 + 2 * (reach / (n * caps)) ** 2 + _of_heads(question, caps))

    caps = np.geomspace(e[0], e[-1], 400)
    best = int(np.argmin(worst(caps)))
    caps = np.geomspace(caps[max(0, best - 1)], caps[min(caps.size - 1, best + 1)], 400)
    return Nano(max(1, int(caps[int(np.argmin(worst(caps)))] * NANO)))


def _of_heads(question: Question, caps: NDArray[np.float64]) -> NDArray[np.float64]:
    """What noisy head counts of a private roster add at worst (see `linear`), for each cap, as a square share of n span."""
    if question.budgets.noise is None:
        return np.zeros(caps.size)
    missing = np.maximum(0.0, 1 - question.epsilons / caps[:, None])
    worst = missing * question.budgets.noise * question.largest / (question.people * question.span)
    return np.asarray(2 * np.square(worst).sum(axis=1))


def robust_plan(question: Question, *, cap: Epsilon | None = None, unseen: float = 0.5) -> LinearPlan:
    """The robust affine release; `cap` (ε) is the best for the worst case unless given.

    Here the middle stands for whom the sum does not see, so that half the range is the most they are off (`unseen`).
    """
    found = robust_cap(question, unseen=unseen) if cap is None else positive_nano(cap, "cap")
    # The divisor uses the rounded-down weight of a capped person, so that such a person weighs exactly 1/n.
    divisor = question.people * max(1, found // question.cost)
    return LinearPlan(
        "robust",
        question,
        (one_sum(capped_weights(question, found)),),
        np.array([1 / divisor]),
        centre=question.middle,
        worst_case=True,
        parameters={"cap": describe_cap(found), "centre": question.middle * question.unit},
    )


MECHANISM = Mechanism(
    "robust",
    ("count", "sum", "mean"),
    robust_plan,
    "small error for any data, even if budgets and values go together",
    parameters=(Parameter("cap", "epsilon", "from this ε on people weigh fully; best for the worst case if left out"),),
)
