"""Groups of a column's values, fine to coarse, from its noisy counts: what pairs of columns are counted by.

A cell whose noise is larger than its count adds error and nothing else. So values are merged until every group has at
least so many records by the column's own noisy counts; then again with twice as many, and so on. Numbers merge with
neighbours, categories with the rarest value under the same node of their tree. Every ladder is nested: a step merges whole
groups of the step before. All of it follows from published counts and public trees.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.records.levels import Levels

MOST_GROUPS = 64
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of one column.

    Attributes
    ----------
    finest : int64 array
        The group of each leaf.
    steps : tuple of int64 arrays
        Fine to coarse, what becomes of each of the finest groups; the first step leaves them as they are.
    """

    finest: Ints
    steps: tuple[Ints, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many groups each step has."""
        return tuple(int(step.max()) + 1 for step in self.steps)

    @property
    def count(self) -> int:
        """How many groups there are at the finest."""
        return self.sizes[0]

    def at(self, step: int) -> Ints:
        """The group of each leaf at a step."""
        return np.asarray(self.steps[step][self.finest])

    def summing(self, fine: int, coarse: int) -> NDArray[np.float64]:
        """The matrix of zeros and ones that rolls counts at a `fine` step up to a `coarse` one.

        >>> Groups(np.arange(3), (np.arange(3), np.array([0, 1, 1]))).summing(0, 1).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
        """
        out = np.zeros((self.sizes[coarse], self.sizes[fine]))
        out[self.steps[coarse], self.steps[fine]] = 1.0
        return out


def groups_of(noisy: NDArray[np.float64], levels: Levels, *, least: float, most: int = MOST_GROUPS) -> Groups:
    """Groups of at least `least` records by the `noisy` counts of the leaves, at most `most` of them.

    >>> age = Levels.numeric("age", [0, 10, 20, 30, 40])
    >>> made = groups_of(np.array([90.0, 5.0, 6.0, 99.0]), age, least=10)
    >>> made.finest.tolist(), made.sizes
    ([0, 1, 1, 2], (3, 2))
    >>> place = Levels.tree("place", {"north": ["oslo", "bergen"], "south": ["nice", "rome", "bern"]})
    >>> groups_of(np.array([90.0, 4.0, 50.0, 3.0, 2.0]), place, least=10).finest.tolist()
    [0, 0, 1, 1, 1]
    """
    counts = np.maximum(np.asarray(noisy, dtype=np.float64), 0.0)
    at_least = max(float(least), 1.0)
    leaf = np.arange(levels.leaves)
    finest = _merged(leaf, counts, levels, at_least)
    while finest.max() >= most:
        at_least *= 2
        finest = _merged(finest, counts, levels, at_least)
    steps = [finest]
    while steps[-1].max() > 1:
        at_least *= 2
        coarser = _merged(steps[-1], counts, levels, at_least)
        if coarser.max() == 0:
            break
        if coarser.max() < steps[-1].max():
            steps.append(coarser)
    first = np.unique(finest, return_index=True)[1]
    return Groups(finest, tuple(step[first] for step in steps))


def _merged(group: Ints, counts: NDArray[np.float64], levels: Levels, least: float) -> Ints:
    """The groups merged until each has `least` records, or is all there is; numbered by their first leaf."""
    totals = np.bincount(group, counts).astype(np.float64)
    joined = (_neighbours if levels.edges is not None else _relatives)(group, totals, levels, least)
    roots = _roots(joined)[group]
    _, number = np.unique(roots, return_inverse=True)
    first = np.full(int(number.max()) + 1, levels.leaves)
    np.minimum.at(first, number, np.arange(number.size))
    return np.asarray(np.argsort(np.argsort(first))[number], dtype=np.int64)


def _roots(parent: Ints) -> Ints:
    while True:
        above = parent[parent]
        if (above == parent).all():
            return parent
        parent = above


def _neighbours(group: Ints, totals: NDArray[np.float64], levels: Levels, least: float) -> Ints:
    """Which group each one joins: the smallest joins the smaller of its neighbours, again and again."""
    k = totals.size
    parent = np.arange(k)
    left, right = np.arange(k) - 1, np.arange(k) + 1
    size = totals.tolist()
    heap = [(s, i) for i, s in enumerate(size)]
    heapq.heapify(heap)
    alive = [True] * k
    while heap:
        s, i = heapq.heappop(heap)
        if not alive[i] or s != size[i]:
            continue
        if s >= least:
            break
        sides = [int(j) for j in (left[i], right[i]) if 0 <= j < k]
        if not sides:
            break
        into = min(sides, key=lambda j: size[j])
        parent[i], alive[i] = into, False
        size[into] += s
        if left[i] >= 0:
            right[left[i]] = right[i]
        if right[i] < k:
            left[right[i]] = left[i]
        heapq.heappush(heap, (size[into], into))
    return parent


def _relatives(group: Ints, totals: NDArray[np.float64], levels: Levels, least: float) -> Ints:
    """Which group each one joins: under every node of the tree, deepest first, the two smallest become one."""
    parent = np.arange(totals.size)
    size = totals.tolist()
    _, leaf = np.unique(group, return_index=True)  # a leaf of each group; groups made before lie under one node
    for level in range(levels.height - 2, -1, -1):
        node = levels.maps[level][leaf]
        alive = np.flatnonzero(parent == np.arange(totals.size))
        order = alive[np.argsort(node[alive], kind="stable")]
        for under in np.split(order, np.flatnonzero(np.diff(node[order])) + 1):
            heap = [(size[i], int(i)) for i in under]
            heapq.heapify(heap)
            while len(heap) > 1 and heap[0][0] < least:
                s, i = heapq.heappop(heap)
                t, into = heap[0]
                parent[i], size[into] = into, s + t
                heapq.heapreplace(heap, (s + t, into))
    return parent
