"""Post-processing of noisy counts: no negative counts, and totals that are right. Free: it sees no data.

Setting negative counts to 0, as the paper does, biases what they add up to: each empty cell adds half of its noise. A rare
class has many empty cells, so its share comes out too large by far. With "classes" every class keeps the total that its
noisy counts have together, which is not biased.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError

Cleaning = Literal["classes", "clip", "norm-sub", "threshold"]
Floats = NDArray[np.float64]


def clean(noisy: NDArray[np.int64] | Floats, *, how: Cleaning, scale: float, total: float | Floats) -> Floats:
    """Counts without negative values.

    - "classes": as "norm-sub", each class (row) by itself, with its own `total`;
    - "clip": negative counts become 0 (the paper);
    - "norm-sub": a common amount is taken off so that, clipped, they add up to `total` (nearest in squared error);
    - "threshold": counts below twice the noise's `scale` become 0.

    >>> clean(np.array([5, -2, 1]), how="norm-sub", scale=1.0, total=4.0).tolist()
    [4.0, 0.0, 0.0]
    >>> clean(np.array([[5, -2, 1], [9, -1, -2]]), how="classes", scale=1.0, total=np.array([4.0, 6.0])).tolist()
    [[4.0, 0.0, 0.0], [6.0, 0.0, 0.0]]
    """
    counts = np.asarray(noisy, dtype=np.float64)
    if how == "clip":
        return np.maximum(counts, 0.0)
    if how == "threshold":
        return np.where(counts > 2.0 * scale, counts, 0.0)
    if how == "norm-sub":
        ordered = np.sort(counts.reshape(-1))[::-1]
        excess = (np.cumsum(ordered) - max(float(total), 0.0)) / np.arange(1, ordered.size + 1)
        kept = np.flatnonzero(ordered > excess)
        return np.maximum(counts - excess[kept[-1]], 0.0) if kept.size else np.zeros_like(counts)
    if how == "classes":
        each = zip(counts, np.broadcast_to(total, len(counts)), strict=True)
        return np.stack([clean(row, how="norm-sub", scale=scale, total=float(t)) for row, t in each])
    raise InputError(f"cleaning must be 'classes', 'clip', 'norm-sub' or 'threshold', got {how!r}")


def class_totals(figures: Sequence[tuple[Floats, float]]) -> tuple[Floats, float]:
    """How many records each class has (at least 0), and the standard deviation of that, from all that says so.

    A class's cells add up to its records without bias, but with the noise of all of them; class counts, and the counts of
    columns outside the grid, say the same with other noise. Least squares weighs each by its precision.

    Parameters
    ----------
    figures : pairs
        Unbiased estimates of all classes, each with the variance of one.

    Returns
    -------
    float array, float

    Examples
    --------
    >>> totals, sd = class_totals([(np.array([92.0, 10.0]), 4.0), (np.array([90.0, 8.0]), 4.0)])
    >>> totals.tolist(), round(sd, 2)
    ([91.0, 9.0], 1.41)
    """
    precision = np.array([1.0 / v for _, v in figures])
    found = np.average(np.stack([t for t, _ in figures]), axis=0, weights=precision)
    return np.maximum(found, 0.0), float(1.0 / np.sqrt(precision.sum()))
