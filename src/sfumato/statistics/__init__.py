"""The questions of every day: quantiles, groups, cross tables, the most frequent values, variances and proportions."""

from sfumato.statistics.figure import Figure
from sfumato.statistics.groups_result import Groups
from sfumato.statistics.quantiles import Quantiles

__all__ = ["Figure", "Groups", "Quantiles"]
