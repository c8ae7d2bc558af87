"""A regularised convex objective over records, and its gradient with a bound on what float64 makes of it.

``Σ_u w_u l(z_u·f) + λ/2 ‖f‖²`` for rows ``z = y x`` with ‖z‖ <= 1, where l is the logistic loss (curvature 1/4) or the Huber
hinge of half-width 1/2 (curvature 1); both have |l'| <= 1.

**How far a gradient is off.** Let u be half a unit in the last place, 2**-53 for float64. A pairwise sum of n products (what
NumPy does along a contiguous axis: halves, down to runs of 128 with 8 sums each) is off by less than ``u (21 + log2 n)``
times the sum of their sizes; in any order by at most ``u n`` times it. So the margin ``z·f`` of k terms is off by at most
``δ = u t(k) Σ_j |z_j f_j|``, where t is the smaller of the two, which moves the slope by at most δ times the largest second
derivative within δ of the margin. Evaluating the slope adds 4 u (the hyperbolic tangent is assumed within 4 units in the
last place), its weight u, the sums over the rows of a block and over the blocks ``42 + log2 n`` together. A row has norm at
most one, so the error has at most norm ``Σ_u w_u (u (47 + log2 n) + c_u δ_u)``; adding penalty and noise costs a few u more.
`Objective.gradient` returns that number, a little widened for its own rounding. In `WIDE` numbers (80 bits on most machines)
u is 2**-64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LossKind = Literal["logistic", "huber"]

HALF_WIDTH = 0.5
CURVATURE: dict[str, float] = {"logistic": 0.25, "huber": 1 / (2 * HALF_WIDTH)}
_BLOCK = 1 << 14
WIDE: type[Any] = np.longdouble
_WIDEN = 1 + 2.0**-10


def loss_value(kind: LossKind, margin: Floats) -> Floats:
    """The loss at the margin ``y f·x``."""
    if kind == "logistic":
        return np.logaddexp(0.0, -margin)
    short = np.clip(1 + HALF_WIDTH - margin, 0.0, None)
    inside = np.abs(1 - margin) <= HALF_WIDTH
    return np.where(inside, short**2 / (4 * HALF_WIDTH), np.where(margin < 1, 1 - margin, 0.0))


def loss_slope(kind: LossKind, margin: Floats) -> Floats:
    """The first derivative of the loss at the margin."""
    if kind == "logistic":  # -1/(1 + e^z), written so that neither end overflows
        return np.asarray(0.5 * (np.tanh(margin / 2) - 1))
    return np.asarray(-np.clip((1 + HALF_WIDTH - margin) / (2 * HALF_WIDTH), 0.0, 1.0))


def loss_bend(kind: LossKind, margin: Floats) -> Floats:
    """The second derivative of the loss at the margin."""
    if kind == "logistic":
        slope = loss_slope(kind, margin)
        return np.asarray(-slope * (1 + slope))
    return np.where(np.abs(1 - margin) <= HALF_WIDTH, CURVATURE[kind], 0.0)


def _slope_error(kind: LossKind, margin: Any, slope: Any, away: Floats, ulp: float) -> Floats:
    """How far the slope is off where the margin is `away`: that, times the largest second derivative on the way."""
    if kind == "logistic":  # whose second derivative changes by no more than e^x over a distance x
        steepest = np.minimum((-slope * (1 + slope) + 4 * ulp) * np.exp(np.minimum(away, 1.0)), CURVATURE[kind])
        steepest = np.where(away < 1.0, steepest, CURVATURE[kind])
    else:
        steepest = np.where(np.abs(1 - margin) <= HALF_WIDTH + 2 * away, CURVATURE[kind], 0.0)
    return np.minimum(np.asarray(steepest, dtype=np.float64) * away, 1.0)


@dataclass(frozen=True, eq=False)
class Objective:
    """The objective of one table.

    Parameters
    ----------
    kind : "logistic" or "huber"
    signed : array or sparse matrix
        The rows ``y x``, each of Euclidean norm at most one.
    weights : float array
        What each row weighs.
    penalty : float
        The factor λ of ‖f‖²/2.

    Examples
    --------
    >>> alone = Objective("huber", np.array([[1.0]]), np.ones(1), 2.0)
    >>> gradient, error = alone.gradient(np.array([0.25]), noise=np.zeros(1))
    >>> gradient.tolist(), bool(error < 1e-14)
    ([-0.5], True)
    """

    kind: LossKind
    signed: Any
    weights: Floats
    penalty: float

    def value(self, f: Floats, noise: Floats) -> float:
        """The objective at `f`, with the noise ``b·f``."""
        loss = loss_value(self.kind, self.signed @ f)
        return float(np.dot(self.weights, loss) + 0.5 * self.penalty * f @ f + noise @ f)

    def newton(self, f: Floats, noise: Floats) -> tuple[Floats, Floats]:
        """Gradient, as fast as it comes, and Newton step at `f`."""
        margin = self.signed @ f
        slope = loss_slope(self.kind, margin)
        gradient = np.asarray(self.signed.T @ (self.weights * slope) + self.penalty * f + noise)
        return gradient, np.linalg.solve(self._penalised(loss_bend(self.kind, margin)), gradient)

    def hessian(self, f: Floats) -> Floats:
        """The matrix of second derivatives at `f`."""
        return self._penalised(loss_bend(self.kind, self.signed @ f))

    def gradient(self, f: Floats, noise: Floats, *, numbers: type[Any] = np.float64) -> tuple[Floats, float]:
        """The gradient at `f`, with the noise, and how far from the true one its norm may be; computed in these numbers."""
        ulp = float(np.finfo(numbers).eps) / 2
        at, n = f.astype(numbers), self.weights.size
        parts, moved = [np.zeros(f.size, dtype=numbers)], 0.0
        sums = self._dense_sums if isinstance(self.signed, np.ndarray) else self._sparse_sums
        for part, margin, slope, weights, reach in sums(at):
            parts.append(part)
            moved += float(weights @ _slope_error(self.kind, margin, slope, np.asarray(reach * ulp, dtype=np.float64), ulp))
        total = np.ascontiguousarray(np.transpose(parts)).sum(axis=1)
        heavy = float(self.weights.sum())
        last = heavy + self.penalty * float(np.linalg.norm(f)) + float(np.linalg.norm(noise))
        error = ulp * (heavy * (47 + math.log2(1 + n)) + 4 * last) + moved
        gradient = np.asarray(total + self.penalty * at + noise, dtype=np.float64)
        return gradient, (error + 2.0**-53 * float(np.linalg.norm(gradient))) * _WIDEN

    def _dense_sums(self, f: NDArray[Any]) -> Iterator[tuple[Any, Any, Any, Floats, Any]]:
        """Block by block: the sum of the slopes times the rows, margins, slopes, weights, and the reach of the rounding."""
        k = f.size
        terms = min(k, k / 8 + 11, 21 + math.log2(k))
        for start in range(0, self.weights.size, _BLOCK):
            rows, weights = self.signed[start : start + _BLOCK].astype(f.dtype), self.weights[start : start + _BLOCK]
            each = rows * f
            margin = each.sum(axis=1)
            slope = loss_slope(self.kind, margin)
            part = np.multiply(rows.T, weights * slope, order="C").sum(axis=1)
            yield part, margin, slope, weights, np.abs(each, out=each).sum(axis=1) * terms

    def _sparse_sums(self, f: NDArray[Any]) -> Iterator[tuple[Any, Any, Any, Floats, Any]]:
        """The same, all rows at once."""
        rows = self.signed.astype(f.dtype)
        columns, longest = rows.tocsc(), int(np.diff(rows.indptr).max(initial=0))
        margin = rows @ f
        slope = loss_slope(self.kind, margin)
        each, ends = columns.data * (self.weights * slope)[columns.indices], columns.indptr
        part = np.array([each[ends[j] : ends[j + 1]].sum() for j in range(f.size)], dtype=f.dtype)
        yield part, margin, slope, self.weights, abs(rows) @ np.abs(f) * longest

    def _penalised(self, bend: Floats) -> Floats:
        weights = self.weights * bend
        if isinstance(self.signed, np.ndarray):
            gram = np.asarray((self.signed * weights[:, None]).T @ self.signed)
        else:
            from scipy import sparse

            gram = np.asarray((self.signed.T @ (sparse.diags_array(weights) @ self.signed)).toarray())
        gram[np.diag_indices_from(gram)] += self.penalty
        return gram
