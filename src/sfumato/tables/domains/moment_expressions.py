"""Dates and times as expressions for engines: whole days or seconds since 1970, which no row can make fail.

Engines differ on casts of text, on rounding fractions of a second and on years beyond the calendar, and some dates are
infinite. So values of a date type are first held between the public bounds, then taken apart into year, month and day,
which all engines do alike; text is compared with one pattern, is missing where it does not fit, and taken apart by its
positions. What is used more than once is a step of its own: a search among the changes of a zone's clocks, or among months,
would otherwise repeat the reading of the text at every turn.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from sfumato.errors import SchemaError
from sfumato.tables.columns import Expr
from sfumato.tables.domains.moments import OFFSET, STRANGE, TEXT_FORM
from sfumato.tables.domains.periods import DAY, date_of, moment_text
from sfumato.tables.domains.zones import changes, on_the_clock_expression

if TYPE_CHECKING:
    from sfumato.tables.domains.dated import Dated

_CALENDAR = (-719162 * DAY, 2932896 * DAY + DAY - 1)  # 0001-01-01 and the end of 9999, in seconds
_NANOSECONDS = (-9223372036, 9223372036)  # what 64 bits of them reach
_LONG_MONTHS = (1, 3, 5, 7, 8, 10, 12)


def moment_steps(kind: Any, domain: Dated, *, what: str) -> list[Callable[[Expr], Expr]]:
    """From a column of a type to whole numbers on the clocks of its zone, step by step."""
    if kind.is_string():
        if domain.unit != DAY:
            return [_readable, _day_of_text]
        moving = changes(domain.zone, domain.low, domain.high) != ((), (0,))
        return [
            _readable,
            partial(_second_of_text, marked=moving),
            *([partial(_from_marked, domain=domain)] if moving else []),
        ]
    if kind.is_date():
        return [partial(_typed, domain=domain, kind="date")]
    if kind.is_timestamp() and kind.timezone is None:
        return [partial(_typed, domain=domain, kind="time", nanoseconds=kind.scale == 9)]
    if kind.is_timestamp() and domain.unit == DAY:
        clock = partial(on_the_clock_expression, zone=domain.zone, first=domain.low, last=domain.high)
        return [partial(_typed, domain=domain, kind="instant", nanoseconds=kind.scale == 9), clock]
    hint = "; its days depend on a time zone: make it type = 'timestamp' with a zone" if kind.is_timestamp() else ""
    raise SchemaError(f"{what} is a {domain.type_name} in the schema, but the table holds {kind}{hint or '; convert it'}")


# ------------------------------------------------------------------------------------------------ types of dates


def _typed(raw: Expr, *, domain: Dated, kind: str, nanoseconds: bool = False) -> Expr:
    """Held between the bounds, then taken apart; what is beyond them stays beyond. Instants in UTC, others as they are."""
    import ibis

    low, high = domain.low * DAY // domain.unit, (domain.high + 1) * DAY // domain.unit - 1
    if kind == "date":
        low, high = low // DAY * DAY, high // DAY * DAY
    elif kind == "instant":  # the bounds are on the clock of the zone, which is at most a day away
        low, high = low - DAY, high + DAY
    reach = _NANOSECONDS if nanoseconds else _CALENDAR
    away = 3 * domain.unit  # beyond the bounds on any clock
    beyond: list[tuple[Expr, Any, int]] = []
    if low > reach[0] or not nanoseconds:  # a database may hold infinite dates, and years that cannot be taken apart
        least = _literal(max(low, reach[0]), kind)
        beyond.append((raw < least, least, domain.low - away))
    if high < reach[1] or not nanoseconds:
        most = _literal(min(high, reach[1]), kind, last=True)
        above = raw >= _literal(high + 1, kind) if nanoseconds else raw > most
        beyond.append((above, most, domain.high + away))
    safe = ibis.cases(*((test, end) for test, end, _ in beyond), else_=raw) if beyond else raw
    value = _days(*(field.cast("int64") for field in (safe.year(), safe.month(), safe.day())))
    if domain.unit == DAY:
        value = value * DAY
        if kind != "date":
            value = value + _clock(*(field.cast("int64") for field in (safe.hour(), safe.minute(), safe.second())))
    return ibis.cases(*((test, number) for test, _, number in beyond), else_=value).cast("int64") if beyond else value


def _literal(seconds: int, kind: str, *, last: bool = False) -> Any:
    """A day or a second as a literal; the `last` microsecond of it if asked."""
    import ibis

    if kind == "date":
        return ibis.date(date_of(seconds // DAY).isoformat())
    text = moment_text(seconds, seconds=True) + (".999999" if last else "")
    if kind == "instant":
        return ibis.literal(f"{text}+00:00").cast("timestamp('UTC')")
    return ibis.literal(datetime.datetime.fromisoformat(text), type="timestamp(6)")


def _days(year: Expr, month: Expr, day: Expr) -> Expr:
    """Days since 1970 of a date from year 1 on: years from March to February, so that leap days come last."""
    import ibis

    year = ibis.ifelse(month <= 2, year - 1, year)
    month = ibis.ifelse(month <= 2, month + 9, month - 3)
    return year * 365 + year // 4 - year // 100 + year // 400 + (month * 153 + 2) // 5 + day - 719469


def _clock(hour: Expr, minute: Expr, second: Expr) -> Expr:
    return hour * 3600 + minute * 60 + second


# ---------------------------------------------------------------------------------------------------------- text


def _readable(expr: Expr) -> Expr:
    """Text in the one form that is read, NULL where it is not; see `sfumato.tables.domains.moments` for the rule."""
    import ibis

    return ibis.cases((expr.re_search(TEXT_FORM) & ~expr.re_search(STRANGE) & (expr.substr(0, 4) != "0000"), expr))


def _day(text: Expr) -> tuple[Expr, Expr]:
    """Days since 1970, and whether there is such a day."""
    year, month, day = (text.substr(start, size).cast("int64") for start, size in ((0, 4), (5, 2), (8, 2)))
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    exists = (day <= 28) | ((month == 2) & (day == 29) & leap) | ((month != 2) & ((day <= 30) | month.isin(_LONG_MONTHS)))
    return _days(year, month, day), exists


def _day_of_text(text: Expr) -> Expr:
    import ibis

    value, exists = _day(text)
    instant = (text.length() >= 16) & (text.re_search(OFFSET) | text.endswith("Z"))
    return ibis.cases((exists & ~instant, value)).cast("int64")


def _second_of_text(text: Expr, *, marked: bool) -> Expr:
    """Seconds since 1970, instants in UTC and others as they are; `marked` are twice as many, one more for an instant."""
    import ibis

    value, exists = _day(text)
    timed = ibis.ifelse(text.length() >= 16, text, "1970-01-01T00:00:00")
    second = ibis.ifelse(timed.substr(16, 1) == ":", timed.substr(17, 2), "00")
    value = value * DAY + _clock(timed.substr(11, 2).cast("int64"), timed.substr(14, 2).cast("int64"), second.cast("int64"))
    away = timed.re_search(OFFSET)
    offset = ibis.ifelse(away, timed.right(6), "+00:00")
    size = offset.substr(1, 2).cast("int64") * 3600 + offset.substr(4, 2).cast("int64") * 60
    value = value - ibis.ifelse(offset.substr(0, 1) == "-", -size, size)
    if marked:
        value = value * 2 + ibis.ifelse(away | timed.endswith("Z"), 1, 0)
    return ibis.cases((exists, value)).cast("int64")


def _from_marked(number: Expr, *, domain: Dated) -> Expr:
    import ibis

    seconds = (number // 2).cast("int64")
    shown = on_the_clock_expression(seconds, domain.zone, domain.low, domain.high)
    return ibis.ifelse(number - seconds * 2 == 1, shown, seconds)
