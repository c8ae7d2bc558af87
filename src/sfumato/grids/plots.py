"""Pictures: a published grid, and the taxonomies it was chosen from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.grids.from_schema import Attribute, attribute_of
from sfumato.tables.schema import Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.grids.network import Network
    from sfumato.grids.synopsis import Synopsis

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")  # Okabe-Ito
_MOST_BARS = 40


def plot_synopsis(synopsis: Synopsis, ax: Axes | None = None) -> Axes:
    """The largest cells, one bar each, coloured by class; whiskers show the noise on a cell's total."""
    ax = _axes(ax)
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


def plot_schema(schema: Schema, columns: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """The taxonomies of a schema: one band per column, one row per level, one box per node."""
    ax = _axes(ax)
    attributes = [attribute_of(name, schema[name]) for name in (columns or schema.names)]
    y = 0.0
    ticks, names = [], []
    for attribute in attributes:
        ticks.append(y + (attribute.levels.height - 1) / 2)
        names.append(attribute.name)
        for level in range(attribute.levels.height):
            _draw_level(ax, attribute, level, y + level)
        y += attribute.levels.height + 0.7
    ax.set_yticks(ticks, names)
    ax.set_ylim(y, -0.7)
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of the leaves")
    ax.set_title("levels of each column, coarsest on top", fontsize=9)
    return ax


def _draw_level(ax: Any, attribute: Attribute, level: int, y: float) -> None:
    levels = attribute.levels
    edges = np.append(levels.starts[level], levels.leaves) / levels.leaves
    ax.barh(
        np.full(edges.size - 1, y),
        np.diff(edges),
        left=edges[:-1],
        height=0.85,
        color=[(PALETTE[4], "#BFE0F5")[i % 2] for i in range(edges.size - 1)],
        edgecolor="white",
    )
    if edges.size <= 9:
        for left, right, label in zip(edges[:-1], edges[1:], levels.labels[level], strict=True):
            ax.text((left + right) / 2, y, label[: int(100 * (right - left))], ha="center", va="center", fontsize=6)


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(9, 6), layout="constrained")[1]


def plot_network(network: Network, ax: Axes | None = None) -> Axes:
    """Columns on a line in the order they joined; arcs go from parents to children."""
    ax = _axes(ax)
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
