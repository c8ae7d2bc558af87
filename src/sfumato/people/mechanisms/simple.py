"""The plain mechanisms of the field: Minimum, Threshold and Stretching. Each is one weighted sum (see `linear`).

- *Minimum* (Jorgensen, Yu & Cormode 2015): everybody at the smallest budget. Unbiased whatever the data, and noisy.
- *Threshold*: only people with a budget of at least t, each at t. The best t by the public error formula unless given.
- *Stretching* (Alaggan, Gambs & Kermarrec 2015): each value multiplied by its relative budget, divided by the public sum
  of these factors (without that division the answer is far off): affine weights without a cap.

Guarantee. Weight ε_min, t or ε_u never exceeds ε_u; who is left out has weight 0 and loses nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.errors import InputError
from sfumato.people.linear import LinearPlan, describe_cap, weighted_mean
from sfumato.people.question import Question
from sfumato.privacy import Epsilon, Nano, positive_nano
from sfumato.registry import Mechanism, Parameter


def minimum_plan(question: Question) -> LinearPlan:
    """Everybody at the smallest budget of the roster."""
    present = question.budgets.counts > 0
    least = Nano(int(question.levels[present].min()))
    weights = np.where(question.levels >= least, least // question.cost, 0)
    return weighted_mean("minimum", question, weights, epsilon=describe_cap(least))


def laplace_plan(question: Question) -> LinearPlan:
    """One ε for everybody: what all linear mechanisms come to where nobody's budget differs."""
    return replace(minimum_plan(question), mechanism="laplace")


def best_threshold(question: Question) -> Nano:
    """The budget level (nano-ε) at which keeping only people above it has the least expected error."""
    e, counts = question.epsilons, question.budgets.counts
    kept = counts[::-1].cumsum()[::-1].astype(np.float64)
    usable = kept > 0
    variance = question.variance / question.span**2
    with np.errstate(divide="ignore", over="ignore"):
        error = variance * (1 / kept - 1 / question.people) + 2 * (question.reach / question.span / (kept * e)) ** 2
    return Nano(int(question.levels[int(np.argmin(np.where(usable, error, np.inf)))]))


def threshold_plan(question: Question, *, threshold: Epsilon | None = None) -> LinearPlan:
    """Only people with a budget of at least `threshold` (ε), each at that budget."""
    level = best_threshold(question) if threshold is None else positive_nano(threshold, "threshold")
    kept = question.levels >= level
    if not question.budgets.counts[kept].sum():
        top = describe_cap(Nano(int(question.levels[-1])))
        raise InputError(f"nobody in the roster grants ε {describe_cap(level)}; choose a threshold of at most {top}")
    weights = np.where(kept, level // question.cost, 0)
    return weighted_mean("threshold", question, weights, threshold=describe_cap(level))


def stretching_plan(question: Question) -> LinearPlan:
    """Everybody at their own budget, whatever imbalance that brings."""
    return weighted_mean("stretching", question, question.levels // question.cost)


MECHANISMS = (
    Mechanism(
        "threshold",
        ("count", "sum", "mean"),
        threshold_plan,
        "only people with a budget above a threshold",
        parameters=(Parameter("threshold", "epsilon", "the least budget that counts; the best by the formula if left out"),),
        paper="Jorgensen, Yu & Cormode 2015",
    ),
    Mechanism(
        "stretching",
        ("count", "sum", "mean"),
        stretching_plan,
        "everybody at their own budget, no cap",
        paper="Alaggan, Gambs & Kermarrec 2015",
    ),
    Mechanism(
        "minimum",
        ("count", "sum", "mean"),
        minimum_plan,
        "everybody at the smallest budget: unbiased for any data",
        paper="Jorgensen, Yu & Cormode 2015",
    ),
    Mechanism(
        "laplace",
        ("count", "sum", "mean"),
        laplace_plan,
        "the same noise for everybody",
        needs=("one epsilon",),
        paper="Dwork, McSherry, Nissim & Smith 2006",
    ),
)
