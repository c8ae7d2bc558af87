"""What the report of a general table says, and its picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.published.base import Section
from sfumato.grids.published.plots import PALETTE, new_axes
from sfumato.grids.published.reporting import MOST_ROWS, Counts, in_table, largest_gaps, table_in_words
from sfumato.records.coding import cells_of, leaves_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from sfumato.grids.published.joint import Joint, Measured

_MOST_LABEL = 40


def joint_sections(joint: Joint) -> Iterator[Section]:
    """What was measured, in words and as a table, and measured counts beside those of the synthetic table."""
    names = [c.name for c in joint.columns]
    ties = [" and ".join(names[j] for j in m.columns) for m in joint.tables]
    yield (
        "The marginals in words",
        f"Every column was counted by itself. Together were counted: {'; '.join(ties) or 'none'}. One distribution was "
        "fitted to all of it; what columns have in common beyond the counted tables is what these imply.",
    )
    yield "What was counted", joint.to_frame().round(1).head(2 * MOST_ROWS)
    links = link_table(joint)
    if len(links):
        yield "Which of them go together", links.head(2 * MOST_ROWS)
    for words, tables in (("One column", joint.ones), ("Columns together", joint.tables)):
        table = measured_beside_synthetic(joint, tables)
        if len(table):
            yield f"{words} at a time: measured and synthetic{largest_gaps(table)}", table.head(MOST_ROWS)
    yield "The synthetic table", table_in_words(len(joint.synthetic), list(joint.synthetic.columns))


def link_table(joint: Joint) -> pd.DataFrame:
    """Every two columns that were counted together, the strongest first: how far from independent the distribution has them.

    The figure is the share of records that would have to move for the two to be independent.
    """
    import pandas as pd

    pairs = {pair for m in joint.tables for pair in combinations(m.columns, 2)}
    found = []
    for a, b in sorted(pairs):
        both = joint.fitted.marginal((a, b)) / joint.fitted.total
        apart = 0.5 * float(np.abs(both - np.outer(both.sum(axis=1), both.sum(axis=0))).sum())
        found.append((-apart, f"{joint.columns[a].name} and {joint.columns[b].name}"))
    rows = [(names, f"{-apart:.1%}") for apart, names in sorted(found)]
    return pd.DataFrame(rows, columns=["columns", "records out of place if independent"])


def measured_beside_synthetic(joint: Joint, tables: Sequence[Measured]) -> pd.DataFrame:
    """Counts as they were released beside those of the synthetic table."""
    table = joint.synthetic
    leaves = [*(leaves_of(a, table[a.name]) for a in joint.attributes), cells_of(joint.target_domain, table[joint.target])]
    scale = joint.size / joint.unit / max(len(table), 1)
    rows: list[dict[str, Any]] = []
    for m in tables:
        counts = Counts(
            [joint.columns[j].name for j in m.columns],
            [group_labels(joint.columns[j].labels[-1], g) for j, g in zip(m.columns, m.groups, strict=True)],
            m.noisy / joint.unit,
            m.sigma / joint.unit,
            [g[leaves[j]] for j, g in zip(m.columns, m.groups, strict=True)],
            scale,
        )
        rows.extend(counts.over(tuple(range(len(m.columns)))))
    return in_table(rows)


def group_labels(leaves: Sequence[str], groups: NDArray[np.int64]) -> list[str]:
    """A name for every group: its leaves, shortened.

    >>> group_labels(["oslo", "bern", "nice"], np.array([0, 1, 1]))
    ['oslo', 'bern, nice']
    """
    found = []
    for g in range(int(groups.max()) + 1):
        text = ", ".join(leaves[i] for i in np.flatnonzero(groups == g)[:_MOST_LABEL])
        found.append(text if len(text) <= _MOST_LABEL else f"{text[: _MOST_LABEL - 1]}…")
    return found


def plot_joint(joint: Joint, ax: Axes | None = None) -> Axes:
    """Columns in a circle; a line for every pair that was counted, three lines for a triple; thicker with less noise."""
    ax = new_axes(ax)
    count = len(joint.columns)
    angle = 2 * np.pi * np.arange(count) / count
    x, y = np.cos(angle), np.sin(angle)
    least = min((m.sigma for m in joint.tables), default=1.0)
    for m in joint.tables:
        colour = PALETTE[0] if len(m.columns) == 2 else PALETTE[1]
        for a, b in combinations(m.columns, 2):
            ax.plot([x[a], x[b]], [y[a], y[b]], color=colour, linewidth=0.5 + 2.5 * np.sqrt(least / m.sigma), zorder=1)
    ax.scatter(x, y, color=PALETTE[2], zorder=3)
    for j, c in enumerate(joint.columns):
        side = "left" if x[j] >= 0 else "right"
        ax.text(1.05 * x[j], 1.05 * y[j], c.name, ha=side, va="center", fontsize=8)
    ax.set_xlim(-1.7, 1.7)
    ax.set_ylim(-1.25, 1.25)
    ax.set_aspect("equal")
    ax.axis("off")
    ax.set_title("columns that were counted together (orange: three at a time)", fontsize=9)
    return ax
