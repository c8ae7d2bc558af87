"""Losses that are functions of what was done, always rounded up to whole nano-ε.

What is a product of known numbers is computed exactly; what needs a logarithm is evaluated in float64, widened by a
relative 1e-12 (thousands of roundings) and rounded up. So the integer that the Meter adds up is never below the true loss.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.privacy.units import NANO, Nano

_WIDEN = 1 + 1e-12
_MOST = 2.0**61  # nano-ε; above it no limit could be checked in 64 bits


def ceil_nano(nano: ArrayLike) -> NDArray[np.int64]:
    """Real nano-ε computed in float64, widened and rounded up.

    >>> ceil_nano([0.0, 1.5, 2.0]).tolist()
    [0, 2, 3]
    """
    values = np.asarray(nano, dtype=np.float64)
    if not np.isfinite(values).all() or (values < 0).any() or (values > _MOST).any():
        raise InputError("a privacy loss must be a finite number, not negative and not above any budget")
    return np.ceil(values * _WIDEN).astype(np.int64)


def product_up(factor: ArrayLike, rate: float) -> NDArray[np.int64]:
    """``factor * rate`` rounded up to whole nano-ε, exactly: nothing is charged that was not spent, and nothing forgotten.

    float64 gives the product p and, by splitting both factors into halves (Dekker 1971), the exact rest e of its
    rounding; the answer is the ceiling of p + e.

    >>> product_up([0.5, 0.1, 3], 10).tolist()  # as a float, 0.1 is a little more than one tenth
    [5, 2, 30]
    """
    a, b = np.asarray(factor, dtype=np.float64), np.float64(rate)
    product = a * b
    if not np.isfinite(product).all() or (product < 0).any() or (product > _MOST).any():
        raise InputError("a privacy loss must be a finite number, not negative and not above any budget")
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    rest = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    up = np.ceil(product)
    # Where p is not whole, the next whole number is at least one unit in the last place away, and e is at most half of it.
    return up.astype(np.int64) + np.where(up == product, np.ceil(rest), 0.0).astype(np.int64)


def _halves(x: Any) -> tuple[Any, Any]:
    far = x * 134217729.0  # 2**27 + 1
    high = far - (far - x)
    return high, x - high


def choice_rate(nano: Nano, spread: float) -> int:
    """The largest rate at which a choice among scores of this spread costs at most `nano`.

    >>> choice_rate(10**8, 1.178)
    84889643
    """
    if not (np.isfinite(spread) and spread > 0):
        raise InputError(f"the spread of the scores must be a positive number, got {spread!r}")
    rate = int(nano / Fraction(spread))
    if rate < 1:
        raise InputError(f"a budget of {nano} nano-ε is too small for scores of spread {spread}")
    return rate


def amplified(nano: NDArray[np.int64], probability: NDArray[np.float64]) -> NDArray[np.int64]:
    """Loss in a sample that keeps each record with `probability`: ``ln(1 + p (e^l - 1))``, never more than l.

    >>> amplified(np.array([10**9]), np.array([0.5])).tolist()
    [620114507]
    """
    loss = nano / NANO
    # Up to l = 700 nothing overflows and nothing cancels. Beyond it l + ln(p + (1 - p) e^-l) is safe: p is 0 or at least
    # 2**-63, so the logarithm takes away 44 at most. Who is never kept (p = 0) loses nothing.
    small = np.log1p(probability * np.expm1(np.minimum(loss, 700.0)))
    if not (loss > 700.0).any():
        return np.where(probability > 0, np.minimum(ceil_nano(small * NANO), nano), 0)
    large = loss + np.log(np.maximum(probability + (1 - probability) * np.exp(-np.maximum(loss, 700.0)), 1e-300))
    return np.where(probability > 0, np.minimum(ceil_nano(np.where(loss <= 700.0, small, large) * NANO), nano), 0)


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

    The same holds for b of density ∝ exp(-beta ‖b‖₁ / S) if every row has ‖x‖₁ <= S: blanking person u moves b by at most
    ``w_u S`` in that norm, which is the same factor, and the Jacobians do not know the noise. For rows of few entries among
    many (indicators) that is far less noise: √2 S per coordinate instead of the root of their number.

    >>> objective_loss([1.0], beta=0.1, curvature=0.25, penalty=10.0).tolist()
    [124692613]
    """
    w = np.asarray(weights, dtype=np.float64)
    if not (np.isfinite([beta, curvature, penalty]).all() and beta > 0 and curvature >= 0 and penalty > 0):
        raise InputError("objective perturbation needs beta > 0, curvature >= 0 and penalty > 0")
    return ceil_nano((moves * w * beta + np.log1p(curvature * w / penalty)) * NANO)


def output_loss(sensitivity: ArrayLike, *, beta: float) -> NDArray[np.int64]:
    """Loss of adding noise of density ∝ exp(-beta ‖b‖) to a vector of the given Euclidean sensitivity, in nano-ε.

    A beta written as a decimal is read as that decimal: noise and vector are float64 stand-ins for real numbers anyway.

    >>> output_loss([1.0, 0.5], beta=0.1).tolist()
    [100000000, 50000000]
    """
    if not (np.isfinite(beta) and beta > 0):
        raise InputError(f"beta must be a positive number, got {beta!r}")
    moved, inverse = np.unique(np.asarray(sensitivity, dtype=np.float64), return_inverse=True)
    if not np.isfinite(moved).all() or (moved < 0).any():
        raise InputError("sensitivities must be finite numbers, none negative")
    if moved.size > 1000:  # too many to be written by hand
        return ceil_nano(np.asarray(sensitivity, dtype=np.float64) * beta * NANO)
    nano = [math.ceil(Fraction(str(m)) * Fraction(str(beta)) * NANO) for m in moved.tolist()]
    if max(nano, default=0) > _MOST:
        raise InputError("this noise would cost more than any budget; check the unit of sensitivity and beta")
    return np.array(nano, dtype=np.int64)[inverse].reshape(np.shape(sensitivity))
