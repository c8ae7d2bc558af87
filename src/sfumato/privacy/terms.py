"""What a release is held to: whom it protects, against which neighbour, at how many rows each, and up to which price.

Made once from the schema and the plan, and handed on whole through preview, pricing, ledger and Meter. Nothing passes these
numbers by hand, so nobody can forget one or state another.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.guarantee import NEIGHBOURS

Neighbours = Literal["absence", "replacement", "item"]


@dataclass(frozen=True, eq=False)
class Terms:
    """What a release is held to.

    Parameters
    ----------
    person : str, optional
        The column that says whose row it is; None where every row is a person of its own.
    rows_per_person : int
        Cap on the rows one person owns; every loss is multiplied by it.
    neighbours : "absence", "replacement" or "item"
        What the promise compares with.
    limit : Charge, optional
        What the release may cost.
    budgets : PersonBudgets, optional
        The person groups whose losses are kept apart, and what each may lose.
    granted : int64 array, optional
        What each person group granted altogether, where `budgets` is only the share of this release; two rows, the smallest
        and the largest, where people of one group granted different amounts.
    attributes : tuple of str
        Attributes whose losses are kept apart.
    roster : "public" or "private"
        Whether who granted which budget is public, or part of each person's record.
    heads : bool
        Whether people are counted and not their rows, so that no cap leaves anything out.

    Examples
    --------
    >>> terms = Terms(person="patient", rows_per_person=3, neighbours="replacement")
    >>> terms.factor, terms.per_row(12)
    (6, 2)
    """

    person: str | None = None
    rows_per_person: int = 1
    neighbours: Neighbours = "absence"
    limit: Charge | None = None
    budgets: PersonBudgets | None = field(default=None, repr=False)
    granted: NDArray[np.int64] | None = field(default=None, repr=False)
    attributes: tuple[str, ...] = ()
    roster: Literal["public", "private"] = "public"
    heads: bool = False

    def __post_init__(self) -> None:
        if self.rows_per_person < 1:
            raise InputError(f"rows_per_person must be at least 1, got {self.rows_per_person}")
        if self.neighbours not in NEIGHBOURS:
            raise InputError(f"neighbours must be one of {', '.join(NEIGHBOURS)}, got {self.neighbours!r}")
        object.__setattr__(self, "rows_per_person", operator.index(self.rows_per_person))

    @property
    def factor(self) -> int:
        """Units of loss per unit of rate: a person's rows, twice against replacement."""
        return self.rows_per_person * (2 if self.neighbours == "replacement" else 1)

    def per_head(self) -> Self:
        """The same terms for counts of people: a person is one head, whatever rows they own."""
        return replace(self, rows_per_person=1, heads=True)

    def per_row(self, nano: int) -> int:
        """What a step may cost one row so that nobody loses more than `nano`."""
        return nano // self.factor

    @classmethod
    def of(cls, given: Terms | PersonBudgets) -> Terms:
        """The terms `given`; a roster alone stands for one row per person, compared with their absence.

        >>> Terms.of(PersonBudgets.of([0.1, 0.2])).rows_per_person
        1
        """
        if isinstance(given, Terms):
            return given
        if not isinstance(given, PersonBudgets):
            raise InputError("give Terms, or PersonBudgets: PersonBudgets.of([...]) makes them from one ε per person")
        return cls(budgets=given)

    def up_to(self, limit: Charge | None, *, budgets: PersonBudgets | None = None, granted: ArrayLike | None = None) -> Self:
        """The same terms with a price: `limit`, for the person groups of `budgets`, who `granted` so much in all.

        Groups that the terms already know stay as they are unless others are given.
        """
        if budgets is None and granted is None:
            return replace(self, limit=limit)
        held = None if granted is None else np.asarray(granted, dtype=np.int64)
        return replace(self, limit=limit, budgets=budgets, granted=held)

    def told(self) -> dict[str, Any]:
        """Whom the promise protects, in plain words for certificates and ledgers."""
        told = {"person": self.person, "rows_per_person": self.rows_per_person, "neighbours": self.neighbours}
        return told | ({"roster": "private"} if self.roster == "private" else {})
