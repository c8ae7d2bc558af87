"""Which family answers which kinds of question, so that a question loads the families that it needs and no others."""

from __future__ import annotations

from collections.abc import Mapping

HOMES: Mapping[str, tuple[str, ...]] = {
    "sfumato.people.registry": ("count", "sum", "mean", "histogram"),
    "sfumato.histograms.registry": ("histogram",),
    "sfumato.statistics.registry": (
        *("count by", "sum by", "mean by", "proportion by", "variance", "proportion"),
        *("quantile", "median", "min", "max", "table", "top", "profile"),
    ),
    "sfumato.grids.registry": ("synthesize",),
    "sfumato.classifiers.registry": ("model",),
}
