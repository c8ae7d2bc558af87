"""All audit cases by name, found when they are asked for: every module `cases*` and `controls` of this package."""

from __future__ import annotations

import importlib
import pkgutil
from difflib import get_close_matches
from typing import TYPE_CHECKING

from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.audit.harness import AuditCase

_CASES: dict[str, AuditCase] = {}


def register(new: AuditCase) -> AuditCase:
    """Make a case known under its name (at import of its module)."""
    if _CASES.get(new.name, new) is not new:
        raise InputError(f"two audit cases are called {new.name!r}; rename one")
    _CASES[new.name] = new
    return new


def _discover() -> None:
    package = importlib.import_module("sfumato.audit")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name == "controls" or module.name.startswith("cases"):
            importlib.import_module(f"sfumato.audit.{module.name}")


def names() -> tuple[str, ...]:
    """Every case, controls last.

    >>> [name for name in names() if name.startswith("control")][-1] == names()[-1]
    True
    """
    _discover()
    return tuple(sorted(_CASES, key=lambda n: (_CASES[n].control, n)))


def case(name: str) -> AuditCase:
    """The case of this name."""
    _discover()
    if name not in _CASES:
        near = get_close_matches(name, _CASES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(f"no audit case is called {name!r}; {hint}known: {', '.join(names())}")
    return _CASES[name]
