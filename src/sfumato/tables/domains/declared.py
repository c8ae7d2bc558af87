"""How kinds of columns are declared: the register of their words, and the labels of the cells that every kind may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from sfumato.errors import SchemaError
from sfumato.tables.domains.base import Domain
from sfumato.tables.notes import NOTE_KEYS
from sfumato.tables.words import check_keys, check_text, did_you_mean

DOMAINS: dict[str, type[Domain]] = {}
_Kind = TypeVar("_Kind", bound=type[Domain])


def register(domain: _Kind) -> _Kind:
    """Let schema files use a kind of column, under the word `domain.type_name`."""
    known = DOMAINS.setdefault(domain.type_name, domain)
    if known is not domain:
        raise SchemaError(f"columns of type {domain.type_name!r} are {known.__name__} already; choose another word")
    return domain


def domain_from_plain(what: str, plain: Any) -> Domain:
    """A domain from one column's table of a schema file; `what` names the column in errors."""
    if not isinstance(plain, Mapping):
        raise SchemaError(f"{what}: expected a table such as [columns.age] with type = 'numeric', got {plain!r}")
    kind = plain.get("type", "categorical" if "values" in plain else "numeric")
    if not isinstance(kind, str) or kind not in DOMAINS:
        raise SchemaError(f"{what}: no columns of type {kind!r}; {did_you_mean(str(kind), sorted(DOMAINS))}")
    found = DOMAINS[kind]
    check_keys(plain, ("type", *found.keys, *NOTE_KEYS), f"{what} ({kind})")
    try:
        return found.from_plain({key: value for key, value in plain.items() if key not in ("type", *NOTE_KEYS)})
    except SchemaError as error:
        raise SchemaError(f"{what}: {error}") from None


def extra_labels(domain: Any, taken: Sequence[str], *, other: bool | str | None = None) -> None:
    """Bring `other` and `missing` of a `domain` under construction to one form, a label or False.

    So equal domains compare equal. `taken` are the names of the listed cells; `other` overrides what was given.
    """
    what = f"{domain.type_name} column"
    first = _label(domain.other if other is None else other, taken, what, "other", "elsewhere")
    second = _label(domain.missing, [*taken, *([first] if first else [])], what, "missing", "unknown")
    object.__setattr__(domain, "other", first)
    object.__setattr__(domain, "missing", second)


def _label(given: bool | str, taken: Sequence[Any], what: str, key: str, example: str) -> bool | str:
    if not isinstance(given, bool | str):
        raise SchemaError(f"{what}: {key} must be true, false or a label, got {given!r}")
    if isinstance(given, str):
        check_text(given, f"the label of the {key} cell")
    if isinstance(given, str) and (not given or given in taken):
        raise SchemaError(f"{what}: the label of the {key} cell {given!r} is empty or already a value")
    if given is True and key in taken:
        raise SchemaError(f"{what}: {key!r} is already a value; name the extra cell, for example {key} = {example!r}")
    return key if given is True else given


def told_bounds(domain: Any) -> str:
    """The bounds of a `domain` in words, and what becomes of values beyond them."""
    beyond = "clamped to these bounds" if domain.outside == "clamp" else "counted as other"
    return f"from {domain.low:,} to {domain.high:,}, values beyond {beyond}"


def extras(domain: Domain) -> dict[str, Any]:
    """The keys of a schema file for the extra cells and the tree of a `domain`."""
    tree = {} if domain.taxonomy is None else {"taxonomy": domain.taxonomy.plain()}
    return {key: label for key in ("other", "missing") if (label := getattr(domain, key))} | tree
