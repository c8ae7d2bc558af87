"""A regularised convex objective over records, and its gradient with a bound on what float64 makes of it.

``Σ_u w_u l(z_u·f) + λ/2 ‖f‖²`` for rows ``z = y x`` with ‖z‖ <= 1, where l is the logistic loss (curvature 1/4) or the Huber
hinge of half-width 1/2 (curvature 1); both have |l'| <= 1.

**How far a gradient is off.** With u = 2**-53: the margin ``z·f`` of k terms is off by at most ``δ = k u Σ_j |z_j f_j|``, in
any order of summation, which moves the slope by at most δ times the largest second derivative within δ of the margin;
evaluating the slope adds 4 u (the hyperbolic tangent is assumed within 4 units in the last place), the two products 2 u, and
a pairwise sum of n terms (what NumPy does along a contiguous axis, in runs of 128 with 8 sums each) fewer than
``20 + log2 n`` more. A row has norm at most one, so the norm of the error is at most
``Σ_u w_u (u (26 + log2 n) + c_u δ_u)``, and the last additions (penalty, noise) add ``4 u`` times their size.
`Objective.gradient` returns that number, a little widened for its own rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LossKind = Literal["logistic", "huber"]

HALF_WIDTH = 0.5
CURVATURE: dict[str, float] = {"logistic": 0.25, "huber": 1 / (2 * HALF_WIDTH)}
_BLOCK = 1 << 14
_ULP = 2.0**-53
_WIDEN = 1 + 2.0**-10


def loss_parts(kind: LossKind, margin: Floats) -> tuple[Floats, Floats, Floats]:
    """Loss and its first two derivatives at the margin ``y f·x``."""
    if kind == "logistic":
        # 1/(1 + e^z), written so that neither end overflows.
        miss = 0.5 * (1 - np.tanh(margin / 2))
        return np.logaddexp(0.0, -margin), -miss, miss * (1 - miss)
    h = HALF_WIDTH
    short = np.clip(1 + h - margin, 0.0, None)
    inside = np.abs(1 - margin) <= h
    value = np.where(inside, short**2 / (4 * h), np.where(margin < 1, 1 - margin, 0.0))
    return value, loss_slope(kind, margin), np.where(inside, 1 / (2 * h), 0.0)


def loss_slope(kind: LossKind, margin: Floats) -> Floats:
    """The first derivative of the loss at the margin."""
    if kind == "logistic":
        return np.asarray(0.5 * (np.tanh(margin / 2) - 1))
    return np.asarray(-np.clip((1 + HALF_WIDTH - margin) / (2 * HALF_WIDTH), 0.0, 1.0))


def _slope_error(kind: LossKind, margin: Floats, slope: Floats, away: Floats) -> Floats:
    """How far the slope is off where the margin is `away`: that, times the largest second derivative on the way."""
    if kind == "logistic":  # whose second derivative changes by no more than e^x over a distance x
        steepest = np.minimum((-slope * (1 + slope) + 4 * _ULP) * np.exp(np.minimum(away, 1.0)), CURVATURE[kind])
        steepest = np.where(away < 1.0, steepest, CURVATURE[kind])
    else:
        steepest = np.where(np.abs(1 - margin) <= HALF_WIDTH + 2 * away, CURVATURE[kind], 0.0)
    return np.asarray(np.minimum(steepest * away, 1.0))


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
        loss = loss_parts(self.kind, self.signed @ f)[0]
        return float(np.dot(self.weights, loss) + 0.5 * self.penalty * f @ f + noise @ f)

    def newton(self, f: Floats, noise: Floats) -> tuple[Floats, Floats]:
        """Gradient, as fast as it comes, and Newton step at `f`."""
        _, slope, bend = loss_parts(self.kind, self.signed @ f)
        gradient = np.asarray(self.signed.T @ (self.weights * slope) + self.penalty * f + noise)
        return gradient, np.linalg.solve(self._penalised(bend), gradient)

    def hessian(self, f: Floats) -> Floats:
        """The matrix of second derivatives at `f`."""
        return self._penalised(loss_parts(self.kind, self.signed @ f)[2])

    def gradient(self, f: Floats, noise: Floats) -> tuple[Floats, float]:
        """The gradient at `f`, with the noise, and how far from the true one its norm may be."""
        moved = 0.0
        if isinstance(self.signed, np.ndarray):
            parts, longest = [], self.signed.shape[1]
            for start in range(0, self.weights.size, _BLOCK):
                rows, weights = self.signed[start : start + _BLOCK], self.weights[start : start + _BLOCK]
                margin = rows @ f
                slope = loss_slope(self.kind, margin)
                parts.append(np.multiply(rows.T, weights * slope, order="C").sum(axis=1))
                moved += float(weights @ _slope_error(self.kind, margin, slope, np.abs(rows) @ np.abs(f) * (longest * _ULP)))
            total = np.array([math.fsum(column) for column in np.reshape(parts, (-1, f.size)).T])
        else:
            columns, longest = self.signed.tocsc(), int(np.diff(self.signed.indptr).max(initial=0))
            margin = self.signed @ f
            slope = loss_slope(self.kind, margin)
            each, ends = columns.data * (self.weights * slope)[columns.indices], columns.indptr
            total = np.array([each[ends[j] : ends[j + 1]].sum() for j in range(f.size)])
            away = abs(self.signed) @ np.abs(f) * (longest * _ULP)
            moved = float(self.weights @ _slope_error(self.kind, margin, slope, away))
        heavy = float(self.weights.sum())
        last = heavy + self.penalty * float(np.linalg.norm(f)) + float(np.linalg.norm(noise))
        error = _ULP * (heavy * (26 + math.log2(1 + self.weights.size)) + 4 * last) + moved
        return total + self.penalty * f + noise, error * _WIDEN

    def _penalised(self, bend: Floats) -> Floats:
        weights = self.weights * bend
        if isinstance(self.signed, np.ndarray):
            gram = np.asarray((self.signed * weights[:, None]).T @ self.signed)
        else:
            from scipy import sparse

            gram = np.asarray((self.signed.T @ (sparse.diags_array(weights) @ self.signed)).toarray())
        gram[np.diag_indices_from(gram)] += self.penalty
        return gram
