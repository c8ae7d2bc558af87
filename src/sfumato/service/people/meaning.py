"""What an ε means for one person, in numbers for a picture and in a sentence."""

from __future__ import annotations

from typing import Any, Final

from sfumato.privacy.odds import in_hundred
from sfumato.privacy.units import NANO, epsilon_text

BEFORE: Final = (50, 10, 1)
"""How sure somebody was, in 100, before anything was published."""


def meaning_of(nano: int) -> dict[str, Any]:
    """How sure somebody could become, at the very most, through everything that costs a person `nano`.

    Returns
    -------
    dict
        `about_me`: about one thing in the record; `in_the_data`: about whether there is a record at all; each as pairs of
        "in 100" before and after.

    Examples
    --------
    >>> meaning_of(200_000_000)["about_me"][0]
    {'before': 50, 'after': 59.9}
    >>> meaning_of(200_000_000)["words"]
    'Somebody who has no idea about one thing in your record is right 50 times in 100. After everything that may be
    published they are right at most 59.9 times in 100.'
    """
    epsilon = nano / NANO
    about = [{"before": b, "after": in_hundred(b / 100, epsilon)} for b in BEFORE]
    there = [{"before": b, "after": in_hundred(b / 100, epsilon, apart=1)} for b in BEFORE]
    most = about[0]["after"]
    limit = f"at most {most:g} times in 100" if most < 100 else "nearly always: there is no protection to speak of"
    words = (
        "Somebody who has no idea about one thing in your record is right 50 times in 100. After everything that may be "
        f"published they are right {limit}."
    )
    return {"epsilon": epsilon_text(nano), "about_me": about, "in_the_data": there, "words": words}
