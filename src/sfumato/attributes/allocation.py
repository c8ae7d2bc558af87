"""DP-MultiUPP: the best noise for each attribute under a budget per attribute and one for the whole release.

Shen, Chen & Jin, *Differentially private user data perturbation with multi-level privacy controls* (2016), program (6):
choose rates x_j (ε per unit) to minimise a convex utility subject to ``A x <= ε`` (one row per item) and
``0 < x_j <= t_j / Δ_j``.

*Guarantee.* With independent Laplace noise of rate x_j on attribute j, one item more or less moves attribute j by a_ij,
so the density ratio of the whole release is at most ``exp(Σ_j a_ij x_j) <= e^ε``, and of attribute j alone
``exp(a_ij x_j) <= e^(t_j)`` (Theorem 4). Rates are integers of nano-ε per lattice unit and both conditions are checked in
integers, so the result is feasible to the last bit whatever the solver did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes.catalogue import Catalogue
from sfumato.attributes.policy import Policy, exact_loads
from sfumato.attributes.solver import minimise
from sfumato.attributes.utility import Utility, Vector, named_utility
from sfumato.errors import InputError
from sfumato.privacy.budgets import AttributeBudgets
from sfumato.privacy.units import NANO, Epsilon, Nano, NanoArray, nano_down_array, positive_nano

_TOO_SMALL = "epsilon is too small for these budgets: an attribute would get less than 1e-9 per lattice unit"

Budgets = AttributeBudgets | Mapping[str, Epsilon] | Sequence[float] | NDArray[np.float64]


def allocate(catalogue: Catalogue, *, budgets: Budgets, epsilon: Epsilon, utility: str | Utility = "mae") -> Policy:
    """The best policy for a catalogue; computed once for each question, since everything in it is public.

    Parameters
    ----------
    catalogue : Catalogue
        The public items.
    budgets : mapping of attribute to ε, AttributeBudgets, or one ε per attribute in the catalogue's order
        What each attribute may lose.
    epsilon : ε
        What the whole release may lose towards its recipient.
    utility : "mae", "mse", "mael" or Utility
        What to minimise.

    Returns
    -------
    Policy
        Feasible in exact integers, with a certified gap to the best possible utility.

    Examples
    --------
    >>> shop = Catalogue.of({"novel": ["paper", "fiction"], "map": ["paper"]})
    >>> policy = allocate(shop, budgets={"paper": 0.5, "fiction": 0.5}, epsilon=0.1)
    >>> policy.charge.total, (policy.rates / 1e9).round(6).tolist()
    (100000000, [0.05, 0.05])
    """
    nano, overall = budget_array(catalogue, budgets), positive_nano(epsilon)
    question = (nano.tobytes(), overall, utility)
    return catalogue.computed_once(question, lambda: _solve(catalogue, nano, overall, utility))


def compose(catalogue: Catalogue, *, budgets: Budgets, epsilon: Epsilon) -> Policy:
    """The baseline: every attribute's budget cut by the same factor until the heaviest item fits into ε.

    Optimised policies are never worse; this one shows by how much they are better, and is the upper bound of 4.2.

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
    Policy
        Without a certified gap: nothing was optimised.
    """
    nano, overall = budget_array(catalogue, budgets), positive_nano(epsilon)
    top = _upper(catalogue, nano)
    rates = _cut(catalogue.maximal, top, overall)
    return _policy(catalogue, rates, nano, overall, "composition", float("nan"))


def budget_array(catalogue: Catalogue, budgets: Budgets) -> NanoArray:
    """Budgets in nano-ε in the order of the catalogue."""
    if not isinstance(budgets, AttributeBudgets | Mapping):
        nano = nano_down_array(budgets)
        if nano.shape != (len(catalogue.attributes),) or nano.min(initial=1) < 1:
            raise InputError(f"budgets without names are {len(catalogue.attributes)} numbers of ε, each at least 1e-9")
        return nano
    named = budgets if isinstance(budgets, AttributeBudgets) else AttributeBudgets.of(budgets)
    unknown = [name for name in named.names if name not in catalogue.attributes]
    if unknown:
        raise InputError(f"a budget for {unknown[0]!r}, but the catalogue has {', '.join(catalogue.attributes)}")
    return named.array(catalogue.attributes)


def _upper(catalogue: Catalogue, nano: NanoArray) -> NDArray[np.int64]:
    """The largest rates the attributes' own budgets allow: ``floor(t_j / Δ_j)``."""
    top = nano // catalogue.reach
    if top.min() < 1:
        j = int(top.argmin())
        raise InputError(
            f"the budget of {catalogue.attributes[j]!r} is below 1e-9 per lattice unit; raise it or choose a coarser step"
        )
    return np.asarray(np.minimum(top, 10**15))


def _solve(catalogue: Catalogue, nano: NanoArray, overall: Nano, utility: str | Utility) -> Policy:
    top, rows = _upper(catalogue, nano), catalogue.maximal
    per_unit = float(catalogue.unit) * NANO
    chosen = named_utility(utility, top / per_unit)
    # The item that moves attribute j most bounds its rate by ε / Δ_j too: implied by the rows, and it keeps z of order 1.
    used = rows.max(axis=0, initial=0) > 0
    top = np.where(used, np.minimum(top, overall // catalogue.reach), top)
    if top.min() < 1:
        raise InputError(_TOO_SMALL)
    solution = minimise(rows, top / overall, chosen, units=top / per_unit)
    rates = np.minimum(np.maximum(np.floor(solution.z * top).astype(np.int64), 1), top)
    # z = 1 is exact; anything the solver calls 1 within its tolerance may be the whole budget.
    rates = np.where(solution.z > 1 - 1e-9, top, rates)
    rates = _fill(rows, _cut(rows, rates, overall), top, overall, -chosen.gradient(rates / per_unit))
    loss = float(chosen.value(rates / per_unit))
    gap = max(0.0, loss - solution.bound) / max(abs(loss), 1e-300)
    return _policy(catalogue, rates, nano, overall, chosen.name, gap)


def _cut(rows: NDArray[Any], rates: NDArray[np.int64], overall: Nano) -> NDArray[np.int64]:
    """Scale integer rates down until no row exceeds the overall budget: ``Σ a floor(r ε / R) <= ε`` when ``Σ a r <= R``."""
    heaviest = int(exact_loads(rows, rates).max(initial=0))
    if heaviest <= overall:
        return rates
    cut = np.array([r * overall // heaviest for r in rates.tolist()], dtype=np.int64)
    if cut.min() < 1:
        raise InputError(_TOO_SMALL)
    return cut


def _fill(
    rows: NDArray[Any], rates: NDArray[np.int64], top: NDArray[np.int64], overall: Nano, gain: Vector
) -> NDArray[np.int64]:
    """Give back what rounding left over, most useful attribute first; stays feasible, in integers."""
    rates = rates.copy()
    room = overall - exact_loads(rows, rates)
    # Only rows near their limit can stop an attribute that moves by a few nano-ε; the rest are checked all the same.
    for j in np.argsort(-gain).tolist():
        column = rows[:, j]
        uses = np.flatnonzero(column)
        more = int(top[j] - rates[j])
        if uses.size:
            more = min(more, int((room[uses] // column[uses].astype(room.dtype)).min()))
        if more > 0:
            rates[j] += more
            room[uses] -= column[uses].astype(room.dtype) * more
    return rates


def _policy(catalogue: Catalogue, rates: NDArray[np.int64], nano: NanoArray, overall: Nano, name: str, gap: float) -> Policy:
    return Policy(
        attributes=catalogue.attributes,
        rates=rates,
        rows=catalogue.maximal,
        overall=overall,
        budgets=nano,
        unit=catalogue.unit,
        utility=name,
        gap=gap,
        catalogue=catalogue.fingerprint,
    )
