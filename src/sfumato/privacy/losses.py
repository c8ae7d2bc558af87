"""Losses that are real-valued functions of what was done, always rounded up to whole nano-ε.

Each is evaluated in float64, widened by a relative 1e-12 (thousands of roundings) and then rounded up, so the integer that
the Meter adds up is never below the true loss.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.privacy.units import NANO

_WIDEN = 1 + 1e-12


def ceil_nano(nano: ArrayLike) -> NDArray[np.int64]:
    """Real nano-ε, widened and rounded up.

    >>> ceil_nano([0.0, 1.5]).tolist()
    [0, 2]
    """
    values = np.asarray(nano, dtype=np.float64)
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError("a privacy loss must be a finite number, not negative")
    nearest = np.rint(values)
    # A product of whole numbers below 2**53 is exact: widening it would charge one nano-ε that was never spent.
    whole = (values == nearest) & (values < 2.0**52)
    return np.where(whole, nearest, np.ceil(values * _WIDEN)).astype(np.int64)


def choice_rate(nano: int, spread: float) -> int:
    """The largest rate at which a choice among scores of this spread costs at most `nano`.

    >>> choice_rate(10**8, 1.178)
    84889643
    """
    if not (np.isfinite(spread) and spread > 0):
        raise InputError(f"the spread of the scores must be a positive number, got {spread!r}")
    rate = int(nano / spread)
    while rate > 0 and int(ceil_nano(rate * spread)) > nano:
        rate -= 1
    if rate < 1:
        raise InputError(f"a budget of {nano} nano-ε is too small for scores of spread {spread}")
    return rate


def amplified(nano: NDArray[np.int64], probability: NDArray[np.float64]) -> NDArray[np.int64]:
    """Loss in a sample that keeps each record with `probability`: ``ln(1 + p (e^l - 1))``, never more than l.

    >>> amplified(np.array([10**9]), np.array([0.5])).tolist()
    [620114507]
    """
    loss = nano / NANO
    # For large l, ln(p e^l + 1 - p) = l + ln(p + (1 - p) e^-l) does not overflow.
    small = np.log1p(probability * np.expm1(np.minimum(loss, 1.0)))
    large = loss + np.log(np.maximum(probability + (1 - probability) * np.exp(-np.maximum(loss, 1.0)), 1e-300))
    up = np.ceil(np.where(loss <= 1.0, small, np.maximum(large, 0.0)) * NANO * _WIDEN).astype(np.int64)
    return np.minimum(up, nano)


def objective_loss(
    weights: ArrayLike, *, beta: float, curvature: float, penalty: float, moves: int = 1
) -> NDArray[np.int64]:
    """Loss of objective perturbation with personal weights, in nano-ε per weight.

    Minimise ``Σ w_u l(f; x_u, y_u) + penalty/2 ‖f‖² + b·f`` with b of density ∝ exp(-beta ‖b‖), ‖x‖ <= 1, |l'| <= 1 and
    0 <= l'' <= curvature. Given the released f the noise is determined, ``b = -Σ w ∇l - penalty f``, so the ratio of
    output densities is a ratio of noise densities times a ratio of Jacobians. Blanking person u moves b by at most w_u
    (factor ``exp(w_u beta)``) and takes a rank-one term with eigenvalue at most ``curvature w_u`` out of the Hessian, whose
    other eigenvalues are at least `penalty` (factor at most ``1 + curvature w_u / penalty``). Replacement moves b twice as
    far, and of the two Hessian factors only one can work against us, the other being below one
    (Chaudhuri, Monteleoni & Sarwate 2011, with weights).

    >>> objective_loss([1.0], beta=0.1, curvature=0.25, penalty=10.0).tolist()
    [124692613]
    """
    w = np.asarray(weights, dtype=np.float64)
    if not (np.isfinite([beta, curvature, penalty]).all() and beta > 0 and curvature >= 0 and penalty > 0):
        raise InputError("objective perturbation needs beta > 0, curvature >= 0 and penalty > 0")
    return ceil_nano((moves * w * beta + np.log1p(curvature * w / penalty)) * NANO)


def output_loss(sensitivity: ArrayLike, *, beta: float) -> NDArray[np.int64]:
    """Loss of adding noise of density ∝ exp(-beta ‖b‖) to a vector of the given Euclidean sensitivity, in nano-ε."""
    if not (np.isfinite(beta) and beta > 0):
        raise InputError(f"beta must be a positive number, got {beta!r}")
    return ceil_nano(np.asarray(sensitivity, dtype=np.float64) * beta * NANO)
