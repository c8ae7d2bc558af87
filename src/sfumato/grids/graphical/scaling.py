"""Iterative proportional scaling: one marginal after the other is made to fit, the others as they are, round after round.

With all other tables of a log-linear model fixed, the best θ of one marginal has a closed form: its own cells alone, each
expected as it would be without θ (`shrinking.shrunk`). So large departures from independence are reached in one step each,
where a gradient would creep; near the optimum the gradient is quicker. Rounds walk along the junction tree: only the clique
at hand is up to date, and what it shares with the next one is carried over (Jiroušek & Přeučil, *On the effective
implementation of the iterative proportional fitting procedure*, 1995).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.grids.graphical.beliefs import Loglinear
from sfumato.grids.graphical.marginal import Floats, Marginal, spread, summed
from sfumato.grids.graphical.shrinking import shrunk
from sfumato.grids.graphical.tree import Tree

_FAR = 600.0  # in logarithms: what is further down than this is 0 already


def scaled(
    model: Loglinear,
    aims: Sequence[Marginal],
    softness: Sequence[float],
    total: float,
    start: Sequence[Floats],
    *,
    near: float,
    rounds: int,
) -> list[Floats]:
    """The tables θ of all `aims` after so many rounds, or when no gap to the optimum is above `near`.

    Parameters
    ----------
    model : Loglinear
        The columns' own parts, and the tree.
    aims : sequence of Marginal
        What is to be fitted.
    softness : sequence of float
        Of each.
    total : float
        Records.
    start : sequence of float64 arrays
        The first tables, one for each of the aims.
    near : float
        In units of ``√(count + softness)``.
    rounds : int
        At most.

    Returns
    -------
    list of float64 arrays

    Examples
    --------
    >>> from sfumato.grids.graphical.tree import junction_tree
    >>> model = Loglinear(junction_tree([2], [(0,)]), (np.log([0.5, 0.5]),), ((0,),))
    >>> aim = Marginal((0,), np.array([30.0, 70.0]), 1e-9)
    >>> (theta,) = scaled(model, [aim], [1e-9], 100.0, [np.zeros(2)], near=1e-6, rounds=9)
    >>> np.exp(theta).round(2).tolist()
    [0.6, 1.4]
    """
    theta = list(start)
    tree = model.tree
    beliefs, _ = model.beliefs(together(model, aims, theta))
    shared = [summed(b, clique, above) for b, clique, above in zip(beliefs, tree.cliques, tree.separators, strict=True)]
    at = {i: [k for k, a in enumerate(aims) if model.homes[model.sets.index(a.columns)] == i] for i in range(len(beliefs))}
    walk = walked(tree)
    for _ in range(rounds):
        widest, here, seen = 0.0, 0, set()
        for there in walk:
            _carry(tree, beliefs, shared, here, there)
            here = there
            for k in () if here in seen else at[here]:
                theta[k], gap = _made_to_fit(aims[k], softness[k], total, theta[k], beliefs[here], tree.cliques[here])
                widest = max(widest, gap)
            seen.add(here)
        if widest <= near:
            break
    return theta


def together(model: Loglinear, aims: Sequence[Marginal], theta: Sequence[Floats]) -> list[Floats]:
    """The tables of the aims, added up for every set of columns of the model."""
    found: dict[tuple[int, ...], Floats] = {}
    for aim, own in zip(aims, theta, strict=True):
        mine = aim.by_value(own)
        found[aim.columns] = found[aim.columns] + mine if aim.columns in found else mine
    return [found[columns] for columns in model.sets]


def walked(tree: Tree) -> list[int]:
    """A walk over all cliques from the first one and back, along the tree.

    >>> from sfumato.grids.graphical.tree import junction_tree
    >>> walked(junction_tree([2, 2, 2, 2], [(0, 1), (1, 2), (1, 3)]))
    [0, 1, 0, 2, 0]
    """
    children: list[list[int]] = [[] for _ in tree.cliques]
    for child, parent in enumerate(tree.parents):
        if parent >= 0:
            children[parent].append(child)
    walk, here = [0], 0
    while here >= 0:
        here = children[here].pop(0) if children[here] else tree.parents[here]
        if here >= 0:
            walk.append(here)
    return walk


def _carry(tree: Tree, beliefs: list[Floats], shared: list[Floats], here: int, there: int) -> None:
    """Bring the clique `there` up to date with its neighbour `here`."""
    if here == there:
        return
    edge = there if tree.parents[there] == here else here
    now = summed(beliefs[here], tree.cliques[here], tree.separators[edge])
    before = shared[edge]
    ratio = np.divide(now, before, out=np.zeros_like(now), where=before > 0)
    beliefs[there] *= spread(ratio, tree.separators[edge], tree.cliques[there])
    shared[edge] = now


def _made_to_fit(
    aim: Marginal, softness: float, total: float, theta: Floats, belief: Floats, clique: tuple[int, ...]
) -> tuple[Floats, float]:
    """The best table of one aim, put into its clique; and how far the last one was from it."""
    shares = summed(belief, clique, aim.columns)
    now = total * aim.in_groups(shares / shares.sum())
    gap = np.abs(now - aim.counts + softness * theta) / np.sqrt(np.maximum(aim.counts, 0.0) + softness)
    found = shrunk(aim.counts, now * np.exp(np.minimum(-theta, _FAR)), softness)
    factor = aim.by_value(np.exp(np.minimum(found - theta, _FAR)))
    belief *= spread(factor / float((factor * shares).sum()), aim.columns, clique)
    return found, float(gap.max())
