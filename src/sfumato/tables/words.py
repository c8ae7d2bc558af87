"""Small words that messages share, and text that every engine can hold."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from sfumato.errors import SchemaError


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known.

    >>> did_you_mean("hihg", ["low", "high"])
    "did you mean 'high'? Known: low, high"
    """
    names = [str(k) for k in known]
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}Known: {', '.join(names)}" if names else "there are none"


def check_keys(table: Mapping[str, Any], known: Iterable[str], what: str) -> None:
    """Refuse a key that is not known, with a hint."""
    known = tuple(known)
    for key in table:
        if key not in known:
            raise SchemaError(f"{what}: unknown key {key!r}; {did_you_mean(key, known)}")


def check_text(text: str, what: str) -> None:
    """Refuse text that some engine cannot hold."""
    if "\x00" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise SchemaError(f"{what} {text!r} holds a character that databases cannot store")
