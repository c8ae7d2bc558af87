"""Clusters of consecutive sorted values that minimise ``Σ_clusters (squared deviations + penalty / length)``.

This is AHP's objective: averaging over a cluster costs its squared deviations and divides the noise of its total, of
variance ``penalty``, by its length (penalty/length² for each of length bins).

**The optimum in O(n log n).** Both terms satisfy the quadrangle inequality, squared deviations because the values are
sorted and 1/length because it is convex, so the best last cut of a prefix never moves left, and a queue of candidates with
binary search finds all of them. Three facts make the sequential part short (proved for sorted values, penalty t):

1. *A gap wider than sqrt(3t) is always a cut.* Joining clusters of lengths p and q across a gap g adds at least
   ``g² pq/(p+q)`` and saves ``t (1/p + 1/q - 1/(p+q))``; the latter is smaller for all p, q >= 1 as soon as g² > 3t.
2. *A cut inside a run of m equal values needs neighbours with deviation sums D_A, D_B < sqrt(t), neither of them empty.*
   The cost of putting s of the m in the left cluster is ``const + (t-D_A²)/(a+s) + (t-D_B²)/(b+m-s)`` with a, b the
   other members. If D_A² >= t or D_B² >= t an end of the run is no worse (monotone or concave). If a or b is 0, joining
   both clusters is strictly better.
3. *So a run is never cut* if it is the first or last, or a neighbouring value is sqrt(t) away, or if both neighbouring
   runs (m', at distance g') have ``m' g' >= sqrt(t)`` and ``m >= sqrt(t)/g' + sqrt(t)/g''``: a left cluster holding the
   whole neighbouring run has D_A >= m' g'; one holding part of it makes a cut inside that run, whose right deviation sum
   is at least ``s g'``; likewise on the right, and s + (m-s) = m.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.histograms.budgets import Floats, Ints


def optimal_clusters(values: NDArray[np.int64], penalty: float) -> Ints:
    """Where each cluster of the optimum starts.

    Parameters
    ----------
    values : integers, sorted
    penalty : float
        Variance of the noise on a cluster's total.

    Examples
    --------
    >>> optimal_clusters(np.array([0, 0, 0, 7, 8, 30]), 4.0).tolist()
    [0, 3, 5]
    """
    n = values.size
    starts = _run_starts(values)
    level = values[starts].astype(np.float64)
    gaps = np.diff(level)
    lengths = np.diff(np.append(starts, n))
    cut_after = np.flatnonzero(gaps > np.sqrt(3.0 * penalty) * (1 + 1e-12))
    heads = np.concatenate([[0], cut_after + 1])  # first run of each independent segment
    ends = np.append(heads[1:], starts.size)
    cuttable = _runs_that_may_be_cut(gaps, lengths, np.sqrt(penalty))
    cuts = [starts[heads]]
    for head, end in zip(heads.tolist(), ends.tolist(), strict=True):
        if end - head < 2:
            continue
        places = _candidates(starts, lengths, cuttable, head, end)
        cuts.append(places[_best_cuts(values, places, penalty)])
    return np.sort(np.concatenate(cuts))


def greedy_clusters(values: NDArray[np.int64], penalty: float) -> Ints:
    """AHP's greedy rule: the next value joins the open cluster unless opening a new one with it is cheaper.

    "Cheaper" looks at the best cluster that would start there, whose cost is convex in its length, so galloping finds it;
    runs of equal values are taken whole.

    >>> greedy_clusters(np.array([0, 0, 0, 7, 8, 30]), 4.0).tolist()
    [0, 3, 5]
    """
    starts = _run_starts(values)
    edges = np.append(starts, values.size)
    position, first, second = edges.tolist(), *_moments(values, edges)

    def cost(i: int, j: int) -> float:
        length, total = position[j] - position[i], first[j] - first[i]
        return float(((second[j] - second[i]) * length - total * total) / length + penalty / length)

    cuts = [0]
    opened = 0
    runs = starts.size
    for k in range(1, runs):
        low, step = k + 1, 1
        while low + step <= runs and cost(k, low + step) < cost(k, low + step - 1):
            low, step = low + step, step * 2
        high = min(low + step, runs)
        while low < high:
            middle = (low + high) // 2
            if cost(k, middle + 1) < cost(k, middle):
                low = middle + 1
            else:
                high = middle
        if cost(opened, k + 1) > cost(opened, k) + cost(k, low):
            cuts.append(position[k])
            opened = k
    return np.array(cuts, dtype=np.int64)


def clustering_cost(values: NDArray[np.int64], starts: Ints, penalty: float) -> float:
    """The objective, summed over the clusters that begin at `starts`."""
    lengths = np.diff(np.append(starts, values.size))
    centred = values - np.repeat(np.add.reduceat(values, starts) / lengths, lengths)
    return float((centred**2).sum() + (penalty / lengths).sum())


def _run_starts(values: NDArray[np.int64]) -> Ints:
    return np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1])


def _runs_that_may_be_cut(gaps: Floats, lengths: Ints, reach: float) -> NDArray[np.bool_]:
    """Runs for which fact 3 does not exclude an inner cut."""
    before = np.concatenate([[np.inf], gaps])
    after = np.concatenate([gaps, [np.inf]])
    near = (before < reach) & (after < reach)
    longer = np.concatenate([[0], lengths, [0]])
    whole = (longer[:-2] * np.where(near, before, 0) < reach) | (longer[2:] * np.where(near, after, 0) < reach)
    with np.errstate(divide="ignore"):  # counts near the end of 64 bits may differ by less than a float can tell
        parts = lengths < reach / before + reach / after
    return near & (whole | parts) & (lengths > 1)


def _candidates(starts: Ints, lengths: Ints, cuttable: NDArray[np.bool_], head: int, end: int) -> Ints:
    """Positions in one segment where the optimum may cut, with both its ends."""
    places = np.append(starts[head:end], starts[end - 1] + lengths[end - 1])
    inner = head + np.flatnonzero(cuttable[head:end])
    if inner.size == 0:
        return places
    inside = [np.arange(starts[r] + 1, starts[r] + lengths[r]) for r in inner.tolist()]
    return np.sort(np.concatenate([places, *inside]))


def _moments(values: NDArray[np.int64], places: Ints) -> tuple[list[int], list[int]]:
    """Exact prefix sums of the values and their squares at the given positions.

    Differences of prefix sums cancel almost completely in a long segment: floats would pick a clustering that is slightly
    worse, whole numbers do not.
    """
    part = values[places[0] : places[-1]]
    part = part - part[part.size // 2]
    if part.size * float(np.abs(part).max()) ** 2 < 2.0**62:
        first, second = np.cumsum(part), np.cumsum(part * part)
    else:
        exact = part.astype(object)
        first, second = np.cumsum(exact), np.cumsum(exact * exact)
    at = (places - places[0])[1:] - 1
    return [0, *first[at].tolist()], [0, *second[at].tolist()]


def _best_cuts(values: NDArray[np.int64], places: Ints, penalty: float) -> Ints:
    """Indices into `places` of the optimal inner cuts of one segment (least-weight subsequence, monotone queue)."""
    position = (places - places[0]).tolist()
    first, second = _moments(values, places)
    last = len(position) - 1
    best = [0.0] * (last + 1)
    parent = [0] * (last + 1)
    queue = [0]  # candidates for the last cut; candidate queue[q] is the best one from end since[q] on
    since = [1]
    head = 0

    def cost(i: int, j: int) -> float:
        length, total = position[j] - position[i], first[j] - first[i]
        return float(best[i] + ((second[j] - second[i]) * length - total * total) / length + penalty / length)

    for j in range(1, last + 1):
        while head + 1 < len(queue) and since[head + 1] <= j:
            head += 1
        i = queue[head]
        best[j], parent[j] = cost(i, j), i
        if j == last:
            break
        while len(queue) > head + 1 and cost(j, max(since[-1], j + 1)) <= cost(queue[-1], max(since[-1], j + 1)):
            queue.pop()
            since.pop()
        rival = queue[-1]
        low = max(since[-1], j + 1)  # looking for the first end from which j beats the rival: gallop, then bisect
        high, step = low, 1
        while high <= last and cost(j, high) > cost(rival, high):
            low, high, step = high + 1, high + step, step * 2
        high = min(high, last + 1)
        while low < high:
            middle = (low + high) // 2
            if cost(j, middle) <= cost(rival, middle):
                high = middle
            else:
                low = middle + 1
        if low <= last:
            queue.append(j)
            since.append(low)
    cuts = []
    j = parent[last]
    while j > 0:
        cuts.append(j)
        j = parent[j]
    return np.array(cuts[::-1], dtype=np.int64)
