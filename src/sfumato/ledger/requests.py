"""The text of a request: its one spelling, its fingerprint, and what it says to whoever reads the history."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sfumato.errors import InputError


def canonical(request: str | Mapping[str, Any]) -> str:
    """The one spelling of a request, so that equal requests have equal fingerprints.

    Text is taken to be canonical already.

    >>> canonical({"b": 1, "a": [2]})
    '{"a":[2],"b":1}'
    """
    if isinstance(request, str):
        return request
    try:
        return json.dumps(request, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"a request is recorded as JSON: {error}") from None


def fingerprint_of(request: str) -> str:
    """What a canonical request is looked up by."""
    return hashlib.sha256(request.encode()).hexdigest()


def question(request: str) -> tuple[str | None, tuple[str, ...], str | None]:
    """Kind, columns and condition of a request, as far as its text says them.

    >>> question('{"kind":"mean","parameters":{"column":"age"},"where":"ward = 3"}')
    ('mean', ('age',), 'ward = 3')
    """
    try:
        asked = json.loads(request)
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict):
        return None, (), None
    named: dict[str, None] = {}  # keeps the order and drops repetitions
    for place in (asked, asked.get("parameters"), asked.get("options")):  # options: what parameters were called once
        if isinstance(place, dict):
            for key in ("column", "columns", "by", "target", "attributes"):
                found = place.get(key)
                names = found if isinstance(found, list) else [found]
                named.update((name, None) for name in names if isinstance(name, str))
    kind, where = asked.get("kind"), asked.get("where")
    return kind if isinstance(kind, str) else None, tuple(named), where if isinstance(where, str) else None


def readable(text: str, what: str) -> str:
    """A name that people will read in a list; refused when it is blank or would disturb the list.

    >>> readable("count\\nof what", "a release")
    Traceback (most recent call last):
    ...
    sfumato.errors.InputError: a release needs a name of printable characters, for example 'clinic'; got 'count\\nof what'
    """
    if not text.strip() or not text.isprintable():
        raise InputError(f"{what} needs a name of printable characters, for example 'clinic'; got {text!r}")
    return text
