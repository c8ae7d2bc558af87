"""How far a released histogram is from the truth: shape (KLD), ranges (MSE), bins (L1). For experiments only.

**The rule for zeros in KLD.** ``KLD(p, q) = Σ p ln(p/q)`` is infinite where a released share is 0 and undefined where it is
negative. The rule, named wherever a figure is shown: cut the released counts at 0, divide by their sum (uniform if nothing
is left), then mix with the uniform distribution, ``q <- (1 - λ) q + λ/n`` with λ = 1e-4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

KLD_MIX = 1e-4
KLD_RULE = "counts cut at 0, normalised, mixed with uniform at 1e-4"


def kld(true: ArrayLike, released: ArrayLike, *, mix: float = KLD_MIX) -> float:
    """Kullback-Leibler divergence of the released shape from the true one, in nats.

    >>> kld([1, 1], [5, 5]), round(kld([1, 0], [0, 1]), 3)
    (0.0, 9.903)
    """
    p = np.asarray(true, dtype=np.float64).reshape(-1)
    q = np.maximum(np.asarray(released, dtype=np.float64).reshape(-1), 0.0)
    total = q.sum()
    q = q / total if total > 0 else np.full(q.size, 1.0 / q.size)
    q = (1 - mix) * q + mix / q.size
    p = p / p.sum()
    seen = p > 0
    return float((p[seen] * np.log(p[seen] / q[seen])).sum())


def range_mse(true: ArrayLike, released: ArrayLike, low: NDArray[np.int64], high: NDArray[np.int64]) -> float:
    """Mean squared error over the range queries [low, high).

    >>> range_mse([1, 2, 3], [1, 2, 5], np.array([0, 1]), np.array([2, 3]))
    2.0
    """
    error = np.asarray(released, dtype=np.float64).reshape(-1) - np.asarray(true, dtype=np.float64).reshape(-1)
    prefix = np.concatenate([[0.0], np.cumsum(error)])
    return float(((prefix[high] - prefix[low]) ** 2).mean())


def l1(true: ArrayLike, released: ArrayLike) -> float:
    """Sum of absolute errors per record, released counts cut at 0.

    >>> l1([2, 2], [3, -1])
    0.75
    """
    x = np.asarray(true, dtype=np.float64).reshape(-1)
    return float(np.abs(np.maximum(np.asarray(released, dtype=np.float64).reshape(-1), 0.0) - x).sum() / x.sum())
