"""Blanks that `sfumato init` leaves in a schema or a plan: a file with one does not load, and says what to write there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sfumato.errors import SchemaError

BLANK: Final = "<fill in>"

HINTS: Final = {
    "type": "the kind of column: numeric, categorical or another of docs/columns.md",
    "low": "the smallest value that the column can have, from public knowledge and not from the table",
    "high": "the largest value that the column can have, from public knowledge and not from the table",
    "first": "the first day that can occur, as '2020-01-01', from public knowledge and not from the table",
    "last": "the last day that can occur, as '2024-12-31', from public knowledge and not from the table",
    "zone": "the time zone of the table's timestamps, as 'Europe/Rome'",
    "by": "the period that days are counted by: day, week, month, quarter or year",
    "bins": "the number of bins between the bounds",
    "places": "the number of decimal places",
    "values": "the list of values that can occur, from public knowledge and not from the table",
    "person": "the column that names the person; remove [unit] if every person has one row",
    "rows_per_person": "how many rows of a person may count",
    "rows": "a public head count; an upper bound will do",
    "epsilon": "an ε above 0, the most that it may cost",
    "name": "a name of letters, digits and dashes",
}


def blanks_of(value: Any, place: str = "") -> Iterator[str]:
    """A sentence for each blank in the nested dictionaries of a file.

    >>> list(blanks_of({"columns": {"age": {"low": BLANK, "high": 99}}}))[0][:48]
    '[columns.age] `low` is still blank; write the sm'
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if inner == BLANK or inner == [BLANK]:
                what = HINTS.get(str(key), "its value")
                yield f"[{place or 'the file'}] `{key}` is still blank; write {what}"
            else:
                yield from blanks_of(inner, f"{place}.{key}".strip("."))
    elif isinstance(value, list):
        for number, inner in enumerate(value, start=1):
            yield from blanks_of(inner, f"{place} number {number}")


def refuse_blanks(document: Mapping[str, Any]) -> None:
    """Refuse the first blank of a file."""
    for sentence in blanks_of(document):
        raise SchemaError(sentence)
