"""Marginals over columns that no clique holds together: along the tree, summing out what lies between."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato.errors import InputError
from sfumato.grids.graphical.marginal import Columns, Floats, summed
from sfumato.grids.graphical.tree import Tree

MOST_CELLS = 50_000_000  # of a table on the way


def over_columns(tree: Tree, beliefs: Sequence[Floats], columns: Columns) -> Floats:
    """The shares of all combinations of values of these columns (ascending).

    The part of the tree that ties the columns together is folded from its leaves inwards: each clique hands on a table over
    the separator and the wanted columns behind it, given the separator's own shares.

    >>> from sfumato.grids.graphical.tree import junction_tree
    >>> tree = junction_tree([2, 2, 2], [(0, 1), (1, 2)])
    >>> both = np.array([[0.5, 0.0], [0.0, 0.5]])
    >>> over_columns(tree, [both, both], (0, 2)).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    home = tree.home(columns)
    if home is not None:
        return summed(beliefs[home], tree.cliques[home], columns)
    used = _joining(tree, columns)
    root = min(used)  # cliques stand after the one they hang on, so the part's own root comes first
    handed: dict[int, list[tuple[Columns, Floats]]] = {i: [] for i in used}
    for i in sorted(used, reverse=True):
        above = tree.separators[i] if i != root else ()
        below = {c for behind, _ in handed[i] for c in behind}
        kept = tuple(sorted({c for c in tree.cliques[i] if c in columns or c in above or c in below}))
        table, names = summed(beliefs[i], tree.cliques[i], kept), kept
        for behind, conditional in handed[i]:
            later = {c for other, _ in handed[i] if other is not behind for c in other}
            needed = {*columns, *above, *later}
            table, names = _joined(table, names, conditional, behind, needed, tree.sizes)
        final = tuple(sorted(c for c in names if c in columns or c in above))
        table = summed(table, names, final)
        if i == root:
            return table
        own = summed(beliefs[i], tree.cliques[i], above)
        share = own.reshape([tree.sizes[c] if c in above else 1 for c in final])
        handed[tree.parents[i]].append((final, np.divide(table, share, out=np.zeros_like(table), where=share > 0)))
    raise AssertionError("the root returns")


def _joining(tree: Tree, columns: Columns) -> set[int]:
    """Cliques of the smallest part of the tree that holds all the columns: leaves that add nothing are cut off."""
    used = set(range(len(tree.cliques)))
    ends = list(used)
    while ends:
        i = ends.pop()
        around = [k for k in tree.neighbours[i] if k in used]
        if i not in used or len(around) > 1 or len(used) == 1:
            continue
        wanted = set(tree.cliques[i]) & set(columns)
        if all(any(c in tree.cliques[k] for k in around) for c in wanted):
            used.remove(i)
            ends.extend(around)
    return used


def _joined(
    left: Floats, mine: Columns, right: Floats, other: Columns, needed: set[int], sizes: Sequence[int]
) -> tuple[Floats, Columns]:
    """The product of two tables, summed over columns that nobody needs any more: matrix products, one per shared cell."""
    shared = [c for c in mine if c in other]
    kept, gone = [c for c in shared if c in needed], [c for c in shared if c not in needed]
    alone = [c for c in mine if c not in shared]
    new = [c for c in other if c not in shared]
    cells = math.prod(sizes[c] for c in kept + alone + new)
    if cells > MOST_CELLS:
        raise InputError(
            f"a marginal over these columns needs a table of {cells:,} cells on the way, at most {MOST_CELLS:,} are kept: "
            "ask for fewer columns, or count them in a sample"
        )

    def matrices(table: Floats, names: Columns, rows: list[int], across: list[int]) -> Floats:
        moved = table.transpose([names.index(c) for c in kept + rows + across])
        return moved.reshape(*(math.prod(sizes[c] for c in part) for part in (kept, rows, across)))

    product = matrices(left, mine, alone, gone) @ matrices(right, other, gone, new)
    names = kept + alone + new
    ascending = tuple(sorted(names))
    full = product.reshape([sizes[c] for c in names])
    return full.transpose([names.index(c) for c in ascending]), ascending
