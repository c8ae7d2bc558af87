"""What can be reached at all: Theorems 2 and 3, and the expected error of a policy.

*Theorem 2.* Every attribute can have its best noise ``Lap(Δ_j / t_j)`` exactly when ``ε >= max_i Σ_j t_j a_ij / Δ_j``.
*Theorem 3.* No policy beats ``MAE = mean(Δ/t)``, ``MSE = 2 mean((Δ/t)²)``, ``MAEL = 0``; composition gives the upper bounds
(the paper's signs for MSE and MAEL in 4.2 are misprinted: all three are "at most").

Expected errors are those of the noise that is drawn, discrete Laplace with ``E|X| = 1 / sinh(x)`` and
``Var X = 1 / (2 sinh²(x/2))`` lattice units for x = rate in ε; for small x they are ``1/x`` and ``2/x²``.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes.allocation import Budgets, budget_array, compose
from sfumato.attributes.catalogue import Catalogue
from sfumato.attributes.policy import Policy
from sfumato.privacy.noise import laplace_variance
from sfumato.privacy.units import NANO, Epsilon, as_epsilon


def least_epsilon(catalogue: Catalogue, *, budgets: Budgets) -> Decimal:
    """The smallest overall ε at which no attribute is held back (Theorem 2), rounded up.

    Parameters
    ----------
    catalogue : Catalogue
        The public items.
    budgets : mapping of attribute to ε, AttributeBudgets, or nano-ε in the catalogue's order
        What each attribute may lose.

    Returns
    -------
    Decimal

    Examples
    --------
    >>> shop = Catalogue.of({"novel": ["paper", "fiction"], "map": ["paper"]})
    >>> least_epsilon(shop, budgets={"paper": 0.3, "fiction": 0.2})
    Decimal('0.5')
    """
    nano = budget_array(catalogue, budgets).astype(object)
    reach = catalogue.reach.tolist()
    common = int(np.lcm.reduce(np.array(reach, dtype=object)))
    weights = [t * (common // d) for t, d in zip(nano, reach, strict=True)]
    most = max((sum(a * w for a, w in zip(row, weights, strict=True)) for row in catalogue.maximal.tolist()), default=0)
    return as_epsilon(-(-most // common))


def expected_errors(policy: Policy) -> dict[str, float]:
    """Expected MAE, MSE and MAEL of a release under the policy, and the paper's KL divergence of its noise variances.

    Parameters
    ----------
    policy : Policy
        The noise of each attribute.

    Returns
    -------
    dict
        ``mae``, ``mse``, ``mael`` and ``kl``; errors are in the attributes' own unit.

    Examples
    --------
    >>> p = Policy(("x",), np.array([10**8]), np.array([[1]]), 10**8, np.array([2 * 10**8]))
    >>> {k: round(v, 2) for k, v in expected_errors(p).items()}
    {'mae': 9.98, 'mse': 199.83, 'mael': 1.01, 'kl': 0.0}
    """
    unit = float(policy.unit)
    x = policy.rates / NANO
    absolute = unit / np.sinh(np.minimum(x, 600.0))
    best = best_rates(policy) / NANO
    best_absolute = unit / np.sinh(np.minimum(best, 600.0))
    return {
        "mae": float(absolute.mean()),
        "mse": float((unit**2 * laplace_variance(policy.rates)).mean()),
        "mael": float((absolute / best_absolute).mean() - 1.0),
        "kl": _divergence(best, x),
    }


def best_rates(policy: Policy) -> NDArray[np.int64]:
    """The rates the attributes' own budgets would allow: ``floor(t_j / Δ_j)``."""
    return np.asarray(policy.budgets // np.maximum(policy.rows.max(axis=0, initial=0).astype(np.int64), 1))


def _divergence(best: NDArray[np.float64], used: NDArray[np.float64]) -> float:
    p, q = best**-2.0 / np.sum(best**-2.0), used**-2.0 / np.sum(used**-2.0)
    return float(max(0.0, np.sum(p * np.log(p / q))))


def utility_bounds(catalogue: Catalogue, *, budgets: Budgets, epsilon: Epsilon) -> Mapping[str, tuple[float, float]]:
    """Between which errors the best policy lies (Theorem 3).

    Parameters
    ----------
    catalogue : Catalogue
        The public items.
    budgets : mapping of attribute to ε, AttributeBudgets, or nano-ε in the catalogue's order
        What each attribute may lose.
    epsilon : ε
        What the whole release may lose towards its recipient.

    Returns
    -------
    mapping of "mae", "mse", "mael" to a pair
        No policy does better than the first number; the composition baseline reaches the second.
    """
    top = budget_array(catalogue, budgets) / catalogue.reach / (NANO * float(catalogue.unit))
    lower = {"mae": float(np.mean(1 / top)), "mse": float(2 * np.mean(top**-2.0)), "mael": 0.0}
    upper = _continuous(compose(catalogue, budgets=budgets, epsilon=epsilon), top)
    return {name: (lower[name], max(lower[name], upper[name])) for name in lower}


def _continuous(policy: Policy, top: NDArray[np.float64]) -> dict[str, float]:
    scale = policy.scales
    return {"mae": float(scale.mean()), "mse": float(2 * np.mean(scale**2)), "mael": float(np.mean(scale * top) - 1)}
