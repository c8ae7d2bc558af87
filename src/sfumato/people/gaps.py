"""How wrong an answer is when budgets and values go together: the one definition that previews and reports use.

*A gap of g.* The roster is cut in two at some budget. The mean value of the stricter people is lower (or higher) by g times
the range of one person's value than the mean of the rest; within either part budgets and values are independent. The cut
falls where it hurts the mechanism most, so one number stands for every such pattern. With p the share of the stricter
people and A the share that they have in the answer (the sum of their influences a_u), a linear answer is then off by

    bias(g) = g n range max over cuts |p - A|

beside its error under independence. g = 1 with the most harmful cut comes to the bias bound wherever influence grows with
the budget. *Worst* is the largest error over all data whatsoever, with no pattern assumed.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.offers import GAPS, Errors
from sfumato.people.question import Question

Floats = NDArray[np.float64]


class Honest(Protocol):
    """A plan that knows its error at every gap."""

    @property
    def expected_rmse(self) -> float: ...
    @property
    def worst_rmse(self) -> float: ...
    @property
    def assumes_independence(self) -> bool: ...
    def error_at(self, gap: float) -> float: ...


def errors_of(plan: Honest) -> Errors:
    """The errors of a plan, as an offer shows them."""
    at = tuple(float(plan.error_at(gap)) for gap in GAPS)
    return Errors(plan.expected_rmse, at, plan.worst_rmse, plan.assumes_independence)


def cuts(question: Question, coefficients: Floats) -> Floats:
    """What a gap of 1 adds to ``n Σ coefficients x``, for every cut of the roster, in the answer's unit.

    Parameters
    ----------
    question : Question
    coefficients : float array
        By group of people, in the order of their budgets.

    Returns
    -------
    float array
        One per cut, with the sign of "the rest has the larger values".

    Examples
    --------
    >>> from sfumato.privacy import PersonBudgets
    >>> roster = PersonBudgets.from_tiers({"strict": (0.1, 60), "open": (1.0, 40)})
    >>> cuts(Question(roster), np.array([0.0, 1 / 40]))  # only the open tier is asked: its people stand for all
    array([60.])
    """
    heads = question.heads
    share = np.cumsum(heads)[:-1] / question.people
    part = np.cumsum(heads * coefficients)
    scale = question.people * question.span * question.unit
    return np.asarray(scale * (share * part[-1] - part[:-1]))


def patterns(question: Question, across: Floats, along: Floats) -> tuple[Floats, Floats]:
    """For any data: what ``n Σ across x`` can be, and the most that ``n Σ along x`` can be beside it.

    Both are sums over the same people, so they cannot be extreme at the same time. Together they fill a zonotope, whose
    upper edge consists of the groups' contributions in the order of their slopes.

    Parameters
    ----------
    question : Question
    across, along : float arrays
        Coefficients by group; either adds up to zero over the people.

    Returns
    -------
    float arrays
        The corners of the edge, from the smallest of the first to the largest.
    """
    scale = question.budgets.counts * float(question.people * question.span) * question.unit
    b, u = scale * across, scale * along
    start = np.array([b[b < 0].sum(), u[(b < 0) | ((b == 0) & (u > 0))].sum()])
    moving = b != 0
    sign = np.sign(b[moving])
    b, u = sign * b[moving], sign * u[moving]
    order = np.argsort(-u / b)
    return start[0] + np.concatenate([[0.0], np.cumsum(b[order])]), start[1] + np.concatenate([[0.0], np.cumsum(u[order])])


def bias_at(question: Question, influence: Floats, gap: float) -> float:
    """bias(g) of a linear answer, from the influence of one person of each group."""
    found = cuts(question, influence)
    return float(gap * np.abs(found).max(initial=0.0))
