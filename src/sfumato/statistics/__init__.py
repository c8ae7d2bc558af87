"""The questions of every day: quantiles, groups, cross tables, the most frequent values, variances and proportions."""

from sfumato.statistics.crosstab_result import CrossTable
from sfumato.statistics.figure import Figure
from sfumato.statistics.groups_result import Groups
from sfumato.statistics.margin import Margin
from sfumato.statistics.quantiles import Quantiles
from sfumato.statistics.top_result import TopValues

__all__ = ["CrossTable", "Figure", "Groups", "Margin", "Quantiles", "TopValues"]
