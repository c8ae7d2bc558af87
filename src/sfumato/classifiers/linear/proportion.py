"""Whose model it is: how much more the generous may weigh in a fit than the strict.

In the weighted objective a person weighs what their budget pays for, so the model is that of a population in which generous
people are more frequent than they are. Where budgets are independent of the records that changes nothing; where they go with
age or sex or illness it leans. Three ways to fit:

- ``"as granted"``: weights up to the cap with the least error under independence. Least noise.
- ``"in proportion"``: every tier weighs as much as it has heads. Within a tier budgets are alike, so that means the same
  weight for all: the strictest one's. No lean, and noise as if all had granted the least.
- a number k >= 1: nobody weighs more than k times as much as anybody else. Among weights within the budgets that keep to
  this, cutting at k times the strictest's has the largest total: everybody is at their own limit or at the common one.

The **lean** is the part of all weight that would have to move to other people for all to weigh alike: if the records of
those who grant more differ from the others' in the mean of anything between 0 and 1, a weighted mean of it is off by at most
this. The **noise** is the standard deviation of the noise in the coefficients as a multiple of that of "as granted".

Guarantee. All three only lower the cap of the weighted fit and then, if at all, single weights: the loss of a record grows
with its weight (`privacy.losses.objective_loss`), so everybody still loses at most their own ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy import NANO, Nano, PersonBudgets
from sfumato.privacy.objective import Floats

Tiers: TypeAlias = Literal["as granted", "in proportion"] | float


def most_often(tiers: Tiers) -> float:
    """How many times the strictest person's weight anybody may have.

    Parameters
    ----------
    tiers : "as granted", "in proportion" or a number of at least 1

    Returns
    -------
    float

    Examples
    --------
    >>> most_often("as granted"), most_often("in proportion"), most_often(3)
    (inf, 1.0, 3.0)
    """
    if isinstance(tiers, str):
        named = {"as granted": np.inf, "in proportion": 1.0}
        if tiers in named:
            return named[tiers]
    elif isinstance(tiers, int | float) and not isinstance(tiers, bool) and tiers >= 1:
        return float(tiers)
    raise InputError(
        f"tiers must be 'as granted', 'in proportion', or how many times another's weight anybody may have (at least 1); "
        f"got {tiers!r}"
    )


def lowered(cap: Nano, levels: NDArray[np.int64], tiers: Tiers) -> Nano:
    """A cap on budgets of these `levels`, lowered as `tiers` says.

    >>> lowered(Nano(8 * 10**8), np.array([10**7, 2 * 10**8, 10**9]), 5)
    50000000
    """
    times = most_often(tiers)
    return cap if np.isinf(times) else min(cap, Nano(int(min(times * int(levels.min()), 4e18))))


def evened(weights: Floats, tiers: Tiers) -> Floats:
    """The `weights`, none above the allowed multiple of the smallest."""
    used = weights[weights > 0]
    return weights if not used.size else np.minimum(weights, most_often(tiers) * used.min())


@dataclass(frozen=True)
class Lean:
    """What unequal weights do to a fit, from the public roster alone.

    Attributes
    ----------
    lean : float
        The part of all weight that would have to move for all to weigh alike.
    noise : float
        The noise in the coefficients, as a multiple of that of weights as granted.
    """

    lean: float
    noise: float

    @classmethod
    def of(cls, budgets: PersonBudgets, cap: Nano, granted: Nano) -> Lean:
        """Of weights cut at `cap`, beside those cut at `granted`.

        >>> tiers = PersonBudgets.from_tiers({"strict": (0.01, 5400), "standard": (0.2, 3700), "open": (1.0, 900)})
        >>> Lean.of(tiers, Nano(10**9), Nano(10**9)), Lean.of(tiers, Nano(10**7), Nano(10**9))
        (Lean(lean=0.5081, noise=1.0), Lean(lean=0.0, noise=16.94))
        """
        counts = budgets.counts.astype(np.float64)
        weights, before = (np.minimum(budgets.levels, c) / NANO for c in (cap, granted))
        mass = float(np.dot(counts, weights))
        share = counts * weights / mass
        lean = float(np.abs(share - counts / counts.sum()).sum() / 2)
        return cls(round(lean, 4), round(float(np.dot(counts, before)) / mass, 2))
