"""Candidates for a Bayesian network: which parents a column may have, and the joint counts behind their scores.

Everything but the counts is public. A marginal may have only so many cells (θ-usefulness); a set of parents that is too
fine for it is generalised along the taxonomies, and a set that is part of a larger one, at the same levels, is left out
(the maximal sets of PrivBayes).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.published.network import Link, Parents
from sfumato.privacy.exact import Exact
from sfumato.records.levels import Levels
from sfumato.records.records import Records, weighted_bincount

MOST_BINARY = 20_000
MOST_GENERAL = 8_000  # general tables are larger, and so is the time that each candidate takes
MOST_ASKED = 500_000  # however many parents were asked for


def binary_candidates(count: int, k: int) -> int:
    """How many candidates all steps have together, if each of `count` binary columns has k parents."""
    return comb(count + 1, k + 2)


def general_degree(count: int, most: int = MOST_GENERAL) -> int:
    """The most parents for which `count` columns have no more than `most` sets of parents in all (at least one).

    >>> [general_degree(count) for count in (5, 10, 15, 20)]
    [4, 9, 3, 2]
    """
    sets, k = binary_candidates(count, 1), 1
    while k + 1 < count and sets + binary_candidates(count, k + 1) <= most:
        k += 1
        sets += binary_candidates(count, k)
    return k


def useful_options(
    columns: tuple[Levels, ...], inside: list[int], most: float, degree: int, generalise: bool = True
) -> list[Link]:
    """Every column not yet in, with its maximal useful sets of at most `degree` parents."""
    found: list[Link] = []
    for x in (j for j in range(len(columns)) if j not in inside):
        larger: list[dict[int, int]] = []  # of one parent more
        kept: list[dict[int, int]] = []
        for count in range(min(degree, len(inside)), -1, -1):
            fitted = (_fitted(columns, x, s, most, generalise) for s in combinations(inside, count))
            fitting = [dict(s) for s in fitted if s is not None]
            covered = {
                tuple(part.items()) for big in larger for left in big for part in [{j: big[j] for j in big if j != left}]
            }
            # A set that is part of a larger one, at the same levels, tells less than it.
            kept += [s for s in fitting if tuple(s.items()) not in covered]
            larger = fitting
        found.extend((x, tuple(s.items())) for s in kept)
    return found


def _fitted(
    columns: tuple[Levels, ...], x: int, parents: tuple[int, ...], most: float, generalise: bool = True
) -> Parents | None:
    """The parents generalised, largest first, until the marginal has at most `most` cells; None if it cannot be."""
    level = {j: columns[j].height - 1 for j in parents}
    while columns[x].leaves * np.prod([columns[j].sizes[v] for j, v in level.items()], dtype=np.float64) > most:
        coarser = [j for j, v in level.items() if v > 1] if generalise else []
        if not coarser:
            return None if parents else ()
        widest = max(coarser, key=lambda j: columns[j].sizes[level[j]])
        level[widest] -= 1
    return tuple(level.items())


def scorer(
    records: Exact[Records], columns: tuple[Levels, ...], score: Callable[[NDArray[np.int64]], float]
) -> Callable[[int, Parents], Exact[float]]:
    """Scores of candidates, each counted once: most are candidates again in the next step."""

    @cache
    def of(x: int, parents: Parents) -> Exact[float]:
        return records.map(lambda r: score(joint(r, columns, x, parents)))

    return of


def joint(records: Records, columns: tuple[Levels, ...], x: int, parents: Parents) -> NDArray[np.int64]:
    def column(j: int, level: int) -> NDArray[Any]:
        values = records.classes if j == len(records.taxonomies) else records.leaves[:, j]
        return np.asarray(columns[j].maps[level][values])

    code, cells = column(x, columns[x].height - 1).astype(np.int64), columns[x].leaves
    for j, level in parents:
        code = code * columns[j].sizes[level] + column(j, level)
        cells *= columns[j].sizes[level]
    return weighted_bincount(code, records.weights, cells).reshape(columns[x].leaves, -1)
