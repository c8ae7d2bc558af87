"""The picture of a figure per group: dots with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.palette import BLUE, ORANGE, VERMILION, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.statistics.groups_result import Groups

_MOST_GROUPS = 30  # that can be named in one picture
_MOST_LETTERS = 32


def plot_groups(groups: Groups, ax: Axes | None = None) -> Axes:
    """Dots from top to bottom, each with its interval for any data and, if there is one, the narrower one on average."""
    values, size = groups.values.reshape(-1), groups.by.size
    shown = np.arange(size) if len(groups.by.axes) == 1 and groups.by.ordered else np.argsort(-values, kind="stable")
    left_out = max(0, size - _MOST_GROUPS)
    shown = shown[:_MOST_GROUPS]
    ax = axes(ax, (8, max(2.5, 1.2 + 0.22 * shown.size)))
    place = np.arange(shown.size)
    low, high = groups.low.reshape(-1)[shown], groups.high.reshape(-1)[shown]
    ax.hlines(place, low, high, color=ORANGE, lw=1.6, label="95% interval, for any data")
    if groups.average_low is not None and groups.average_high is not None:
        near, far = groups.average_low.reshape(-1)[shown], groups.average_high.reshape(-1)[shown]
        ax.hlines(place, near, far, color=BLUE, lw=3.2, alpha=0.45, label="95% on average over the groups")
    ax.plot(values[shown], place, "o", color=BLUE, ms=4.5, label=f"{groups.mechanism}, ε = {groups.guarantee.epsilon}")
    names = [_shortened(" / ".join(label)) for label in _labels(groups, shown)]
    ax.set_yticks(place, names, fontsize=7 if shown.size > 15 else 9)
    ax.set_ylim(shown.size - 0.4, -0.6)
    ax.set_xlabel(groups.subject + (f" ({groups.unit})" if groups.unit else ""))
    named, which = " x ".join(groups.by.names), "first" if groups.by.ordered and len(groups.by.axes) == 1 else "largest"
    ax.set_ylabel(f"{named} (the {shown.size} {which} of {size:,} groups)" if left_out else named)
    ax.grid(axis="x", color="0.9", lw=0.6)
    ax.set_axisbelow(True)
    ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    if not groups.guarantee.private:
        ax.set_title("NOT PRIVATE: experiment", color=VERMILION, pad=24)
    return ax


def _labels(groups: Groups, shown: np.ndarray[tuple[int], np.dtype[np.intp]]) -> list[tuple[str, ...]]:
    index = np.stack(np.unravel_index(shown, groups.by.shape), axis=1)
    return [tuple(a.labels[i] for a, i in zip(groups.by.axes, row, strict=True)) for row in index.tolist()]


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"
