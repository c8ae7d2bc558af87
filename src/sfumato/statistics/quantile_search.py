"""Several quantiles at once: the middle one first, then those below it among the records below, those above among the rest.

    recursion of Kaplan, Schnapp & Stemmer 2022, with points that hold many records divided between the two sides

Ten quantiles by ten choices cost ten shares of ε; by halving they cost ⌊log₂ 10⌋ + 1 = 4, because on each level a record
is on one side only. A single choice is steepest for the median of its records (see `ranks`), which is what halving asks
for.

**Guarantee.** A row of the heaviest group loses at most `nano`. *Proof.* On one level a row lies in one range, whose
choice of a point and division of that point cost together at most the level's share, by the spreads proven in `ranks`;
the ranges are branches over disjoint rows (a divided row counts in part on both sides and loses a mean of the two). The
levels add up. A person with several rows loses the sum of what each of their rows loses, at most rows times the largest:
so the Meter, which prices the rows of a person with every call and takes the largest branch, does not fall short even if
these rows lie in different ranges.

Two quantiles are two choices among the same records: halving would need two levels as well, and the division on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from sfumato.privacy import Exact, Meter
from sfumato.statistics.ranks import Floats, Integers, above, as_share, below, choose_part, choose_point, rank_rate

DISJOINT = "each row lies below or above the quantile that was chosen before"
DIVIDING = 4  # a quarter of a level's share divides the point, the rest chooses it


def levels(targets: int) -> int:
    """How many levels of halving so many quantiles take.

    >>> [levels(k) for k in (1, 2, 3, 7, 10, 99)]
    [1, 2, 2, 3, 4, 7]
    """
    return targets if targets <= 2 else 1 + levels(targets // 2)


@dataclass(frozen=True)
class Halving:
    """One step: which target is searched, at which share of its records and at which price.

    Attributes
    ----------
    target : int
    q : Fraction
        Its share among the records of the range.
    choice, division : int
        The price of either part, in nano-ε for a row of the heaviest group.
    low, high : Halving or None
        What follows on either side.
    also : Halving or None
        A second choice among the same records.
    """

    target: int
    q: Fraction
    choice: int
    division: int = 0
    low: Halving | None = None
    high: Halving | None = None
    also: Halving | None = None


def plan_search(targets: Sequence[Fraction], nano: int) -> Halving:
    """The steps for targets in increasing order, at `nano` for a row of the heaviest group.

    >>> plan = plan_search([Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)], 800)
    >>> plan.target, plan.choice, plan.division, plan.low.q, plan.low.choice
    (1, 300, 100, Fraction(1, 2), 400)
    """
    return _planned(list(enumerate(targets)), nano)


def _planned(targets: list[tuple[int, Fraction]], nano: int) -> Halving:
    if len(targets) == 1:
        return Halving(*targets[0], nano)
    if len(targets) == 2:
        return Halving(*targets[1], nano - nano // 2, also=Halving(*targets[0], nano // 2))
    middle = len(targets) // 2
    number, q = targets[middle]
    level = nano // levels(len(targets))
    lower = [(i, as_share(t / q)) for i, t in targets[:middle]]
    upper = [(i, as_share((t - q) / (1 - q))) for i, t in targets[middle + 1 :]]
    left = nano - level
    division = level // DIVIDING
    return Halving(number, q, level - division, division, _planned(lower, left), _planned(upper, left))


def search(
    meter: Meter,
    counts: Exact[Integers],
    plan: Halving,
    *,
    targets: int,
    weights: Integers | None = None,
    whole: bool = True,
) -> Integers:
    """A point for every target, in increasing order.

    Parameters
    ----------
    meter : Meter
    counts : Exact of integers
        Weighted counts per point.
    plan : Halving
    targets : int
    weights : int64 array, optional
        What a record of each person group weighs.
    whole : bool
        Whether these are all records of the table: in no branch.

    Returns
    -------
    int64 array

    Examples
    --------
    >>> plan = plan_search([Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)], 3 * 10**9)
    >>> search(Meter(), Exact(np.full(101, 1000)), plan, targets=3).tolist()
    [25, 50, 75]
    """
    found = np.zeros(targets, dtype=np.int64)
    _descend(meter, counts, plan, 0, found, weights, whole=whole)
    return np.sort(found)


def _descend(
    meter: Meter,
    counts: Exact[Integers],
    plan: Halving,
    first: int,
    found: Integers,
    weights: Integers | None,
    *,
    whole: bool,
) -> None:
    about = {"nano": plan.choice, "weights": weights, "whole": whole}
    point = choose_point(meter, counts, plan.q, label="quantile", **about)  # type: ignore[arg-type]
    found[plan.target] = first + point
    if plan.also is not None:
        _descend(meter, counts, plan.also, first, found, weights, whole=whole)
    if plan.low is None or plan.high is None:
        return
    part = choose_part(meter, counts, plan.q, point=point, nano=plan.division, weights=weights, label="division of a point")
    with meter.parallel(DISJOINT) as branch:
        with branch():
            lower = counts.map(partial(below, point=point, part=part))
            _descend(meter, lower, plan.low, first, found, weights, whole=False)
        with branch():
            upper = counts.map(partial(above, point=point, part=part))
            _descend(meter, upper, plan.high, first + point, found, weights, whole=False)


def rank_errors(plan: Halving, targets: int) -> Floats:
    """The standard deviation of each target's rank, in units of weight, where values are spread out.

    There a choice misses its rank by Laplace noise, and what it misses is handed on to the targets on both sides in
    proportion to how near they are.

    >>> rank_errors(plan_search([Fraction(1, 2)], 10**9), 1).round(3).tolist()
    [1.414]
    """
    found, scales = np.zeros((targets, targets)), np.zeros(targets)

    def visit(step: Halving, low: Floats, high: Floats) -> None:
        error = (1 - float(step.q)) * low + float(step.q) * high + np.eye(targets)[step.target]
        scales[step.target] = np.sqrt(2) / rank_rate(step.q, step.choice)
        found[step.target] = error
        if step.also is not None:
            visit(step.also, low, high)
        if step.low is not None and step.high is not None:
            visit(step.low, low, error)
            visit(step.high, error, high)

    visit(plan, np.zeros(targets), np.zeros(targets))
    return np.asarray(np.sqrt(np.square(found * scales).sum(axis=1)))
