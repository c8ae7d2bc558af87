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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import BudgetError, InputError
from sfumato.privacy.objective import Floats, LossKind, Objective
from sfumato.privacy.optimum import Perturbation
from sfumato.privacy.units import Nano

SAMPLE = 1 << 15  # rows that show where the minimum of more of them is, nearly
ENOUGH = 2.0**-49  # of the gradient, for each row: what is left of it then is rounding (`privacy.optimum` allows 2**-46)
PATIENCE = 16  # steps after which second derivatives of all rows pay
COEFFICIENT_NORM = 10.0  # the penalty is chosen so that noise alone moves the coefficients by about this much at most


def minimise(objective: Objective, noise: Floats) -> Floats:
    """The minimum, as far as float64 tells.

    Many rows are looked at last: Newton's method on every so many-th of them finds a start and the matrix of second
    derivatives, and from there a few gradients of all rows are enough (`_descend`). What the sample says of the curvature
    is corrected by the steps themselves, so it decides about the speed and not about the end.
    """
    rows, dimension = objective.rows.shape
    step = rows // max(SAMPLE, 16 * dimension)
    if step < 2:
        return _newton(objective, noise)
    some = objective.thinned(step)
    start = _newton(some, noise)
    return _descend(objective, noise, start, some.hessian(start))


def _newton(objective: Objective, noise: Floats, *, most_steps: int = 200) -> Floats:
    """Newton's method with a line search."""
    f = np.zeros(noise.size)
    scale = max(1.0, float(objective.weights.sum()), float(np.linalg.norm(noise)))
    now = objective.value(f, noise)
    for _ in range(most_steps):
        gradient = objective.slope(f, noise)
        step = np.linalg.solve(objective.hessian(f), gradient)
        if float(np.linalg.norm(gradient)) <= 1e-9 * scale:
            return np.asarray(f - step)  # one more step: what is left of the gradient squares
        length, drop = 1.0, float(gradient @ step)
        # Loss, penalty and noise may cancel, so the value is known to about this much, however small it is itself.
        rounding = 1e-14 * scale * (1.0 + float(np.linalg.norm(f)))
        there = objective.value(f - length * step, noise)
        while length > 1e-12 and there > now - 1e-4 * length * drop + rounding:
            length /= 2
            there = objective.value(f - length * step, noise)
        f, now = f - length * step, there
    return f


def _descend(objective: Objective, noise: Floats, start: Floats, matrix: Floats, *, most_steps: int = 60) -> Floats:
    """Quasi-Newton steps (L-BFGS) from a `start` near the minimum, with a `matrix` near the second derivatives.

    A feature that is rarer in the sample than among all rows would be given too much way: it gets its own second
    derivative. If the steps do not soon reach the end, the matrix of all rows takes the place of the sample's.
    """
    f, enough = start, ENOUGH * max(1.0, float(objective.weights.sum()), float(np.linalg.norm(noise)))
    diagonal = np.diag_indices_from(matrix)
    own = objective.curvatures(f)
    matrix[diagonal] += np.where(own > 1.5 * matrix[diagonal], own - matrix[diagonal], 0.0)
    inverse, moves = np.linalg.inv(matrix), _Moves()
    gradient = objective.slope(f, noise)
    for taken in range(1, most_steps + 1):
        left = float(np.linalg.norm(gradient))
        if left <= enough:
            break
        if taken % PATIENCE == 0:
            inverse, moves = np.linalg.inv(objective.hessian(f)), _Moves()
        step = moves.step(gradient, inverse)
        fall, low, high, length = float(gradient @ step), 0.0, np.inf, 1.0
        for _ in range(40):  # as far as the slope along the step has not turned
            there = f - length * step
            after = objective.slope(there, noise)
            ahead = -float(after @ step)
            if ahead > 0.5 * fall:
                high = length
            elif ahead < -0.9 * fall and high < np.inf:
                low = length
            else:
                break
            length = (low + high) / 2
        if float(np.linalg.norm(after)) >= left and left <= 1e4 * enough:
            break  # rounding is all that is left to see
        moves.add(there - f, after - gradient)
        f, gradient = there, after
    return f


class _Moves:
    """The last moves and what they did to the gradient: what L-BFGS knows of the curvature."""

    def __init__(self) -> None:
        self.known: list[tuple[Floats, Floats, float]] = []

    def add(self, moved: Floats, changed: Floats) -> None:
        bend = float(moved @ changed)
        if bend > 0:
            self.known = [*self.known[-9:], (moved, changed, bend)]

    def step(self, gradient: Floats, inverse: NDArray[Any]) -> Floats:
        """The gradient times the inverse of the second derivatives, as far as known."""
        q, shares = gradient.copy(), []
        for moved, changed, bend in reversed(self.known):
            shares.append(float(moved @ q) / bend)
            q -= shares[-1] * changed
        q = inverse @ q
        for (moved, changed, bend), share in zip(self.known, reversed(shares), strict=True):
            q += (share - float(changed @ q) / bend) * moved
        return np.asarray(q)


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
