"""How many people a condition is planned to select, where nobody has said: from the public schema.

A plan's cap rests on a guess p of the share of people who satisfy the condition. A condition over many columns selects
almost nobody, and then planning for p = 1/2 costs up to fourteen times the error. The schema says how narrow a condition
is (`sfumato.tables.coverage`), but people are not spread evenly over a domain, so the guess is drawn towards 1/2:

    p = min(5 c, 1/2)

and the same for what is left where a condition covers nearly everything. From c = 1/10 on that is as if nothing were known
(a plan for 1/2 is within a tenth of the best for all p from 1/10 to 9/10).

What a wrong guess costs. Planned for v = p(1-p), the affine plan has the squared error ``u I(v) + N(v)`` where the truth is
u: linear in u. The best plan's squared error is a minimum of such lines, so concave in u, and the ratio of the two has no
other valley than the 1 at u = v: it is largest at an end, p = 0 or p = 1/2. A condition that covers 1e-5 of the domain may
still select half of the people; so p is raised until the ratio at 1/2 is at most `LIMIT`, which the public roster decides.

Only the plan and its expected error rest on p. The guarantee and the intervals do not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.people.mechanisms.affine import cap_at
from sfumato.people.question import Question
from sfumato.privacy import NANO

FACTOR = 5  # people are this many times as frequent in what a condition covers as they would be if spread evenly
LIMIT = 4.0  # how many times the best plan's error a plan may have if half of the people satisfy the condition
_HALVINGS = 12


def shrunk(covered: float) -> float | None:
    """The share of people to plan for by the share of the domain, before `LIMIT`; None where it tells too little.

    >>> shrunk(0.3), shrunk(1e-3), shrunk(1 - 1e-3)
    (None, 0.005, 0.995)
    """
    share = FACTOR * min(covered, 1 - covered)
    if share >= 0.5:
        return None
    return share if covered <= 0.5 else 1 - share


def planned_share(question: Question, covered: float) -> float | None:
    """The share of people for whom `question` is planned.

    Parameters
    ----------
    question : Question
        Who takes part, at which budgets.
    covered : float
        The share of the domain that the condition covers.

    Returns
    -------
    float or None
        None where the schema tells too little: the plan then is that for the largest variance.
    """
    share = shrunk(covered)
    if share is None or question.budgets.groups == 1:
        return None
    small = max(min(share, 1 - share), 1 / (question.people + 1))
    if loss(question, small) > LIMIT:
        low, high = np.log(small), np.log(0.5)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if loss(question, float(np.exp(middle))) > LIMIT else (low, middle)
        small = float(np.exp(high))
    return small if share <= 0.5 else 1 - small


def loss(question: Question, planned: float, true: float = 0.5) -> float:
    """How many times the best error the affine plan for a share `planned` has where the share is `true`.

    >>> from sfumato.privacy import PersonBudgets
    >>> tiers = PersonBudgets.from_tiers({"strict": (0.01, 102_600), "standard": (0.2, 70_300), "open": (1.0, 17_100)})
    >>> round(loss(Question(tiers), 1e-5), 2), round(loss(Question(tiers), 0.5, true=1e-5), 1)
    (2.93, 12.0)
    """
    e, counts = question.epsilons, question.budgets.counts.astype(np.float64)
    truth = true * (1 - true)
    mine = _square(e, counts, planned * (1 - planned), truth, question.people)
    return float(np.sqrt(mine / _square(e, counts, truth, truth, question.people)))


def _square(e: NDArray[np.float64], counts: NDArray[np.float64], planned: float, variance: float, people: int) -> float:
    """Squared error of the mean: cap for one variance, truth of another."""
    weights = np.minimum(e, cap_at(e, counts, max(planned, 1e-15)) / NANO)
    mass = float(np.dot(counts, weights))
    unequal = max(0.0, float(np.dot(counts, weights**2)) / mass**2 - 1 / people)
    return variance * unequal + 2 / mass**2
