"""What a living ledger must say, kept the plainest way: one dictionary per person, one line per charge.

It shares no code with the ledger. Amounts are whole nano-ε.

The rules: a choice waits for the epoch, but one that takes something away (a lower grant, a withdrawal) binds before the
next release. What was spent on a person follows them through every tier, through withdrawal and back. They may be charged
while what was spent, for life and in this period, stays within what they grant now.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

FAR = 2**62  # no cap per period

Choice = tuple[str | None, int, int]
"""Tier, grant, cap per period."""

Key = tuple[str | None, int, int, int]
"""Tier, grant, spent, left: what the ledger's standing says of a cohort."""


@dataclass(frozen=True)
class Line:
    """One charge to one person."""

    release: int
    tier: str | None
    grant: int
    epoch: int
    charged: int
    period: str


@dataclass
class Person:
    """What one person chose, and what was spent on them."""

    tier: str | None = None
    grant: int = 0
    cap: int = FAR
    part: bool = False  # in the roster, and not withdrawn
    lines: list[Line] = field(default_factory=list)

    @property
    def spent(self) -> int:
        return sum(line.charged for line in self.lines)


@dataclass
class Lives:
    """Everybody, what they have asked for since the last epoch, and which period it is. Identifiers are text."""

    menu: dict[str, int]
    per_period: dict[str, int]
    people: dict[str, Person] = field(default_factory=dict)
    waiting: dict[str, Choice | None] = field(default_factory=dict)  # None: withdraw
    epoch: int = 0
    clock: str = ""
    charged_in: str = ""  # the period of the last charge

    @property
    def period(self) -> str:
        """A clock that is put back opens no period again in which something was charged later."""
        return max(self.clock, self.charged_in)

    def choose(self, name: str, grant: str | int) -> None:
        if isinstance(grant, str):
            self.waiting[name] = (grant, self.menu[grant], self.per_period.get(grant, FAR))
        else:
            self.waiting[name] = (None, grant, FAR)

    def withdraw(self, name: str) -> None:
        self.waiting[name] = None

    def known(self, name: str) -> bool:
        """Whether they are or were there, or wait to be."""
        return name in self.people or self.waiting.get(name) is not None

    def is_part(self, name: str) -> bool:
        return name in self.people and self.people[name].part

    def bring(self, brought: dict[str, str | int], *, withdraw_missing: bool) -> None:
        """An import: it brings nobody back who withdrew, or said so."""
        missing = [n for n in {*self.people, *self.waiting} - brought.keys() if self.is_part(n) or n in self.waiting]
        for name, grant in brought.items():
            if name in self.waiting:
                leaving = self.waiting[name] is None
            else:
                leaving = name in self.people and not self.is_part(name)
            if not leaving:
                self.choose(name, grant)
        if withdraw_missing:
            for name in missing:
                self.withdraw(name)

    def in_period(self, name: str) -> int:
        return sum(line.charged for line in self.people[name].lines if line.period == self.period)

    def left(self, name: str) -> int:
        person = self.people[name]
        if not person.part:
            return 0
        return max(0, min(person.grant - person.spent, person.cap - self.in_period(name)))

    def takes_away(self, name: str) -> bool:
        """Whether what waits for this person leaves them with less than now."""
        if not self.is_part(name):
            return False
        choice, person = self.waiting[name], self.people[name]
        return choice is None or choice[1] < person.grant or choice[2] < person.cap

    def bind(self) -> None:
        for name in [n for n in self.waiting if self.takes_away(n)]:
            choice, person = self.waiting[name], self.people[name]
            if choice is None:
                self._apply(name)
                continue
            tier, grant, cap = choice
            if grant <= person.grant and cap <= person.cap:
                self._apply(name)
            else:  # less of one and more of the other: the less binds, the more waits
                person.tier, person.grant, person.cap = tier, min(grant, person.grant), min(cap, person.cap)

    def close_epoch(self) -> None:
        for name in list(self.waiting):
            self._apply(name)
        self.epoch += 1

    def _apply(self, name: str) -> None:
        choice = self.waiting.pop(name)
        if choice is None:
            if name in self.people:  # who withdraws before they joined never was there
                self.people[name].part = False
            return
        person = self.people.setdefault(name, Person())
        person.tier, person.grant, person.cap = choice
        person.part = True

    def pending(self) -> dict[str, int]:
        """What waits, by kind; a choice that changes nothing is none."""
        found = dict.fromkeys(("join", "raise", "lower", "move", "withdraw"), 0)
        for name, choice in self.waiting.items():
            person = self.people.get(name)
            if person is None or not person.part:
                found["join"] += choice is not None
            elif choice is None:
                found["withdraw"] += 1
            elif choice != (person.tier, person.grant, person.cap):
                kind = "raise" if choice[1] > person.grant else "lower" if choice[1] < person.grant else "move"
                found[kind] += 1
        return found

    def key(self, name: str) -> Key:
        person = self.people[name]
        return (person.tier, person.grant, person.spent, self.left(name))

    def standing(self) -> Counter[Key]:
        """Heads by what the ledger shows of a cohort."""
        return Counter(self.key(name) for name, person in self.people.items() if person.part)

    def charge(self, release: int, amounts: dict[str, int]) -> None:
        period = self.period
        for name, nano in amounts.items():
            person = self.people[name]
            assert person.part, "somebody who takes no part was charged"
            assert nano <= self.left(name), "more was charged than this person grants"
            if nano:
                person.lines.append(Line(release, person.tier, person.grant, self.epoch, nano, period))
        self.charged_in = period
