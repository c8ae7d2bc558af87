"""Totals that add up: noisy figures of groups, of groups of groups and of all, made consistent by least squares.

The columns of a group-by are levels: all, by the first column, by the first two and so on. Each level is measured with a
part of the budget. Every figure is an unbiased guess of the sum of those below it; the weighted least-squares solution that
adds up exactly is found in two passes (Hay, Rastogi, Miklau & Suciu 2010), because nodes of one level have one variance and
equally many children. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def added_up(levels: Sequence[Floats], variances: Sequence[float]) -> list[Floats]:
    """Figures of all levels, from one number to all cells, that add up; each level has a line per node and one variance.

    A variance of 0 is a public figure.

    >>> total, cells = added_up([np.array([[12.0]]), np.array([[4.0], [6.0]])], [0.0, 2.0])
    >>> total.tolist(), cells.tolist()
    ([[12.0]], [[5.0], [7.0]])
    """
    best, spread = [np.asarray(levels[-1], dtype=np.float64)], [variances[-1]]
    for level, variance in zip(reversed(levels[:-1]), reversed(variances[:-1]), strict=True):
        below, count = best[0], len(best[0]) // len(level)
        sums, of_sums = below.reshape(len(level), count, -1).sum(axis=1), count * spread[0]
        trust = of_sums / (of_sums + variance)
        best.insert(0, trust * level + (1 - trust) * sums)
        spread.insert(0, trust * variance)
    done = [best[0]]
    for below in best[1:]:
        above = done[-1]
        each = below.reshape(len(above), -1, below.shape[1])
        gap = above - each.sum(axis=1)
        done.append((each + gap[:, None, :] / each.shape[1]).reshape(below.shape))
    return done


def not_negative(levels: Sequence[Floats]) -> list[Floats]:
    """The same without negative figures, still adding up: from the top down, the nearest children of each node.

    >>> [level.tolist() for level in not_negative([np.array([[5.0]]), np.array([[-1.0], [6.0]])])]
    [[[5.0]], [[0.0], [5.0]]]
    """
    done = [np.maximum(levels[0], 0.0)]
    for below in levels[1:]:
        above = done[-1]
        each = below.reshape(len(above), -1, below.shape[1]).transpose(0, 2, 1)
        kept = _nearest(each.reshape(-1, each.shape[2]), above.reshape(-1))
        done.append(kept.reshape(each.shape).transpose(0, 2, 1).reshape(below.shape))
    return done


def _nearest(rows: Floats, totals: Floats) -> Floats:
    """For every row the nearest one without negative numbers that has the given sum: subtract one number, cut at 0."""
    high = -np.sort(-rows, axis=1)
    excess = (np.cumsum(high, axis=1) - totals[:, None]) / np.arange(1, rows.shape[1] + 1)
    last = np.maximum((high > excess).sum(axis=1) - 1, 0)
    cut = np.where(totals > 0, excess[np.arange(len(rows)), last], high[:, 0])
    return np.asarray(np.maximum(rows - cut[:, None], 0.0))
