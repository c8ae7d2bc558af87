"""Histograms whose budgets differ per bin, and that are as accurate as the budget allows.

`preview_histogram` lists the ways to make one, `release_histogram` makes it, `release_histograms` makes one per group.
"""

from sfumato.histograms.bins import Axis, Bins
from sfumato.histograms.estimation.estimate import HistogramEstimate
from sfumato.histograms.estimation.measurements import Measurement
from sfumato.histograms.groups import release_histograms
from sfumato.histograms.offers import offers, preview_histogram
from sfumato.histograms.release import release_histogram
from sfumato.histograms.result import Histogram, RangeAnswer

__all__ = [
    "Axis",
    "Bins",
    "Histogram",
    "HistogramEstimate",
    "Measurement",
    "RangeAnswer",
    "offers",
    "preview_histogram",
    "release_histogram",
    "release_histograms",
]
