"""What an ε means for one person: how sure somebody could become about them.

The promise compares with the record's absence: whatever the record says, no publication is more than e^ε times as likely or
unlikely as without it. So the odds that somebody is in the data at all grow by e^ε at most. Two things that a record may say
are each within e^ε of its absence, so they are e^(2ε) apart at most, and so much the odds of a guess about it can grow.
"""

from __future__ import annotations

import math


def sure_after(before: float, epsilon: float, *, apart: int = 2) -> float:
    """How sure somebody can become at most who was `before` sure, by releases that cost a person `epsilon`.

    Parameters
    ----------
    before : float
        Between 0 and 1.
    epsilon : float
        Over all releases together.
    apart : int
        2 for one thing that the record says, 1 for whether it is in the data at all.

    Returns
    -------
    float

    Examples
    --------
    >>> round(sure_after(0.5, 1.0), 3), round(sure_after(0.5, 1.0, apart=1), 3), sure_after(0.5, 1e6)
    (0.881, 0.731, 1.0)
    """
    return before / (before + (1 - before) * math.exp(-apart * epsilon))


def in_hundred(before: float, epsilon: float, *, apart: int = 2) -> float:
    """The same as "so many in 100", rounded up to a tenth: it is a limit.

    Parameters
    ----------
    before, epsilon, apart
        As for `sure_after`.

    Returns
    -------
    float

    Examples
    --------
    >>> [in_hundred(0.5, epsilon) for epsilon in (0.01, 0.2, 1.0)]
    [50.5, 59.9, 88.1]
    """
    return math.ceil(1000 * sure_after(before, epsilon, apart=apart)) / 10
