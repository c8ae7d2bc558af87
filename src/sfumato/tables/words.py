"""Small words that messages share, and text that every engine can hold."""

from __future__ import annotations

import difflib
import unicodedata
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
    odd = lookalike(str(name))
    hint = (f"did you mean {close[0]!r}? " if close else "") + (f"({odd}) " if odd else "")
    return f"{hint}Known: {', '.join(names)}" if names else "there are none"


_TWINS = dict(
    zip(
        "АВЕКМНОРСТХІЈЅаеорсухіјѕԁһΑΒΕΖΗΙΚΜΝΟΡΤΥΧονορ",  # Cyrillic and Greek
        "ABEKMHOPCTXIJSaeopcyxijsdhABEZHIKMNOPTYXovop",
        strict=True,
    )
)


def lookalike(name: str) -> str:
    """Which letter of a name is not the Latin one that it looks like, in words; nothing where all are what they seem.

    >>> lookalike("w\u0430rds")
    "U+0430 CYRILLIC SMALL LETTER A looks like 'a'"
    >>> lookalike("über"), lookalike("ε 0.5"), lookalike("палата")
    ('', '', '')
    """
    latin = any("a" <= c.lower() <= "z" for c in name)
    for c in name:
        twin = _TWINS.get(c) or (unicodedata.normalize("NFKC", c) if "\uff01" <= c <= "\uff5e" else None)
        if twin and (latin or all(d in _TWINS for d in name if d.isalpha())):
            return f"U+{ord(c):04X} {unicodedata.name(c, '')} looks like {twin!r}"
    return ""


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
