"""Which margins of a table to measure, and at which part of ε: a public plan for the least error of all margins asked.

A margin A (a set of columns; the empty one is the total) is measured as the counts of its cells with white noise of
variance ``v_A``. Split the margin of B into effects: ``θ_B`` is what is left of the counts over B when all smaller
margins are taken out. White noise is white in every orthonormal basis, so the effects of different B have independent
errors, and every measured A that contains B gives an estimate of θ_B with the variance ``v_A N(A \\ B)`` per coordinate,
N(X) being the number of cells over the columns X: summing out a column adds up that many noises. The best linear
combination weighs each by the inverse of its variance and has, per coordinate,

    τ_B = 1 / Σ_{A ⊇ B} 1 / (v_A N(A \\ B)),

and a cell of the margin S, the sum of its effects, has the variance ``Σ_{B ⊆ S} τ_B Π_{i in B}(1 - 1/n_i) / N(S \\ B)²``.
This is the residual basis of Xiao, He, Zhang & Kifer (ResidualPlanner, 2023), here with Laplace noise.

*Split.* A record sits in one cell of every margin, so margins measured at rates r_A cost ``Σ r_A`` together; with shares
s_A of ε, ``v_A = 2 / (s_A ε)²``. The mean over the margins asked of the variance of a cell is then a function of the
shares alone, made least by a quasi-Newton method from several starts. It is not convex (noise adds up in variance, ε in
full), so the answer need not be the very best; it is never worse than the plans it starts from: the largest margins
alone, and equal parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Columns = tuple[int, ...]
"""Columns by their position, in order."""

PARTS = 10_000
"""Shares are whole parts of this: the same plan on every machine."""

_FEW = 64  # candidates; with more of them fewer plans are tried


def subsets(columns: Sequence[int], most: int | None = None) -> list[Columns]:
    """Every set of up to `most` of the columns, small ones first.

    >>> subsets([0, 1])
    [(), (0,), (1,), (0, 1)]
    """
    top = len(columns) if most is None else most
    return [c for size in range(top + 1) for c in combinations(columns, size)]


def cells(shape: Sequence[int], columns: Sequence[int]) -> int:
    """Number of cells over some columns."""
    return prod(shape[i] for i in columns)


@dataclass(frozen=True, eq=False)
class Precision:
    """What measured margins say about every margin, from the variance of each. See the module.

    Attributes
    ----------
    shape : tuple of int
        Cells of every column.
    variances : mapping of columns to float
        Of one cell of each measured margin.

    Examples
    --------
    >>> full = Precision((2, 3), {(0, 1): 2.0})
    >>> full.variance((0, 1)), full.variance((0,)), full.variance(())  # sums of the cells
    (2.0, 6.0, 12.0)
    """

    shape: tuple[int, ...]
    variances: Mapping[Columns, float]

    def weight(self, measured: Columns, effect: Columns) -> float:
        """The part that a measured margin has in the estimate of an effect."""
        return self.tau(effect) / (self.variances[measured] * cells(self.shape, [i for i in measured if i not in effect]))

    def tau(self, effect: Columns) -> float:
        """τ: the variance of one coordinate of an effect; infinite where nothing measured shows it."""
        known = sum(
            1 / (v * cells(self.shape, [i for i in measured if i not in effect]))
            for measured, v in self.variances.items()
            if set(effect) <= set(measured)
        )
        return 1 / known if known else float("inf")

    def variance(self, margin: Columns) -> float:
        """Of one cell of a margin; the same for all of them."""
        return float(sum(self.tau(b) * part for b, part in _parts(self.shape, margin).items() if part))

    def variance_if(self, margin: Columns, variances: Mapping[Columns, float]) -> float:
        """Of one cell of a margin where the measured margins have other variances than they were combined for."""
        return float(sum(variances[a] * c**2 * times for a, c, times in self.terms(margin)))

    def terms(self, margin: Columns) -> list[tuple[Columns, float, int]]:
        """What noise is in one cell of a margin: (measured margin, coefficient, how many noises with it).

        The coefficient of the noise in a cell of A depends on the columns of A and the margin in which the two cells agree.
        """
        found = []
        for measured in self.variances:
            common = tuple(i for i in margin if i in measured)
            beside = cells(self.shape, [i for i in measured if i not in margin])
            effects = [(b, self.weight(measured, b) / self._rest(margin, b)) for b in subsets(common)]
            for agree in subsets(common):
                signs = [prod((i in agree) - 1 / self.shape[i] for i in b) for b, _ in effects]
                coefficient = sum(w * sign for (_, w), sign in zip(effects, signs, strict=True))
                times = prod(self.shape[i] - 1 for i in common if i not in agree) * beside
                if times and coefficient:
                    found.append((measured, float(coefficient), times))
        return found

    def _rest(self, margin: Columns, effect: Columns) -> int:
        return cells(self.shape, [i for i in margin if i not in effect])


def _parts(shape: tuple[int, ...], margin: Columns) -> dict[Columns, float]:
    """How much of τ of each effect is in the variance of a cell of a margin."""
    return {
        b: prod(1 - 1 / shape[i] for i in b) / cells(shape, [i for i in margin if i not in b]) ** 2 for b in subsets(margin)
    }


@lru_cache(maxsize=64)
def planned_shares(shape: tuple[int, ...], asked: tuple[Columns, ...], most_cells: int = 10**6) -> dict[Columns, int]:
    """Shares of ε for the margins to measure, in parts of `PARTS`, for the least mean variance of a cell of those asked.

    Margins of more than `most_cells` cells are measured only if they are asked for themselves.

    >>> planned_shares((2, 2), ((0,), (1,), (0, 1)))  # so small a table is measured as it is
    {(0, 1): 10000}
    >>> list(planned_shares((50, 40), ((0,), (1,), (0, 1))))
    [(0,), (1,), (0, 1)]
    """
    several = [i for i, size in enumerate(shape) if size > 1]  # a column of one cell adds nothing to any margin
    wanted = {tuple(i for i in s if i in several) for s in asked}
    candidates = [a for a in subsets(several) if a in wanted or cells(shape, a) <= most_cells]
    top = np.array([float(a in wanted and not any(set(a) < set(s) for s in wanted)) for a in candidates])
    needed = sorted({b for s in wanted for b in subsets(s)}, key=lambda b: (len(b), b))
    place = {b: j for j, b in enumerate(needed)}
    gain = np.zeros(len(needed))
    for s in asked:
        for b, part in _parts(shape, s).items():
            if part:
                gain[place[b]] += part / len(asked)
    has_a, has_b = (np.array([[i in s for i in range(len(shape))] for s in sets]) for sets in (candidates, needed))
    logs = np.log(shape)
    inside = has_b.astype(int) @ (~has_a).T.astype(int) == 0
    known = np.where(inside, np.exp((has_b @ logs)[:, None] - (has_a @ logs)[None, :]), 0.0)

    def loss(shares: Floats) -> tuple[float, Floats]:
        """log of (mean variance times the square of all shares together), and its gradient."""
        precision = known @ shares**2 / 2 + 1e-30
        value, total = float(gain @ (1 / precision)), float(shares.sum()) + 1e-12
        slope = -(gain / precision**2) @ known * shares / value + 2 / total
        return float(np.log(value) + 2 * np.log(total)), np.asarray(slope)

    starts = _starts(candidates, top)
    best = min((_descended(loss, start) for start in starts), key=lambda s: loss(s)[0])
    plain = min((top, starts[1]), key=lambda s: loss(s)[0])  # as simple as it is good
    if loss(plain)[0] <= loss(best)[0] + 1e-6:
        best = plain
    return _whole(best, candidates, lambda shares: loss(shares)[0])


def _starts(candidates: list[Columns], top: Floats) -> list[Floats]:
    """Equal parts, the largest candidate, the largest margins asked, and these with one or two other sizes."""
    sizes = np.array([len(a) for a in candidates])
    groups = [top / top.sum(), *((sizes == size) / (sizes == size).sum() for size in np.unique(sizes))]
    largest = (np.arange(sizes.size) == sizes.size - 1).astype(np.float64)
    found = [np.ones(sizes.size), largest, groups[0] + 1e-3, *(groups[0] + g + 1e-3 for g in groups[1:])]
    if sizes.size <= _FEW:
        found += [groups[0] + g + h + 1e-3 for g, h in combinations(groups[1:], 2)]
        found += [largest + g + 1e-3 for g in groups[1:]]
    return [start / start.sum() for start in found]


def _descended(loss: object, start: Floats) -> Floats:
    from scipy import optimize  # slow to import

    bounds = [(0.0, None)] * start.size
    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 300})
    return np.asarray(found.x / found.x.sum()) if found.x.sum() > 0 else start


def _whole(shares: Floats, candidates: list[Columns], loss: object) -> dict[Columns, int]:
    """Shares as whole parts; a margin that gets less than a thousandth is left out if that does not hurt."""
    assert callable(loss)
    share = shares / shares.sum()
    kept = np.where(share < 1e-3, 0.0, share)
    if kept.sum() == 0 or loss(kept) > loss(share) + 1e-3:
        kept = np.maximum(share, 1 / PARTS)
    parts = np.floor(kept / kept.sum() * PARTS).astype(np.int64)
    parts[int(np.argmax(parts))] += PARTS - int(parts.sum())
    return {a: int(p) for a, p in zip(candidates, parts.tolist(), strict=True) if p > 0}
