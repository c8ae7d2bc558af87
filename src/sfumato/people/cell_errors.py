"""The expected error of shrinking all cells together, at a given gap: an integral over the noise of every cell at once.

It has as many dimensions as there are noises, so it is a mean over the points of a Kronecker lattice (multiples of the roots
of primes, Richtmyer 1951): the same points every time, no generator. What is averaged is not the squared error itself but
its expectation given d, ``(ψ_j(d) - E[b_j + g_j | d_j])² + Var(g_j | d_j)``, both in closed form. A few percent are left.

More than `_MOST` cells are stood for by so many; those with and those without a gap are averaged apart and weighed.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.people.cell_shrinkage import CellShrinkage, _laplace

Floats = NDArray[np.float64]

_MOST = 512
_POINTS = 1600  # cells times draws
_FIRST = 1009  # multiples of roots of neighbouring primes are near each other at first


def error(cells: int, variance: float, reach: float, hit: int, gap: float) -> float:
    """Root mean square over the cells, in standard deviations of the safe noise.

    Parameters
    ----------
    cells : int
        How many cells.
    variance : float
        A², the same for every cell.
    reach : float
        All people, in scales of the safe noise.
    hit : int
        So many cells have a gap, spread evenly among the others, up and down in turn.
    gap : float
        b of these cells, in scales of the safe noise.

    Returns
    -------
    float

    Examples
    --------
    >>> bool(error(21, 0.09, 250.0, 0, 0.0) < 0.3)  # budgets independent of the values
    True
    >>> 0.9 < error(21, 0.09, 250.0, 21, 20.0) < 1.1  # every cell far off: the safe histogram
    True
    """
    return _error(int(cells), float(f"{variance:.3g}"), float(f"{reach:.2g}"), int(hit), float(f"{gap:.4g}"))


def worst(cells: int, variance: float, reach: float) -> float:
    """The largest `error` found over how many cells differ and by how much."""
    few = min(cells, 2)
    sizes = {few: (4.5, 7.0), some(cells): (2.5, 3.5, 5.0), cells: (1.6, 2.5)}
    return max(1.0, *(error(cells, variance, reach, hit, gap) for hit, gaps in sizes.items() for gap in gaps))


def some(cells: int) -> int:
    """Neither few nor all: about the root of their number."""
    return min(cells, max(2, round(1.5 * float(np.sqrt(cells)))))


@lru_cache(maxsize=1024)
def _error(cells: int, variance: float, reach: float, hit: int, gap: float) -> float:
    size = min(cells, _MOST)
    share = hit / cells
    standing = min(size, hit) if hit <= 2 else max(2, round(share * size))
    b = np.zeros(size)
    places = np.arange(standing) * size // max(1, standing)
    b[places] = np.where(np.arange(standing) % 2 == 0, gap, -gap)
    laplace, normal = _noise(size, -(-(_POINTS if hit else 3 * _POINTS) // size))
    beside = np.sqrt(variance) * normal + laplace
    known = _laplace(beside, np.asarray(max(variance, 1e-6)))[1]
    rest = max(0.0, variance - float(np.mean(known**2)))
    moved, _ = CellShrinkage((size,), np.full(size, variance), reach)(b + beside)
    squares = ((moved - b - known) ** 2).mean(axis=0) + rest
    off = b != 0
    mean = share * float(squares[off].mean()) if off.any() else 0.0
    if not off.all():
        mean += (1 - share) * float(squares[~off].mean())
    return float(np.sqrt(mean / 2))


@lru_cache(maxsize=8)
def _noise(cells: int, draws: int) -> tuple[Floats, Floats]:
    """Laplace and normal numbers at the lattice's points, one row per draw."""
    from scipy.special import ndtri

    roots = np.sqrt(_primes(2 * cells))
    points = np.outer(np.arange(_FIRST, _FIRST + draws), roots) % 1.0
    points = np.clip(points, 1e-12, 1 - 1e-12)
    first, second = points[:, :cells], points[:, cells:]
    laplace = np.sign(first - 0.5) * -np.log1p(-np.abs(2 * first - 1))
    return laplace, np.asarray(ndtri(second))


def _primes(many: int) -> Floats:
    limit = max(20, int(many * (np.log(many + 2) + np.log(np.log(many + 3)) + 1)))
    sieve = np.ones(limit, dtype=bool)
    sieve[:2] = False
    for number in range(2, int(limit**0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = False
    return np.flatnonzero(sieve)[:many].astype(np.float64)
