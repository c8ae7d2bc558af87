"""The junction tree of some sets of columns: few, small groups of columns that hold every set and hang together as a tree.

A distribution whose interactions are within the sets is then known from its marginals over the groups (*cliques*) alone: it
is the product of the cliques' marginals over those of the columns that neighbours share (*separators*). See Koller &
Friedman, *Probabilistic graphical models*, 2009, ch. 9 and 10.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from sfumato.errors import InputError
from sfumato.grids.graphical.marginal import Columns

MOST_CELLS = 8_000_000  # of all cliques together: beyond it a fit would take minutes and gigabytes


@dataclass(frozen=True)
class Tree:
    """Cliques in an order in which every clique stands after the one it hangs on.

    Attributes
    ----------
    sizes : tuple of int
        Values per column.
    cliques : tuple of tuples of int
        Columns of each clique, those with few values first.
    parents : tuple of int
        The clique that each one hangs on; -1 for the first.
    separators : tuple of tuples of int
        What each shares with its parent; nothing for the first, and between parts of the table that have no set in common.
    """

    sizes: tuple[int, ...]
    cliques: tuple[Columns, ...]
    parents: tuple[int, ...]
    separators: tuple[Columns, ...]

    @property
    def cells(self) -> int:
        """Cells of all cliques together: what a pass over the tree costs."""
        return sum(math.prod(self.sizes[c] for c in clique) for clique in self.cliques)

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """Which cliques are tied to each."""
        found: list[list[int]] = [[] for _ in self.cliques]
        for child, parent in enumerate(self.parents):
            if parent >= 0:
                found[child].append(parent)
                found[parent].append(child)
        return tuple(tuple(f) for f in found)

    def home(self, columns: Iterable[int]) -> int | None:
        """The smallest clique that holds all these columns; None if there is none."""
        wanted = set(columns)
        inside = [i for i, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(inside, key=lambda i: math.prod(self.sizes[c] for c in self.cliques[i]), default=None)


def junction_tree(sizes: Sequence[int], sets: Iterable[Sequence[int]]) -> Tree:
    """The tree for columns of these `sizes` whose cliques hold all the `sets`; every column is in it.

    >>> junction_tree([2, 3, 4, 5], [(0, 1), (1, 2)]).cliques
    ((1, 2), (0, 1), (3,))
    """
    cliques = _cliques(sizes, sets)
    # A maximum spanning tree by the number of shared columns is a junction tree; small separators are cheaper.
    order, parents = [0], [-1]
    separators: list[Columns] = [()]
    best: dict[int, tuple[tuple[float, ...], int]] = dict.fromkeys(range(1, len(cliques)), ((-1.0,), -1))
    members = [set(c) for c in cliques]
    while best:
        newest = order[-1]
        for i, (score, _) in best.items():
            shared = members[i] & members[newest]
            mine = (len(shared), -sum(math.log(sizes[c]) for c in shared))
            if mine > score:
                best[i] = (mine, newest)
        chosen = max(best, key=lambda i: (best[i][0], -i))
        parent = best.pop(chosen)[1]
        order.append(chosen)
        parents.append(order.index(parent))
        separators.append(tuple(sorted(members[chosen] & members[parent])))
    return Tree(tuple(sizes), tuple(cliques[i] for i in order), tuple(parents), tuple(separators))


def cost(sizes: Sequence[int], sets: Iterable[Sequence[int]]) -> int:
    """How many cells the junction tree of these sets would have: what a fit costs in memory and in time per pass.

    Parameters
    ----------
    sizes : sequence of int
        Values per column.
    sets : iterable of sequences of int
        The columns of each marginal.

    Returns
    -------
    int

    Examples
    --------
    A ring of four needs a chord; a chain does not.

    >>> cost([10] * 4, [(0, 1), (1, 2), (2, 3)]), cost([10] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    (300, 2000)
    """
    return sum(math.prod(sizes[c] for c in clique) for clique in _cliques(sizes, sets))


def _cliques(sizes: Sequence[int], sets: Iterable[Sequence[int]]) -> list[Columns]:
    """Maximal cliques, largest first, by the better of two greedy orders of elimination."""
    if any(size < 1 for size in sizes):
        raise InputError("every column needs at least one value")
    if not sizes:
        raise InputError("a table needs at least one column")
    links = [1 << c for c in range(len(sizes))]  # bit c of links[b]: columns b and c stand in one set
    for columns in sets:
        if any(not 0 <= c < len(sizes) for c in columns):
            raise InputError(f"there are {len(sizes)} columns, counted from 0; got {tuple(columns)}")
        together = sum(1 << c for c in set(columns))
        for c in columns:
            links[c] |= together
    weights = [math.log(size) for size in sizes]
    # Sums over small axes are quick when a large one is last.
    both = [
        [tuple(sorted(clique, key=lambda c: (sizes[c], c))) for clique in _maximal(_eliminated(links, weights, by_fill))]
        for by_fill in (False, True)
    ]
    found = min(both, key=lambda cliques: sum(math.prod(sizes[c] for c in clique) for clique in cliques))
    return sorted(found, key=lambda clique: (-math.prod(sizes[c] for c in clique), clique))


def _eliminated(links: Sequence[int], weights: Sequence[float], by_fill: bool) -> list[int]:
    """What each column stands together with when it is taken out; its neighbours then become one set.

    The next column is the one that makes the smallest set (in cells), or asks for the fewest new links (in cells).
    """
    links = list(links)
    left = list(range(len(links)))
    score: dict[int, tuple[float, float]] = {}
    found = []
    while left:
        for c in left:
            if c not in score:
                score[c] = _price(links, weights, c, by_fill)
        chosen = min(left, key=lambda c: (score[c], c))
        around = links[chosen]
        found.append(around)
        left.remove(chosen)
        rest = around & ~(1 << chosen)
        touched = 0
        for c in _bits(rest):
            links[c] = (links[c] | rest) & ~(1 << chosen)
            touched |= links[c]
        for c in _bits(touched if by_fill else rest):  # a new link is filled in for whoever sees both of its ends
            score.pop(c, None)
    return found


def _price(links: Sequence[int], weights: Sequence[float], c: int, by_fill: bool) -> tuple[float, float]:
    around = links[c]
    size = sum(weights[b] for b in _bits(around))
    if not by_fill:
        return size, 0.0
    fill = sum(weights[b] * sum(weights[a] for a in _bits(around & ~links[b])) for b in _bits(around))
    return fill, size


def _maximal(sets: Iterable[int]) -> list[Columns]:
    kept: list[int] = []
    for mask in sorted(set(sets), key=lambda m: -m.bit_count()):
        if not any(mask & other == mask for other in kept):
            kept.append(mask)
    return [tuple(_bits(mask)) for mask in kept]


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
