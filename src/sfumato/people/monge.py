"""Least-waste cuts by divide and conquer, vectorised.

Cost of a part from level a to level b (exclusive): ``W(a, b) = Σ_{a<=i<b} c_i (e_i - e_a)²``, from three prefix sums. With
``H(a) = D_{k-1}(a) - S2(a) + 2 e_a S1(a) - e_a² C(a)`` the candidate for a last part starting at a is, up to a term of b,

    H(a) - 2 S1(b) e_a + C(b) e_a²

W is Monge (for a < a' <= b < b' the difference ``W(a, ·) - W(a', ·)`` grows with b), so the leftmost best a never falls as b
grows. A minimum size only forbids large a (``C(b) - C(a) >= T``), which keeps that order: a longer prefix allows more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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

    base = np.append(-s2[:-1] + 2 * e * s1[:-1] - e * e * heads[:-1], np.inf)
    value = np.full(groups + 1, np.inf)
    value[0] = 0.0
    back: list[NDArray[np.int32]] = []
    found: list[Integers] = []
    first = 0
    for _ in range(min(parts, groups)):
        rows = np.flatnonzero(last >= first)
        rows = rows[rows > first]
        if rows.size == 0 or rows[-1] != groups:
            break
        layer = _Layer(value[:-1] + base[:-1], e, s1, heads, last, first)
        best = layer.solve(int(rows[0]), groups)
        pointer = np.zeros(groups + 1, dtype=np.int32)
        pointer[rows[0] :] = best
        back.append(pointer)
        row = np.arange(rows[0], groups + 1)
        value = np.full(groups + 1, np.inf)
        value[rows[0] :] = layer.at(best, row) + s2[row]
        first = int(rows[0])
        found.append(_trace(back, groups))
    return found


def _trace(back: list[NDArray[np.int32]], groups: int) -> Integers:
    cuts = [groups]
    for pointer in reversed(back):
        cuts.append(int(pointer[cuts[-1]]))
    return np.array(cuts[::-1], dtype=np.int64)


class _Layer:
    """One layer of the dynamic program: the best start of the last part, for every end b."""

    def __init__(self, h: Floats, e: Floats, s1: Floats, heads: Floats, last: Integers, first: int) -> None:
        self.h, self.e, self.e2 = h, e, e * e
        self.slope, self.heads = -2 * s1, heads
        self.last, self.first = last, first

    def at(self, a: Integers, b: Integers) -> Floats:
        return np.asarray(self.h[a] + self.e[a] * self.slope[b] + self.e2[a] * self.heads[b])

    def solve(self, low: int, high: int) -> Integers:
        """Best starts for ends low..high, level by level of the recursion."""
        best = np.full(high - low + 1, -1, dtype=np.int64)
        stride = 1 << max(0, int(high - low)).bit_length()
        while stride >= 1:
            ends = np.arange(low + stride - 1, high + 1, 2 * stride)
            if ends.size:
                at = ends - low
                left = np.where(at - stride >= 0, best[np.maximum(at - stride, 0)], self.first)
                right_known = at + stride <= high - low
                right = np.where(right_known, best[np.minimum(at + stride, high - low)], high)
                right = np.where(right_known & (right >= 0), right, high)
                best[at] = self._scan(ends, np.maximum(left, self.first), np.minimum(right, self.last[ends]))
            stride //= 2
        return best

    def _scan(self, ends: Integers, left: Integers, right: Integers) -> Integers:
        """The leftmost best start within [left, right] for each end."""
        if ends.size <= 256:
            return np.array([self._one(b, i, j) for b, i, j in zip(ends, left, right, strict=True)], dtype=np.int64)
        out = np.empty(ends.size, dtype=np.int64)
        width = right - left + 1
        total = np.cumsum(width)
        block = 1 << 20
        start = 0
        while start < ends.size:
            done = int(total[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(total, done + block, side="right")))
            out[start:stop] = self._ragged(ends[start:stop], left[start:stop], width[start:stop])
            start = stop
        return out

    def _one(self, b: int, left: int, right: int) -> int:
        s = slice(left, right + 1)
        value = self.e2[s] * self.heads[b]
        value += self.e[s] * self.slope[b]
        value += self.h[s]
        return int(left + np.argmin(value))

    def _ragged(self, ends: Integers, left: Integers, width: Integers) -> Integers:
        offset = np.cumsum(width) - width
        row = np.repeat(np.arange(ends.size), width)
        a = np.arange(int(width.sum())) + (left - offset)[row]
        value = self.e2[a] * self.heads[ends][row]
        value += self.e[a] * self.slope[ends][row]
        value += self.h[a]
        least = np.minimum.reduceat(value, offset)
        hit = np.flatnonzero(value == least[row])
        which, at = np.unique(row[hit], return_index=True)
        assert which.size == ends.size
        return np.asarray(a[hit[at]])
