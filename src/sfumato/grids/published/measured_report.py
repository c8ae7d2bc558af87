"""What published marginals say about themselves in a report. Post-processing of what was paid for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.published.base import Section
from sfumato.grids.published.reporting import MOST_ROWS, Counts, in_table, largest_gaps, table_in_words
from sfumato.records.coding import cells_of, leaves_of
from sfumato.records.levels import Levels

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.grids.published.measured import MarginalsSynopsis

_MOST_LABELS = 3


def marginals_sections(synopsis: MarginalsSynopsis) -> Iterator[Section]:
    """What was counted and with which noise, the strongest links, and marginals beside those of the synthetic table."""
    yield "What was counted, in words", counted_in_words(synopsis)
    frame = synopsis.to_frame().round(2)
    more = f" (the first {MOST_ROWS} of {len(frame)})" if len(frame) > MOST_ROWS else ""
    yield f"What was counted{more}", frame.head(MOST_ROWS)
    links = link_table(synopsis)
    if len(links):
        more = f" (the strongest {MOST_ROWS} of {len(links)})" if len(links) > MOST_ROWS else ""
        yield f"Which columns go together{more}", links.head(MOST_ROWS)
    for words, width in (("One column", 1), ("Two columns", 2)):
        table = measured_marginals(synopsis, width)
        if len(table):
            yield f"{words} at a time: measured and synthetic{largest_gaps(table)}", table.head(MOST_ROWS)
    yield "The synthetic table", table_in_words(len(synopsis.synthetic), list(synopsis.synthetic.columns))


def counted_in_words(synopsis: MarginalsSynopsis) -> str:
    """How many tables were counted, how noisy they are, and what the model makes of them."""
    by_width = [sum(len(t.columns) == width for t in synopsis.tables) for width in (1, 2, 3)]
    kinds = ("of one column", "of two columns", "of three columns")
    said = ", ".join(f"{many} {kind}" for many, kind in zip(by_width, kinds, strict=True) if many)
    noise = [t.noise / synopsis.unit for t in synopsis.tables]
    cliques = max(len(clique) for clique in synopsis.model.cliques)
    return (
        f"Counted were {len(noise)} tables: {said}. Each count carries noise of standard deviation {min(noise):.3g} to "
        f"{max(noise):.3g} records. One distribution over all {len(synopsis.names)} columns was fitted to them; it holds "
        f"up to {cliques} columns together. Columns between which no counted table leads are independent in it: "
        "what they have in common was not measured."
    )


def links(synopsis: MarginalsSynopsis) -> dict[tuple[int, int], tuple[float, float]]:
    """Every two columns that were counted together: how far from independent they are in the model, and the noise.

    The first figure is the share of records that would have to move for the two to be independent, the second the standard
    deviation of the noise on one of their counts, in records.
    """
    noise: dict[tuple[int, int], float] = {}
    for table in synopsis.tables:
        for a, b in combinations(range(len(table.columns)), 2):
            pair = (table.columns[a], table.columns[b])
            merged = table.noisy.size / (table.noisy.shape[a] * table.noisy.shape[b])
            mine = table.noise * float(np.sqrt(merged)) / synopsis.unit
            noise[pair] = min(mine, noise.get(pair, mine))
    found = {}
    for pair, sigma in noise.items():
        joint = synopsis.model.marginal(pair)
        joint = joint / max(float(joint.sum()), 1e-300)
        apart = 0.5 * float(np.abs(joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum())
        found[pair] = (apart, sigma)
    return found


def link_table(synopsis: MarginalsSynopsis) -> pd.DataFrame:
    """The same as a table, the strongest first."""
    import pandas as pd

    rows = [
        {
            "columns": f"{synopsis.names[a]} and {synopsis.names[b]}",
            "records out of place if independent": f"{apart:.1%}",
            "noise on a count": round(sigma, 2),
        }
        for (a, b), (apart, sigma) in sorted(links(synopsis).items(), key=lambda item: -item[1][0])
    ]
    return pd.DataFrame(rows, columns=["columns", "records out of place if independent", "noise on a count"])


def measured_marginals(synopsis: MarginalsSynopsis, width: int) -> pd.DataFrame:
    """Marginals over one or two columns that are sums of released counts, beside the synthetic table's.

    Each is shown once, from the table with the least noise on it; what was not counted is not shown.
    """
    leaves = synthetic_leaves(synopsis)
    best: dict[tuple[int, ...], tuple[float, int, tuple[int, ...]]] = {}
    for number, table in enumerate(synopsis.tables):
        for axes in combinations(range(len(table.columns)), width):
            shown = int(np.prod([table.noisy.shape[i] for i in axes], dtype=np.int64))
            noise = table.noise * float(np.sqrt(table.noisy.size / shown))
            who = tuple(table.columns[i] for i in axes)
            best[who] = min((noise, number, axes), best.get(who, (np.inf, number, axes)))
    scale = synopsis.size / max(len(leaves), 1)
    rows: list[dict[str, Any]] = []
    for _, number, axes in best.values():
        table = synopsis.tables[number]
        counts = Counts(
            [synopsis.names[j] for j in table.columns],
            [group_labels(synopsis.columns[j], group) for j, group in zip(table.columns, table.groups, strict=True)],
            table.noisy / synopsis.unit,
            table.noise / synopsis.unit,
            [group[leaves[:, j]] for j, group in zip(table.columns, table.groups, strict=True)],
            scale,
        )
        rows.extend(counts.over(axes))
    return in_table(rows)


def synthetic_leaves(synopsis: MarginalsSynopsis) -> NDArray[np.int64]:
    """The synthetic table as leaves, the target last."""
    table = synopsis.synthetic
    found = [leaves_of(a, table[a.name]) for a in synopsis.attributes]
    return np.stack([*found, cells_of(synopsis.target_domain, table[synopsis.target])], axis=1)


def group_labels(levels: Levels, groups: NDArray[np.int64]) -> list[str]:
    """What the groups of a column are called: by the values in them, a long run by its first and last.

    >>> place = Levels.flat("place", ["a", "b", "c", "d", "e", "f"])
    >>> group_labels(place, np.array([0, 1, 1, 2, 2, 2]))
    ['a', 'b, c', 'd, e, f']
    >>> group_labels(place, np.array([0, 1, 1, 1, 1, 0])), group_labels(place, np.array([0, 1, 0, 0, 1, 0]))
    (['a, f', 'b to e'], ['a, c, d and 1 more', 'b, e'])
    """
    names = levels.labels[-1]
    found = []
    for g in range(int(groups.max()) + 1):
        mine = np.flatnonzero(groups == g)
        labels = [names[i] for i in mine]
        if len(labels) > _MOST_LABELS and mine[-1] - mine[0] == mine.size - 1:
            found.append(f"{labels[0]} to {labels[-1]}")
        else:
            more = f" and {len(labels) - _MOST_LABELS} more" if len(labels) > _MOST_LABELS else ""
            found.append(", ".join(labels[:_MOST_LABELS]) + more)
    return found
