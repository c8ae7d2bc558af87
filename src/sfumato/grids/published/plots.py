"""Pictures: a published grid, and the taxonomies it was chosen from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.palette import BLUE, GREEN, GREY, ORANGE, PINK, SKY, VERMILION, YELLOW
from sfumato.tables.plots import plot_schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.grids.published.network import Network
    from sfumato.grids.published.synopsis import Synopsis

__all__ = ["PALETTE", "plot_network", "plot_schema", "plot_synopsis"]

PALETTE = (BLUE, ORANGE, GREEN, PINK, SKY, VERMILION, YELLOW, GREY)
_MOST_BARS = 40


def plot_synopsis(synopsis: Synopsis, ax: Axes | None = None) -> Axes:
    """The largest cells, one bar each, coloured by class; whiskers show the noise on a cell's total."""
    ax = new_axes(ax)
    counts = synopsis.counts
    order = np.argsort(-counts.sum(axis=0), kind="stable")[:_MOST_BARS]
    left = np.zeros(order.size)
    for number, (label, row) in enumerate(zip(synopsis.class_labels, counts, strict=True)):
        ax.barh(np.arange(order.size), row[order], left=left, color=PALETTE[number % len(PALETTE)], label=str(label))
        left += row[order]
    noise = synopsis.expected_rmse * np.sqrt(len(counts))
    ax.errorbar(left, np.arange(order.size), xerr=noise, fmt="none", ecolor="#333333", elinewidth=1, label="noise (one σ)")
    digits = np.stack(np.unravel_index(order, synopsis.shape), axis=1) if synopsis.cuts else np.zeros((1, 0), int)
    names = [" · ".join(cut.labels[d] for cut, d in zip(synopsis.cuts, row, strict=True)) or "all records" for row in digits]
    ax.set_yticks(np.arange(order.size), names, fontsize=7)
    ax.invert_yaxis()
    ax.set_xlabel("estimated number of records")
    shown = f", the largest {order.size} of {counts.shape[1]} cells" if order.size < counts.shape[1] else ""
    ax.set_title(f"{synopsis.target} by {synopsis.grid}{shown}", fontsize=9)
    ax.legend(fontsize=8)
    return ax


def new_axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(9, 6), layout="constrained")[1]


def plot_network(network: Network, ax: Axes | None = None) -> Axes:
    """Columns on a line in the order they joined; arcs go from parents to children."""
    ax = new_axes(ax)
    order = [x for x, _ in network.links]
    place = {x: i for i, x in enumerate(order)}
    for x, parents in network.links:
        for j, _ in parents:
            a, b = place[j], place[x]
            t = np.linspace(0, np.pi, 30)
            ax.plot((a + b) / 2 - np.cos(t) * (b - a) / 2, np.sin(t) * abs(b - a) / 2, color=PALETTE[0], linewidth=1)
    ax.scatter(range(len(order)), np.zeros(len(order)), color=PALETTE[1], zorder=3)
    ax.set_xticks(range(len(order)), [network.columns[x].name for x in order], rotation=60, ha="right", fontsize=7)
    ax.set_yticks([])
    ax.set_xlabel("columns in the order they joined the network")
    ax.set_title("parents (left end of an arc) and children", fontsize=9)
    return ax
