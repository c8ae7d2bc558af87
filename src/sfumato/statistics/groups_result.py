"""A figure for every group: the cells of one or more public columns, each with its value, error and interval.

Everything here is post-processing of released figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.histograms.bins import Axis, Bins
from sfumato.privacy.guarantee import Guarantee
from sfumato.results import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
_ENDS = ("low", "high", "average_low", "average_high", "low_if_independent", "high_if_independent")
_ARRAYS = ("values", "errors", *_ENDS, "counts")


@dataclass(frozen=True)
class Total:
    """The figure of all groups together.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        Its 95% interval for any data.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Groups(Result):
    """A figure per group, with what is known of its error.

    Attributes
    ----------
    kind : str
        The question that was asked of every group: count, sum, mean, median, quantile...
    by : Bins
        The groups: all cells of public columns, whether anybody is in them or not.
    values : float array
        One figure per group, in the shape of `by`.
    errors : float array
        The root mean square error to be expected of each.
    low, high : float array
        A 95% interval for each group on its own, which holds for any data.
    guarantee : Guarantee
        What the release promises.
    mechanism : str
        What made it.
    column : str or None
        The column that was added up, averaged or cut; None for counts.
    average_low, average_high : float array or None
        Where groups lend each other strength: narrower intervals that hold for at least 95% of the groups *on average over
        the groups*, not for each of them.
    low_if_independent, high_if_independent : float array or None
        Where budgets differ: the intervals that hold if what people granted has nothing to do with their values.
    counts : float array or None
        Estimated rows per group, where the mechanism knows them.
    total : Total or None
        All groups together.
    unit : str
        What the figures are measured in, for pictures.
    parameters : mapping
        How it was made; public.
    expected_rmse : float or None
        Root mean square error of a group, as far as public facts decide it.
    warnings : tuple of str
        What a reader must know before using the figures.
    alarm : str or None
        What must be said before the figures.

    Examples
    --------
    >>> from sfumato.privacy import Meter
    >>> wards = Bins((Axis.categories("ward", ["A", "B"]),))
    >>> made = Groups("count", wards, [3, 5], [1, 1], [1, 3], [5, 7], Meter().guarantee(), "separate")
    >>> made["B"]
    5.0
    >>> made.interval("A")
    (1.0, 5.0)
    >>> Groups.from_dict(made.to_dict()).values.tolist()
    [3.0, 5.0]
    """

    kind: str
    by: Bins
    values: Floats
    errors: Floats = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    guarantee: Guarantee
    mechanism: str
    column: str | None = None
    average_low: Floats | None = field(default=None, repr=False)
    average_high: Floats | None = field(default=None, repr=False)
    low_if_independent: Floats | None = field(default=None, repr=False)
    high_if_independent: Floats | None = field(default=None, repr=False)
    counts: Floats | None = field(default=None, repr=False)
    total: Total | None = None
    unit: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    expected_rmse: float | None = None
    warnings: tuple[str, ...] = ()
    alarm: str | None = None

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, np.asarray(given, dtype=np.float64).reshape(self.by.shape))

    # --- one group -------------------------------------------------------------------------------------------------

    def __getitem__(self, labels: str | tuple[str, ...]) -> float:
        """The figure of the group with these labels, one per column of `by`."""
        return float(self.values[self._place(labels)])

    def interval(self, *labels: str) -> tuple[float, float]:
        """The 95% interval of the group with these `labels`, one per column of `by`, for any data."""
        place = self._place(labels)
        return float(self.low[place]), float(self.high[place])

    def _place(self, labels: str | tuple[str, ...]) -> tuple[int, ...]:
        given = (labels,) if isinstance(labels, str) else tuple(labels)
        if len(given) != len(self.by.axes):
            raise InputError(f"a group has a label for each of {', '.join(self.by.names)}; got {len(given)}")
        for label, axis in zip(given, self.by.axes, strict=True):
            if label not in axis.labels:
                raise InputError(f"{axis.name!r} has no group {label!r}; some of its groups: {', '.join(axis.labels[:8])}")
        return tuple(axis.labels.index(label) for label, axis in zip(given, self.by.axes, strict=True))

    # --- words -----------------------------------------------------------------------------------------------------

    @property
    def subject(self) -> str:
        """What a figure is: "mean of age" or "count"."""
        return self.kind if self.column is None else f"{self.kind} of {self.column}"

    def report_sections(self) -> Iterator[tuple[str, Any]]:
        """For the report: all groups together, and what the intervals promise."""
        if self.total is not None:
            t = self.total
            told = f"{self.words(t.value)}, 95% interval {self.words(t.low)} to {self.words(t.high)}"
            yield "All groups together", f"{self.subject.capitalize()}: {told}."
        each = "Low and high: a 95% interval for each group on its own, for any data."
        if self.average_low is not None:
            each += (
                " Average low and average high: narrower intervals from what groups have in common. Of all groups together "
                "at least 95% are expected to lie in theirs; an unusual group may well lie outside of its own."
            )
        if self.low_if_independent is not None:
            each += " Low and high if independent hold if what people granted has nothing to do with their values."
        yield "What the intervals mean", each

    # --- forms -----------------------------------------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """One row per group: its labels, the figure, its interval for any data, its error, and what else is known."""
        import pandas as pd

        columns: dict[str, Any] = {}
        index = np.indices(self.by.shape).reshape(len(self.by.shape), -1)
        for axis, where in zip(self.by.axes, index, strict=True):
            columns[axis.name] = np.asarray(axis.labels, dtype=object)[where]
        taken = set(columns)

        def put(name: str, figures: Floats | None) -> None:
            if figures is not None:
                columns[name if name not in taken else f"{name} of group"] = figures.reshape(-1)

        put(self.kind, self.values)
        put("low", self.low)
        put("high", self.high)
        put("error", self.errors)
        for name in _ENDS[2:]:
            put(name, getattr(self, name))
        put("rows", self.counts)
        return pd.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        return {
            **super().to_dict(),
            "kind": self.kind,
            "column": self.column,
            "by": [axis.to_dict() for axis in self.by.axes],
            **{name: None if a is None else a.tolist() for name, a in arrays.items()},
            "total": None if self.total is None else vars(self.total).copy(),
            "unit": self.unit,
            "mechanism": self.mechanism,
            "parameters": dict(self.parameters),
            "expected_rmse": self.expected_rmse,
            "warnings": list(self.warnings),
            "alarm": self.alarm,
            "guarantee": self.guarantee.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The result that `to_dict` wrote down as `data`."""
        plain = ("kind", "column", "unit", "mechanism", "expected_rmse", "alarm")
        return cls(
            by=Bins(tuple(Axis.from_dict(axis) for axis in data["by"])),
            guarantee=Guarantee.from_dict(data["guarantee"]),
            total=None if data["total"] is None else Total(**data["total"]),
            parameters=dict(data["parameters"]),
            warnings=tuple(data["warnings"]),
            **{name: data[name] for name in (*plain, *_ARRAYS)},
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the groups as dots with their intervals for any data, on `ax` or on a new figure.

        Groups of an ordered column stand in its order, others by their figure; of many the largest figures are shown.
        """
        from sfumato.statistics.groups_plot import plot_groups

        return plot_groups(self, ax)
