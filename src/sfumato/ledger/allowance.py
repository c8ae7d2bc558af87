"""An allowance: what one analyst may spend for one purpose, in all and in one day.

Beside what people, attributes and recipients may lose: so nobody can spend everybody's budget alone. What is charged to an
allowance is the total of a charge, which is what the person who loses most loses. A day is one of the UTC calendar.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from sfumato.errors import InputError
from sfumato.ledger.records import Limit
from sfumato.ledger.requests import readable
from sfumato.privacy.units import Nano, epsilon_text

ALLOWANCE: Final = "allowance"
DAILY: Final = "daily"
OWN: Final = (ALLOWANCE, DAILY)
"""The kinds of cap that hold for one analyst and purpose; all others hold for everybody."""

LONGEST = 200
_DAY = len("2026-11-16 ")


@dataclass(frozen=True)
class Allowance:
    """What an analyst may spend for a purpose, and what they have.

    Attributes
    ----------
    analyst, purpose : str
        Whose it is, and what for.
    cap : Nano
        What the newest grant allows in all.
    per_day : Nano or None
        What it allows in one UTC day; ``None`` is as much as there is.
    spent : Nano
        All that was charged to it, whatever was granted when.
    day : str
        The UTC day as of which this was read.
    spent_today : Nano
        What was charged to it on that day.
    granted_at : str
        The minute of the newest grant.
    granted_by : str or None
        Who granted it, if they said so.
    number : int
        The ledger's number for the newest grant.
    """

    analyst: str
    purpose: str
    cap: Nano
    per_day: Nano | None
    spent: Nano
    day: str
    spent_today: Nano
    granted_at: str
    granted_by: str | None = None
    number: int = 0

    @property
    def left(self) -> Nano:
        """What may still be spent; nothing where less was granted than is spent."""
        return Nano(max(0, self.cap - self.spent))

    @property
    def left_today(self) -> Nano:
        """What may still be spent on that day."""
        return self.left if self.per_day is None else Nano(min(self.left, max(0, self.per_day - self.spent_today)))

    @property
    def limits(self) -> tuple[Limit, Limit]:
        """The two caps that it is."""
        name = name_of(self.analyst, self.purpose)
        today = Limit(DAILY, day_name(self.day, name), self.per_day, self.spent_today)
        return Limit(ALLOWANCE, name, self.cap, self.spent), today

    def to_dict(self) -> dict[str, Any]:
        """Exact decimals as text."""
        return {
            "analyst": self.analyst,
            "purpose": self.purpose,
            "cap": epsilon_text(self.cap),
            "spent": epsilon_text(self.spent),
            "left": epsilon_text(self.left),
            "per_day": None if self.per_day is None else epsilon_text(self.per_day),
            "day": self.day,
            "spent_today": epsilon_text(self.spent_today),
            "left_today": epsilon_text(self.left_today),
            "granted_at": self.granted_at,
            "granted_by": self.granted_by,
        }


def name_of(analyst: str, purpose: str) -> str:
    """The name of the cap on an analyst and a purpose: no two pairs have the same.

    >>> name_of("ann", "care, research"), name_of("ann, care", "research")
    ('["ann", "care, research"]', '["ann, care", "research"]')
    """
    for text, what in ((analyst, "an analyst"), (purpose, "a purpose")):
        if not isinstance(text, str) or len(text) > LONGEST:
            raise InputError(f"{what} is named by a text of at most {LONGEST} letters")
        readable(text, what)
    return json.dumps([analyst, purpose], ensure_ascii=False)


def day_name(day: str, name: str) -> str:
    """The name of the cap for one day."""
    return f"{day} {name}"


def whose(kind: str, name: str) -> tuple[str, str, str | None]:
    """The analyst and the purpose of an own cap, and the day of a daily one.

    >>> whose("daily", day_name("2026-11-16", name_of("ann", "care")))
    ('ann', 'care', '2026-11-16')
    """
    day, name = (name[: _DAY - 1], name[_DAY:]) if kind == DAILY else (None, name)
    analyst, purpose = json.loads(name)
    return analyst, purpose, day


def both_or_none(analyst: str | None, purpose: str | None) -> None:
    """A purpose without an analyst, or the other way round, is a mistake: it must not spend without a bound."""
    if (analyst is None) is not (purpose is None):
        given = "an analyst without a purpose" if purpose is None else "a purpose without an analyst"
        raise InputError(f"this names {given}; an allowance is for both: give both, or neither. Nothing was spent")
