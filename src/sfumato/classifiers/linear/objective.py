"""Objective perturbation: fit a linear model whose training objective carries the noise.

Minimise ``Σ_u w_u l(y_u f·x_u) + λ/2 ‖f‖² + b·f`` with b of density ∝ exp(-β‖b‖) (Chaudhuri, Monteleoni & Sarwate 2011,
Algorithm 2, with weights). Guarantee and proof: `privacy.losses.objective_loss`. It needs ``‖x‖ <= 1`` from public bounds,
``|l'| <= 1``, ``0 <= l'' <= c``, a penalty on *every* coefficient (the intercept included), and the true minimum. What is
found here is only where the Meter starts to look for it: it goes on until the distance is certified, and charges for what
is left (`privacy.optimum`).

Rows with few entries among many (indicators of categories) have a small sum of absolute values S >= ‖x‖₁. There the noise is
Laplace per coordinate, density ∝ exp(-β‖b‖₁/S), at the same price: 2 S² of variance per coordinate, whatever the number d
of coordinates, where spherical noise has d + 1. The lesser is taken: a public choice.

Losses: logistic (c = 1/4) and the Huber hinge of half-width 1/2 (c = 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import BudgetError, InputError
from sfumato.privacy.objective import Floats, LossKind, Objective
from sfumato.privacy.optimum import Perturbation
from sfumato.privacy.units import Nano

COEFFICIENT_NORM = 10.0  # the penalty is chosen so that noise alone moves the coefficients by about this much at most


def minimise(objective: Objective, noise: Floats, *, most_steps: int = 200) -> Floats:
    """The minimum, as far as the value of the objective tells: Newton's method with a line search."""
    f = np.zeros(noise.size)
    scale = max(1.0, float(objective.weights.sum()), float(np.linalg.norm(noise)))
    now = objective.value(f, noise)
    for _ in range(most_steps):
        gradient, step = objective.newton(f, noise)
        if float(np.linalg.norm(gradient)) <= 1e-9 * scale:
            return np.asarray(f - step)  # one more step: what is left of the gradient squares
        length, drop = 1.0, float(gradient @ step)
        # Loss, penalty and noise may cancel, so the value is known to about this much, however small it is itself.
        rounding = 1e-14 * scale * (1.0 + float(np.linalg.norm(f)))
        while length > 1e-12 and objective.value(f - length * step, noise) > now - 1e-4 * length * drop + rounding:
            length /= 2
        f = f - length * step
        now = objective.value(f, noise)
    return f


@dataclass(frozen=True)
class Calibration:
    """Penalty λ and noise rate β that together cost one full-weight record a given ε."""

    by: Perturbation
    moves: int

    @property
    def penalty(self) -> float:
        return self.by.penalty

    @property
    def beta(self) -> float:
        return self.by.beta

    @property
    def length(self) -> float | None:
        """S if the noise is Laplace per coordinate."""
        return self.by.length

    def loss(self, weights: Floats) -> NDArray[np.int64]:
        return self.by.loss(weights, moves=self.moves)

    def weights(self, levels: NDArray[np.int64]) -> Floats:
        """The largest weight up to one that each budget level pays for."""
        low, high = np.zeros(levels.size), np.ones(levels.size)
        for _ in range(60):
            middle = (low + high) / 2
            fits = self.loss(middle) <= levels
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return np.where(self.loss(np.ones(levels.size)) <= levels, 1.0, low)


def calibrate(
    nano: Nano,
    *,
    kind: LossKind,
    dimension: int,
    moves: int = 1,
    regularization: float = 1.0,
    length: float = np.inf,
    rows: int = 0,
) -> Calibration:
    """Largest β with ``moves β + ln(1 + c/λ) <= ε`` and λ = max(regularization, d/(β B)), or max(regularization, S/β) if
    the rows are short in ‖·‖₁ (`length`): noise alone then moves a coefficient by about one. `rows` is their public number.

    The published recipe spends up to half of a small ε on the curvature term; tying λ to the noise spends little.

    >>> found = calibrate(10**9, kind="logistic", dimension=10)
    >>> round(found.beta, 3), round(found.penalty, 3)
    (0.814, 1.228)
    >>> calibrate(10**9, kind="logistic", dimension=100, length=2.0).length
    2.0
    """
    if nano < 1:
        raise BudgetError("a budget of 0 cannot train a model")
    if not (np.isfinite(regularization) and regularization > 0):
        raise InputError(f"regularization must be a positive number, got {regularization!r}")
    short = 2 * length**2 < dimension + 1
    size = length if short else dimension / COEFFICIENT_NORM

    def at(beta: float) -> Calibration:
        penalty = max(regularization, size / beta)
        by = Perturbation(kind, dimension, penalty, beta, length=length if short else None, rows=rows)
        return Calibration(by, moves)

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
