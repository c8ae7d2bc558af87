"""A plan file, priced from public facts, run through the ledger, written as an artefact with its certificate.

In Python, `open` gives a `Table` to preview and release from (`sfumato.open` is the same). For a plan file, `init` writes
one to fill in, `check` tells all its mistakes, `load` reads it, `preview` prices it and `release` runs it; `read_result`
reads a folder that was released, and `verify` checks one. `people` gives the people of a plan with a living roster,
`receipt_page` a page for one of them. Names load when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.releases.asking import Preview
    from sfumato.releases.batch import Outcome, PlanPreview, StoppedError, load, preview, release
    from sfumato.releases.curves import Curves
    from sfumato.releases.folder import read_result
    from sfumato.releases.opening import open
    from sfumato.releases.pipeline import Priced
    from sfumato.releases.plan import Plan
    from sfumato.releases.plan_check import Checked, check
    from sfumato.releases.plan_people import people
    from sfumato.releases.receipts import receipt_page
    from sfumato.releases.session import Table
    from sfumato.releases.skeleton import init
    from sfumato.releases.verification import Check, Verification, verify
    from sfumato.releases.wanted import Needed

_HOME = {
    "Check": "verification",
    "Checked": "plan_check",
    "Curves": "curves",
    "Needed": "wanted",
    "Outcome": "batch",
    "Plan": "plan",
    "PlanPreview": "batch",
    "Preview": "asking",
    "Priced": "pipeline",
    "StoppedError": "batch",
    "Table": "session",
    "Verification": "verification",
    "check": "plan_check",
    "init": "skeleton",
    "load": "batch",
    "open": "opening",
    "people": "plan_people",
    "preview": "batch",
    "read_result": "folder",
    "receipt_page": "receipts",
    "release": "batch",
    "verify": "verification",
}

__all__ = [
    "Check",
    "Checked",
    "Curves",
    "Needed",
    "Outcome",
    "Plan",
    "PlanPreview",
    "Preview",
    "Priced",
    "StoppedError",
    "Table",
    "Verification",
    "check",
    "init",
    "load",
    "open",
    "people",
    "preview",
    "read_result",
    "receipt_page",
    "release",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
