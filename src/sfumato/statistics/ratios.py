"""Intervals of a share from two noisy parts, for any data (Fieller 1954, with the exact law of the noise).

With the true parts ``lower = n (1 - u)`` and ``upper = n u`` the number ``(1 - u) upper - u lower`` is 0. Its noisy version
is therefore noise alone: a sum of two Laplace variables of scales ``(1 - u) s`` and ``u s``, whose tail is known in closed
form. All u for which it is not too large make the interval; it covers with exactly the probability its tail was cut for,
whatever the data. Where the group may be empty it is the whole range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_GRID = 129
_NEAR = 12.0  # sizes in noise scales above which the ends are found one by one, not on the grid


def laplace_pair_tail(x: Floats, first: Floats, second: Floats) -> Floats:
    """P(|X| > x) for a sum of two independent Laplace variables.

    >>> bool(np.isclose(laplace_pair_tail(np.array(3.0), np.array(1.0), np.array(0.0)), np.exp(-3.0)))
    True
    """
    a, b = np.maximum(first, second), np.minimum(first, second)
    b = np.where(b > 0.999 * a, 0.999 * a, b)  # two equal scales are the limit of two that nearly are
    low = np.where(b > 0, np.exp(-x / np.where(b > 0, b, 1.0)), 0.0)
    return np.asarray((a**2 * np.exp(-x / a) - b**2 * low) / (a**2 - b**2))


def laplace_quantile(scales: Sequence[float], confidence: float) -> float:
    """x with ``P(|X| <= x) = confidence`` for a sum of a few independent Laplace variables, in closed form.

    Different scales a make the tail ``Σ_i exp(-x / a_i) Π_{j≠i} a_i² / (a_i² - a_j²)``. Scales that are nearly equal are
    drawn apart by 0.3%, upwards, so that the quantile is never too small.

    >>> round(laplace_quantile([1.0], 0.95), 3), round(laplace_quantile([1.0, 1.0], 0.95), 2)
    (2.996, 4.12)
    """
    apart: list[float] = []
    for scale in sorted(s for s in scales if s > 1e-12 * max(scales)):
        apart.append(max(scale, 1.003 * apart[-1]) if apart else scale)
    if not apart:
        return 0.0
    weights = [math.prod(a * a / (a * a - b * b) for b in apart if b != a) for a in apart]
    low, high = 0.0, 40.0 * sum(apart)
    for _ in range(60):
        middle = (low + high) / 2
        tail = sum(w * math.exp(-middle / a) for w, a in zip(weights, apart, strict=True))
        low, high = (middle, high) if tail > 1 - confidence else (low, middle)
    return high


@lru_cache(maxsize=8)
def _quantiles(confidence: float) -> tuple[Floats, Floats]:
    """The u of a grid, and x with ``P(|(1 - u) X - u Y| <= x) = confidence`` for Laplace noise of scale one."""
    u = np.linspace(0.0, 1.0, _GRID)
    low, high = np.zeros(_GRID), np.full(_GRID, 60.0)
    for _ in range(60):
        middle = (low + high) / 2
        beyond = laplace_pair_tail(middle, 1 - u, u) > 1 - confidence
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return u, high * 1.0002  # two nearly equal scales stand for two equal ones


def share_intervals(
    parts: Floats, scale: float, *, missing: float = 0.0, bias: float = 0.0, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Lower and upper ends of the share of the upper part, for every line of noisy parts (lower, upper).

    Parameters
    ----------
    parts : float array
        A line for every group.
    scale : float
        Of the Laplace noise of every part.
    missing : float
        So many rows may be missing from the two parts together.
    bias : float
        So far ``(1 - u) upper - u lower`` may be off on average in either direction.
    confidence : float

    Examples
    --------
    >>> low, high = share_intervals(np.array([[500.0, 1500.0], [1.0, 2.0]]), scale=1.0)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.749, 0.0], [0.751, 1.0])
    """
    u, quantile = _quantiles(confidence)
    rows = parts.sum(axis=1)
    low, high = np.zeros(len(parts)), np.ones(len(parts))
    reach = missing + bias + _NEAR * scale
    near = np.flatnonzero(rows <= reach)
    for block in np.array_split(near, -(-near.size // 20_000)) if near.size else ():
        inside = _inside(parts[block], u[None, :], quantile[None, :] * scale, missing, bias)
        known = inside.any(axis=1)
        step = 1 / (_GRID - 1)  # the interval may end anywhere between two points
        low[block] = np.where(known, np.maximum(u[inside.argmax(axis=1)] - step, 0.0), 0.0)
        high[block] = np.where(known, np.minimum(u[_GRID - 1 - inside[:, ::-1].argmax(axis=1)] + step, 1.0), 1.0)
    far = rows > reach
    if far.any():
        some = parts[far]
        middle = np.clip(some[:, 1] / rows[far], 0.0, 1.0)
        low[far], high[far] = (_end(some, middle, end, scale, missing, bias, u, quantile) for end in (0.0, 1.0))
    return low, high


def _inside(parts: Floats, u: Floats, half: Floats, missing: float, bias: float) -> NDArray[np.bool_]:
    """For which u the noise would not be too large."""
    found = (1 - u) * parts[:, 1:] - u * parts[:, :1]
    # Missing rows of the lower part raise it by u each, those of the upper part lower it by 1 - u.
    return np.asarray((found <= half + bias + u * missing) & (found >= -half - bias - (1 - u) * missing))


def _end(
    parts: Floats, inner: Floats, outer: float, scale: float, missing: float, bias: float, grid: Floats, quantile: Floats
) -> Floats:
    """Where the interval ends between a share that is inside and an end of the range."""
    within, beyond = inner.copy(), np.full(len(parts), outer)
    for _ in range(50):
        middle = (within + beyond) / 2
        half = scale * np.interp(middle, grid, quantile)
        inside = _inside(parts, middle[:, None], half[:, None], missing, bias)[:, 0]
        within, beyond = np.where(inside, middle, within), np.where(inside, beyond, middle)
    return beyond
