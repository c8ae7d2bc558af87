"""What a schema says for readers: titles, descriptions and units of columns, and how their numbers are put into words.

None of it changes a figure, so none of it is part of what a request is: an edited title does not make a release another one.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.errors import SchemaError
from sfumato.tables.words import check_text

NOTE_KEYS = ("title", "description", "unit")
_MOST = 2000  # characters of a description


@dataclass(frozen=True)
class Note:
    """What is said of a column or a table for readers.

    Parameters
    ----------
    title : str
        A name that reads better than the column's own.
    description : str
        A sentence or two.
    unit : str
        What its numbers count: "years", "kg".

    Examples
    --------
    >>> Note(unit="years").heading("age"), Note("Age at admission", unit="years").heading("age")
    ('age (years)', 'Age at admission (years)')
    """

    title: str = ""
    description: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        for key in NOTE_KEYS:
            text = getattr(self, key)
            if not isinstance(text, str):
                raise SchemaError(f"{key} must be text in quotes, got {text!r}")
            check_text(text, f"the {key}")
            if len(text) > _MOST:
                raise SchemaError(f"{key} has {len(text):,} characters, at most {_MOST:,}: keep it short")

    def heading(self, name: str) -> str:
        """What an axis or a table is called whose column is called `name`."""
        return (self.title or name) + (f" ({self.unit})" if self.unit else "")

    def sentence(self, name: str, domain: str) -> str:
        """Everything a reader must know of the column `name`, whose `domain` is given in words."""
        heading = self.heading(name)
        parts = ([] if heading == name else [heading]) + [domain] + ([self.description] if self.description else [])
        return "; ".join(parts)

    def to_plain(self) -> dict[str, str]:
        """The keys of a schema file that say something."""
        return {key: getattr(self, key) for key in NOTE_KEYS if getattr(self, key)}


NOTHING = Note()


def note_of(plain: Mapping[str, Any], what: str) -> Note:
    """The note in a table of a schema file (`plain`), whose other keys are others' business; `what` names it in errors."""
    try:
        return Note(**{key: plain[key] for key in NOTE_KEYS if key in plain})
    except SchemaError as error:
        raise SchemaError(f"{what}: {error}") from None


@dataclass(frozen=True)
class Wording:
    """How a number in the unit of a column is put into words.

    Parameters
    ----------
    unit : str
        What stands behind a number.
    start : str
        For dates, the ISO day from which numbers count days; for timestamps, the ISO second from which they count seconds.

    Examples
    --------
    >>> Wording("years").words(41.25), Wording("years").distance(0.5), Wording().words(1234567)
    ('41.25 years', '0.5 years', '1.23457e+06')
    >>> Wording(start="2024-01-01").words(59.7), Wording(start="2024-01-01").distance(3.25)
    ('2024-03-01', '3.25 days')
    >>> Wording(start="2024-01-01T00:00:00").words(90061), Wording(start="2024-01-01T00:00:00").distance(7200)
    ('2024-01-02 01:01:01', '2 hours')
    """

    unit: str = ""
    start: str = ""

    def words(self, number: float) -> str:
        """A `number` that is a value of the column."""
        if not self.start or not math.isfinite(number):
            return self.behind(f"{number:,.6g}")
        step = datetime.timedelta(seconds=round(number)) if "T" in self.start else datetime.timedelta(days=round(number))
        try:
            return str(datetime.datetime.fromisoformat(self.start) + step)[: 19 if "T" in self.start else 10]
        except OverflowError:  # noise can carry an answer out of the calendar
            return f"{self.distance(number)} after {self.start}"

    def distance(self, number: float) -> str:
        """A `number` that is the difference of two values: an error, a width."""
        if not self.start:
            return self.behind(f"{number:,.6g}")
        if "T" not in self.start:
            return f"{number:,.3g} days"
        size, name = next(
            (s for s in ((86400, "days"), (3600, "hours"), (60, "minutes")) if abs(number) >= s[0]), (1, "seconds")
        )
        return f"{number / size:,.3g} {name}"

    def behind(self, number: str) -> str:
        """A `number` that is written already, with the unit behind it."""
        return f"{number} {self.unit}" if self.unit else number

    def to_dict(self) -> dict[str, str]:
        """For artefacts; empty where there is nothing to say."""
        return {key: text for key, text in (("unit", self.unit), ("start", self.start)) if text}

    @classmethod
    def from_dict(cls, data: Mapping[str, str] | None) -> Wording:
        """What `to_dict` wrote down as `data`."""
        return cls(**(data or {}))


AS_NUMBERS = Wording()
