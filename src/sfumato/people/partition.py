"""Optimal contiguous partitions of sorted public budgets (Li, Xiong, Ji & Jiang 2017, corrected).

- *Privacy-aware*: k parts with the least squared waste ``W(part) = Σ_u (ε_u - min ε)²``. W is Monge: the best last cut moves
  right as the prefix grows, so each of the k layers is solved by divide and conquer, O(G log G) for G distinct budgets, and
  the result is exact. The recursion of the paper drops the first part (its base case is 0 for any prefix); here
  ``D_0(0) = 0, D_0(j > 0) = inf``.
- *Utility-based*: parts that maximise ``Σ U(n_i, ε_i)`` for any function U. Not Monge in general, so every pair of cuts is
  compared, O(G²), after rounding budgets *down* to few distinct values. The paper maximises a variance (which favours tiny
  parts); U must grow with usefulness, like the precision of a part's mean.

Both respect a minimum part size inside the recursion. Budgets are public, so none of this costs anything; a part runs at
its smallest budget, so nobody loses more than they granted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.people.monge import best_cuts
from sfumato.privacy import NANO, PersonBudgets

Utility = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
MOST_LEVELS = 4000  # for the O(G²) search


@dataclass(frozen=True, eq=False)
class Partition:
    """Contiguous parts of the sorted levels.

    Attributes
    ----------
    budgets : PersonBudgets
        The public roster that is divided.
    cuts : int64 array
        Part i holds levels ``cuts[i]`` up to ``cuts[i + 1]``.

    Examples
    --------
    >>> parts = privacy_aware(PersonBudgets.of([0.1, 0.11, 0.5, 0.52]), parts=2)
    >>> parts.sizes.tolist(), parts.epsilons.tolist()
    ([2, 2], [0.1, 0.5])
    """

    budgets: PersonBudgets
    cuts: NDArray[np.int64]

    @property
    def parts(self) -> int:
        """Number of parts."""
        return int(self.cuts.size - 1)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """People per part."""
        return np.add.reduceat(self.budgets.counts, self.cuts[:-1])

    @property
    def levels(self) -> NDArray[np.int64]:
        """The smallest budget of each part, in nano-ε."""
        return self.budgets.levels[self.cuts[:-1]]

    @property
    def epsilons(self) -> NDArray[np.float64]:
        """The smallest budget of each part, as floats for formulas of expected error."""
        return np.asarray(self.levels / NANO)

    @property
    def part_of(self) -> NDArray[np.int64]:
        """The part of each person group."""
        return np.repeat(np.arange(self.parts), np.diff(self.cuts))

    @property
    def waste(self) -> float:
        """Squared budget that nobody uses, in ε²."""
        gap = (self.budgets.levels - self.levels[self.part_of]) / NANO
        return float(np.dot(self.budgets.counts, gap**2))


def round_down(budgets: PersonBudgets, *, decimals: int) -> tuple[PersonBudgets, NDArray[np.int64]]:
    """The roster on few levels, each budget rounded down.

    Parameters
    ----------
    budgets : PersonBudgets
        The public roster.
    decimals : int
        Digits of ε to keep. Whoever granted less than one step keeps their own budget.

    Returns
    -------
    tuple of PersonBudgets and int64 array
        The coarse roster, and the coarse group of each original group.
    """
    step = 10 ** max(0, 9 - decimals)
    # Below one step people keep their own budget: rounding to 0 would silence them.
    rounded = np.where(budgets.levels >= step, budgets.levels // step * step, budgets.levels)
    levels, group = in_order(rounded)
    counts = np.bincount(group, weights=budgets.counts, minlength=levels.size).astype(np.int64)
    return PersonBudgets(levels, counts), group


def in_order(levels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different levels in order, and which of them each is; without sorting what is sorted.

    >>> [found.tolist() for found in in_order(np.array([3, 3, 5]))]
    [[3, 5], [0, 0, 1]]
    """
    step = np.diff(levels)
    if (step < 0).any():
        different, place = np.unique(levels, return_inverse=True)
        return different, place.astype(np.int64)
    new = np.append(True, step > 0)
    return levels[new], np.cumsum(new) - 1


def privacy_aware_all(budgets: PersonBudgets, *, parts: int, minimum_size: int = 1) -> list[Partition]:
    """The best partition for every number of parts from 1 to `parts` that the minimum size allows."""
    if parts < 1 or minimum_size < 1:
        raise InputError(f"a partition needs at least one part of at least one person, got {parts} and {minimum_size}")
    found = best_cuts(budgets.epsilons, budgets.counts, parts, minimum_size)
    if not found:
        raise InputError(f"{budgets.people} people cannot fill one part of at least {minimum_size}")
    return [Partition(budgets, cuts) for cuts in found]


def privacy_aware(budgets: PersonBudgets, *, parts: int, minimum_size: int = 1) -> Partition:
    """The parts that waste the least budget, squared.

    Parameters
    ----------
    budgets : PersonBudgets
        The public roster.
    parts : int
        How many parts, exactly.
    minimum_size : int
        The fewest people in a part.

    Returns
    -------
    Partition
    """
    found = privacy_aware_all(budgets, parts=parts, minimum_size=minimum_size)
    if len(found) < parts:
        raise InputError(
            f"{parts} parts of at least {minimum_size} people do not fit: {budgets.people} people on {budgets.groups} "
            f"levels allow {len(found)}; ask for fewer parts or a smaller minimum_size"
        )
    return found[parts - 1]


def utility_based(budgets: PersonBudgets, utility: Utility, *, parts: int | None = None, minimum_size: int = 1) -> Partition:
    """The partition with the largest total utility; the number of parts comes out by itself unless given.

    Parameters
    ----------
    budgets : PersonBudgets
        The public roster.
    utility : function of arrays (people, epsilon)
        How useful a part of that many people at that ε is; larger is better.
    parts : int, optional
        How many parts, exactly.
    minimum_size : int
        The fewest people in a part.

    Returns
    -------
    Partition
    """
    groups = budgets.groups
    if groups > MOST_LEVELS:
        raise InputError(f"{groups} distinct budgets; round them down first: round_down(budgets, decimals=3)")
    heads = np.concatenate([[0], np.cumsum(budgets.counts)]).astype(np.float64)
    e = budgets.epsilons
    layers = 1 if parts is None else int(parts)
    if layers < 1:
        raise InputError(f"a partition needs at least one part, got {parts}")
    back = np.zeros((layers, groups + 1), dtype=np.int64)
    best = np.full(groups + 1, -np.inf)
    best[0] = 0.0
    for layer in range(layers):
        # With a free number of parts the one layer feeds itself: `after` is `before`, filled from left to right.
        after = np.full(groups + 1, -np.inf)
        after[0] = 0.0 if parts is None else -np.inf
        before = after if parts is None else best
        for b in range(1, groups + 1):
            size = heads[b] - heads[:b]
            value = np.where(size >= minimum_size, before[:b] + _checked(utility, size, e[:b], minimum_size), -np.inf)
            back[layer, b] = int(np.argmax(value))
            after[b] = value[back[layer, b]]
        best = after
    if best[groups] == -np.inf:
        raise InputError(f"{layers} parts of at least {minimum_size} people do not fit {budgets.people} people")
    cuts = [groups]
    layer = layers - 1
    while cuts[-1] > 0:
        cuts.append(int(back[layer, cuts[-1]]))
        layer = layer if parts is None else layer - 1
    return Partition(budgets, np.array(cuts[::-1], dtype=np.int64))


def _checked(
    utility: Utility, size: NDArray[np.float64], epsilon: NDArray[np.float64], minimum_size: int
) -> NDArray[np.float64]:
    value = np.asarray(utility(np.maximum(size, max(1, minimum_size)), epsilon), dtype=np.float64)
    if value.shape != size.shape or np.isnan(value).any():
        raise InputError("a utility takes arrays (people, epsilon) and returns one number for each pair, never NaN")
    return value


def count_precision(*, variance: float = 0.25, reach: float = 1.0) -> Utility:
    """Precision of a part's mean: ``1 / (σ²/n + 2 (reach/(n ε))²)``."""
    return lambda n, e: 1 / (variance / n + 2 * (reach / (n * e)) ** 2)


def published_count(*, reach: float = 1.0) -> Utility:
    """The paper's utility of a count, ``2 (reach/(n ε))²``: a variance, which is largest for tiny parts. To compare with."""
    return lambda n, e: 2 * (reach / (n * e)) ** 2


def erm_precision(dimension: int, *, gradient: float = 0.25) -> Utility:
    """Precision of a model fitted on a part by objective perturbation: ``1 / (G²/n + 4 d (d+1)/(n ε)²)``."""
    return lambda n, e: 1 / (gradient / n + 4 * dimension * (dimension + 1) / (n * e) ** 2)


def dominated(sizes: NDArray[np.int64], epsilons: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The drop-out rule: parts that have no more people than another part whose budget is larger.

    >>> dominated(np.array([10, 10, 50]), np.array([0.1, 0.2, 0.1])).tolist()
    [True, False, False]
    """
    smaller = sizes[:, None] <= sizes[None, :]
    weaker = epsilons[:, None] < epsilons[None, :]
    return np.asarray((smaller & weaker).any(axis=1))
