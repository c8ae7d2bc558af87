"""A picture of a schema: the levels of every column. Public facts only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.domains import Domain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.tables.schema import Schema

_SHADES = ("#56B4E9", "#BFE0F5")
_MOST_NAMED = 8  # boxes of one level that have room for their names


def plot_schema(schema: Schema, columns: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """The taxonomies of a schema: one band per column, one row per level, one box per node."""
    names = list(schema.names if columns is None else columns)
    bands = [level_boxes(schema[name]) for name in names]
    if ax is None:
        import matplotlib.pyplot as plt

        height = min(24.0, max(3.0, 0.22 * sum(len(b) + 1 for b in bands)))
        ax = plt.subplots(figsize=(9, height), layout="constrained")[1]
    y, ticks = 0.0, []
    for band in bands:
        ticks.append(y + (len(band) - 1) / 2)
        for level, (edges, labels) in enumerate(band):
            _draw_level(ax, edges, labels, y + level)
        y += len(band) + 0.7
    ax.set_yticks(ticks, names)
    ax.set_ylim(y, -0.7)
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of the cells")
    ax.set_title("levels of each column, coarsest on top", fontsize=9)
    return ax


def level_boxes(domain: Domain) -> list[tuple[NDArray[np.float64], list[str]]]:
    """Per level that divides further than the one above: the edges of its boxes between 0 and 1, and their names.

    >>> from sfumato.tables.domains import Categorical
    >>> level_boxes(Categorical(["a", "b", "c", "d"], taxonomy={"x": ["b", "d", "a"], "y": ["c"]}))[1]
    (array([0.  , 0.75, 1.  ]), ['x', 'y'])
    """
    partitions, groups = domain.levels()
    order = np.argsort(partitions[-1], kind="stable")
    boxes: list[tuple[NDArray[np.float64], list[str]]] = []
    for codes, names in zip(partitions, groups, strict=True):
        run = codes[order]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(run)) + 1])
        if boxes and starts.size == len(boxes[-1][1]):
            continue
        boxes.append((np.append(starts, run.size) / run.size, [names[int(code)] for code in run[starts]]))
    return boxes


def _draw_level(ax: Axes, edges: NDArray[np.float64], labels: Sequence[str], y: float) -> None:
    shades = [_SHADES[i % 2] for i in range(len(labels))]
    ax.barh(
        np.full(len(labels), y), np.diff(edges), left=edges[:-1], height=0.85, color=shades, edgecolor="white", linewidth=0.5
    )
    if len(labels) <= _MOST_NAMED:
        for left, right, label in zip(edges[:-1], edges[1:], labels, strict=True):
            ax.text((left + right) / 2, y, label[: int(100 * (right - left))], ha="center", va="center", fontsize=6)
