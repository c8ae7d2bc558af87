"""What a release will cost at most, fixed before anything private is read.

A `Loss` by name: in these three parts plans show a price, Meters limit by it, and the ledger's columns keep it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from sfumato.errors import InputError
from sfumato.privacy.loss import FAR, Loss, Parties
from sfumato.privacy.units import Epsilon, Nano, NanoArray, nano_up


@dataclass(frozen=True, eq=False)
class Charge:
    """The price in nano-ε: for everybody, per person group, per attribute.

    Parameters
    ----------
    total : Nano
        What the person who loses most loses.
    people : int64 array, optional
        What each person group loses, aligned with the levels of the roster.
    attributes : mapping
        What each attribute loses.

    Examples
    --------
    >>> Charge.of(0.5).total
    500000000
    >>> Charge.of_people([10**8, 3 * 10**8]).total
    300000000
    """

    total: Nano
    people: NanoArray | None = None
    attributes: Mapping[str, Nano] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.total < 0 or any(v < 0 for v in self.attributes.values()):
            raise InputError("a charge must not be negative")
        if self.people is not None:
            people = _whole(self.people)
            if people.ndim != 1 or people.size == 0 or people.min() < 0:
                raise InputError("a charge per person group is a flat array of nano-ε, none negative")
            if int(people.max()) > self.total:
                raise InputError("a person group is charged more than the total: the total is the largest loss")
            people.setflags(write=False)
            object.__setattr__(self, "people", people)

    @classmethod
    def of(cls, epsilon: Epsilon, *, attributes: Mapping[str, Epsilon] | None = None) -> Charge:
        """The same `epsilon` for everybody and, by name, for `attributes`; rounded up."""
        return cls(nano_up(epsilon), attributes={k: nano_up(v) for k, v in (attributes or {}).items()})

    @classmethod
    def of_people(cls, nano: ArrayLike) -> Charge:
        """What each person group loses (`nano`-ε); the total is the largest of them."""
        people = _whole(nano)
        return cls(Nano(int(people.max(initial=0))), people)

    @classmethod
    def of_loss(cls, loss: Loss, parties: Parties) -> Charge:
        """A `loss` per party, under the names of the `parties`."""
        people, attributes = np.split(loss.nano, [parties.groups])
        return cls(
            Nano(int(people.max())),
            None if parties.budgets is None else people,
            {name: Nano(nano) for name, nano in zip(parties.attributes, attributes.tolist(), strict=True)},
        )

    def limits(self, parties: Parties) -> Loss:
        """What each of the `parties` may lose if no more than this is charged; an attribute without a limit may lose all."""
        if self.people is not None and self.people.size != parties.groups:
            raise InputError(f"the limit speaks of {self.people.size} person groups, the budgets of {parties.groups}")
        people = np.full(parties.groups, self.total, dtype=np.int64) if self.people is None else self.people
        attributes = [self.attributes.get(name, FAR) for name in parties.attributes]
        return Loss(np.concatenate([people, np.array(attributes, dtype=np.int64)]))

    def within(self, limit: Charge) -> bool:
        """Whether this charge stays inside another, the `limit`, in every part that it limits.

        Where it does not say what a group or an attribute loses, that is up to the total.

        >>> Charge.of(0.5).within(Charge.of(1, attributes={"location": 0.1}))
        False
        """
        if self.total > limit.total:
            return False
        if limit.people is not None:
            mine = self.people if self.people is not None else np.full(limit.people.size, self.total)
            if mine.shape != limit.people.shape or Loss(mine).over(Loss(limit.people)) is not None:
                return False
        return all(self.attributes.get(name, self.total) <= value for name, value in limit.attributes.items())


def _whole(nano: ArrayLike) -> NanoArray:
    given = np.asarray(nano)
    if given.size and given.dtype.kind not in "iu":  # a cast would cut 0.9 down to nothing
        raise InputError(f"a charge per person group is in whole nano-ε; got an array of {given.dtype}")
    return given.astype(np.int64)
