"""Budgets that differ per person: everybody sets their own ε.

`preview_count` and its like list the offers, `count`, `total` and `mean` answer from arrays; over a table use `sf.open`.
"""

from sfumato.people.answers import answer, count, plan_offer, preview, preview_count, preview_sum
from sfumato.people.bias import Heterogeneity, bias_of_correlation
from sfumato.people.estimate import Bracket, Estimate
from sfumato.people.histogram import PersonalHistogram
from sfumato.people.means import mean, preview_mean, total
from sfumato.people.offers import offers
from sfumato.people.overprotection import Overprotection, overprotection
from sfumato.people.partition import Partition, privacy_aware, round_down, utility_based
from sfumato.people.question import Question
from sfumato.people.reading import ArrayReader, DatasetReader, PairReader, Reader, SumReader

__all__ = [
    "ArrayReader",
    "Bracket",
    "DatasetReader",
    "Estimate",
    "Heterogeneity",
    "Overprotection",
    "PairReader",
    "Partition",
    "PersonalHistogram",
    "Question",
    "Reader",
    "SumReader",
    "answer",
    "bias_of_correlation",
    "count",
    "mean",
    "offers",
    "overprotection",
    "plan_offer",
    "preview",
    "preview_count",
    "preview_mean",
    "preview_sum",
    "privacy_aware",
    "round_down",
    "total",
    "utility_based",
]
