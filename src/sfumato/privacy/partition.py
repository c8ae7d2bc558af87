"""Choosing how to cut a line into intervals: the least total cost, with noise on the cost of every interval.

Only the chosen partition is released, never a noisy cost. Every interval b has a public rate r_b and its cost is lowered by
an independent geometric G_b, ``P(G_b >= k) = exp(-k r_b)``, on the integer lattice of the costs.

**Loss.** One record moves the cost of interval b by at most ``moves_b`` units if b contains its bin, and not at all
otherwise. Then the loss is at most ``max_b r_b (moves_b + max_c moves_c)``.

*Proof.* Let P be a partition, b its interval that contains the record's bin, and fix all noise but G_b. Partitions are
compared by noisy cost, ties by a fixed order (from the right end, the interval listed first wins). Against partitions
that contain b too, P's standing depends neither on G_b nor on the record. Any other partition has exactly one interval c
around the record's bin. If P wins on one table with G_b = g, then on the other its cost has risen by at most moves_b and
a rival's has fallen by at most moves_c, so P wins with G_b = g + s, s = moves_b + max moves (at equality the tie is the
same tie). Winning is an up-set in G_b, so its probability on the other table is at least ``P(G_b >= g + s) = exp(-s r_b)
P(G_b >= g)`` at the least winning g. Average over the other noise. (The reference code of DAWA divides by half of s: that
is not enough.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError

Ints = NDArray[np.int64]


def partition_price(rates: Ints, moves: Ints) -> int:
    """The loss in nano-ε of one unit of change, from public facts.

    >>> partition_price(np.array([5, 2]), np.array([0, 3]))
    15
    """
    if rates.shape != moves.shape or moves.size == 0 or int(moves.min()) < 0:
        raise InputError("a partition needs one rate and one bound on the moves per interval")
    top = int(moves.max())
    return max(int(r) * (int(m) + top) for r, m in set(zip(rates.tolist(), moves.tolist(), strict=True)))


def least_cost(starts: Ints, stops: Ints, costs: Ints) -> Ints:
    """Indices of the intervals, left to right, that cover 0 to ``max(stops)`` at least cost; ties by the first listed.

    >>> least_cost(np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([4, 4, 7])).tolist()
    [2]
    """
    size = int(stops.max())
    order = np.argsort(stops, kind="stable")
    first = np.searchsorted(stops[order], np.arange(size + 1)).tolist()
    index, begin, cost = order.tolist(), starts[order].tolist(), costs[order].tolist()
    unreachable = 1 << 200
    best = [0] + [unreachable] * size
    taken = [-1] * (size + 1)
    for stop in range(1, size + 1):
        low, which = unreachable, -1
        for k in range(first[stop], first[stop + 1] if stop < size else len(index)):
            total = best[begin[k]] + cost[k]
            if total < low:
                low, which = total, k
        best[stop], taken[stop] = low, which
    chosen: list[int] = []
    stop = size
    while stop > 0:
        if taken[stop] < 0:
            raise InputError("the intervals cannot be joined to cover the whole line")
        chosen.append(index[taken[stop]])
        stop = begin[taken[stop]]
    return np.array(chosen[::-1], dtype=np.int64)
