"""The calendar in whole numbers: days and seconds since 1970, periods with names, and what a quoted literal stands for.

A **literal stands for the whole period that it names**: '2024' for a year, '2024 Q1', '2024-03', '2024-W12', '2024-03-05'
for a day, '2024-03-05 14:30' for a minute, '2024-03-05 14:30:05' for a second. So ``x <= '2024-03'`` takes in all of
March, and ``x between '2024-01-01' and '2024-12-31'`` all of the last day.

Weeks are those of ISO 8601: they begin on Monday and belong to the year in which their Thursday lies.
"""

from __future__ import annotations

import datetime
import itertools
import re
from typing import Final, Literal, TypeAlias

from sfumato.errors import SchemaError

By: TypeAlias = Literal["day", "week", "month", "quarter", "year", "hour of day", "day of week"]
DAY: Final = 86400
EPOCH: Final = datetime.date(1970, 1, 1).toordinal()
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FIRST_YEAR, LAST_YEAR = 1, 9999
_FORMS: Final = {
    "year": re.compile(r"([0-9]{4})"),
    "quarter": re.compile(r"([0-9]{4})[ -]?Q([1-4])"),
    "month": re.compile(r"([0-9]{4})-([0-9]{2})"),
    "week": re.compile(r"([0-9]{4})-W([0-9]{2})"),
    "day": re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})"),
}
_TIME: Final = re.compile(r"([0-9-]{10})[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?")


def day_number(date: datetime.date) -> int:
    """Days since 1970-01-01.

    >>> day_number(datetime.date(2024, 2, 29)), date_of(19782)
    (19782, datetime.date(2024, 2, 29))
    """
    return date.toordinal() - EPOCH


def date_of(number: int) -> datetime.date:
    """The day with that number."""
    return datetime.date.fromordinal(number + EPOCH)


def start_of(day: datetime.date, by: str) -> datetime.date:
    """The first day of the month, quarter or year that a day lies in."""
    month = {"year": 1, "quarter": (day.month - 1) // 3 * 3 + 1}.get(by, day.month)
    return day.replace(month=month, day=1)


def name_of(day: datetime.date, by: str) -> str:
    """What the period is called that a day lies in.

    >>> [name_of(datetime.date(2024, 12, 30), by) for by in ("day", "week", "month", "quarter", "year")]
    ['2024-12-30', '2025-W01', '2024-12', '2024 Q4', '2024']
    """
    if by == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04}-W{week:02}"
    text = day.isoformat()
    return {"day": text, "month": text[:7], "quarter": f"{text[:4]} Q{(day.month + 2) // 3}", "year": text[:4]}[by]


def starts(first: int, last: int, by: str) -> list[int]:
    """The numbers of the days on which the periods between two days begin, the first of them cut to `first`.

    >>> [str(date_of(d)) for d in starts(19737, 19800, "month")]
    ['2024-01-15', '2024-02-01', '2024-03-01']
    """
    if by == "day":
        return list(range(first, last + 1))
    if by == "week":
        monday = first + (4 - first) % 7  # day 4 was the first Monday
        return [first, *(d for d in range(monday, last + 1, 7) if d > first)]
    found, day = [first], date_of(first)
    step = {"month": 1, "quarter": 3, "year": 12}[by]
    months = start_of(day, by).year * 12 + start_of(day, by).month - 1
    for number in itertools.count(months + step, step):
        if number // 12 > LAST_YEAR or (start := day_number(datetime.date(number // 12, number % 12 + 1, 1))) > last:
            return found
        found.append(start)
    return found


def period(text: object, *, seconds: bool) -> tuple[int, int]:
    """The first and last day, or second, of the period that a literal names, counted from 1970; refuses anything else.

    >>> period("2024-02", seconds=False), period("2024-02-29 12:30", seconds=True)
    ((19754, 19782), (1709209800, 1709209859))
    """
    if isinstance(text, datetime.datetime | datetime.date):  # TOML has dates of its own
        text = text.isoformat()[:19]
    if isinstance(text, str):
        try:
            if seconds and (found := _TIME.fullmatch(text)):
                return _of_time(*found.groups())
            for by, form in _FORMS.items():
                if found := form.fullmatch(text):
                    first, last = _of_days(by, *map(int, found.groups()))
                    return (first * DAY, last * DAY + DAY - 1) if seconds else (first, last)
        except (ValueError, OverflowError):  # no such day
            pass
    example = (
        "'2024-03-05 14:30:00', or a day, month or year" if seconds else "'2024-03-05', or a month '2024-03' or year '2024'"
    )
    raise SchemaError(f"a {'time' if seconds else 'date'} is written in quotes as {example}; got {text!r}")


def _of_days(by: str, year: int, part: int = 1, day: int = 1) -> tuple[int, int]:
    if by == "week":
        first = datetime.date.fromisocalendar(year, part, 1)
    else:
        first = datetime.date(year, 3 * part - 2 if by == "quarter" else part, day)
    number = day_number(first)
    if by in ("day", "week"):
        return number, number + (6 if by == "week" else 0)
    months = {"month": 1, "quarter": 3, "year": 12}[by]
    after = first.year * 12 + first.month - 1 + months
    end = day_number(datetime.date(LAST_YEAR, 12, 31)) if after // 12 > LAST_YEAR else None
    return number, end if end is not None else day_number(datetime.date(after // 12, after % 12 + 1, 1)) - 1


def _of_time(day: str, hour: str, minute: str, second: str | None) -> tuple[int, int]:
    at = datetime.datetime.fromisoformat(f"{day}T{hour}:{minute}:{second or '00'}")
    start = day_number(at.date()) * DAY + at.hour * 3600 + at.minute * 60 + at.second
    return start, start if second is not None else start + 59


def moment_text(number: int, *, seconds: bool) -> str:
    """A day or second since 1970 as ISO text, for literals and schema files.

    >>> moment_text(19782, seconds=False), moment_text(-1, seconds=True)
    ('2024-02-29', '1969-12-31T23:59:59')
    """
    if not seconds:
        return date_of(number).isoformat()
    day, rest = divmod(number, DAY)
    return f"{date_of(day).isoformat()}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
