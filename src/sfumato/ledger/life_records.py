"""What a living roster hands out: what waits, what came into force, and a person's receipt. Amounts are nano-ε."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.privacy.units import epsilon_text


@dataclass(frozen=True)
class Pending:
    """How many choices wait for the next epoch.

    Attributes
    ----------
    join : int
        People who are not in the roster, or withdrew from it, and want in.
    raise_, lower : int
        People who grant more, or less; a lower budget binds at the next release already.
    move : int
        People who change their tier at the same budget.
    withdraw : int
        People who want out; that binds at the next release already.
    """

    join: int = 0
    raise_: int = 0
    lower: int = 0
    move: int = 0
    withdraw: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.join + self.raise_ + self.lower + self.move + self.withdraw

    def to_dict(self) -> dict[str, int]:
        """By kind, ready for JSON."""
        return {
            "join": self.join,
            "raise": self.raise_,
            "lower": self.lower,
            "move": self.move,
            "withdraw": self.withdraw,
        }


@dataclass(frozen=True)
class Epoch:
    """Choices that came into force together.

    Attributes
    ----------
    number : int
        How many epochs were closed, this one included; lowered budgets that bind do not count as one.
    at : str
        The minute, in UTC.
    people : int
        How many take part now.
    cohorts : int
        In how many cohorts of people alike.
    joined, raised, lowered, moved, withdrawn : int
        Who came (or came back), granted more, granted less, changed their tier at the same budget, or left.
    """

    number: int
    at: str
    people: int
    cohorts: int
    joined: int
    raised: int
    lowered: int
    moved: int
    withdrawn: int

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Line:
    """One release that a person took part in.

    Attributes
    ----------
    release : int
        The ledger's number for it.
    name : str or None
        What it was called.
    recipient : str or None
        Who sees it; ``None`` is everybody.
    at : str
        The minute of the charge, in UTC.
    state : str
        ``"committed"``, ``"failed"`` or ``"reserved"``; it is charged in each of them.
    epoch : int
        How many epochs were closed then.
    tier : str or None
        The person's tier then.
    grant : int
        What they granted then, in nano-ε.
    charged : int
        What the release cost them, in nano-ε.
    kind, where : str or None
        The question and its condition, as far as the request says them.
    columns : tuple of str
        The columns that the question names.
    purpose : str or None
        What it was for, where an analyst spent an allowance on it.
    by : str or None
        Who asked, if they said so.
    """

    release: int
    name: str | None
    recipient: str | None
    at: str
    state: str
    epoch: int
    tier: str | None
    grant: int
    charged: int
    kind: str | None
    columns: tuple[str, ...]
    where: str | None
    purpose: str | None = None
    by: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Exact decimals as text."""
        amounts = {"grant": epsilon_text(self.grant), "charged": epsilon_text(self.charged)}
        return dict(vars(self)) | amounts | {"columns": list(self.columns)}


@dataclass(frozen=True)
class Receipt:
    """What one person granted, what was spent on them, and what is left. Amounts are nano-ε.

    Attributes
    ----------
    dataset : str
        The dataset's name in the ledger.
    person : str
        Who asked, as they were named.
    lines : tuple of Line
        The releases that they took part in, oldest first: all of them, or a page if there are many.
    tier : str or None
        Their tier now.
    grant : int
        What they grant now; 0 once they withdrew.
    spent : int
        What was spent on them, over all releases. This sum is what the guarantee is about.
    left_for_life : int
        What they may still lose over all releases to come.
    period : str or None
        The period that it is now.
    per_period : int or None
        What they may lose in a period.
    spent_in_period : int or None
        What was spent on them in this period.
    left_in_period : int or None
        What they may still lose in this period.
    left : int
        What the next release may cost them: the smaller of the two.
    withdrawn : bool
        Whether they withdrew. What was spent before cannot be undone.
    withdrawn_at : str or None
        The minute from which on no release used their record, in UTC, if they withdrew.
    waiting : str or None
        What they chose and what comes into force at the next epoch: ``"withdraw"``, a tier or an ε.
    epoch : int
        How many epochs were closed.
    waiting_lowers : bool
        Whether what waits takes something away: it then holds from the next release on.
    older : int or None
        What to give as ``before`` for the lines before these; ``None`` if there are none.
    """

    dataset: str
    person: str
    lines: tuple[Line, ...]
    tier: str | None
    grant: int
    spent: int
    left_for_life: int
    period: str | None
    per_period: int | None
    spent_in_period: int | None
    left_in_period: int | None
    left: int
    withdrawn: bool
    withdrawn_at: str | None
    waiting: str | None
    epoch: int
    waiting_lowers: bool = False
    older: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Exact decimals as text, ready for JSON."""
        amounts = ("grant", "spent", "left_for_life", "per_period", "spent_in_period", "left_in_period", "left")
        written = {name: None if getattr(self, name) is None else epsilon_text(getattr(self, name)) for name in amounts}
        return dict(vars(self)) | written | {"lines": [line.to_dict() for line in self.lines]}
