"""Least-waste cuts by divide and conquer, vectorised.

Cost of a part from level a to level b (exclusive): ``W(a, b) = Σ_{a<=i<b} c_i (e_i - e_a)²``, from three prefix sums. With
``H(a) = D_{k-1}(a) - S2(a) + 2 e_a S1(a) - e_a² C(a)`` the candidate for a last part starting at a is, up to a term of b,

    H(a) - 2 S1(b) e_a + C(b) e_a²

W is Monge (for a < a' <= b < b' the difference ``W(a, ·) - W(a', ·)`` grows with b), so the leftmost best a never falls as b
grows. A minimum size only forbids large a (``C(b) - C(a) >= T``), which keeps that order: a longer prefix allows more.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_BLOCK = 1 << 14


def best_cuts(epsilons: Floats, counts: Integers, parts: int, minimum_size: int) -> list[Integers]:
    """Cuts of the best partition into 1, 2, ... `parts` parts; shorter if the minimum size allows fewer."""
    groups = epsilons.size
    heads = np.concatenate([[0], np.cumsum(counts)]).astype(np.float64)
    # Costs do not change if all budgets are shifted; centring keeps the prefix sums small and exact enough.
    e = epsilons - epsilons.mean()
    s1 = np.concatenate([[0.0], np.cumsum(counts * e)])
    s2 = np.concatenate([[0.0], np.cumsum(counts * e * e)])
    # The last allowed start of a part that ends at b.
    last = np.searchsorted(heads, heads - max(1, minimum_size), side="right") - 1
    last = np.minimum(last, np.arange(groups + 1) - 1)

    base = -s2[:-1] + 2 * e * s1[:-1] - e * e * heads[:-1]
    thin = minimum_size <= 1 and bool((counts > 0).all())
    if last[groups] < 0:
        return []
    first = max(1, int(np.searchsorted(last, 0)))  # the shortest prefix that can be split into the parts so far
    value = np.full(groups + 1, np.inf)
    value[first:] = (s2 + heads * e[0] ** 2 - 2 * s1 * e[0])[first:]
    back = [np.zeros(groups + 1, dtype=np.int32)]
    found = [_trace(back, groups)]
    for _ in range(1, min(parts, groups)):
        start = max(first + 1, int(np.searchsorted(last, first)))
        if start > groups:
            break
        layer = _Layer(value[:-1] + base, e, s1, heads, last, first, thin)
        place = layer.solve(start, groups)
        pointer = np.zeros(groups + 1, dtype=np.int32)
        value = np.full(groups + 1, np.inf)
        for i in range(start, groups + 1, _BLOCK):  # block by block: what fits the cache is several times faster
            rows, at = slice(i, min(i + _BLOCK, groups + 1)), place[i - start : i - start + _BLOCK]
            pointer[rows] = layer.columns[at]
            value[rows] = layer.ce2[at] * heads[rows] - 2 * layer.ce[at] * s1[rows] + layer.ch[at] + s2[rows]
        back.append(pointer)
        found.append(_trace(back, groups))
        first = start
    return found


def _trace(back: list[NDArray[np.int32]], groups: int) -> Integers:
    cuts = [groups]
    for pointer in reversed(back):
        cuts.append(int(pointer[cuts[-1]]))
    return np.array(cuts[::-1], dtype=np.int64)


class _Layer:
    """One layer of the dynamic program: the best start of the last part, for every end b.

    Divide and conquer on the ends: once the best starts of two ends are known, those in between lie between them. Where
    both are the same nothing is left to do, and a start c between the starts a < z of the ends l < r is dropped for good
    unless it beats a at r and z at l (by Monge it can beat them nowhere in between otherwise). On real budgets few starts
    survive, those after a wide gap, so most of the work is the first few scans.
    """

    def __init__(self, h: Floats, e: Floats, s1: Floats, heads: Floats, last: Integers, first: int, thin: bool) -> None:
        self.h, self.e = h, e
        self.slope, self.heads, self.last = -2 * s1, heads, last
        self.columns = np.arange(first, h.size)
        if thin:
            self._thin_out()
        # The starts that may still win, side by side in memory.
        self.ch, self.ce = h[self.columns], e[self.columns]
        self.ce2 = self.ce * self.ce

    def _thin_out(self) -> None:
        """Drop starts that a neighbour beats at every end.

        With p < a < q, a beats p at b iff ``Q(p,a) + (e_p+e_a) C(b) <= 2 S1(b)`` and q iff ``2 S1(b) <= Q(a,q) + (e_a+e_q)
        C(b)``, Q the slope of H in e. Both at once need ``Q(p,a) - Q(a,q) <= (e_q - e_p) C(b)``. The best start of an end
        beats both its neighbours, so it is never dropped, however many are dropped together.
        """
        blocks = [self._thinned(self.columns[i : i + _BLOCK]) for i in range(0, self.columns.size, _BLOCK)]
        self.columns = self._thinned(np.concatenate(blocks))

    def _thinned(self, columns: Integers) -> Integers:
        top = float(self.heads[-1]) * (1 + 1e-12)
        while columns.size > 64:
            h, e = self.h[columns], self.e[columns]
            q = (h[1:] - h[:-1]) / (e[1:] - e[:-1])
            keep = np.ones(e.size, dtype=bool)
            keep[1:-1] = q[:-1] - q[1:] <= (e[2:] - e[:-2]) * top + 1e-12 * np.abs(q[:-1])
            columns = columns[keep]
            if columns.size > 0.8 * keep.size:
                break
        return columns

    def at(self, place: Integers, b: Integers) -> Floats:
        """Cost of the starts at these places for ends b, up to a term of b; infinite where the part would be too small."""
        value = self.ce2[place] * self.heads[b]
        value += self.ce[place] * self.slope[b]
        value += self.ch[place]
        value[self.columns[place] > self.last[b]] = np.inf
        return value

    def solve(self, low: int, high: int) -> Integers:
        """Best starts for the ends low..high, as places among the columns."""
        best = np.full(high - low + 1, -1, dtype=np.int64)
        pillars = np.unique(np.linspace(low, high, 2 + min(998, self.columns.size // 400)).astype(np.int64))
        self._pillars(best, low, pillars)
        tasks = [self._between(best, low, int(x), int(y)) for x, y in pairwise(pillars)]
        left = _Tasks.joined([t for t in tasks if t is not None])
        while left is not None and left.left.size:
            left = self._halve(left, best, low)
        # Ends that were never looked at lie between two ends with the same best start.
        return np.maximum.accumulate(best)

    def _pillars(self, best: Integers, low: int, rows: Integers) -> None:
        """Scan a few ends by plain divide and conquer, on contiguous slices."""
        limit = np.searchsorted(self.columns, self.last[rows], side="right") - 1
        todo = [(0, rows.size - 1, 0, self.columns.size - 1)]
        while todo:
            i, j, a, z = todo.pop()
            if i > j:
                continue
            m = (i + j) // 2
            row = int(rows[m])
            best[row - low] = found = a + int(np.argmin(self._slice(row, a, min(z, int(limit[m])))))
            todo += [(i, m - 1, a, found), (m + 1, j, found, z)]

    def _slice(self, b: int, left: int, right: int) -> Floats:
        s = slice(left, right + 1)
        value = self.ce2[s] * self.heads[b]
        value += self.ce[s] * self.slope[b]
        value += self.ch[s]
        return np.asarray(value)

    def _between(self, best: Integers, low: int, x: int, y: int) -> _Tasks | None:
        """The open question between two neighbouring pillars, with the starts that may still win."""
        a, z = int(best[x - low]), int(best[y - low])
        if a == z or y - x < 2:
            return None
        at_x, at_y = self._slice(x, a, z), self._slice(y, a, z)
        at_x[self.columns[a : z + 1] > self.last[x]] = np.inf
        keep = (at_x <= at_x[-1]) & (at_y <= at_y[0])
        starts = np.flatnonzero(keep)
        return _Tasks(np.array([x]), np.array([y]), np.array([starts.size]), starts + a, at_x[keep], at_y[keep])

    def _halve(self, tasks: _Tasks, best: Integers, low: int) -> _Tasks:
        """Decide the middle end of every task and split it in two."""
        middle = (tasks.left + tasks.right) // 2
        row = np.repeat(np.arange(tasks.size.size), tasks.size)
        offset = np.cumsum(tasks.size) - tasks.size
        value = self.at(tasks.starts, middle[row])
        least = np.minimum.reduceat(value, offset)
        hits = np.flatnonzero(value == least[row])
        won = hits[np.concatenate([[True], np.diff(row[hits]) > 0])]  # the leftmost best of each task
        best[middle - low] = tasks.starts[won]

        place = np.arange(tasks.starts.size)
        end = offset + tasks.size - 1
        lower = (place <= won[row]) & (value <= value[offset][row]) & (tasks.at_left <= tasks.at_left[won][row])
        upper = (place >= won[row]) & (value <= value[end][row]) & (tasks.at_right <= tasks.at_right[won][row])
        one = tasks.child(tasks.left, middle, row, lower, tasks.at_left, value)
        two = tasks.child(middle, tasks.right, row, upper, value, tasks.at_right)
        both = _Tasks.joined([one, two])
        assert both is not None
        return both


@dataclass(frozen=True, eq=False)
class _Tasks:
    """Pairs of decided ends with undecided ones between them; the starts that may win, and their costs at both ends."""

    left: Integers
    right: Integers
    size: Integers
    starts: Integers
    at_left: Floats
    at_right: Floats

    def child(
        self, left: Integers, right: Integers, row: Integers, keep: NDArray[np.bool_], at_left: Floats, at_right: Floats
    ) -> _Tasks:
        size = np.bincount(row[keep], minlength=left.size)
        # One start left, or no end in between: decided.
        alive = (size > 1) & (right - left > 1)
        keep = keep & alive[row]
        return _Tasks(left[alive], right[alive], size[alive], self.starts[keep], at_left[keep], at_right[keep])

    @classmethod
    def joined(cls, tasks: list[_Tasks]) -> _Tasks | None:
        if not tasks:
            return None
        return cls(*(np.concatenate([getattr(t, f.name) for t in tasks]) for f in fields(cls)))
