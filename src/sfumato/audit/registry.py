"""All audit cases by name: those of this package's `cases*` modules and controls, and one or more per registered mechanism.

A mechanism that brings an `Attack` of its own is tried with it; any other with the attack of its kind. So a mechanism that
is registered from outside is audited as the package's own are.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from sfumato.errors import InputError
from sfumato.registry import Mechanism, mechanisms, nearest

if TYPE_CHECKING:
    from sfumato.audit.harness import Case

Maker = Callable[[Mechanism], "Iterable[Case]"]
_CASES: dict[str, Case] = {}
_MAKERS: dict[str, Maker] = {}
_MADE: dict[tuple[str, Mechanism], tuple[Case, ...]] = {}


def register(new: Case) -> Case:
    """Make a case known under its name (at import of its module).

    Parameters
    ----------
    new : AuditCase or TranscriptCase
        The case.

    Returns
    -------
    AuditCase or TranscriptCase
        The same.
    """
    if _CASES.get(new.name, new) is not new:
        raise InputError(f"two audit cases are called {new.name!r}; rename one")
    _CASES[new.name] = new
    return new


def attack_every(kind: str, maker: Maker) -> None:
    """Attack every registered mechanism that answers `kind` with the cases that `maker` makes of it."""
    _MAKERS[kind] = maker


def _every() -> dict[str, Case]:
    package = importlib.import_module("sfumato.audit")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name == "controls" or module.name.startswith("cases"):
            importlib.import_module(f"sfumato.audit.{module.name}")
    found = dict(_CASES)
    for kind, maker in _MAKERS.items():
        for entry in mechanisms(kind):
            if (kind, entry) not in _MADE:
                _MADE[kind, entry] = tuple(_cases_of(kind, entry, maker))
            found |= {case.name: case for case in _MADE[kind, entry]}
    return found


def _cases_of(kind: str, entry: Mechanism, maker: Maker) -> Iterable[Case]:
    from sfumato.audit.harness import AuditCase

    if entry.attack is None:
        return maker(entry)
    made = entry.attack()
    return [AuditCase(f"{kind}-{entry.name}", made.claimed, made.draw, made.neighbours, most=made.most)]


def names() -> tuple[str, ...]:
    """Every case, controls last.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> [name for name in names() if name.startswith("control")][-1] == names()[-1]
    True
    """
    found = _every()
    return tuple(sorted(found, key=lambda n: (found[n].control, n)))


def case(name: str) -> Case:
    """The case of this name.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    AuditCase or TranscriptCase
    """
    found = _every()
    if name not in found:
        raise InputError(f"no audit case is called {name!r}; {nearest(name, names())}")
    return found[name]
