"""Sfumato: differentially private data release in which budgets differ.

>>> import sfumato as sf
>>> sf.PersonBudgets.from_tiers({"open": (1.0, 90), "strict": (0.01, 540)})
PersonBudgets(630 people in 2 groups, ε 0.01 to 1)

Everything heavy (engines, plots, estimators) loads when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sfumato.distribution import __version__ as __version__
from sfumato.distribution import refuse_both

refuse_both(__path__[0])

if TYPE_CHECKING:
    from sfumato import attributes, classifiers, grids, histograms, people, privacy, statistics
    from sfumato.errors import SfumatoError
    from sfumato.ledger import Ledger
    from sfumato.privacy import (
        AttributeBudgets,
        Charge,
        Guarantee,
        Meter,
        PersonBudgets,
        RecipientBudgets,
        Seeded,
    )
    from sfumato.releases.loading import load
    from sfumato.releases.opening import open
    from sfumato.tables import (
        Boolean,
        Categorical,
        Date,
        Decimals,
        Note,
        Numeric,
        PrivacyUnit,
        Roster,
        Schema,
        Taxonomy,
        Timestamp,
    )

_NAMES = {
    "AttributeBudgets": "sfumato.privacy",
    "Boolean": "sfumato.tables",
    "Categorical": "sfumato.tables",
    "Charge": "sfumato.privacy",
    "Date": "sfumato.tables",
    "Decimals": "sfumato.tables",
    "Guarantee": "sfumato.privacy",
    "Ledger": "sfumato.ledger",
    "Meter": "sfumato.privacy",
    "Note": "sfumato.tables",
    "Numeric": "sfumato.tables",
    "PersonBudgets": "sfumato.privacy",
    "PrivacyUnit": "sfumato.tables",
    "RecipientBudgets": "sfumato.privacy",
    "Roster": "sfumato.tables",
    "Schema": "sfumato.tables",
    "Seeded": "sfumato.privacy",
    "SfumatoError": "sfumato.errors",
    "Taxonomy": "sfumato.tables",
    "Timestamp": "sfumato.tables",
    "load": "sfumato.releases.loading",
    "open": "sfumato.releases.opening",
}
_FAMILIES = ("attributes", "classifiers", "grids", "histograms", "people", "privacy", "statistics")

__all__ = [
    "AttributeBudgets",
    "Boolean",
    "Categorical",
    "Charge",
    "Date",
    "Decimals",
    "Guarantee",
    "Ledger",
    "Meter",
    "Note",
    "Numeric",
    "PersonBudgets",
    "PrivacyUnit",
    "RecipientBudgets",
    "Roster",
    "Schema",
    "Seeded",
    "SfumatoError",
    "Taxonomy",
    "Timestamp",
    "attributes",
    "classifiers",
    "grids",
    "histograms",
    "load",
    "open",
    "people",
    "privacy",
    "statistics",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        found = getattr(import_module(_NAMES[name]), name)
        globals()[name] = found
        return found
    if name in _FAMILIES:
        return import_module(f"sfumato.{name}")
    raise AttributeError(f"module 'sfumato' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
