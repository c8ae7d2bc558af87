"""What an audit found."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class AuditResult:
    """What an audit found.

    Attributes
    ----------
    name, neighbours : str
        The case, and its pair in words.
    claimed : Decimal
        The loss that the mechanism claims, in ε.
    lower : float
        Lower confidence bound on the loss, in ε.
    event : str
        What gives it, in words.
    trials : int
        Outputs drawn under each neighbour, or runs that were replayed.
    confidence : float
        Of the bound.
    control : bool
        Whether the case is flawed on purpose and must be caught.
    refuted : bool
        Whether the answers refute the claim though the bound does not pass it: they are too near the exact values.
    deficit : float or None
        The smallest deficit of noise that this audit would have caught, as a share of its scale; None if it was not asked
        for.
    reached : float or None
        The share of the claim that the pair's answers could tell: a price that is lower than this share of the right one
        is refuted at once. None where only outputs are seen.
    """

    name: str
    neighbours: str
    claimed: Decimal
    lower: float
    event: str
    trials: int
    confidence: float
    control: bool
    refuted: bool = False
    deficit: float | None = None
    reached: float | None = None

    @property
    def caught(self) -> bool:
        """Whether the claim is refuted."""
        return self.refuted or self.lower > float(self.claimed)

    @property
    def passed(self) -> bool:
        """A mechanism passes if it was not caught, a control if it was."""
        return self.caught == self.control

    @property
    def summary(self) -> str:
        """One line for people."""
        verdict = {
            (False, False): "consistent with the claim",
            (True, False): "REFUTED: it gives away more than it claims",
            (True, True): "caught, as a control must be",
            (False, True): "NOT CAUGHT: the audit is too weak, raise the number of trials",
        }[self.caught, self.control]
        power = "" if self.deficit is None or self.control else f"; {self.deficit:.0%} too little noise would show"
        return (
            f"{self.name}: claims ε {self.claimed}, loses at least {self.lower:.3f} "
            f"({self.confidence:.1%} confidence, {self.trials:,} draws each): {verdict}{power}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, as `sfumato audit --json` prints them."""
        return {
            "name": self.name,
            "neighbours": self.neighbours,
            "claimed": str(self.claimed),
            "lower_bound": round(self.lower, 6) if self.lower < float("inf") else None,
            "event": self.event,
            "trials": self.trials,
            "confidence": self.confidence,
            "control": self.control,
            "caught": self.caught,
            "passed": self.passed,
            "smallest_deficit_caught": None if self.deficit is None else round(self.deficit, 4),
            "reached": None if self.reached is None else round(self.reached, 4),
        }
