"""The lattice of a column: how finely its values are cut before they are added up as whole numbers.

*What rounding does.* The nearest of `steps` points between the bounds is at most half a unit away, and nothing says that
such errors cancel: prices end in .99, incomes in 000, so all rows can err the same way. n people with R rows each can
then move a sum by ``n R unit/2``, and that is what intervals and expected errors contain: never ``sqrt(n)``.

*How fine is fine enough.* With X the width of the bounds the noise of a sum has standard deviation ``√2 n R X / Σε``, Σε
being the budgets of all people together, so rounding is at most 1% of it from ``Σε / (0.02 √2)`` steps on: about 35 steps
for each unit of ε that is granted in all. A million people at ε = 1 need 3.5e7 steps.

*What more steps cost.* Nothing: the noise depends on X alone, and where budgets are small next to the number of steps the
sum is divided, not the budgets (see `linear`), so nobody loses weight to a fine lattice. The limit is the engine's: 2^32
rows of up to 2^30 units still add up in 64 bits. So the lattice is as fine as that allows, and coarser only where a unit
that reads well (1, 2 or 5 in a decimal place) does as well: values with fewer decimals than it are then not rounded at all.

*Whole numbers* keep their own lattice, one step each, and nothing is rounded, as long as there are at most 2^30 of them.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.privacy import PersonBudgets
from sfumato.tables.lattice import MAX_STEPS, Lattice

MOST_POINTS = MAX_STEPS  # of a lattice in the engine
_SHARE = 0.01  # rounding at most, of the noise's standard deviation


def steps_needed(budgets: PersonBudgets) -> int:
    """From how many steps on rounding is at most 1% of the noise.

    >>> steps_needed(PersonBudgets.of([0.5] * 1000))
    17678
    """
    granted = float(np.dot(budgets.epsilons, budgets.counts))
    return int(np.ceil(granted / (2 * np.sqrt(2) * _SHARE)))


def lattice_between(
    low: float,
    high: float,
    budgets: PersonBudgets,
    *,
    integer: bool = False,
    whole: int | None = None,
    steps: int | None = None,
    most: int = MOST_POINTS,
) -> Lattice:
    """The lattice for a column with these bounds.

    Parameters
    ----------
    low, high : float
        Public bounds.
    budgets : PersonBudgets
        Who takes part with which budget: public, and all that the noise depends on.
    integer : bool
        Whether the column holds whole numbers.
    whole : int, optional
        Steps of the coarsest lattice on which nothing is rounded, if there is one: of whole numbers, decimals or days.
    steps : int, optional
        Asked for by name; what it rounds is accounted for like any other rounding.
    most : int
        The most steps that the engine can add up.

    Examples
    --------
    >>> crowd = PersonBudgets.of([1.0] * 1000)
    >>> lattice_between(0, 500_000, crowd).unit  # cents are not rounded
    0.0005
    >>> lattice_between(0, 2_000_000, crowd, integer=True)
    Lattice(low=0.0, high=2000000.0, steps=2000000, exact=True)
    >>> lattice_between(0, 10**12, crowd, integer=True)
    Lattice(low=0.0, high=1000000000000.0, steps=1000000000, exact=False)
    """
    width = Fraction(str(high)) - Fraction(str(low))
    whole = int(width) if integer else whole
    if steps is None:
        steps = whole if whole is not None and whole <= most else _finest(width, most, steps_needed(budgets))
    return Lattice(float(low), float(high), steps, whole is not None and steps % whole == 0)


def _finest(width: Fraction, most: int, needed: int) -> int:
    """The most steps whose unit is 1, 2 or 5 in some decimal place, if they are enough; else the most of all."""
    for place in range(30, -30, -1):
        for factor in (5, 2, 1):
            steps = width * factor * Fraction(10) ** place
            if steps.denominator == 1 and needed <= steps <= most:
                return int(steps)
    return most
