"""Combining what the parts say: numbers by precision, labels by vote, scores by averaging models.

All of it is post-processing of released values and public sizes, so it costs no privacy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.people.mechanisms.partitioned import least_squares_shares

__all__ = ["average_models", "generalised_least_squares", "inverse_variance", "least_squares_shares", "majority_vote"]


def inverse_variance(values: ArrayLike, variances: ArrayLike) -> tuple[float, float]:
    """The best unbiased combination of independent numbers, and its variance.

    >>> inverse_variance([1.0, 3.0], [1.0, 1.0])
    (2.0, 0.5)
    """
    v, s = np.asarray(values, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if v.shape != s.shape or v.ndim != 1 or v.size == 0 or (s <= 0).any():
        raise InputError("inverse_variance needs as many positive variances as values")
    precision = 1 / s
    return float(np.dot(precision, v) / precision.sum()), float(1 / precision.sum())


def generalised_least_squares(values: ArrayLike, covariance: ArrayLike) -> tuple[float, float]:
    """The same for numbers that share people; weights are kept from being negative.

    >>> generalised_least_squares([1.0, 3.0], [[1.0, 0.0], [0.0, 3.0]])
    (1.5, 0.75)
    """
    v, c = np.asarray(values, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
    if c.shape != (v.size, v.size):
        raise InputError(f"a covariance of shape {c.shape} for {v.size} values")
    share = least_squares_shares(c)
    return float(np.dot(share, v)), float(share @ c @ share)


def majority_vote(labels: ArrayLike, weights: ArrayLike | None = None) -> NDArray[np.int64]:
    """The class that most parts name, for each record; `labels` has one row per part. The lowest class wins a tie.

    >>> majority_vote([[0, 1, 2], [0, 1, 1], [1, 1, 1]]).tolist()
    [0, 1, 1]
    """
    votes = np.asarray(labels, dtype=np.int64)
    if votes.ndim != 2 or votes.size == 0 or votes.min() < 0:
        raise InputError("labels need one row per part and class numbers from 0")
    weight = np.ones(votes.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    tally = np.stack([(weight[:, None] * (votes == c)).sum(axis=0) for c in range(int(votes.max()) + 1)])
    return np.asarray(tally.argmax(axis=0))


def average_models(coefficients: ArrayLike, weights: ArrayLike) -> NDArray[np.float64]:
    """One model whose scores are the weighted mean of the parts' scores (scores are linear in the coefficients)."""
    c, w = np.asarray(coefficients, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    return np.asarray(np.tensordot(w / w.sum(), c, axes=1))
