"""How much a junction tree would grow by one more set of columns: a bound, for weighing many sets at once.

Let two columns i and j be in no clique together. Adding i to every clique on the way from one that holds i to one that holds
j gives a tree that holds both, and the cells of each of those cliques grow by the factor of i's values. For three columns of
which two pairs are held, (i, j) and (j, k), the way goes from a clique of the first to one of the second; all cliques on it
hold j (what two cliques share is on the whole way between them), so that the last then holds all three. `cost` mostly
finds a better order, but takes some milliseconds for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import permutations

from sfumato.grids.graphical.marginal import Columns
from sfumato.grids.graphical.tree import Tree


def growth(tree: Tree, sets: Sequence[Columns]) -> list[int]:
    """Cells that a tree for each of these `sets` as well has more, at most: pairs, or triples with two pairs in cliques.

    >>> from sfumato.grids.graphical.tree import cost, junction_tree
    >>> chain = junction_tree([10, 2, 10, 10], [(0, 1), (1, 2), (2, 3)])
    >>> growth(chain, [(0, 1), (0, 2), (0, 3), (0, 1, 2)])
    [0, 180, 360, 180]
    >>> cost([10, 2, 10, 10], [(0, 1), (1, 2), (2, 3), (0, 3)]) - chain.cells
    260
    """
    cells = [math.prod(tree.sizes[c] for c in clique) for clique in tree.cliques]
    members = [set(clique) for clique in tree.cliques]
    ways: dict[Columns, list[int]] = {}

    def way(columns: Columns) -> list[int]:
        """Cells of the cliques on the way from those that hold the columns, for every clique."""
        if columns not in ways:
            ways[columns] = _ways(tree, cells, [i for i, m in enumerate(members) if m.issuperset(columns)])
        return ways[columns]

    found = []
    for columns in sets:
        if any(m.issuperset(columns) for m in members):
            found.append(0)
            continue
        best: list[int] = []
        for order in permutations(columns):
            start, end, added = tuple(sorted(order[:-1])), set(order[1:]), order[0]
            if len(columns) == 2:
                start, end = (added,), {order[1]}
            far = [w for w, m in zip(way(start), members, strict=True) if w >= 0 and m.issuperset(end)]
            best += [w * (tree.sizes[added] - 1) for w in far]
        found.append(min(best, default=math.prod(tree.sizes) - 1))
    return found


def _ways(tree: Tree, cells: Sequence[int], first: Iterable[int]) -> list[int]:
    found = [-1] * len(cells)
    near = list(first)
    for i in near:
        found[i] = 0
    while near:
        i = near.pop()
        for k in tree.neighbours[i]:
            if found[k] < 0:
                found[k] = found[i] + cells[k]
                near.append(k)
    return found
