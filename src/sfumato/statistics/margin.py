"""One margin of a released table: counts over some of its columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.bins import Bins

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
_TOTAL = "total"


@dataclass(frozen=True, eq=False)
class Margin:
    """Counts over some columns of a table.

    Attributes
    ----------
    bins : Bins
        The columns and their cells.
    counts : float array
        One axis per column.
    error : float
        Standard deviation of a cell, the same for all of them.
    centre : float array
        What the intervals are centred on, without the offset.
    reach : callable
        The half-width of an interval for a confidence.
    offset : float
        By how much the middle of an interval lies above the centre.
    """

    bins: Bins
    counts: Floats
    error: float
    centre: Floats = field(repr=False)
    reach: Callable[[float], float] = field(repr=False)
    offset: float = field(default=0.0, repr=False)

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends for every cell on its own, cut at 0; each holds with a probability of about `confidence`."""
        half = self.reach(confidence)
        middle = self.centre.reshape(self.counts.shape) + self.offset
        return np.maximum(middle - half, 0.0), np.maximum(middle + half, 0.0)

    def to_frame(self) -> pd.DataFrame:
        """One row per cell: its labels, the count and its 95% interval."""
        import pandas as pd

        low, high = self.interval()
        index = np.indices(self.bins.shape).reshape(len(self.bins.shape), -1)
        columns: dict[str, Any] = {
            axis.name: np.asarray(axis.labels, dtype=object)[where]
            for axis, where in zip(self.bins.axes, index, strict=True)
        }
        return pd.DataFrame({**columns, "count": self.counts.reshape(-1), "low": low.reshape(-1), "high": high.reshape(-1)})

    def table(self) -> pd.DataFrame:
        """A pivot with totals: the last column across, the others down."""
        import pandas as pd

        across = self.bins.axes[-1]
        down = self.bins.axes[:-1]
        flat = self.counts.reshape(-1, len(across.labels))
        labels = Bins(down).flat_labels() if down else [("count",)]
        body = np.column_stack([flat, flat.sum(axis=1)])
        if down:
            body = np.vstack([body, body.sum(axis=0)])
            labels = [*labels, (_TOTAL,) * len(down)]
        index = pd.Index([x[0] for x in labels], name=down[0].name if down else None)
        if len(down) > 1:
            index = pd.MultiIndex.from_tuples(labels, names=[a.name for a in down])
        return pd.DataFrame(body, index=index, columns=pd.Index([*across.labels, _TOTAL], name=across.name))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw it, on `ax` or a new figure: bars for one column, a map for two, small maps for more."""
        from sfumato.statistics.crosstab_plots import plot_margin

        return plot_margin(self, ax)
