"""Secrets that a plan takes from the environment: ``postgresql://${PGUSER}:${PGPASSWORD}@host/db``.

Only where something lies is expanded (`source`, `location` and `key`), once, when the plan is read; ``$$`` stands for a
dollar sign. What was put in is told to `sfumato.errors.hide`, so that no message shows it. It is no part of a request's
identity, and in no certificate: where the data lies is in neither.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from sfumato.errors import InputError, hide

_SIGN = re.compile(r"\$(?:(\$)|\{([^}]*)\}|)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def expanded(text: str, where: str, environ: Mapping[str, str] | None = None) -> str:
    """`text` with the values of the variables of `environ` that it names; `where` says in errors whose text it is.

    In a URL a value is escaped where a sign of it would end its part, so a password may hold any sign.

    >>> os.environ["SFUMATO_DOC"] = "p@ss"
    >>> expanded("postgresql://ann:${SFUMATO_DOC}@host/clinic", "[dataset] source")
    'postgresql://ann:p%40ss@host/clinic'
    >>> expanded("$$${SFUMATO_DOC}.csv", "[dataset] source")
    '$p@ss.csv'
    """

    def value(found: re.Match[str]) -> str:
        if found[1]:
            return "$"
        name = found[2]
        if name is None or not _NAME.fullmatch(name):
            raise InputError(
                f"{where} has a dollar sign that names no variable; write ${{NAME}} for a variable of the environment, and "
                "$$ for a dollar sign"
            )
        known = (os.environ if environ is None else environ).get(name)
        if not known:
            raise InputError(
                f"{where} names the variable ${{{name}}}, which is not set in the environment; set it before you call "
                f"sfumato: export {name}=..."
            )
        put = _escaped(known, text, found.start())
        for shown in {known, put, quote(known, safe=""), quote(known, safe="/"), quote(known, safe=" +")}:  # as drivers may
            hide(shown, f"${{{name}}}")
        return put

    return _SIGN.sub(value, text)


def _escaped(value: str, text: str, place: int) -> str:
    """A value as it may stand at a `place` of a text, if that is a URL."""
    scheme, found, rest = text.partition("://")
    if not found or place < len(scheme):
        return value
    start = len(scheme) + 3
    login, at, _ = rest.rpartition("@")
    if at and place < start + len(login):
        return quote(value, safe="")
    host = start + len(login) + len(at)
    slash, options = (text.find(sign, host) for sign in "/?")
    if 0 <= options < place:
        return quote(value, safe="")
    return value.replace("?", "%3F").replace("#", "%23") if 0 <= slash < place else value


def refuse_elsewhere(table: Any, keys: tuple[str, ...], where: str) -> None:
    """Refuse a variable in keys that are not expanded."""
    for key in keys:
        value = table.get(key)
        if isinstance(value, str) and "${" in value:
            raise InputError(
                f"{where} {key} names a variable of the environment; only `source`, `location` and `key` may: write it out"
            )
