"""Histograms whose budgets differ per bin, and that are as accurate as the budget allows.

`preview_histogram` lists the ways to make one, `release_histogram` makes it, `release_histograms` makes one per group.
"""

from sfumato.histograms.bins import Axis, Bins
from sfumato.histograms.groups import release_histograms
from sfumato.histograms.preview import Option, preview_histogram
from sfumato.histograms.release import MECHANISMS, release_histogram
from sfumato.histograms.result import Histogram, RangeAnswer

__all__ = [
    "MECHANISMS",
    "Axis",
    "Bins",
    "Histogram",
    "Option",
    "RangeAnswer",
    "preview_histogram",
    "release_histogram",
    "release_histograms",
]
