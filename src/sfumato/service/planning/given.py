"""What came through the interface, held to what it may be before anybody reads it: plain, shallow, finite, and no place.

A value of the interface is data. It is never taken for a path, an address or a variable of the environment: whatever key of
a plan file would name one is refused here, by what the key is and not by how its value looks.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sfumato.errors import InputError
from sfumato.privacy.units import epsilon_text, positive_nano
from sfumato.registry import mechanisms
from sfumato.releases.kinds import all_kinds
from sfumato.releases.mistakes import Mistakes
from sfumato.releases.plan_request import plain_text

DEEPEST: Final = 12
MOST_VALUES: Final = 50_000
LONGEST_KEY: Final = 200
LARGEST: Final = 2**53  # whole numbers up to here are the same in JSON everywhere

SAID_BY_PEOPLE: Final = (
    *("tiers", "counts", "column", "menu", "roster", "head_share", "source", "person", "epsilon", "tier"),
    *("living", "period", "per_period", "independent"),
)
"""Keys of a plan's [people] that name no place; `source` is a name of the configuration's list of rosters."""


def check_plain(value: Any, what: str, *, dates: bool = False) -> None:
    """Refuse what is too deep, too much, not finite or holds control characters; without recursion, whatever its depth.

    With `dates`, those of TOML may be in it.

    >>> check_plain({"rows": [1, {"where": "age > 3"}]}, "the plan")
    >>> check_plain({"rows": float("inf")}, "the plan")
    Traceback (most recent call last):
    ...
    sfumato.errors.InputError: the plan holds a number that is not finite or too large; write a smaller one
    """
    waiting: list[tuple[Any, int]] = [(value, 0)]
    seen = 0
    while waiting:
        inner, depth = waiting.pop()
        seen += 1
        if depth > DEEPEST:
            raise InputError(f"{what} nests more than {DEEPEST} tables and lists; make it flat")
        if seen + len(waiting) > MOST_VALUES:
            raise InputError(f"{what} holds more than {MOST_VALUES:,} values; make it smaller")
        if isinstance(inner, Mapping):
            for key, more in inner.items():
                if not isinstance(key, str) or len(key) > LONGEST_KEY:
                    raise InputError(f"{what} has a key that is no text of at most {LONGEST_KEY} characters; correct it")
                plain_text(key, f"a key of {what}")
                waiting.append((more, depth + 1))
        elif isinstance(inner, list | tuple):
            waiting += [(more, depth + 1) for more in inner]
        elif isinstance(inner, str):
            plain_text(inner, what)
        elif isinstance(inner, bool) or inner is None or (dates and isinstance(inner, datetime.date)):
            continue
        elif isinstance(inner, int | float):
            if not math.isfinite(inner) or abs(inner) > LARGEST:
                raise InputError(f"{what} holds a number that is not finite or too large; write a smaller one")
        else:
            raise InputError(f"{what} holds a {type(inner).__name__}; use text, numbers, true, false, lists and tables")


def canonical(value: Any) -> str:
    """JSON that is the same for the same value."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def decimal_text(epsilon: Any, what: str) -> str:
    """An ε, however it was written, as exact decimal text.

    >>> decimal_text(0.1, "epsilon"), decimal_text("1e-3", "epsilon")
    ('0.1', '0.001')
    """
    return epsilon_text(positive_nano(epsilon, what))


def releases_of(given: Sequence[Any], mistakes: Mistakes) -> list[dict[str, Any]]:
    """The tables of ``[[release]]`` as they are kept: no file named, each ε and share as text."""
    kept = []
    for number, table in enumerate(given, start=1):
        place = f"[[release]] number {number}"
        if not isinstance(table, Mapping):
            mistakes.add(InputError(f"{place} must be a table of keys and values"))
            continue
        found = mistakes.note(lambda table=table, place=place: _kept(table, place))  # type: ignore[misc]
        if found is not None:
            kept.append(found)
    return kept


def _kept(table: Mapping[str, Any], place: str) -> dict[str, Any]:
    kind = table.get("kind")
    found = {str(key): value for key, value in table.items() if value is not None}
    if not isinstance(kind, str) or kind not in all_kinds():
        return found  # which reading it will refuse in its own words
    for name in _named_by(kind, "file"):
        if name in found and not isinstance(found[name], Mapping):
            raise InputError(
                f"`{name}` of {place} names a file; through the service no file is named: write it out as a table"
            )
    for name in ("epsilon", *_named_by(kind, "epsilon")):
        if isinstance(found.get(name), int | float) and not isinstance(found[name], bool):
            found[name] = decimal_text(found[name], f"`{name}` of {place}")
    if isinstance(found.get("share"), int | float) and not isinstance(found["share"], bool):
        found["share"] = str(found["share"])
    return found


def _named_by(kind: str, type_: str) -> set[str]:
    """The keys of a kind, and of every mechanism for it, that hold a value of this type."""
    own = list(all_kinds()[kind].parameters)
    for answers in (kind, f"{kind} by"):
        own += [p for m in mechanisms(answers) for p in m.parameters]
    return {p.name for p in own if p.type == type_}


def check_people(people: Mapping[str, Any], mistakes: Mistakes) -> None:
    """Refuse keys of [people] that name a place."""
    for key in people:
        if key not in SAID_BY_PEOPLE:
            mistakes.add(
                InputError(
                    f"[people] has the key {key!r}, which the service does not take; it takes {', '.join(SAID_BY_PEOPLE)}. "
                    "Where a roster lies is in the configuration, and `source` is its name there"
                )
            )
