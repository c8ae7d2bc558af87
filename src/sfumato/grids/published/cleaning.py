"""Post-processing of noisy counts: no negative counts, and optionally a total or a threshold. Free: it sees no data."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError

Cleaning = Literal["clip", "norm-sub", "threshold"]


def clean(noisy: NDArray[np.int64], *, how: Cleaning, scale: float, total: float) -> NDArray[np.float64]:
    """Counts without negative values.

    - "clip": negative counts become 0 (the paper);
    - "norm-sub": a common amount is taken off so that, clipped, they add up to `total` (nearest in squared error);
    - "threshold": counts below twice the noise's `scale` become 0.

    >>> clean(np.array([5, -2, 1]), how="norm-sub", scale=1.0, total=4.0).tolist()
    [4.0, 0.0, 0.0]
    """
    counts = np.asarray(noisy, dtype=np.float64)
    if how == "clip":
        return np.maximum(counts, 0.0)
    if how == "threshold":
        return np.where(counts > 2.0 * scale, counts, 0.0)
    if how == "norm-sub":
        ordered = np.sort(counts.reshape(-1))[::-1]
        excess = (np.cumsum(ordered) - max(total, 0.0)) / np.arange(1, ordered.size + 1)
        kept = np.flatnonzero(ordered > excess)
        return np.maximum(counts - excess[kept[-1]], 0.0) if kept.size else np.zeros_like(counts)
    raise InputError(f"cleaning must be 'clip', 'norm-sub' or 'threshold', got {how!r}")
