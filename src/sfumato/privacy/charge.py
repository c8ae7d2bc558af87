"""What a release will cost at most, fixed before anything private is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.privacy.units import Epsilon, nano_up


@dataclass(frozen=True, eq=False)
class Charge:
    """The price in nano-ε: for everybody, per person group, per attribute.

    Parameters
    ----------
    total : int
        What the person who loses most loses.
    people : int64 array, optional
        What each person group loses, aligned with the levels of the roster.
    attributes : mapping
        What each attribute loses.

    Examples
    --------
    >>> Charge.of(0.5).total
    500000000
    """

    total: int
    people: NDArray[np.int64] | None = None
    attributes: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.total < 0 or any(v < 0 for v in self.attributes.values()):
            raise InputError("a charge must not be negative")
        if self.people is not None:
            people = np.array(self.people, dtype=np.int64)
            if people.ndim != 1 or people.size == 0 or people.min() < 0:
                raise InputError("a charge per person group is a flat array of nano-ε, none negative")
            if int(people.max()) > self.total:
                raise InputError("a person group is charged more than the total: the total is the largest loss")
            people.setflags(write=False)
            object.__setattr__(self, "people", people)

    @classmethod
    def of(cls, epsilon: Epsilon, *, attributes: Mapping[str, Epsilon] | None = None) -> Charge:
        """The same ε for everybody, rounded up."""
        return cls(nano_up(epsilon), attributes={k: nano_up(v) for k, v in (attributes or {}).items()})

    def within(self, limit: Charge) -> bool:
        """Whether this charge stays inside another in every part that the other limits.

        Where it does not say what a group or an attribute loses, that is up to the total.

        >>> Charge.of(0.5).within(Charge.of(1, attributes={"location": 0.1}))
        False
        """
        if self.total > limit.total:
            return False
        if limit.people is not None:
            mine = self.people if self.people is not None else np.full(limit.people.size, self.total)
            if mine.shape != limit.people.shape or (mine > limit.people).any():
                return False
        return all(self.attributes.get(name, self.total) <= value for name, value in limit.attributes.items())
