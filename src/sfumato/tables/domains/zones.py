"""Time zones as public tables: by how many seconds the clocks of a zone differ from UTC, and since when.

Engines have time zones of their own, and each knows another edition of the rules. Here the rules come from one place,
Python's `zoneinfo`, and become comparisons with the few instants at which a zone changed its clocks, alike for every engine
and in memory. Only changes between the years of the public range matter.
"""

from __future__ import annotations

import datetime
import zoneinfo
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.tables.columns import Expr
from sfumato.tables.domains.periods import DAY, date_of, day_number
from sfumato.tables.words import did_you_mean

UTC = "UTC"
KNOWN_YEARS = (1900, 2100)  # of zones that change their clocks; beyond them nobody knows the rules


def check_zone(zone: object, first: int, last: int) -> None:
    """Refuse what is no zone, or one whose clocks are not known between two seconds (since 1970)."""
    if not isinstance(zone, str) or zone not in _names():
        hint = did_you_mean(str(zone), _names()) if isinstance(zone, str) else ""
        hint = hint.partition(" Known:")[0] if "did you mean" in hint else "use a name such as 'Europe/Oslo' or 'UTC'"
        raise SchemaError(f"no time zone {zone!r}; {hint}")
    years = [date_of(second // DAY).year for second in (first, last)]
    if zone != UTC and not KNOWN_YEARS[0] <= years[0] <= years[1] <= KNOWN_YEARS[1]:
        raise SchemaError(
            f"the clocks of {zone} are known from {KNOWN_YEARS[0]} to {KNOWN_YEARS[1]}; narrow first and last, or use UTC"
        )


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


@lru_cache(maxsize=64)
def changes(zone: str, first: int, last: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The seconds since 1970 at which a zone changed its clocks, and its offset before, between and after them.

    Two days around the range are looked at too: the bounds are on the clock of the zone.

    >>> changes("Europe/Oslo", 1704067200, 1735689599)
    ((1711846800, 1729990800), (3600, 7200, 3600))
    """
    if zone == UTC:
        return (), (0,)
    rules = zoneinfo.ZoneInfo(zone)
    start, end = first // DAY - 2, last // DAY + 2
    low, high = (day_number(datetime.date(year, 1, 1)) for year in (2, 9998))
    found: list[int] = []
    offsets = [_offset(rules, max(start, low) * DAY)]
    for day in range(max(start, low), min(end, high)):
        if (after := _offset(rules, (day + 1) * DAY)) != offsets[-1]:
            a, b = day * DAY, (day + 1) * DAY
            while b - a > 1:  # of two changes within a day the first is found; no zone ever had them
                middle = (a + b) // 2
                a, b = (middle, b) if _offset(rules, middle) == offsets[-1] else (a, middle)
            found.append(b)
            offsets.append(after)
    return tuple(found), tuple(offsets)


def _offset(rules: zoneinfo.ZoneInfo, second: int) -> int:
    at = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=second)
    offset = at.astimezone(rules).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def on_the_clock(seconds: NDArray[np.int64], zone: str, first: int, last: int) -> NDArray[np.int64]:
    """Instants, in seconds since 1970, as what the clocks of a zone showed."""
    when, offsets = changes(zone, first, last)
    return np.asarray(seconds + np.array(offsets, dtype=np.int64)[np.searchsorted(np.array(when), seconds, side="right")])


def on_the_clock_expression(seconds: Expr, zone: str, first: int, last: int) -> Expr:
    """The same for an engine, by a binary search of comparisons."""
    import ibis

    when, offsets = changes(zone, first, last)

    def search(low: int, high: int) -> Expr:
        if low == high:
            return ibis.literal(offsets[low], type="int64")
        middle = (low + high) // 2
        return ibis.ifelse(seconds < when[middle], search(low, middle), search(middle + 1, high))

    return seconds + search(0, len(when)) if len(when) or offsets[0] else seconds
