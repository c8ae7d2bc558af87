"""Pictures of a released table: bars, a labelled map, or small maps side by side. Everything drawn has been released."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.histograms.bins import Bins
from sfumato.palette import BLUE, VERMILION, axes
from sfumato.privacy.units import epsilon_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from sfumato.statistics.crosstab_result import CrossTable
    from sfumato.statistics.margin import Margin

_MOST_LABELS = 24  # beyond it only every few cells are named
_MOST_WRITTEN = 16  # rows and columns of a map whose counts are written into it
_MOST_MAPS = 12  # small maps in one picture


def plot_table(table: CrossTable, ax: Axes | None = None) -> Axes:
    """The whole table, or the first of its largest margins, with what made it as the title."""
    names = tuple(table.columns[i] for i in next(iter(table.counts)))
    ax = plot_margin(table.margin(*names), ax)
    made = f"{table.mechanism}, ε = {epsilon_text(table.guarantee.nano)}"
    ax.set_title(made if table.guarantee.private else "NOT PRIVATE: experiment", fontsize=10)
    if not table.guarantee.private:
        ax.title.set_color(VERMILION)
    return ax


def plot_margin(margin: Margin, ax: Axes | None = None) -> Axes:
    """Bars over one column, a map over two, one map for each cell of the first columns over more."""
    if len(margin.bins.axes) == 1:
        return _bars(margin, axes(ax, (8, 3.5)))
    ax = axes(ax, (9, 5))
    if len(margin.bins.axes) == 2:
        _map(ax, margin.counts, margin.bins, None)
        _scale(ax, ax, margin)
        return ax
    return _maps(margin, ax)


def _bars(margin: Margin, ax: Axes) -> Axes:
    labels = margin.bins.axes[0].labels
    place = np.arange(len(labels))
    low, high = margin.interval()
    ax.bar(place, margin.counts, color=BLUE, width=0.8)
    middle, reach = (low + high) / 2, (high - low) / 2
    ax.errorbar(place, middle, yerr=reach, fmt="none", ecolor=VERMILION, capsize=2, label="95% interval")
    shown = place[:: -(-len(labels) // _MOST_LABELS)]
    ax.set_xticks(shown, [labels[i] for i in shown.tolist()], rotation=60, ha="right", fontsize=8)
    ax.set_xlabel(margin.bins.axes[0].heading)
    ax.set_ylabel("records")
    ax.legend(frameon=False)
    return ax


def _map(ax: Axes, counts: NDArray[np.float64], bins: Bins, limits: tuple[float, float] | None) -> None:
    """One map: the first column down, the second across, counts written in where there are few."""
    rows, columns = bins.axes[-2:]
    low, high = limits or (float(counts.min()), float(counts.max()))
    ax.imshow(counts, cmap="cividis", aspect="auto", vmin=low, vmax=high)  # read alike with and without colour vision
    for labels, put in ((rows.labels, ax.set_yticks), (columns.labels, ax.set_xticks)):
        shown = np.arange(len(labels))[:: -(-len(labels) // _MOST_LABELS)]
        put(shown, [labels[i] for i in shown.tolist()], fontsize=8)
    ax.tick_params(axis="x", labelrotation=60)
    ax.set_ylabel(rows.heading)
    ax.set_xlabel(columns.heading)
    if max(counts.shape) <= _MOST_WRITTEN:
        for (i, j), count in np.ndenumerate(counts):
            dark = count < (low + high) / 2
            ax.text(j, i, f"{count:,.0f}", ha="center", va="center", fontsize=7, color="white" if dark else "black")


def _scale(ax: Axes, beside: Axes, margin: Margin) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    colours = ScalarMappable(Normalize(float(margin.counts.min()), float(margin.counts.max())), cmap="cividis")
    ax.figure.colorbar(colours, ax=beside, label=f"records (±{2 * margin.error:,.3g}: two sd of a cell)")


def _maps(margin: Margin, ax: Axes) -> Axes:
    """One small map for every cell of the first columns, all on one scale of colours."""
    first = Bins(margin.bins.axes[:-2]).flat_labels()
    tables = margin.counts.reshape(-1, *margin.counts.shape[-2:])
    shown = min(len(first), _MOST_MAPS)
    across = min(shown, 4)
    down = -(-shown // across)
    limits = float(margin.counts.min()), float(margin.counts.max())
    ax.set_axis_off()
    for i in range(shown):
        column, row = i % across, i // across
        small = ax.inset_axes(((column + 0.2) / across, 1 - (row + 0.8) / down, 0.75 / across, 0.6 / down))
        _map(small, tables[i], margin.bins, limits)
        small.set_title(" / ".join(first[i]), fontsize=8)
        small.set_xlabel(small.get_xlabel() if row == down - 1 else "", fontsize=8)
        small.set_ylabel(small.get_ylabel() if column == 0 else "", fontsize=8)
        if column:  # the rows are those of the first map; their names would run into it
            small.set_yticks([])
        small.tick_params(labelsize=6)
        for text in small.texts:
            text.set_fontsize(5)
    _scale(ax, ax, margin)
    if len(first) > shown:
        ax.text(1.0, -0.03, f"{len(first) - shown:,} more in the figures", transform=ax.transAxes, ha="right", fontsize=8)
    return ax
