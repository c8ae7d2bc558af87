"""Budgets that differ per person: everybody sets their own ε.

from sfumato.people import preview_count, choose_option, count
"""

from sfumato.people.answers import (
    MECHANISMS,
    Option,
    answer,
    choose_option,
    count,
    plan_option,
    preview,
    preview_count,
    preview_sum,
)
from sfumato.people.bias import Heterogeneity, bias_of_correlation
from sfumato.people.estimate import Estimate
from sfumato.people.means import mean, preview_mean, total
from sfumato.people.overprotection import Overprotection, overprotection
from sfumato.people.partition import Partition, privacy_aware, round_down, utility_based
from sfumato.people.question import Question
from sfumato.people.reading import ArrayReader, DatasetReader, PairReader, Reader

__all__ = [
    "MECHANISMS",
    "ArrayReader",
    "DatasetReader",
    "Estimate",
    "Heterogeneity",
    "Option",
    "Overprotection",
    "PairReader",
    "Partition",
    "Question",
    "Reader",
    "answer",
    "bias_of_correlation",
    "choose_option",
    "count",
    "mean",
    "overprotection",
    "plan_option",
    "preview",
    "preview_count",
    "preview_mean",
    "preview_sum",
    "privacy_aware",
    "round_down",
    "total",
    "utility_based",
]
