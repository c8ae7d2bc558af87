"""The questions of every day: quantiles, groups, cross tables, the most frequent values, variances and proportions."""

__all__: list[str] = []
