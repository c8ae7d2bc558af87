"""The kinds of release a plan can ask for. A kind turns a request and public facts into priced options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module

from sfumato.releases.kinds.base import Facts, Kind, Option

_MODULES = ("numbers", "histogram", "synthesize")


@cache
def all_kinds() -> Mapping[str, Kind]:
    """Every kind by its name in a plan."""
    found: dict[str, Kind] = {}
    for module in _MODULES:
        for kind in import_module(f"sfumato.releases.kinds.{module}").KINDS:
            found[kind.name] = kind
    return found


def option_keys() -> Mapping[str, Sequence[str]]:
    """The option keys of each kind, for checking a plan."""
    return {name: kind.keys for name, kind in all_kinds().items()}


__all__ = ["Facts", "Kind", "Option", "all_kinds", "option_keys"]
