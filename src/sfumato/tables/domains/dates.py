"""Dates and timestamps between public bounds, in cells by the calendar."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.source import Generator
from sfumato.tables.domains.dated import Dated
from sfumato.tables.domains.declared import register
from sfumato.tables.domains.periods import DAY, date_of
from sfumato.tables.domains.zones import UTC, check_zone


@register
@dataclass(frozen=True)
class Date(Dated):
    """Days between two public ones.

    Read are date columns, timestamps without a time zone (their day), and ISO text such as ``2024-03-05``; anything else is
    missing.

    Parameters
    ----------
    first, last : str
        The public range, both ends included: ``'2024-01-01'``, or a month or year, which stand for their first and last day.
    by : {"day", "week", "month", "quarter", "year", "day of week"}
        What a cell is. Weeks are those of ISO 8601.
    outside : {"clamp", "other"}, optional
        Where days beyond the range go: to the nearest end, which is the default, or to the other cell, which they always do
        with ``by="day of week"``.
    other, missing : bool or str
        Add a cell for days outside the range, and one for rows without a date that can be read.

    Examples
    --------
    >>> admitted = Date("2024-01-15", "2024-03", by="month")
    >>> admitted.labels(), admitted.last
    (('2024-01', '2024-02', '2024-03'), '2024-03-31')
    >>> admitted.places(["2024-02-29", "2023-02-29", datetime.date(2031, 5, 5)]).tolist()
    [1, -1, 2]
    >>> admitted.words(45)
    '2024-02-29'
    """

    type_name: ClassVar[str] = "date"
    keys: ClassVar[tuple[str, ...]] = ("first", "last", "by", "outside", "other", "missing")
    unit: ClassVar[int] = 1
    periods: ClassVar[tuple[str, ...]] = ("day", "week", "month", "quarter", "year", "day of week")

    def draw(self, cells: NDArray[np.int64], random: Generator) -> NDArray[Any]:
        """A day of each of `cells`, any of them as likely by `random`; None in the extra cells."""
        found, outside = drawn(self, cells, random)
        column = np.array([datetime.date.fromordinal(1)] * cells.size, dtype=object)
        column[:] = [None if lost else date_of(number) for number, lost in zip(found.tolist(), outside, strict=True)]
        return column


@register
@dataclass(frozen=True)
class Timestamp(Dated):
    """Times between two public ones, to the second, on the clocks of one time zone.

    Read are timestamp and date columns and ISO text such as ``2024-03-05 14:30``, with ``Z`` or ``+02:00`` behind it if it
    is an instant; anything else is missing. **A time without a zone is one on the clocks of `zone`; an instant becomes what
    these clocks showed.** Fractions of a second are cut off.

    Parameters
    ----------
    first, last : str
        The public range on these clocks, both ends included: ``'2024-01-01 06:00:00'``, or a day, month or year, which stand
        for their first and last second.
    by : {"day", "week", "month", "quarter", "year", "hour of day", "day of week"}
        What a cell is.
    outside : {"clamp", "other"}, optional
        Where times beyond the range go: to the nearest end, which is the default, or to the other cell, which they always do
        with ``by="hour of day"`` and ``by="day of week"``.
    other, missing : bool or str
        Add a cell for times outside the range, and one for rows without a time that can be read.
    zone : str
        A time zone such as ``"Europe/Oslo"``.

    Examples
    --------
    >>> arrived = Timestamp("2024", "2024", by="hour of day", zone="Europe/Oslo")
    >>> arrived.labels()[8], arrived.places(["2024-07-01T06:30:00Z", "2024-07-01 06:30"]).tolist()
    ('08:00', [8, 6])
    """

    type_name: ClassVar[str] = "timestamp"
    keys: ClassVar[tuple[str, ...]] = ("first", "last", "by", "zone", "outside", "other", "missing")
    unit: ClassVar[int] = DAY
    periods: ClassVar[tuple[str, ...]] = ("day", "week", "month", "quarter", "year", "hour of day", "day of week")

    zone: str = UTC  # type: ignore[misc]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_zone(self.zone, self.low, self.high)

    def draw(self, cells: NDArray[np.int64], random: Generator) -> NDArray[Any]:
        """A time of each of `cells`, any of them as likely by `random`; NaT in the extra cells."""
        found, outside = drawn(self, cells, random)
        return np.where(outside, np.datetime64("NaT"), found.astype("datetime64[s]"))

    def to_plain(self) -> dict[str, Any]:
        return super().to_plain() | ({} if self.zone == UTC else {"zone": self.zone})


def drawn(domain: Dated, cells: NDArray[np.int64], random: Generator) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """A number of each of `cells`, and which of them are extra cells."""
    outside = cells >= domain.listed
    inside = np.where(outside, 0, cells)
    if domain.rounds is not None:
        return domain.rounds.draw(inside, domain.low, domain.high, random.random), outside
    edges = np.clip(domain.days * domain.unit, domain.low, domain.high + 1)
    low, high = edges[inside], edges[inside + 1]
    return low + (random.random(cells.size) * (high - low)).astype(np.int64), outside
