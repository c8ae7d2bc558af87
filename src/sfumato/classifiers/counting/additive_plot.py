"""Pictures of an additive model: what each column says, in log-odds. Everything drawn has been released already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import InputError
from sfumato.palette import BLACK, BLUE, GREEN, ORANGE, PINK, SKY, VERMILION

if TYPE_CHECKING:
    from sfumato.classifiers.counting.additive import PrivateAdditive

COLOURS = (BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, BLACK)


def used_columns(model: PrivateAdditive) -> list[str]:
    """Columns of the terms, the one that moves the scores most first."""
    names = [t.name for t in model._coding.taxonomies]
    used = sorted({j for term in model.terms_ for j, _ in term.grid})
    return sorted((names[j] for j in used), key=lambda name: -float(np.ptp(model.shape(name)[-1])))


def plot_column(model: PrivateAdditive, column: str | None = None, ax: Any = None) -> Any:
    """One shape function: scores per value; with two classes the log-odds of the second."""
    import matplotlib.pyplot as plt

    used = used_columns(model)
    if column is None:
        if not used:
            raise InputError("this model uses no column at all: it predicts the most frequent class")
        column = used[0]
    if ax is None:
        _, ax = plt.subplots(figsize=(5, 3), layout="constrained")
    shape = model.shape(column)
    taxonomy = next(t for t in model._coding.taxonomies if t.name == column)
    lines = [(shape[1] - shape[0], None)] if len(shape) == 2 else list(zip(shape, model.class_names(), strict=True))
    for number, (values, label) in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        if taxonomy.edges is not None:
            ax.stairs(values, taxonomy.edges, color=colour, label=label, linewidth=1.6, baseline=None)
        else:
            place = np.arange(taxonomy.leaves) + 0.8 * (number / len(lines))
            ax.barh(place, values, height=0.8 / len(lines), color=colour, label=label)
    if taxonomy.edges is None:
        ax.set_yticks(np.arange(taxonomy.leaves), taxonomy.labels[-1], fontsize=7)
        ax.set_xlabel(_axis_label(model))
        ax.axvline(0, color="0.6", linewidth=0.8)
    else:
        ax.set_ylabel(_axis_label(model))
        ax.axhline(0, color="0.6", linewidth=0.8)
    ax.set_title(column, fontsize=9)
    if len(lines) > 1:
        ax.legend(fontsize=7)
    return ax


def plot_columns(model: PrivateAdditive, *, most: int = 6) -> Any:
    """Small pictures of the columns that matter most; returns their axes."""
    import matplotlib.pyplot as plt

    used = used_columns(model)[:most]
    if not used:
        raise InputError("this model uses no column at all: it predicts the most frequent class")
    wide = min(3, len(used))
    tall = -(-len(used) // wide)
    _, axes = plt.subplots(tall, wide, figsize=(3.6 * wide, 2.8 * tall), layout="constrained", squeeze=False)
    for ax, name in zip(axes.flat, used, strict=False):
        plot_column(model, name, ax)
    for ax in list(axes.flat)[len(used) :]:
        ax.set_visible(False)
    return axes


def _axis_label(model: PrivateAdditive) -> str:
    return f"log-odds of {model.class_names()[1]}" if model.classes_.size == 2 else "score"
