"""The little TOML writer that schemas need; the standard library only reads TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def _text(value: str) -> str:
    # JSON strings are TOML basic strings, except that TOML also wants DEL escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    return repr(value)


def toml_lines(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[str]:
    """Lines of TOML for nested mappings of scalars and lists; keys keep their order.

    >>> print("\\n".join(toml_lines({"columns": {"a b": {"low": 0, "values": ["x"]}}})))
    [columns."a b"]
    low = 0
    values = ["x"]
    """
    plain = {k: v for k, v in table.items() if not isinstance(v, Mapping) or _out_of_order(v)}
    if path and (plain or not table):
        yield "[" + ".".join(_key(p) for p in path) + "]"
    for key, value in plain.items():
        yield f"{_key(key)} = {_value(value)}"
    if path and plain:
        yield ""
    for key, value in table.items():
        if key not in plain:
            yield from toml_lines(value, (*path, key))


def _out_of_order(table: Mapping[str, Any]) -> bool:
    """Whether plain entries follow tables in it: TOML can only keep that order inline.

    The order of a taxonomy's branches is the order of its leaves.
    """
    kinds = [isinstance(v, Mapping) and not _out_of_order(v) for v in table.values()]
    return kinds != sorted(kinds)
