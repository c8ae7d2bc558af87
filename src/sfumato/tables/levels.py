"""Levels of a public domain, coarsest first: the given tree, or a sensible one where none is given.

A number without a tree gets its bins merged in pairs, level by level; a category without a tree is everything or each
value by itself. A cell for values outside the domain is a node of its own on every level below the root.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.domains import Domain, Numeric

Partitions = list[NDArray[np.int64]]
Groups = list[list[str]]


def domain_levels(domain: Domain) -> tuple[Partitions, Groups]:
    """Per level, the node of every cell, and the names of the nodes.

    >>> partitions, groups = domain_levels(Numeric(0, 8, bins=4))
    >>> [p.tolist() for p in partitions]
    [[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 3]]
    >>> groups[1]
    ['0 to 4', '4 to 8']
    """
    names = domain.labels()
    cells = domain.size - bool(domain.other)
    if domain.taxonomy is not None:
        partitions = [domain.group_codes(level) for level in range(domain.taxonomy.depth + 1)]
        groups = [[label for label, _ in domain.taxonomy.groups(level)] for level in range(len(partitions))]
    elif isinstance(domain, Numeric):
        partitions, groups = _pairs(domain, cells)
    else:
        partitions, groups = [np.zeros(domain.size, dtype=np.int64), np.arange(domain.size)], [["all"], list(names[:cells])]
    if domain.other:
        for level in range(1, len(groups)):
            groups[level].append(names[-1])
    return partitions, groups


def _pairs(domain: Numeric, cells: int) -> tuple[Partitions, Groups]:
    codes = np.arange(cells)
    partitions, groups = [], []
    while True:
        ends = np.append(np.flatnonzero(np.diff(codes)) + 1, cells)
        starts = np.concatenate([[0], ends[:-1]])
        partitions.append(np.append(codes, codes[-1] + 1) if domain.other else codes)
        groups.append([_span(domain, int(a), int(b)) for a, b in zip(starts, ends, strict=True)])
        if codes[-1] == 0:
            break
        codes = codes // 2
    if domain.other:
        partitions.append(np.zeros(cells + 1, dtype=np.int64))
        groups.append(["all"])
    return partitions[::-1], groups[::-1]


def _span(domain: Numeric, start: int, end: int) -> str:
    low, high = domain.boundaries[start], domain.boundaries[end]
    if domain.integer:
        return f"{low}" if low == high - 1 else f"{low} to {high - 1}"
    return f"{low:.12g} to {high:.12g}"
