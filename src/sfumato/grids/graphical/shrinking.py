"""How far noisy counts are drawn towards what is expected without them.

Of a table with noisy counts y and expected counts m the estimate n solves, cell by cell,

    n + s · log(n / m) = y.

Counts far above the *softness* s are taken as they are, those below it are drawn towards m, and none is negative. How soft a
table should be depends on how good an expectation m is, and the noisy counts themselves say so: if the noise had a normal
distribution of standard deviation σ,

    Σ (n − y)² + 2 σ² Σ dn/dy − cells · σ²,      dn/dy = n / (n + s)

would estimate the squared error of the n without bias (Stein, *Estimation of the mean of a multivariate normal
distribution*, 1981), and it comes close to that for other noise. The softness is the one for which it is least; since a few
counts say little about it, every doubling away from the scale of Laplace noise has to gain the noise of one count.
"""

from __future__ import annotations

import numpy as np

from sfumato.grids.graphical.marginal import Floats

_TRIED = 2.0 ** np.arange(-3, 5)  # softness over noise; beyond the ends little changes but the time of the fit
_LEAST = 1e-9  # records that are expected anywhere: shares can underflow


def shrunk(counts: Floats, expected: Floats, softness: float) -> Floats:
    """The solution t of ``expected · exp(t) + softness · t = counts``, cell by cell: the log of estimate over expected.

    Newton's method from the right of the root of a convex growing function does not overshoot.

    >>> shrunk(np.array([1000.0, 0.0]), np.array([500.0, 1.0]), 1.0).round(3).tolist()
    [0.692, -0.567]
    """
    expected = np.maximum(expected, _LEAST)
    t = np.where(counts > expected, np.log(np.maximum(counts, expected) / expected), 0.0)
    for _ in range(60):
        grown = expected * np.exp(t)
        step = (grown + softness * t - counts) / (grown + softness)
        t = t - step
        if np.abs(step).max(initial=0.0) < 1e-10:
            break
    return np.asarray(t)


def best_softness(counts: Floats, expected: Floats, noise: float) -> float:
    """The softness with the least estimated error, for counts with this `noise`.

    >>> even = np.full(64, 50.0)
    >>> wave = np.resize([8.0, -8.0], 64)
    >>> best_softness(even + wave, even, 10.0) / 10  # all of it can be noise
    16.0
    >>> best_softness(np.resize([0.0, 100.0], 64) + wave, even, 10.0) / 10  # half of the cells are empty
    0.25
    """
    expected = np.maximum(expected, _LEAST)
    errors = []
    for soft in _TRIED * noise:
        found = expected * np.exp(shrunk(counts, expected, soft))
        away = float(abs(np.log2(np.sqrt(2.0) * soft / noise)))
        errors.append(float(((found - counts) ** 2).sum()) + noise**2 * (2 * float((found / (found + soft)).sum()) + away))
    return float(_TRIED[int(np.argmin(errors))] * noise)
