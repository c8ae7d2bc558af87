"""The questions of every day: quantiles, groups, cross tables, the most frequent values, variances and proportions."""

from sfumato.statistics.figure import Figure
from sfumato.statistics.groups_result import Groups

__all__ = ["Figure", "Groups"]
