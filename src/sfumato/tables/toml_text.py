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
    return repr(value)


def toml_lines(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[str]:
    """Lines of TOML for nested mappings of scalars and lists; keys keep their order.

    >>> print("\\n".join(toml_lines({"columns": {"a b": {"low": 0, "values": ["x"]}}})))
    [columns."a b"]
    low = 0
    values = ["x"]
    """
    plain = {k: v for k, v in table.items() if not isinstance(v, Mapping)}
    if path and (plain or not table):
        yield "[" + ".".join(_key(p) for p in path) + "]"
    for key, value in plain.items():
        yield f"{_key(key)} = {_value(value)}"
    if path and plain:
        yield ""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from toml_lines(value, (*path, key))
