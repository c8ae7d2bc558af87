"""A regularised convex objective over records, and its gradient with a bound on what float64 makes of it.

``Σ_u w_u l(z_u·f) + λ/2 ‖f‖²`` for rows ``z = y x`` with ‖z‖ <= 1, where l is the logistic loss (curvature 1/4) or the Huber
hinge of half-width 1/2 (curvature 1); both have |l'| <= 1.

**How far a gradient is off.** Let u be half a unit in the last place, 2**-53 for float64. A pairwise sum of n products (what
NumPy does along a contiguous axis: halves, down to runs of 128 with 8 sums each) is off by less than ``u (21 + log2 n)``
times the sum of their sizes; in any order by at most ``u n`` times it. So the margin ``z·f`` of k terms is off by at most
``δ = u t(k) Σ_j |z_j f_j|``, where t is the smaller of the two, which moves the slope by at most δ times the largest second
derivative within δ of the margin. Evaluating the slope adds 4 u (the hyperbolic tangent is assumed within 4 units in the
last place), its weight u, the sums over the rows of a block and over the blocks ``r = 42 + log2 n`` together. A row has norm
at most one, so the error has at most norm ``Σ_u w_u (u (5 + r) + c_u δ_u)``; adding penalty and noise costs a few u more.
`Objective.gradient` returns that number, a little widened for its own rounding. In `WIDE` numbers (80 bits on most machines)
u is 2**-64. Rows of indicators are added up in another way, with another r and t: `coded_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy.coded_rows import CodedRows
from sfumato.privacy.rows import Floats as Floats
from sfumato.privacy.rows import NumberRows, blocks

LossKind = Literal["logistic", "huber"]

HALF_WIDTH = 0.5
CURVATURE: dict[str, float] = {"logistic": 0.25, "huber": 1 / (2 * HALF_WIDTH)}
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
    signed : array, NumberRows or CodedRows
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
    signed: Floats | NumberRows | CodedRows
    weights: Floats
    penalty: float

    @cached_property
    def rows(self) -> NumberRows | CodedRows:
        """The rows, and beside them their sides."""
        return NumberRows(self.signed) if isinstance(self.signed, np.ndarray) else self.signed

    def value(self, f: Floats, noise: Floats) -> float:
        """The objective at `f`, with the noise ``b·f``."""
        loss = sum(float(self.weights[part] @ loss_value(self.kind, margin)) for part, margin in self._margins(f))
        return float(loss + 0.5 * self.penalty * f @ f + noise @ f)

    def slope(self, f: Floats, noise: Floats) -> Floats:
        """The gradient, as fast as it comes: where to go, and not where one is."""
        pieces: list[Floats] = []
        for part, margin in self._margins(f):
            found = self.rows.collected(part, self._sided(self.weights[part] * loss_slope(self.kind, margin), part))
            pieces = [a + b for a, b in zip(pieces, found, strict=True)] if pieces else found
        return (self.rows.unpacked(pieces) if pieces else 0.0) + self.penalty * f + noise

    def hessian(self, f: Floats) -> Floats:
        """The matrix of second derivatives at `f`."""
        gram = self.rows.gram(self._bends(f))
        gram[np.diag_indices_from(gram)] += self.penalty
        return gram

    def curvatures(self, f: Floats) -> Floats:
        """The diagonal of the same."""
        return self.rows.squares(self._bends(f)) + self.penalty

    def thinned(self, step: int) -> Objective:
        """Of every so many-th row alone, which weigh as much as all did."""
        weights = self.weights[::step]
        some = float(weights.sum())
        return replace(
            self, signed=self.rows[::step], weights=weights * (float(self.weights.sum()) / some if some > 0 else 1.0)
        )

    def gradient(self, f: Floats, noise: Floats, *, numbers: type[Any] = np.float64) -> tuple[Floats, float]:
        """The gradient at `f`, with the noise, and how far from the true one its norm may be; computed in these numbers."""
        ulp = float(np.finfo(numbers).eps) / 2
        at = f.astype(numbers)
        parts, moved = [np.zeros(f.size, dtype=numbers)], 0.0
        margins = self.rows.careful_margins(at)
        for part in blocks(self.weights.size):
            plain, reach = margins(part)
            margin, weights = self._sided(plain, part), self.weights[part]
            slope = loss_slope(self.kind, margin)
            parts.append(self.rows.careful_sum(part, self._sided(weights * slope, part)))
            moved += float(weights @ _slope_error(self.kind, margin, slope, np.asarray(reach * ulp, dtype=np.float64), ulp))
        total = np.ascontiguousarray(np.transpose(parts)).sum(axis=1)
        heavy = float(self.weights.sum())
        last = heavy + self.penalty * float(np.linalg.norm(f)) + float(np.linalg.norm(noise))
        error = ulp * (heavy * (5 + self.rows.roundings) + 4 * last) + moved
        gradient = np.asarray(total + self.penalty * at + noise, dtype=np.float64)
        return gradient, (error + 2.0**-53 * float(np.linalg.norm(gradient))) * _WIDEN

    def _margins(self, f: Floats) -> Iterator[tuple[slice, Floats]]:
        margins = self.rows.margins(f)
        return ((part, self._sided(margins(part), part)) for part in blocks(self.weights.size))

    def _sided(self, numbers: NDArray[Any], part: slice) -> NDArray[Any]:
        """Numbers times the sides of their rows, which rounds nothing."""
        return numbers if self.rows.sides is None else numbers * self.rows.sides[part]

    def _bends(self, f: Floats) -> Floats:
        """The second derivative of every row's loss, times its weight; none for a row on no side."""
        found = np.empty(self.weights.size)
        for part, margin in self._margins(f):
            found[part] = self.weights[part] * loss_bend(self.kind, margin)
        return found if self.rows.sides is None else found * np.abs(self.rows.sides)
