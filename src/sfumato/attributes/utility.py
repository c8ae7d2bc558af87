"""What the noise costs the recipient: convex functions of the noise rates x (ε per unit of each attribute).

The noise on attribute j has scale ``1 / x_j``, so the paper's utilities are ``Σ c_j x_j^-p``:

- MAE, the mean absolute error: p = 1, c = 1;
- MSE, the mean squared error: p = 2, c = 1;
- MAEL, the mean of (error / best possible error): p = 1, ``c_j = t_j / Δ_j``, the best rate attribute j may have.

A service with another need gives its own convex `Utility`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError

Vector = NDArray[np.float64]
NAMES = ("mae", "mse", "mael")


@dataclass(frozen=True)
class Utility:
    """A convex loss in the rates x, falling in each of them.

    Parameters
    ----------
    name : str
        Shown in policies and reports.
    value, gradient : functions of x
    hessian : function of x
        Second derivatives: a vector (separable loss) or a full matrix.

    Examples
    --------
    >>> entropy = Utility("entropy", lambda x: -np.log(x).sum(), lambda x: -1 / x, lambda x: 1 / x**2)
    >>> round(float(entropy.value(np.array([0.5, 2.0]))), 9)
    -0.0
    """

    name: str
    value: Callable[[Vector], float]
    gradient: Callable[[Vector], Vector]
    hessian: Callable[[Vector], Vector]

    @classmethod
    def power(cls, weights: ArrayLike, power: float, *, name: str = "power") -> Utility:
        """``Σ_j weights_j x_j^-power``: which attribute matters how much, and how much large errors hurt.

        Parameters
        ----------
        weights : numbers greater than 0
            How much each attribute matters.
        power : float
            Greater than 0; the larger, the more large errors hurt.
        name : str
            Shown in policies and reports.

        Returns
        -------
        Utility

        Examples
        --------
        >>> Utility.power([1, 3], 1).value(np.array([0.5, 0.5]))
        8.0
        """
        c = np.asarray(weights, dtype=np.float64)
        if not (np.isfinite(c).all() and (c > 0).all() and np.isfinite(power) and power > 0):
            raise InputError("a power utility needs weights greater than 0 and a power greater than 0")
        p = float(power)
        return cls(
            name,
            lambda x: float(np.sum(c * x**-p)),
            lambda x: -p * c * x ** -(p + 1),
            lambda x: p * (p + 1) * c * x ** -(p + 2),
        )


def named_utility(utility: str | Utility, best: Vector) -> Utility:
    """The utility by name; `best` holds the rates ``t_j / Δ_j`` that the budgets of the attributes allow.

    >>> named_utility("mael", np.array([0.5, 0.25])).value(np.array([0.25, 0.25]))
    3.0
    """
    if isinstance(utility, Utility):
        return utility
    if utility not in NAMES:
        raise InputError(f"unknown utility {utility!r}; use one of {', '.join(NAMES)} or a Utility of your own")
    weights = best if utility == "mael" else np.ones_like(best)
    return Utility.power(weights, 2 if utility == "mse" else 1, name=utility)
