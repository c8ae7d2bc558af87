"""TOML files of people: read with errors that a person can act on, and the little writer that schemas need."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import InputError

MOST_BYTES = 8_000_000  # a file of people is smaller; whatever is larger is a mistake, and is not read
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


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The nested dictionaries of a file; `what` names it in errors."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise InputError(f"{what} {path} is larger than {MOST_BYTES // 10**6} MB, so it is none; check the path")
        return parse_toml(raw.decode("utf-8"), f"{what} {path}")
    except UnicodeDecodeError:
        raise InputError(f"{what} {path} is not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise InputError(f"cannot read {what} {path}: {error.strerror}; check the path") from None


def parse_toml(text: str, what: str) -> dict[str, Any]:
    """The nested dictionaries of a TOML text; `what` names it in errors."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{what} is not valid TOML: it nests lists or tables too deeply; make it flat") from None
    except ValueError as error:  # TOMLDecodeError is one; a number of 5,000 digits raises the plain kind
        hint = "correct the line" if isinstance(error, tomllib.TOMLDecodeError) else "write a smaller number"
        raise InputError(f"{what} is not valid TOML: {error}; {hint}") from None
