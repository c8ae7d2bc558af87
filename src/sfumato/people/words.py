"""How an answer is put into words: what was asked, and numbers in the unit of the answer."""

from __future__ import annotations


def subject(kind: str, column: str | None) -> str:
    """What was asked, in words.

    >>> subject("mean", "income"), subject("count", None)
    ('mean of income', 'count')
    """
    return kind if column is None else f"{kind} of {column}"


def amount(value: float, kind: str, *, digits: int = 4) -> str:
    """A number in the unit of the answer: people in whole numbers, anything else with a few digits and no power of ten.

    >>> amount(12.04, "count"), amount(2_248_123_456.0, "sum"), amount(0.01234567, "mean")
    ('12', '2,248,000,000', '0.01235')
    """
    if kind == "count" and abs(value) < 1e15:
        return f"{value:,.0f}"
    held = float(f"{value:.{digits}g}")
    return f"{held:,.0f}" if 10**digits <= abs(held) < 1e15 else f"{held:,.{digits}g}"
