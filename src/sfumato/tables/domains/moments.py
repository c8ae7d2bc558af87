"""Dates and times in memory: one value, or a column of them, as whole numbers since 1970.

============================  ==========================================================================
value                         as a day or second
============================  ==========================================================================
date                          itself; as a time, its midnight
datetime, pandas.Timestamp    itself; with a time zone, an instant; fractions of a second are cut off
numpy.datetime64              itself, without a time zone
text                          ``2024-03-05``, with ``T14:30`` or `` 14:30:05.25`` behind it, and then ``Z`` or ``+02:00``
anything else                 missing: numbers, periods, text in any other form, days that no calendar has
============================  ==========================================================================

A value without a time zone is a time on the clocks of the column's zone. An instant becomes what these clocks showed; in a
column of dates, which has no zone, it is missing. Each rule looks at one value and nothing else, and none raises.
"""

from __future__ import annotations

import datetime
import re
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.domains.periods import DAY, EPOCH
from sfumato.tables.values import elements

Codes = NDArray[np.int64]
# One rule for memory and engines. Java lets `$` match before a line break, so strange characters are looked for apart.
TEXT_FORM: Final = (
    "^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    "(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,9})?)?"
    "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?)?$"
)
STRANGE: Final = "[^0-9TZ:.+ -]"
OFFSET: Final = "[+-][0-9]{2}:[0-9]{2}$"
_TEXT: Final = re.compile(TEXT_FORM)
_OFFSET: Final = re.compile(OFFSET)
_LIMIT: Final = 10**13  # seconds, far beyond any calendar and within 64 bits of microseconds


def moments(column: Any) -> tuple[Codes, NDArray[np.bool_], NDArray[np.bool_]]:
    """Seconds since 1970 (0 where there are none), where they are known, and where they are instants.

    >>> [part.tolist() for part in moments(["1970-01-02", "1970-01-01T01:00Z", "x", None])]
    [[86400, 3600, 0, 0], [True, True, False, False], [False, True, False, False]]
    """
    typed = _of_one_type(column)
    if typed is not None:
        seconds, known, aware = typed
        return np.clip(np.where(known, seconds, 0), -_LIMIT, _LIMIT), known, np.full(len(seconds), aware) & known
    found = [moment_of(value) for value in elements(column)]
    seconds = np.array([0 if m is None else min(max(m[0], -_LIMIT), _LIMIT) for m in found], dtype=np.int64)
    known = np.array([m is not None for m in found], dtype=bool)
    return seconds, known, np.array([m is not None and m[1] for m in found], dtype=bool)


def moment_of(value: Any) -> tuple[int, bool] | None:
    """One value: seconds since 1970 and whether it is an instant; None where it is no date.

    >>> moment_of("2024-02-29"), moment_of(datetime.date(1970, 1, 2)), moment_of("2023-02-29"), moment_of(3)
    ((1709164800, False), (86400, False), None, None)
    """
    kind = type(value)
    try:
        if issubclass(kind, str):
            return _read(str.__str__(value))
        if kind.__module__.split(".")[0] == "pandas" and issubclass(kind, datetime.datetime):  # years beyond Python's too
            at = value.to_datetime64()
            return None if np.isnat(at) else (int(_seconds(np.array([at]))[0]), value.tzinfo is not None)
        if issubclass(kind, datetime.datetime):
            return _of_datetime(value)
        if issubclass(kind, datetime.date):
            return (datetime.date.toordinal(value) - EPOCH) * DAY, False
        if issubclass(kind, np.datetime64):
            return None if np.isnat(value) else (int(_seconds(np.array([value]))[0]), False)
    except Exception:  # a stranger's time zone, a subclass that is not what it says
        return None
    return None


def _of_datetime(value: datetime.datetime) -> tuple[int, bool]:
    # By the parts of the base type: a subclass may have a `replace` of its own, or none that works.
    offset = datetime.datetime.utcoffset(value)
    time = datetime.datetime.time(value)
    clock = (datetime.date.toordinal(value) - EPOCH) * DAY + time.hour * 3600 + time.minute * 60 + time.second
    if offset is None:
        return clock, False
    at = datetime.timedelta(seconds=clock, microseconds=time.microsecond) - offset
    return at // datetime.timedelta(seconds=1), True


def _read(text: str) -> tuple[int, bool] | None:
    if not _TEXT.match(text) or "\n" in text:
        return None
    try:
        day = datetime.date(int(text[:4]), int(text[5:7]), int(text[8:10])).toordinal() - EPOCH
    except ValueError:  # no such day
        return None
    if len(text) == 10:
        return day * DAY, False
    second = int(text[17:19]) if text[16:17] == ":" else 0
    seconds = day * DAY + int(text[11:13]) * 3600 + int(text[14:16]) * 60 + second
    if _OFFSET.search(text):
        away = int(text[-5:-3]) * 3600 + int(text[-2:]) * 60
        return seconds + (away if text[-6] == "-" else -away), True
    return seconds, text.endswith("Z")


def _seconds(values: NDArray[Any]) -> Codes:
    """NumPy's dates in seconds, rounded down; NaT is anything."""
    return values.astype("datetime64[s]").astype(np.int64)


def _of_one_type(column: Any) -> tuple[Codes, NDArray[np.bool_], bool] | None:
    """A column whose container states a type of dates: seconds, where they are known, and whether they are instants."""
    kind = type(column).__module__.split(".")[0]
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        flat = column.reshape(-1)
        return _seconds(flat), ~np.isnat(flat), False
    if kind == "pandas" and getattr(column, "ndim", 1) == 1 and getattr(column.dtype, "kind", "") == "M":
        aware = getattr(column.dtype, "tz", None) is not None
        if not (aware or isinstance(column.dtype, np.dtype)):
            return None
        plain = column.array.tz_convert("UTC").tz_localize(None) if aware else column
        return _seconds(np.asarray(plain)), ~np.isnat(np.asarray(plain)), aware
    return None
