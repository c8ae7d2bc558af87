"""The picture of a list of the most frequent values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.palette import BLUE, VERMILION, axes
from sfumato.privacy.units import epsilon_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.statistics.top_result import TopValues


def plot_top(top: TopValues, ax: Axes | None = None) -> Axes:
    """Bars from the most frequent down, with their intervals; ranks alone where there are no counts."""
    ax = axes(ax, (8, 1.2 + 0.3 * top.places.size))
    place = np.arange(top.places.size)
    ax.set_yticks(place, [f"{i + 1}. {name}" for i, name in enumerate(top.value)], fontsize=8)
    ax.invert_yaxis()
    if top.counts is None:
        ax.barh(place, place.size - place, color=BLUE)
        ax.set_xticks([])
        ax.set_xlabel("rank (counts were not asked for)")
    else:
        low, high = top.interval()
        ax.barh(place, np.maximum(top.counts, 0.0), color=BLUE)
        middle, reach = (low + high) / 2, (high - low) / 2
        ax.errorbar(middle, place, xerr=reach, fmt="none", ecolor=VERMILION, capsize=2, label="95% interval")
        ax.set_xlabel("records")
        ax.legend(frameon=False)
    made = f"{top.mechanism}, ε = {epsilon_text(top.guarantee.nano)}"
    ax.set_title(made if top.guarantee.private else "NOT PRIVATE: experiment", fontsize=10)
    if not top.guarantee.private:
        ax.title.set_color(VERMILION)
    return ax
