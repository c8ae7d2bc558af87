"""Pictures of quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.palette import BLUE, GREY, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.statistics.quantiles import Quantiles

_MOST_GROUPS = 40


def plot_quantiles(made: Quantiles, ax: Axes | None = None) -> Axes:
    """The shares below against the values, or the values of every group."""
    ax = axes(ax)
    if made.by is None:
        rows, values, low, high = np.array(made.quantiles), made.values, made.low, made.high
        if rows.size > 1:
            ax.plot(values, rows, color=GREY, linewidth=1, drawstyle="steps-post")
        ax.set_ylabel("share of the records below")
        ax.set_ylim(-0.02, 1.02)
    else:
        shown = min(made.by.size, _MOST_GROUPS)
        groups = np.arange(shown)[::-1]
        each = len(made.quantiles)
        values, low, high = (part.reshape(-1, each)[:shown].reshape(-1) for part in (made.values, made.low, made.high))
        offsets = (np.arange(each) - (each - 1) / 2) * 0.5 / max(each, 2)
        rows = (groups[:, None] + offsets[None, :]).reshape(-1)
        labels = made.to_frame().iloc[:: len(made.quantiles), : len(made.by.axes)]
        ax.set_yticks(groups, [", ".join(map(str, row)) for row in labels.head(shown).itertuples(index=False)])
        if shown < made.by.size:
            ax.set_ylabel(f"first {shown} of {made.by.size:,} groups")
    ax.hlines(rows, low, high, color=BLUE, alpha=0.35, linewidth=4, label=f"{made.confidence:.0%} interval")
    ax.plot(values, rows, "o", color=BLUE, markersize=5, label=made.kind)
    ax.set_xlabel(made.heading or made.column)
    ax.legend(frameon=False, loc="best")
    return ax
