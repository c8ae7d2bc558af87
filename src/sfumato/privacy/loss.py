"""How much is lost, and how losses come together. Today that is pure ε, kept as whole nano-ε.

This class is the system's whole notion of "how much". The Meter adds up with `then`, `beside` and `in_sample` and compares
with `over`; a `Charge` holds the same numbers as the ledger's columns keep them. Another notion (zero-concentrated, or ε
with δ) would be another class with these operations and other columns in the ledger; mechanisms state rates, weights and
sensitivities and would not notice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.losses import amplified
from sfumato.privacy.units import Nano, NanoArray, epsilon_text

FAR = 1 << 61  # nano-ε: beyond any budget, and the sum of two still fits 64 bits


@dataclass(frozen=True)
class Parties:
    """Who can lose something: the person groups of a roster first, then the metered attributes.

    Parameters
    ----------
    budgets : PersonBudgets, optional
        The roster; without one everybody is one group.
    attributes : tuple of str

    Examples
    --------
    >>> Parties(None, ("location",)).name(1)
    "attribute 'location'"
    """

    budgets: PersonBudgets | None = None
    attributes: tuple[str, ...] = ()

    @property
    def groups(self) -> int:
        """Number of person groups."""
        return 1 if self.budgets is None else self.budgets.groups

    @property
    def size(self) -> int:
        """Number of parties."""
        return self.groups + len(self.attributes)

    def name(self, party: int) -> str:
        """What to call a party in a sentence."""
        if party >= self.groups:
            return f"attribute {self.attributes[party - self.groups]!r}"
        if self.budgets is not None and self.groups > 1:
            return f"people at {self.budgets.name(party)}"
        return "this release"


@dataclass(frozen=True, eq=False)
class Loss:
    """What each party loses, in nano-ε.

    Parameters
    ----------
    nano : int64 array
        One entry per party.

    Examples
    --------
    >>> one, two = Loss(np.array([3, 5])), Loss(np.array([4, 1]))
    >>> one.then(two).nano.tolist(), one.beside(two).nano.tolist()
    ([7, 6], [4, 5])
    >>> Loss(np.array([10**9])).in_sample(np.array([0.5])).words(0)
    'ε 0.620114507'
    >>> one.over(two)
    1
    """

    nano: NanoArray

    @classmethod
    def nothing(cls, parties: int) -> Loss:
        """None of so many `parties` loses anything."""
        return cls(np.zeros(parties, dtype=np.int64))

    def then(self, later: Loss) -> Loss:
        """In sequence: this, and `later` that. Losses add up."""
        return Loss(self.nano + later.nano)

    def beside(self, other: Loss) -> Loss:
        """In parallel to an `other` one, over disjoint people: each party loses the larger of the two."""
        return Loss(np.maximum(self.nano, other.nano))

    def in_sample(self, probability: NDArray[np.float64]) -> Loss:
        """For the data that a sample was drawn from, if a record of each party was kept with its `probability`."""
        return Loss(amplified(self.nano, probability))

    def over(self, limit: Loss) -> int | None:
        """The party that passes its part of the `limit` by most, or None."""
        beyond = self.nano - limit.nano
        worst = int(np.argmax(beyond))
        return worst if beyond[worst] > 0 else None

    @property
    def largest(self) -> Nano:
        """What the party that loses most loses."""
        return Nano(int(self.nano.max(initial=0)))

    def words(self, party: int) -> str:
        """The loss of one `party` in words."""
        return f"ε {epsilon_text(int(self.nano[party]))}"
