"""The questions of every day: quantiles, groups, cross tables, the most frequent values, variances and proportions."""

from sfumato.statistics.quantiles import Quantiles

__all__ = ["Quantiles"]
