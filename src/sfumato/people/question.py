"""What is asked, in public facts only: who takes part with which budget, and between which bounds a record lies.

A record's contribution is a whole number x between `low` and `high` (0 and 1 for a count); whoever is absent or outside
the condition contributes 0. With up to R rows per person a person's total lies between ``R low`` and ``R high``. Blanking
a person moves the sum by at most ``R max(|low|, |high|)`` units: the *reach*.

A weight buys reach: weight w costs a person ``w reach`` nano-ε, so budgets are divided by the reach and rounded down. On a
fine lattice that would take a good part of a small budget, or all of it. There the *sum* is divided by the units of one
record instead (`divisor`), and weight w costs a person w nano-ε a row; see `linear` for why that is safe.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy import NANO, PersonBudgets
from sfumato.privacy.terms import Terms

Kind = Literal["count", "sum", "mean"]
_WHOLE_WEIGHTS = 1000  # a budget of this many reaches loses at most 0.1% when it is rounded down to whole weights


@dataclass(frozen=True, eq=False)
class Question:
    """A count or a sum over the people of a public roster.

    Parameters
    ----------
    held_to : Terms or PersonBudgets
        Whom the answer protects, at how many rows each (capped where the table is read), and what each group of people may
        lose. A roster alone stands for one row per person.
    low, high : int
        Public bounds of one record's contribution, in lattice units.
    unit : float
        What one lattice unit means in the answer (0.01 for cents in euros).
    selectivity : float, optional
        A public guess of the share of people who satisfy the condition; nothing is assumed without it.
    kind : "count" or "sum"
    split : int
        The question may use this fraction of every budget: 2 means half (a mean needs a sum and a count).
    rounding : float
        By how many lattice units a record's true value may differ from its contribution: 0 where values are whole numbers of
        units, ½ where they were rounded to the nearest.
    column : str, optional
        The column that is added up, for the words of the answer.
    taking : float, optional
        A public guess of the share of people whose contribution to a sum is not 0; all of them without it.

    Examples
    --------
    >>> Question(PersonBudgets.of([0.1, 0.2, 0.2])).variance
    0.25
    """

    held_to: Terms | PersonBudgets
    low: int = 0
    high: int = 1
    unit: float = 1.0
    selectivity: float | None = None
    kind: Kind = "count"
    split: int = 1
    rounding: float = 0.0
    column: str | None = None
    taking: float | None = None

    def __post_init__(self) -> None:
        if self.terms.neighbours != "absence":
            raise InputError(f"questions about people are priced against absence, not {self.terms.neighbours}")
        if self.budgets.people < 1:
            raise InputError("the roster is empty: nobody takes part")
        if not self.low <= 0 <= self.high or self.low == self.high:
            raise InputError(f"a contribution lies between low <= 0 <= high, got low={self.low}, high={self.high}")
        if self.split < 1:
            raise InputError(f"split must be at least 1, got {self.split}")
        if not (np.isfinite(self.unit) and self.unit > 0):
            raise InputError(f"unit must be a positive number, got {self.unit!r}")
        if not 0 <= self.rounding <= 1:
            raise InputError(f"rounding is a part of a lattice unit, from 0 to 1; got {self.rounding!r}")
        if self.selectivity is not None and not 0 <= self.selectivity <= 1:
            raise InputError(f"selectivity is a share between 0 and 1, got {self.selectivity!r}")
        if self.taking is not None and not 0 <= self.taking <= 1:
            raise InputError(f"taking is a share between 0 and 1, got {self.taking!r}")

    @cached_property
    def terms(self) -> Terms:
        """What the answer is held to, yet without a price."""
        return Terms.of(self.held_to)

    @property
    def budgets(self) -> PersonBudgets:
        """The public roster."""
        if self.terms.budgets is None:
            raise InputError("a question about people needs their budgets: terms with `budgets`")
        return self.terms.budgets

    @property
    def rows_per_person(self) -> int:
        """Cap on the rows of one person."""
        return self.terms.rows_per_person

    def need_exact_heads(self, mechanism: str) -> None:
        """Refuse a `mechanism` whose answer takes head counts as exact where they are noisy."""
        if self.budgets.noise is not None:
            raise InputError(f"{mechanism} needs exact head counts, and those of a private roster are noisy: choose another")

    def among(self, budgets: PersonBudgets) -> Question:
        """The same question to people with other `budgets`; for comparisons, not for a release."""
        return replace(self, held_to=replace(self.terms, budgets=budgets, granted=None))

    @cached_property
    def people(self) -> int:
        """Number of people in the roster."""
        return self.budgets.people

    @cached_property
    def levels(self) -> NDArray[np.int64]:
        """What this question may use of each group's budget, in nano-ε."""
        return self.budgets.levels if self.split == 1 else np.asarray(self.budgets.levels // self.split)

    @cached_property
    def heads(self) -> NDArray[np.float64]:
        """People per group, as floats for formulas of expected error."""
        return self.budgets.counts.astype(np.float64)

    @cached_property
    def epsilons(self) -> NDArray[np.float64]:
        """The same as floats, for formulas of expected error only."""
        return np.asarray(self.levels / NANO)

    @property
    def record_reach(self) -> int:
        """Units by which one record moves the sum at most."""
        return max(-self.low, self.high)

    @property
    def reach(self) -> int:
        """Units by which one person moves the sum at most."""
        return self.record_reach * self.rows_per_person

    @cached_property
    def divisor(self) -> int:
        """What a weighted sum is divided by, rounded down, before the noise: 1, or the units of one record.

        >>> roster = PersonBudgets.of([0.01, 1.0])
        >>> Question(roster, high=100).divisor, Question(roster, high=500_000_000).divisor
        (1, 500000000)
        """
        present = self.levels[self.budgets.counts > 0]
        return 1 if int(present.min()) >= _WHOLE_WEIGHTS * self.reach else self.record_reach

    @property
    def record_cost(self) -> int:
        """Nano-ε that one record loses for each unit of weight."""
        return self.record_reach // self.divisor

    @property
    def cost(self) -> int:
        """Nano-ε that one person loses for each unit of weight."""
        return self.record_cost * self.rows_per_person

    @property
    def clamped(self) -> tuple[float, float] | None:
        """Between which bounds the column's values were clamped, in its own unit."""
        return None if self.column is None else (self.low * self.unit, self.high * self.unit)

    @property
    def rounding_bound(self) -> float:
        """How far rounding to the lattice can move the answer, if all rows err the same way (prices that end in .99)."""
        return self.people * self.rows_per_person * self.unit * self.rounding

    @property
    def span(self) -> int:
        """Largest minus smallest total of one person, in units."""
        return (self.high - self.low) * self.rows_per_person

    @property
    def middle(self) -> float:
        """Middle of what a person can total, in units."""
        return (self.high + self.low) * self.rows_per_person / 2

    @property
    def largest(self) -> float:
        """The largest size of a person's total, in units."""
        return float(self.reach)

    @property
    def likely(self) -> float:
        """The size of the mean of the people's totals as guessed from the selectivity, or in the middle."""
        guess = 0.5 if self.selectivity is None else self.selectivity
        return abs(self.low * self.rows_per_person + guess * self.span)

    @property
    def variance(self) -> float:
        """Variance of the people's totals: as guessed from the selectivity, or the largest possible for who takes part."""
        if self.selectivity is None:
            # Totals that are 0 but for a share t of the people have a mean square of at most t reach².
            most = 1.0 if self.taking is None else max(self.taking, 1 / (self.people + 1))
            return min(self.span**2 / 4, most * self.reach**2)
        # A share of 0 or 1 would promise that no sampling error exists; one person in the roster is the least we allow.
        share = min(max(self.selectivity, 1 / (self.people + 1)), 1 - 1 / (self.people + 1))
        return self.span**2 * share * (1 - share)
