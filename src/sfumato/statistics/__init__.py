"""The questions of every day: quantiles, groups, cross tables, the most frequent values, variances and proportions."""

from sfumato.statistics.crosstab_result import CrossTable
from sfumato.statistics.margin import Margin
from sfumato.statistics.top_result import TopValues

__all__ = ["CrossTable", "Margin", "TopValues"]
