"""Belief propagation: the marginals of all cliques of a junction tree, exactly, in one pass up and one pass down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.grids.graphical.marginal import Columns, Floats, spread, summed
from sfumato.grids.graphical.tree import Tree


def calibrated(tree: Tree, potentials: Sequence[Floats]) -> tuple[list[Floats], float]:
    """The marginals of all cliques where probabilities are in proportion to ``exp(Σ potentials)``, and the log of its sum.

    Parameters
    ----------
    tree : Tree
        Which columns stand together.
    potentials : sequence of arrays
        One per clique, in logarithms. They are overwritten.

    Returns
    -------
    list of arrays, float
        Probabilities, one array per clique; what ``exp(Σ potentials)`` adds up to, in logarithms.

    Examples
    --------
    >>> from sfumato.grids.graphical.tree import junction_tree
    >>> tree = junction_tree([2, 2, 2], [(0, 1), (1, 2)])
    >>> beliefs, _ = calibrated(tree, [np.log([[1.0, 2.0], [3.0, 2.0]]), np.zeros((2, 2))])
    >>> beliefs[0].round(3).tolist(), summed(beliefs[1], tree.cliques[1], tree.separators[1]).round(3).tolist()
    ([[0.125, 0.25], [0.375, 0.25]], [0.5, 0.5])
    """
    logs = list(potentials)
    beliefs: list[Floats] = [np.empty(0)] * len(logs)
    sums: list[Floats] = [np.empty(0)] * len(logs)
    whole = 0.0
    for i in reversed(range(len(logs))):
        top = logs[i].max()
        logs[i] -= top
        beliefs[i] = np.exp(logs[i], out=logs[i])
        sums[i] = summed(beliefs[i], tree.cliques[i], tree.separators[i])
        if i == 0:
            whole += float(top + np.log(sums[0]))
            beliefs[0] /= sums[0]
        else:
            parent = tree.parents[i]
            whole += float(top)
            with np.errstate(divide="ignore"):  # what underflows has no part in anything
                logs[parent] += spread(np.log(sums[i]), tree.separators[i], tree.cliques[parent])
    for i in range(1, len(logs)):
        parent = tree.parents[i]
        wanted = summed(beliefs[parent], tree.cliques[parent], tree.separators[i])
        ratio = np.divide(wanted, sums[i], out=np.zeros_like(wanted), where=sums[i] > 0)
        beliefs[i] *= spread(ratio, tree.separators[i], tree.cliques[i])
    return beliefs, whole


@dataclass(frozen=True, eq=False)
class Loglinear:
    """Distributions ``exp(Σ over columns base + Σ over sets θ)``: from θ to the marginals over the sets.

    A set inside another one takes part through it: what is large, the cliques, is touched once per largest set only.

    Attributes
    ----------
    tree : Tree
        Holds all sets.
    base : tuple of arrays
        One per column, in logarithms.
    sets : tuple of tuples of int
        Where θ has its tables, smaller sets before larger ones.
    """

    tree: Tree
    base: tuple[Floats, ...]
    sets: tuple[Columns, ...]

    @cached_property
    def inside(self) -> tuple[int | None, ...]:
        """The smallest larger set that holds each; None for those that stand by themselves."""
        found: list[int | None] = []
        for i, mine in enumerate(self.sets):
            around = [k for k in range(i + 1, len(self.sets)) if set(mine) < set(self.sets[k])]
            found.append(min(around, key=lambda k: len(self.sets[k]), default=None))
        return tuple(found)

    @cached_property
    def homes(self) -> tuple[int, ...]:
        """The clique of each set."""
        found = [self.tree.home(s) for s in self.sets]
        assert None not in found, "the tree was made for these sets"
        return tuple(h for h in found if h is not None)

    @cached_property
    def offsets(self) -> tuple[Floats | None, ...]:
        """The columns' own parts, each as part of the first set that holds the column."""
        found: list[Floats | None] = [None] * len(self.sets)
        for column, own in enumerate(self.base):
            first = next((i for i, s in enumerate(self.sets) if column in s), None)
            if first is not None:
                part, before = spread(own, (column,), self.sets[first]), found[first]
                found[first] = part if before is None else before + part
        return tuple(found)

    @cached_property
    def loose(self) -> tuple[tuple[int, int], ...]:
        """Columns that are in no set, with their cliques."""
        held = {c for s in self.sets for c in s}
        return tuple((c, self.tree.cliques.index((c,))) for c in range(len(self.base)) if c not in held)

    def beliefs(self, theta: Sequence[Floats]) -> tuple[list[Floats], float]:
        """Marginals of all cliques, and the log of what the exponentials add up to.

        >>> from sfumato.grids.graphical.tree import junction_tree
        >>> model = Loglinear(junction_tree([2, 2], [(0, 1)]), (np.log([0.5, 0.5]), np.log([0.9, 0.1])), ((0, 1),))
        >>> found, whole = model.beliefs([np.zeros((2, 2))])
        >>> found[0].round(3).tolist(), round(abs(whole), 9)
        ([[0.45, 0.05], [0.45, 0.05]], 0.0)
        """
        tree, logs = self.tree, [np.zeros([self.tree.sizes[c] for c in clique]) for clique in self.tree.cliques]
        for column, home in self.loose:
            logs[home] += self.base[column]
        added = [own if offset is None else own + offset for own, offset in zip(theta, self.offsets, strict=True)]
        for i, (mine, around) in enumerate(zip(self.sets, self.inside, strict=True)):
            if around is None:
                logs[self.homes[i]] += spread(added[i], mine, tree.cliques[self.homes[i]])
            else:
                added[around] = added[around] + spread(added[i], mine, self.sets[around])
        return calibrated(tree, logs)

    def marginals(self, beliefs: Sequence[Floats]) -> list[Floats]:
        """The marginals over the sets, from those of the cliques."""
        found: list[Floats] = [np.empty(0)] * len(self.sets)
        for i in reversed(range(len(self.sets))):
            around, mine = self.inside[i], self.sets[i]
            if around is None:
                found[i] = summed(beliefs[self.homes[i]], self.tree.cliques[self.homes[i]], mine)
            else:
                found[i] = summed(found[around], self.sets[around], mine)
        return found
