"""Objective perturbation: fit a linear model whose training objective carries the noise.

Minimise ``Σ_u w_u l(y_u f·x_u) + λ/2 ‖f‖² + b·f`` with b of density ∝ exp(-β‖b‖) (Chaudhuri, Monteleoni & Sarwate 2011,
Algorithm 2, with weights). Guarantee and proof: `privacy.losses.objective_loss`. It needs ``‖x‖ <= 1`` from public bounds,
``|l'| <= 1``, ``0 <= l'' <= c``, a penalty on *every* coefficient (the intercept included), and the true minimum: an
optimiser that does not converge is an error, not a model.

Rows with few entries among many (indicators of categories) have a small sum of absolute values S >= ‖x‖₁. There the noise is
Laplace per coordinate, density ∝ exp(-β‖b‖₁/S), at the same price: 2 S² of variance per coordinate, whatever the number d
of coordinates, where spherical noise has d + 1. The lesser is taken: a public choice.

What is released is the minimum on a public lattice (`rounded`). In float64 the noise takes few of all possible values, and
where nobody has a feature its coefficient is the noise over λ: the last digits would tell whether somebody has it (Mironov
2012). Rounding is post-processing, far coarser than those digits and far finer than the noise.

Losses: logistic (c = 1/4) and the Huber hinge of half-width 1/2 (c = 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import BudgetError, InputError, PrivacyError
from sfumato.privacy.losses import objective_loss
from sfumato.privacy.units import Nano

Floats = NDArray[np.float64]
Loss = Literal["logistic", "huber"]

HALF_WIDTH = 0.5
CURVATURE: dict[str, float] = {"logistic": 0.25, "huber": 1 / (2 * HALF_WIDTH)}
COEFFICIENT_NORM = 10.0  # the penalty is chosen so that noise alone moves the coefficients by about this much at most


def loss_parts(kind: Loss, margin: Floats) -> tuple[Floats, Floats, Floats]:
    """Loss and its first two derivatives at the margin ``y f·x``."""
    if kind == "logistic":
        # 1/(1 + e^z), written so that neither end overflows.
        miss = 0.5 * (1 - np.tanh(margin / 2))
        return np.logaddexp(0.0, -margin), -miss, miss * (1 - miss)
    h = HALF_WIDTH
    short = np.clip(1 + h - margin, 0.0, None)
    inside = np.abs(1 - margin) <= h
    value = np.where(inside, short**2 / (4 * h), np.where(margin < 1, 1 - margin, 0.0))
    slope = np.where(inside, -short / (2 * h), np.where(margin < 1, -1.0, 0.0))
    return value, slope, np.where(inside, 1 / (2 * h), 0.0)


def minimise(kind: Loss, signed: Any, weights: Floats, *, penalty: float, noise: Floats, most_steps: int = 200) -> Floats:
    """The minimum by Newton's method with a line search; `signed` holds the rows ``y x``, an array or a sparse matrix.

    Raises
    ------
    PrivacyError
        If the gradient does not vanish: the guarantee speaks of the minimum only.
    """
    f = np.zeros(signed.shape[1])

    def value(at: Floats) -> float:
        loss = loss_parts(kind, signed @ at)[0]
        return float(np.dot(weights, loss) + 0.5 * penalty * at @ at + noise @ at)

    scale = max(1.0, float(weights.sum()), float(np.linalg.norm(noise)))
    now = value(f)
    for _ in range(most_steps):
        _, slope, bend = loss_parts(kind, signed @ f)
        gradient = signed.T @ (weights * slope) + penalty * f + noise
        hessian = _weighted_gram(signed, weights * bend)
        hessian[np.diag_indices_from(hessian)] += penalty
        step = np.linalg.solve(hessian, gradient)
        if float(np.linalg.norm(gradient)) <= 1e-9 * scale:
            return np.asarray(f - step)  # one more step: what is left of the gradient squares
        length, drop = 1.0, float(gradient @ step)
        # Loss, penalty and noise may cancel, so the value is known to about this much, however small it is itself.
        rounding = 1e-14 * scale * (1.0 + float(np.linalg.norm(f)))
        while length > 1e-12 and value(f - length * step) > now - 1e-4 * length * drop + rounding:
            length /= 2
        f = f - length * step
        now = value(f)
    raise PrivacyError(
        "the optimiser did not reach the minimum, and only the minimum is private: nothing is released; "
        "raise the regularization or rescale the features"
    )


def rounded(model: Floats, scale: float) -> Floats:
    """Coefficients on the lattice whose step is the power of two below 2**-16 of `scale`, that of the noise (public).

    >>> rounded(np.array([0.1, -0.3]), 1.0) * 2**16
    array([  6554., -19661.])
    """
    step = 2.0 ** np.floor(np.log2(scale) - 16)
    return np.asarray(np.rint(model / step) * step + 0.0)


def _weighted_gram(rows: Any, weights: Floats) -> Floats:
    if isinstance(rows, np.ndarray):
        return np.asarray((rows * weights[:, None]).T @ rows)
    from scipy import sparse

    return np.asarray((rows.T @ (sparse.diags_array(weights) @ rows)).toarray())


@dataclass(frozen=True)
class Calibration:
    """Penalty λ and noise rate β that together cost one full-weight record a given ε."""

    penalty: float
    beta: float
    curvature: float
    moves: int
    length: float | None = None  # S if the noise is Laplace per coordinate

    @property
    def scale(self) -> float:
        """That of the noise on the coefficient of a feature that nobody has."""
        return (1.0 if self.length is None else self.length) / (self.beta * self.penalty)

    def loss(self, weights: Floats) -> NDArray[np.int64]:
        return objective_loss(weights, beta=self.beta, curvature=self.curvature, penalty=self.penalty, moves=self.moves)

    def weights(self, levels: NDArray[np.int64]) -> Floats:
        """The largest weight up to one that each budget level pays for."""
        low, high = np.zeros(levels.size), np.ones(levels.size)
        for _ in range(60):
            middle = (low + high) / 2
            fits = self.loss(middle) <= levels
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return np.where(self.loss(np.ones(levels.size)) <= levels, 1.0, low)


def calibrate(
    nano: Nano, *, kind: Loss, dimension: int, moves: int = 1, regularization: float = 1.0, length: float = np.inf
) -> Calibration:
    """Largest β with ``moves β + ln(1 + c/λ) <= ε`` and λ = max(regularization, d/(β B)), or max(regularization, S/β) if
    the rows are short in ‖·‖₁ (`length`): noise alone then moves a coefficient by about one.

    The published recipe spends up to half of a small ε on the curvature term; tying λ to the noise spends little.

    >>> found = calibrate(10**9, kind="logistic", dimension=10)
    >>> round(found.beta, 3), round(found.penalty, 3)
    (0.815, 1.228)
    >>> calibrate(10**9, kind="logistic", dimension=100, length=2.0).length
    2.0
    """
    if nano < 1:
        raise BudgetError("a budget of 0 cannot train a model")
    if not (np.isfinite(regularization) and regularization > 0):
        raise InputError(f"regularization must be a positive number, got {regularization!r}")
    curvature = CURVATURE[kind]
    short = 2 * length**2 < dimension + 1
    size = length if short else dimension / COEFFICIENT_NORM

    def at(beta: float) -> Calibration:
        return Calibration(max(regularization, size / beta), beta, curvature, moves, length if short else None)

    low, high = 0.0, nano / 1e9 / moves
    for _ in range(80):
        middle = (low + high) / 2
        if middle <= 0 or middle == low:
            break
        if int(at(middle).loss(np.ones(1))[0]) <= nano:
            low = middle
        else:
            high = middle
    if low == 0.0:
        raise BudgetError(f"a budget of {nano} nano-ε is too small to train a model with this regularization")
    return at(low)
