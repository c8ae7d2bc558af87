"""What is said first of an answer: a value, the interval that holds for any data, and an alarm where the data gave one.

An answer that rests on independence, or is drawn to one that does, carries a free test of it: whether its noisy sums agree
(`bias` for the parts of a partition, `mechanisms.adaptive` for its two sums). The test has the level `ALARM`: where budgets
and values are independent it fires in that share of all releases. Where it fires, the narrow interval is not to be used,
and this is what a reader is told first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.people.estimate import Estimate

ALARM = 0.05
P_VALUE = "heterogeneity_p_value"  # in an estimate's details
ANY_DATA = "for any data"
IF_INDEPENDENT = "if what people granted has nothing to do with their values"


@dataclass(frozen=True)
class Headline:
    """The first thing to say.

    Attributes
    ----------
    value : float
    interval : (float, float)
        Holds for any data.
    interval_if_independent : (float, float) or None
        The narrower one; None where it is not narrower.
    alarm : str or None
        Where the test fired: a sentence that says which interval to use and whose value is shown.
    confidence : float
    """

    value: float
    interval: tuple[float, float]
    interval_if_independent: tuple[float, float] | None
    alarm: str | None
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        narrow = self.interval_if_independent
        return {
            "alarm": self.alarm,
            "value": self.value,
            "interval": list(self.interval),
            "interval_if_independent": None if narrow is None else list(narrow),
            "confidence": self.confidence,
        }


def headline(estimate: Estimate, confidence: float = 0.95) -> Headline:
    """The headline of an estimate."""
    wide = estimate.interval(confidence, worst_case=True)
    narrow = estimate.interval(confidence, independent=True)
    # A second interval is worth saying only if the assumption buys something.
    narrower = narrow[1] - narrow[0] < (wide[1] - wide[0]) * (1 - 1e-9)
    value, alarm = estimate.value, None
    if estimate.p_value is not None and estimate.p_value < ALARM:
        if estimate.if_independent is None and estimate.any_data is not None:
            value, whose = estimate.any_data.value, "the answer that assumes nothing"
        else:
            whose = f"{estimate.mechanism}'s: the more two answers differ, the more it rests on the one that assumes nothing"
        tested = f"p = {estimate.p_value:.2g}, tested at {ALARM:g}"
        alarm = (
            f"Consent and values seem to go together here ({tested}): the interval for any data is the one to use. "
            f"The value is {whose}."
        )
    return Headline(value, wide, narrow if narrower else None, alarm, confidence)


def headline_lines(made: Headline, words: Callable[[float], str]) -> list[str]:
    """The same as lines of text: the alarm if there is one, the value with its first interval, the second interval."""
    low, high = made.interval
    lines = [] if made.alarm is None else [made.alarm]
    only = made.interval_if_independent is None
    first = f"{words(made.value)}   {made.confidence:.0%} interval {words(low)} to {words(high)}"
    lines.append(first if only else f"{first} {ANY_DATA}")
    if made.interval_if_independent is not None and made.alarm is None:
        low, high = made.interval_if_independent
        lines.append(f"{made.confidence:.0%} interval {words(low)} to {words(high)} {IF_INDEPENDENT}")
    return lines
