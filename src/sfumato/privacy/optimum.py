"""Noise on an objective, or on its minimum: what it costs, and how the computed minimum comes to be as good as the true one.

The proofs of objective and output perturbation speak of the minimum of a real function. An optimiser stops near it, and
where it stops may tell more than the minimum does. So the distance is certified, and paid for.

**Certificate.** The objective is λ-strongly convex: where its gradient has norm g, the minimum is at most g/λ away. The
gradient is evaluated with a bound on its rounding (`objective`), and `certified` goes on until gradient and rounding
together are below the public number `within`, γ. Then the computed point is at most ``e = γ/λ`` from the minimum.

**Noise on the objective.** Let m be the true minimum, c the computed point, and let the lattice have step h. The integers
``rint(c/h)`` and ``rint(m/h)`` differ by at most ``k = √d e/h + d`` in the sum over all coordinates. Both are given discrete
Laplace noise of rate r: for every draw of the objective's noise, and for every output, the probabilities then differ by a
factor of at most ``exp(r k)``. What is published from m is private by the proof for real numbers (noise on integers after
the minimum is post-processing), so what is published from c loses at most ``2 r k`` more, on whatever data. That is charged
(`Perturbation.extra`). No smoothness of the density is needed, and no luck at the borders of the lattice.

r makes that noise T = S 2**14 γ / (β λ) wide, S/(β λ) being the width of the objective's own noise on a feature that nobody
has. So it costs at most ``3 β √d 2**-14 / S``. γ grows with the public number of rows N, ``2**-46 max(N, 2**16)``: 128
roundings a record; where float64 cannot promise that (many features, large coefficients), wider numbers do. Up to 65,536
records T is 2**-16 of the own noise, at a million 2**-12, at ten million 1/400.

**Noise on the minimum.** The exact vector moves by 2 e more than the minimum does; that is added to its sensitivity.

**What is left to assume.** The noise vector itself is drawn in float64 and stands for a real one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError, PrivacyError
from sfumato.privacy import noise
from sfumato.privacy.integers import add_held
from sfumato.privacy.losses import objective_loss, output_loss
from sfumato.privacy.objective import CURVATURE, WIDE, Floats, LossKind, Objective
from sfumato.privacy.source import Source
from sfumato.privacy.units import NANO

Solve = Callable[[Objective, Floats], Floats]

NOISE_IS_REAL = "the noise on a model is a vector of real numbers (float64 stands in for it)"
FEWEST = 1 << 16
_ROUNDINGS = 2.0**-46  # of the gradient, for each row: 128 units in the last place
_WIDTH = 2.0**14
_FINE = 2.0**-16
_MOST_STEPS = 100


@dataclass(frozen=True)
class Perturbation:
    """How an objective is perturbed: public, and all that its price depends on.

    Parameters
    ----------
    kind : "logistic" or "huber"
    dimension : int
        Number of coefficients.
    penalty : float
        The factor λ of ‖f‖²/2.
    beta : float
        Rate of the noise, ε per unit of its norm.
    on : "objective" or "output"
        Whether the noise is part of the objective or added to the minimum.
    length : float, optional
        Bound S on ‖x‖₁ of every row; the noise on the objective is then Laplace per coordinate instead of spherical.
    rows : int
        The public number of rows, or a noisy one: how finely the minimum is to be found.

    Examples
    --------
    >>> small = Perturbation("logistic", dimension=4, penalty=1.0, beta=0.5)
    >>> small.within == 2.0**-30, small.extra < 4 * 10**-4 * small.beta * 10**9
    (True, True)
    """

    kind: LossKind
    dimension: int
    penalty: float
    beta: float
    on: Literal["objective", "output"] = "objective"
    length: float | None = None
    rows: int = 0

    def __post_init__(self) -> None:
        if self.dimension < 1:
            raise InputError(f"a model needs at least one coefficient, got {self.dimension}")
        if not (np.isfinite([self.beta, self.penalty]).all() and self.beta > 0 and self.penalty > 0):
            raise InputError("a perturbed objective needs beta > 0 and penalty > 0")

    @property
    def curvature(self) -> float:
        """Bound on the second derivative of the loss of a row."""
        return CURVATURE[self.kind]

    @property
    def scale(self) -> float:
        """Of the noise on the coefficient of a feature that nobody has."""
        if self.on == "output":
            return 1 / self.beta
        return (self.length or 1.0) / (self.beta * self.penalty)

    @property
    def within(self) -> float:
        """γ: what the gradient may have left at the computed minimum."""
        return _ROUNDINGS * max(self.rows, FEWEST)

    @property
    def error(self) -> float:
        """e: how far the computed minimum may be from the true one."""
        return self.within / self.penalty

    @property
    def step(self) -> float:
        """Of the lattice that the second noise lives on: a power of two."""
        return float(2.0 ** math.floor(math.log2(self.error / (2 * math.sqrt(self.dimension)))))

    @property
    def rate(self) -> int:
        """Of the second noise, in nano-ε per step."""
        return min(noise.MAX_RATE, max(1, int(NANO * self.step / (_WIDTH * self.within * self.scale))))

    @property
    def extra(self) -> int:
        """What the distance between computed and true minimum costs, in nano-ε."""
        if self.on == "output":
            return 0
        return 2 * self.rate * (math.ceil(math.sqrt(self.dimension) * self.error / self.step) + self.dimension)

    def loss(self, weights: ArrayLike, *, moves: int = 1) -> NDArray[np.int64]:
        """What rows of these weights lose, in nano-ε; `moves` is 2 against replacement."""
        w = np.asarray(weights, dtype=np.float64)
        if self.on == "output":
            return output_loss(np.where(w > 0, (moves * w + 2 * self.within) / self.penalty, 0.0), beta=self.beta)
        loss = objective_loss(w, beta=self.beta, curvature=self.curvature, penalty=self.penalty, moves=moves)
        return np.where(w > 0, loss + self.extra, 0)

    def draw(self, source: Source) -> Floats:
        """The noise vector."""
        if self.length is None:
            return noise.spherical(self.dimension, self.beta, source=source)
        return noise.coordinatewise(self.dimension, self.beta / self.length, source=source)

    def minimum(self, objective: Objective, solve: Solve, added: Floats) -> Floats:
        """The certified minimum of this objective with noise `added` to it, starting from what `solve` finds."""
        described = (objective.kind, objective.penalty, objective.rows.shape[1])
        if described != (self.kind, self.penalty, self.dimension):
            raise PrivacyError("the objective is not the one that was priced: its loss, penalty or dimension differ")
        return certified(objective, solve(objective, added), added, within=self.within)

    def published(self, minimum: Floats, source: Source) -> Floats:
        """What is released of the computed minimum of a perturbed objective."""
        whole = np.rint(np.clip(minimum / self.step, -(2.0**62), 2.0**62)).astype(np.int64)
        noisy = add_held(whole, noise.laplace(np.full(self.dimension, self.rate), source=source))
        return self.rounded(noisy.astype(np.float64) * self.step)

    def rounded(self, model: Floats) -> Floats:
        """What was published, on a lattice as coarse as its noise allows: no digit is left that says nothing."""
        step = 2.0 ** np.floor(np.log2(self.scale * (_WIDTH * self.within if self.on == "objective" else _FINE)))
        return np.asarray(np.rint(model / step) * step + 0.0)


def certified(objective: Objective, start: Floats, added: Floats, *, within: float) -> Floats:
    """A point where the gradient is at most `within`, rounding included: Newton's method from `start`.

    The length of a step is found by the slope along it, which float64 knows when the value does not tell any more. Steps
    never go up (the objective is convex), so they end at the minimum; more of them than a few are rare.

    Raises
    ------
    PrivacyError
        If float64 cannot do it: with far more rows than `within` was made for.
    """
    f = np.asarray(start, dtype=np.float64)
    gradient, wide = objective.gradient, False
    found, error = gradient(f, added)
    for _ in range(_MOST_STEPS):
        if float(np.linalg.norm(found)) + error <= within:
            return f
        if error > within / 2 and not wide:
            gradient, wide = partial(objective.gradient, numbers=WIDE), True
            found, error = gradient(f, added)
            continue
        step = np.asarray(np.linalg.solve(objective.hessian(f), found), dtype=np.float64)
        f, found, error = _along(gradient, f, found, step, added)
    raise PrivacyError(
        "the minimum could not be certified in float64, and only the minimum is private: nothing is released; "
        "state a number of rows that is not far too small, raise the regularization or rescale the features"
    )


def _along(
    gradient: Callable[..., tuple[Floats, float]], f: Floats, here: Floats, step: Floats, added: Floats
) -> tuple[Floats, Floats, float]:
    """Go along minus `step` until the slope has changed by a tenth, not far beyond the lowest point."""
    fall = float(here @ step)
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(60):
        there = f - length * step
        after, error = gradient(there, added)
        slope = -float(after @ step)
        if slope > 0.1 * fall:
            high = length
        elif slope < -0.9 * fall and high < np.inf:
            low = length
        else:
            break
        length = (low + high) / 2
    return there, after, error
