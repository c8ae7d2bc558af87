"""Pictures of a released histogram. Everything drawn has been released already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.palette import BLUE, VERMILION, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.histograms.result import Histogram

_MOST_BARS = 60
_MOST_LABELS = 24  # beyond it only every few bins are named
_MOST_WRITTEN = 12  # rows and columns of a map whose counts are written into it


def plot_histogram(histogram: Histogram, ax: Axes | None = None) -> Axes:
    """Bars or a line over one column, a map over two, bars named by all their columns over more."""
    if len(histogram.bins.axes) == 2 and min(histogram.bins.shape) > 1:
        ax = _map(histogram, axes(ax, (8, 5)))
    else:
        ax = _bars(histogram, axes(ax, (8, 3.5)))
    if not histogram.guarantee.private:
        ax.set_title("NOT PRIVATE: experiment", color=VERMILION)
    return ax


def _bars(h: Histogram, ax: Axes) -> Axes:
    place = np.arange(h.bins.size)
    made = f"{h.mechanism}, ε = {h.guarantee.epsilon}"
    low, high, words = h.shown_interval()
    if h.bins.size <= _MOST_BARS:
        ax.bar(place, h.flat, color=BLUE, width=0.8, label=made)
        middle, reach = (low + high) / 2, (high - low) / 2  # an interval need not be centred on the count
        ax.errorbar(place, middle, yerr=reach, fmt="none", ecolor=VERMILION, capsize=2, label=words)
    else:
        ax.fill_between(place, low, high, color=VERMILION, alpha=0.3, step="mid", label=words)
        ax.step(place, h.flat, where="mid", color=BLUE, lw=1, label=made)
    shown = place[:: -(-h.bins.size // _MOST_LABELS)]
    names = h.bins.flat_labels()
    ax.set_xticks(shown, [" / ".join(names[i]) for i in shown.tolist()], rotation=60, ha="right", fontsize=8)
    ax.axhline(0, color="0.4", lw=0.6)
    ax.set_xlabel(" x ".join(a.heading for a in h.bins.axes))
    ax.set_ylabel("records")
    ax.legend(frameon=False)
    return ax


def _map(h: Histogram, ax: Axes) -> Axes:
    rows, columns = h.bins.axes
    image = ax.imshow(h.counts, cmap="cividis", aspect="auto")  # read alike with and without colour vision
    for labels, put in ((rows.labels, ax.set_yticks), (columns.labels, ax.set_xticks)):
        shown = np.arange(len(labels))[:: -(-len(labels) // _MOST_LABELS)]
        put(shown, [labels[i] for i in shown.tolist()], fontsize=8)
    ax.tick_params(axis="x", labelrotation=60)
    if max(h.bins.shape) <= _MOST_WRITTEN:
        middle = float(np.nanmean([h.counts.min(), h.counts.max()]))
        for (i, j), count in np.ndenumerate(h.counts):
            ax.text(
                j, i, f"{count:,.0f}", ha="center", va="center", fontsize=7, color="white" if count < middle else "black"
            )
    ax.set_ylabel(rows.heading)
    ax.set_xlabel(columns.heading)
    noise = float(np.sqrt(np.mean(h.noise**2)))
    ax.figure.colorbar(image, ax=ax, label=f"records (±{2 * noise:,.3g}: two sd of noise)")
    ax.set_title(f"{h.mechanism}, ε = {h.guarantee.epsilon}", fontsize=10)
    return ax
