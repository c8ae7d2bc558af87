"""Colours that people with any colour vision tell apart (Okabe & Ito), and the axes every picture starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, VERMILION, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, YELLOW, BLACK, GREY = "#E69F00", "#56B4E9", "#F0E442", "#000000", "#7F7F7F"
CYCLE = (BLUE, ORANGE, GREEN, VERMILION, PINK, SKY, YELLOW, BLACK, GREY)


def axes(ax: Axes | None = None, size: tuple[float, float] = (7.0, 4.0)) -> Axes:
    """The given axes, or a new figure's."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]
