"""The questions of every day: quantiles, groups, cross tables, the most frequent values, variances and proportions.

Names load when they are used: a count need not load what a cross table is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.statistics.crosstab_result import CrossTable
    from sfumato.statistics.figure import Figure
    from sfumato.statistics.groups_result import Groups
    from sfumato.statistics.margin import Margin
    from sfumato.statistics.quantiles import Quantiles
    from sfumato.statistics.top_result import TopValues

_HOME = {
    "CrossTable": "crosstab_result",
    "Figure": "figure",
    "Groups": "groups_result",
    "Margin": "margin",
    "Quantiles": "quantiles",
    "TopValues": "top_result",
}

__all__ = ["CrossTable", "Figure", "Groups", "Margin", "Quantiles", "TopValues"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
