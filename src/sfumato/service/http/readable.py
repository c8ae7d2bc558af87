"""What no route ever sees: texts that a database or an answer cannot hold, numbers without an end, depths without a floor.

A body is looked at once, before any route: NUL characters and lone halves of UTF-16 pairs break PostgreSQL and JSON
answers, whole numbers beyond 64 bits break both databases, ``NaN`` and infinity are not JSON, and a body that is nested very
deep breaks whoever walks it. Paths and query strings must be UTF-8 without control characters.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final
from urllib.parse import unquote_to_bytes

DEEPEST: Final = 64
_LARGEST = 2**63


def fault_of_address(raw_path: bytes, query: bytes) -> str | None:
    """What is wrong with a path or a query string; ``None`` if nothing is.

    >>> fault_of_address(b"/v1/plans/%C3%A4", b"limit=2") is None
    True
    >>> fault_of_address(b"/v1/plans/%ff", b"")
    'the address is not UTF-8'
    """
    for part in (raw_path, query):
        try:
            text = unquote_to_bytes(part).decode()
        except UnicodeDecodeError:
            return "the address is not UTF-8"
        if any(ord(character) < 32 or ord(character) == 127 for character in text):
            return "the address holds a control character"
    return None


def fault_of_json(body: bytes) -> str | None:
    r"""What is wrong with a JSON body; ``None`` if nothing is, or if it is not JSON at all, which its reader says better.

    >>> fault_of_json(b'{"name": "a\\u0000b"}')
    'a text in the body holds a NUL character'
    >>> fault_of_json(b'{"name": "a"}') is None
    True
    """
    if not body:
        return None
    try:
        # Readers guess UTF-16 and UTF-32 too: only UTF-8 is JSON between systems (RFC 8259).
        text = body.decode()
    except UnicodeDecodeError:
        return "the body is not UTF-8"
    if "\0" in text:
        return "a text in the body holds a NUL character"
    try:
        return _fault_of(json.loads(text, parse_constant=_no_number))
    except RecursionError:
        return f"the body is nested deeper than {DEEPEST}"
    except _NotANumberError:
        return "NaN and infinity are not JSON"
    except json.JSONDecodeError:
        return None
    except ValueError:  # a number of more digits than Python reads
        return "a number in the body is beyond 64 bits"


class _NotANumberError(Exception):
    pass


def _no_number(_: str) -> Any:
    raise _NotANumberError


def _fault_of(value: Any) -> str | None:
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for one in level:
            fault = _fault_of_one(one)
            if fault is not None:
                return fault
            if isinstance(one, dict):
                below += [*one.keys(), *one.values()]
            elif isinstance(one, list):
                below += one
        if not below:
            return None
        level = below
    return f"the body is nested deeper than {DEEPEST}"


def _fault_of_one(value: Any) -> str | None:
    if isinstance(value, str):
        if "\0" in value:
            return "a text in the body holds a NUL character"
        if any("\ud800" <= character <= "\udfff" for character in value) if not value.isascii() else False:
            return "a text in the body holds half of a UTF-16 pair"
    elif isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        return "a number in the body is beyond 64 bits"
    elif isinstance(value, float) and math.isinf(value):
        return "a number in the body is too large"
    return None
