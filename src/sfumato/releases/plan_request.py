"""One request of a plan or of a call, checked key by key; and the texts and names that a plan may hold."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.offers import AUTO, Request
from sfumato.privacy.units import positive_nano
from sfumato.registry import Parameter
from sfumato.releases.kinds import COMMON, kind_of
from sfumato.releases.mistakes import Mistakes, flag_of, table_of, text_of
from sfumato.tables.words import lookalike

_FORBIDDEN = '/\\:*?"<>|$`[]'
_LONGEST_NAME = 120
_DEEPEST = 12
_BIDIRECTIONAL = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f"


def parse_request(
    given: Any,
    place: str,
    *,
    independent: bool = False,
    home: Path | None = None,
    mistakes: Mistakes | None = None,
) -> Request | None:
    """Check one request; `place` is what to call it in messages until its name is known.

    `independent` is what holds for the whole plan where the request does not say it itself; files are named from `home`.
    The first mistake is raised, unless `mistakes` gathers them: then a request with any is None.
    """
    mistakes = mistakes or Mistakes()
    before = mistakes.times
    note = mistakes.note
    written = note(lambda: table_of(given, place))
    if written is None:
        return None
    kind = note(lambda: kind_of(text_of(written, "kind", place), place))
    table = written if kind is None else note(partial(kind.spelt, written, place)) or written
    name = note(lambda: _name(text_of(table, "name", place), place))
    place = place if name is None else f"release {name!r}"
    for key in ("mechanism", "recipient", "where"):
        if table.get(key) is not None:
            note(partial(text_of, table, key, place))
    share = note(lambda: _price(table, place))
    mechanism = table.get("mechanism") or AUTO
    stated = note(lambda: flag_of(table, "independent", place))
    parameters: dict[str, Any] = {}
    if kind is not None and isinstance(mechanism, str):
        located = _located(table, kind.parameters, home)
        for key in located:
            one = {key: located[key]}
            parameters |= note(partial(kind.check, one, mechanism, place)) or {}
    if mistakes.times > before or kind is None or name is None:
        return None
    return Request(
        name=name,
        kind=kind.name,
        mechanism=mechanism,
        epsilon=table.get("epsilon"),
        share=share,
        recipient=table.get("recipient"),
        where=table.get("where"),
        parameters=parameters,
        independent=independent if stated is None else stated,
    )


def _located(table: Mapping[str, Any], parameters: Sequence[Parameter], home: Path | None) -> dict[str, Any]:
    """The keys of the kind and its mechanism, with files where they lie."""
    files = {p.name for p in parameters if p.type == "file" and home is not None and isinstance(table.get(p.name), str)}
    return {k: str(Path(home or "") / v) if k in files else v for k, v in table.items() if k not in COMMON}


def _price(table: Mapping[str, Any], place: str) -> Fraction | None:
    """The share, and the ε checked."""
    epsilon, share = table.get("epsilon"), table.get("share")
    if epsilon is not None:
        positive_nano(epsilon, f"epsilon of {place}")
    if share is None:
        return None
    if epsilon is not None:
        raise InputError(f"{place} gives both `epsilon` (one for all) and `share` (of everyone's own); keep one")
    try:
        found = Fraction(0) if isinstance(share, bool) else Fraction(str(share))
    except (ValueError, ZeroDivisionError):
        found = Fraction(0)
    if not 0 < found <= 1:
        raise InputError(
            f"share of {place} must be a number above 0 and at most 1, got {share!r}; a tenth of everyone's budget is 0.1"
        )
    return found


def _name(name: str, place: str) -> str:
    """A name that can be a folder everywhere and that nobody can take for another one."""
    plain_text(name, f"{place} `name`")
    unfit = next((c for c in name if c in _FORBIDDEN or not c.isprintable()), None)
    if unfit is not None or name != name.strip() or name[0] == "." or name[-1] == "." or len(name) > _LONGEST_NAME:
        why = f" (it holds {unfit!r})" if unfit else ""
        raise InputError(
            f"{place} is called {name[:200]!r}, which cannot be a folder name{why}; use at most {_LONGEST_NAME} letters, "
            "digits and dashes"
        )
    if odd := lookalike(name):
        raise InputError(f"{place} is called {name!r}, where {odd}; write the name in one alphabet")
    return name


def same_names(names: Sequence[str]) -> None:
    """Refuse two releases that would share a folder on some disk."""
    seen: dict[str, str] = {}
    for name in names:
        twin = seen.get(key := unicodedata.normalize("NFKC", name).casefold())
        if twin == name:
            raise InputError(f"two releases are called {name!r}; names are folder names and must differ")
        if twin is not None:
            raise InputError(
                f"the releases {twin!r} and {name!r} differ in case or spelling only, which some disks ignore; rename one"
            )
        seen[key] = name


def check_texts(value: Any, place: str, mistakes: Mistakes, depth: int = 0) -> None:
    """Refuse text that a terminal, a report or a reader would take for something else, wherever it stands in a plan."""
    if depth > _DEEPEST:
        mistakes.add(InputError(f"{place} nests more than {_DEEPEST} tables and lists; a plan is flat: see docs/plans.md"))
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            at = f"{place} `{key}`" if place else "[[release]]" if key == "release" else f"[{key}]"
            _check_text(str(key), f"a key of {place or 'the plan'}", mistakes)
            check_texts(inner, at, mistakes, depth + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value, start=1):
            check_texts(inner, f"{place} number {number}", mistakes, depth + 1)
    elif isinstance(value, str):
        _check_text(value, place, mistakes)


def _check_text(text: str, place: str, mistakes: Mistakes) -> None:
    mistakes.note(partial(plain_text, text, place))


def plain_text(text: str, place: str) -> str:
    """A text without characters that a terminal obeys or that turn the direction of writing; lines and tabs may be."""
    for c in text:
        if (unicodedata.category(c) in ("Cc", "Cs") and c not in "\t\n\r") or c in _BIDIRECTIONAL:
            raise InputError(f"{place} holds the control character U+{ord(c):04X}; remove it")
    return text
