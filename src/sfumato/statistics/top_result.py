"""A released list of the most frequent values. Everything here is post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.histograms.bins import Axis, Bins
from sfumato.people.error_law import LaplacePlusNormal, check_confidence
from sfumato.privacy import Guarantee
from sfumato.results import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TopValues(Result):
    """The most frequent values, the first the most frequent by what was released.

    Attributes
    ----------
    bins : Bins
        All values that were to choose from.
    places : int64 array
        Which of them are listed, in order.
    guarantee : Guarantee
        What the release promises.
    mechanism : str
    shortfalls : mapping of str to float
        By confidence: no listed value is rarer than the k-th most frequent by more rows than that. For any data, unless the
        warnings say otherwise.
    counts : float array or None
        How often each listed value occurs, from noise of its own: the choice does not bias it.
    scale : float
        Scale of that noise; 0 where `low` and `high` say the interval.
    low, high : float array or None
        95% intervals of the counts, where people have budgets of their own.
    parameters : mapping
        How it was made; public.
    expected_rmse : float or None
        Root mean square, at most, of the rows by which a listed value is rarer than the k-th.
    warnings : tuple of str
    """

    bins: Bins
    places: NDArray[np.int64]
    guarantee: Guarantee
    mechanism: str
    shortfalls: Mapping[str, float] = field(repr=False)
    counts: Floats | None = None
    scale: float = 0.0
    low: Floats | None = field(default=None, repr=False)
    high: Floats | None = field(default=None, repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    expected_rmse: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def value(self) -> list[str]:
        """The labels in order; of several columns joined by a slash."""
        return [" / ".join(label) for label in self.labels]

    @property
    def labels(self) -> list[tuple[str, ...]]:
        """One label per column for every listed value."""
        index = np.stack(np.unravel_index(self.places, self.bins.shape), axis=1)
        return [tuple(a.labels[i] for a, i in zip(self.bins.axes, row, strict=True)) for row in index.tolist()]

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends of the counts, each of which holds with a probability of at least `confidence`."""
        if self.counts is None:
            raise InputError("this list was made without counts; ask for counts = true, which takes half of its budget")
        if self.low is not None and self.high is not None:
            if confidence != 0.95:
                raise InputError(f"with personal budgets the counts have 95% intervals, not {confidence:g}")
            return self.low, self.high
        half = LaplacePlusNormal((self.scale,)).halfwidth(check_confidence(confidence)) + 0.5
        return np.maximum(self.counts - half, 0.0), np.maximum(self.counts + half, 0.0)

    def to_frame(self) -> pd.DataFrame:
        """One row per listed value: its rank, its labels and, if asked, the count with its 95% interval."""
        import pandas as pd

        columns: dict[str, Any] = {"rank": np.arange(1, self.places.size + 1)}
        for name, labels in zip(self.bins.names, zip(*self.labels, strict=True), strict=True):
            columns[name] = list(labels)
        if self.counts is not None:
            low, high = self.interval()
            columns |= {"count": self.counts, "low": low, "high": high}
        return pd.DataFrame(columns)

    def report_sections(self) -> list[tuple[str, Any]]:
        """How good the list is."""
        k = self.places.size
        told = [
            f"with a probability of {float(c):.0%} no listed value is rarer than the {_ordinal(k)} most frequent by "
            f"more than {rows:,.0f} rows"
            for c, rows in self.shortfalls.items()
        ]
        return [("How good the list is", "; ".join(told).capitalize() + ".")] if told else []

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, from which `from_dict` makes the same list."""
        arrays = {name: getattr(self, name) for name in ("counts", "low", "high")}
        return {
            **super().to_dict(),
            "kind": "top",
            "mechanism": self.mechanism,
            "parameters": dict(self.parameters),
            "columns": [a.to_dict() for a in self.bins.axes],
            "places": self.places.tolist(),
            "values": self.value,
            "shortfalls": dict(self.shortfalls),
            **{name: None if array is None else array.tolist() for name, array in arrays.items()},
            "scale": self.scale,
            "expected_rmse": self.expected_rmse,
            "warnings": list(self.warnings),
            "guarantee": self.guarantee.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The list that `to_dict` wrote down as `data`."""
        arrays = {n: None if data[n] is None else np.array(data[n], dtype=np.float64) for n in ("counts", "low", "high")}
        return cls(
            bins=Bins(tuple(Axis.from_dict(a) for a in data["columns"])),
            places=np.array(data["places"], dtype=np.int64),
            guarantee=Guarantee.from_dict(data["guarantee"]),
            mechanism=data["mechanism"],
            shortfalls=dict(data["shortfalls"]),
            **arrays,
            scale=data["scale"],
            parameters=dict(data["parameters"]),
            expected_rmse=data["expected_rmse"],
            warnings=tuple(data["warnings"]),
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw it, on `ax` or a new figure: bars with intervals, or the ranks alone where there are no counts."""
        from sfumato.statistics.top_plots import plot_top

        return plot_top(self, ax)


def _ordinal(number: int) -> str:
    """
    >>> [_ordinal(n) for n in (1, 2, 3, 4, 11, 21)]
    ['1st', '2nd', '3rd', '4th', '11th', '21st']
    """
    last = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{last}"
