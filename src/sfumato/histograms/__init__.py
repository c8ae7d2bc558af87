"""Histograms whose budgets differ per bin, and that are as accurate as the budget allows."""

from sfumato.histograms.bins import Axis, Bins
from sfumato.histograms.mechanisms import MECHANISMS, release_histogram
from sfumato.histograms.preview import Option, preview_histogram
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
]
