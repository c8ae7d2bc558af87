"""What a living ledger must say, kept the plainest way: one dictionary per person, one line per charge.

It shares no code with the ledger. Amounts are whole nano-ε.

The rules: a choice waits for the epoch, but one that takes something away (a lower grant, a withdrawal) binds before the
next release. What was spent on a person follows them through every tier, through withdrawal and back. They may be charged
while what was spent, for life and in this period, stays within what they grant now.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

Key = tuple[str | None, int, int, int]
"""Tier, grant, spent, left: what the ledger's standing says of a cohort."""


@dataclass(frozen=True)
class Line:
    """One charge to one person."""

    release: int
    granted: int
    epoch: int
    charged: int


@dataclass
class Person:
    """What one person chose, and what was spent on them."""

    tier: str | None = None
    grant: int = 0
    part: bool = False  # in the roster, and not withdrawn
    gone: bool = False  # withdrew, and has not come back
    lines: list[Line] = field(default_factory=list)
    in_period: int = 0

    @property
    def spent(self) -> int:
        return sum(line.charged for line in self.lines)


@dataclass
class Lives:
    """Everybody, what they have asked for since the last epoch, and which period it is."""

    menu: dict[str, int]
    per_period: dict[str, int]
    people: dict[object, Person] = field(default_factory=dict)
    waiting: dict[object, tuple[str | None, int] | None] = field(default_factory=dict)  # None: withdraw
    epoch: int = 0
    period: str = ""

    def granted(self, grant: str | int) -> tuple[str | None, int]:
        """A tier by name, or an amount of one's own."""
        return (grant, self.menu[grant]) if isinstance(grant, str) else (None, grant)

    def known(self, name: object) -> bool:
        return name in self.people

    def choose(self, name: object, grant: str | int) -> None:
        self.waiting[name] = self.granted(grant)

    def withdraw(self, name: object) -> None:
        self.waiting[name] = None

    def period_cap(self, tier: str | None) -> int | None:
        return None if tier is None else self.per_period.get(tier)

    def left(self, name: object) -> int:
        person = self.people[name]
        if not person.part:
            return 0
        left = person.grant - person.spent
        cap = self.period_cap(person.tier)
        if cap is not None:
            left = min(left, cap - person.in_period)
        return max(left, 0)

    def takes_away(self, name: object) -> bool:
        """Whether what waits for this person leaves them with less than now."""
        choice, person = self.waiting[name], self.people.get(name)
        if person is None or not person.part:
            return False
        return choice is None or choice[1] < person.grant

    def _apply(self, name: object) -> None:
        choice = self.waiting.pop(name)
        person = self.people.setdefault(name, Person())
        if choice is None:
            person.part, person.gone = False, True
        else:
            person.tier, person.grant = choice
            person.part, person.gone = True, False

    def bind(self) -> None:
        for name in [n for n in self.waiting if self.takes_away(n)]:
            self._apply(name)

    def close_epoch(self) -> None:
        for name in list(self.waiting):
            self._apply(name)
        self.epoch += 1

    def enter(self, period: str) -> None:
        """The clock says `period`; a new one begins with nothing spent in it."""
        if period > self.period:
            self.period = period
            for person in self.people.values():
                person.in_period = 0

    def standing(self) -> Counter[Key]:
        """Heads by what the ledger shows of a cohort."""
        there = ((p, self.left(n)) for n, p in self.people.items() if p.part)
        return Counter((p.tier, p.grant, p.spent, left) for p, left in there)

    def key(self, name: object) -> Key:
        person = self.people[name]
        return (person.tier, person.grant, person.spent, self.left(name))

    def charge(self, release: int, amounts: dict[object, int]) -> None:
        for name, nano in amounts.items():
            person = self.people[name]
            assert person.part
            assert nano <= self.left(name), "the ledger took more than this person grants"
            person.lines.append(Line(release, person.grant, self.epoch, nano))
            person.in_period += nano
