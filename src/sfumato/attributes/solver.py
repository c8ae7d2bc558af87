"""Minimise a convex loss f(z) subject to ``B z <= 1`` and ``0 < z <= 1``, with a certificate.

*Method.* Primal-dual interior-point Newton on a working set of rows; rows that the answer violates join it until none is
left (row generation), so a hundred thousand rows cost a few matrix products. Rows of B that sum to at most 1 never bind.

*Certificate.* f is convex, so ``f(y) >= f(z) + g·(y - z)`` with g the gradient at z. For any multipliers λ >= 0 and any
feasible y, ``λ·(B y - 1) <= 0``; adding it and minimising over the box 0 <= y <= 1 column by column gives

    f(y) >= f(z) - g·z - Σ λ + Σ_j min(0, (g + Bᵀλ)_j)      for every feasible y,

whatever λ is: the bound is checked, not trusted. The multipliers of the method make it tight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes.utility import Utility, Vector

_CHUNK = 1 << 16
_CENTRING = 0.1
_STEPS = 120


@dataclass(frozen=True)
class Solution:
    """A feasible point (up to float64 rounding), its loss and a proven lower bound on any feasible loss."""

    z: Vector
    loss: float
    bound: float
    rows_used: int
    rounds: int


def _products(rows: NDArray[Any], x: Vector) -> Vector:
    """``rows @ x`` in blocks, so that narrow integer rows are never widened all at once."""
    return np.concatenate([rows[i : i + _CHUNK].astype(np.float64) @ x for i in range(0, rows.shape[0], _CHUNK)])


def minimise(
    rows: NDArray[Any], column_scale: Vector, utility: Utility, *, units: Vector, tolerance: float = 1e-9
) -> Solution:
    """Minimise ``utility(units * z)`` over ``(rows * column_scale) z <= 1``, ``0 < z <= 1``.

    Parameters
    ----------
    rows : integer matrix
        Rows of the catalogue; ``B = rows * column_scale``.
    units : array
        ``x = units * z`` turns the scaled variable into rates.

    Examples
    --------
    >>> both = np.array([[1, 1]])
    >>> s = minimise(both, np.ones(2), Utility.power([1, 1], 1), units=np.ones(2))
    >>> s.z.round(6).tolist(), round(s.loss, 6)
    ([0.5, 0.5], 4.0)
    """
    m = column_scale.size
    ones = np.ones(m)
    loads = _products(rows, column_scale) if rows.shape[0] else np.zeros(0)
    binding = np.flatnonzero(loads > 1.0)
    if not binding.size:
        loss = float(utility.value(units))
        return Solution(ones, loss, loss, 0, 0)
    rows, loads = rows[binding], loads[binding]
    heaviest = np.argsort(-loads)[: 2 * m]
    working = np.union1d(heaviest, np.unique(rows.argmax(axis=0)))
    start = ones * (0.5 / loads.max())
    rounds = 0
    while True:
        rounds += 1
        B = rows[working].astype(np.float64) * column_scale
        z, bound = _interior(B, utility, units, start, tolerance)
        reach = _products(rows, column_scale * z)
        violated = np.flatnonzero(reach > 1.0 + tolerance / 10)
        if not violated.size:
            break
        add = violated[np.argsort(-reach[violated])[: 3 * m]]
        start = z * (0.9 / reach.max())
        working = np.union1d(working, add)
    z = np.minimum(z / max(1.0, float(reach.max())), 1.0)
    return Solution(z, float(utility.value(units * z)), bound, int(working.size), rounds)


def _interior(B: Vector, utility: Utility, units: Vector, z: Vector, tolerance: float) -> tuple[Vector, float]:
    """The optimum over the rows of B from a strictly feasible z, and the best certified bound on the way.

    Slacks and multipliers are variables of their own: computed as ``1 - B z`` they would lose all digits near the end.
    """
    k, m = B.shape
    size = max(abs(float(utility.value(units * z))), 1e-300)  # the loss is divided by it: weights of any size behave
    slack = np.concatenate([1.0 - B @ z, 1.0 - z, z])
    dual = np.full(k + 2 * m, 1.0) / (slack.size * slack)
    best, stalled = -np.inf, 0
    for _ in range(_STEPS):
        x = units * z
        loss, gradient = float(utility.value(x)), units * utility.gradient(x)
        bound = _certified(B, loss / size, gradient / size, z, dual[:k]) * size
        # Rounding ends the progress at some point; the proven bound so far stays.
        stalled = 0 if bound > best + tolerance / 10 * abs(loss) else stalled + 1
        best = max(best, bound)
        if loss - best <= tolerance * max(abs(loss), 1e-300) or stalled > 8:
            break
        second = np.asarray(utility.hessian(x), dtype=np.float64) / size
        curvature = np.diag(units**2 * second) if second.ndim == 1 else np.outer(units, units) * second
        target = _CENTRING * float(slack @ dual) / slack.size
        stationarity = gradient / size + _transposed(B, dual)
        wanted = target / slack - dual
        H = curvature + (B.T * (dual / slack)[:k]) @ B
        H[np.diag_indices(m)] += (dual / slack)[k : k + m] + (dual / slack)[k + m :]
        # Equilibrated: entries of H differ by twenty orders of magnitude between free and clamped attributes.
        d = 1.0 / np.sqrt(np.diagonal(H))
        try:
            step = d * np.linalg.solve(H * np.outer(d, d), -d * (stationarity + _transposed(B, wanted)))
        except np.linalg.LinAlgError:  # singular to working precision: z is feasible and the bound proven, so stop here
            break
        push = np.concatenate([B @ step, step, -step])
        dual_step = wanted + dual / slack * push
        length = min(_inside(slack, -push), _inside(dual, dual_step))
        norm = _residual(stationarity, slack * dual - target)
        while length > 1e-9:
            z_new, slack_new, dual_new = z + length * step, slack - length * push, dual + length * dual_step
            g_new = units * utility.gradient(units * z_new) / size
            if _residual(g_new + _transposed(B, dual_new), slack_new * dual_new - target) <= (1 - 0.01 * length) * norm:
                break
            length /= 2
        else:
            break
        z, slack, dual = z_new, slack_new, dual_new
    return z, best


def _transposed(B: Vector, dual: Vector) -> Vector:
    k, m = B.shape
    return np.asarray(B.T @ dual[:k] + dual[k : k + m] - dual[k + m :])


def _residual(stationarity: Vector, centring: Vector) -> float:
    return float(np.sqrt(stationarity @ stationarity + centring @ centring))


def _inside(values: Vector, change: Vector) -> float:
    """The longest step, at most 1, that keeps 1% of every value."""
    falling = change < 0
    return min(1.0, 0.99 * float((values[falling] / -change[falling]).min())) if falling.any() else 1.0


def _certified(B: Vector, loss: float, gradient: Vector, z: Vector, multipliers: Vector) -> float:
    reduced = gradient + B.T @ multipliers
    return loss - float(gradient @ z) - float(multipliers.sum()) + float(np.minimum(reduced, 0.0).sum())
