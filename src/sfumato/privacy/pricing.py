"""The price of one call, from public facts alone: noise rates, weights and what one record can touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import BudgetError, InputError
from sfumato.privacy.loss import FAR, Loss, Parties
from sfumato.privacy.units import Nano, NanoArray

Touches = Literal["one", "all"]


def price_of(
    parties: Parties, unit: int, weights: ArrayLike, *, factor: int = 1, attributes: Mapping[str, Nano] | None = None
) -> Loss:
    """The price of one call per party.

    Parameters
    ----------
    parties : Parties
    unit : int
        Loss of a record of weight one, in nano-ε.
    weights : int or integers per person group
    factor : int
        Rows per person, times two against replacement.
    attributes : mapping, optional
        What each attribute loses of the unit; without it every attribute loses all of it.

    Examples
    --------
    >>> price_of(Parties(None, ("age", "job")), 5, 2, attributes={"age": Nano(3)}).nano.tolist()
    [10, 6, 0]
    """
    groups = np.asarray(weights)
    if groups.dtype.kind not in "iu":
        raise InputError(f"weights are integers (a budget in nano-ε is one), got {groups.dtype}")
    if groups.ndim > 1 or (groups.ndim == 1 and groups.size not in (1, parties.groups)):
        raise InputError(f"{groups.size} weights for {parties.groups} person groups")
    if groups.size and int(groups.min()) < 0:
        raise InputError("weights must not be negative")
    heaviest = int(groups.max(initial=0))
    if heaviest * unit * factor > FAR:
        raise BudgetError("this call would cost more than any budget; check the unit of its weights or rates")
    nano = np.zeros(parties.size, dtype=np.int64)
    if heaviest:
        nano[: parties.groups] = groups.astype(np.int64) * (unit * factor)
    for j, name in enumerate(parties.attributes):
        part = unit if attributes is None else attributes.get(name, 0)  # never more than the unit
        nano[parties.groups + j] = heaviest * part * factor
    return Loss(nano)


def per_unit(rates: NanoArray, touches: Touches | NDArray[np.int64]) -> Nano:
    """Loss of a record of weight one.

    >>> rates = np.array([3, 5, 4])
    >>> per_unit(rates, "one"), per_unit(rates, "all"), per_unit(rates, np.array([[2, 0, 0], [0, 1, 1]]))
    (5, 12, 9)
    """
    if isinstance(touches, str):
        if touches == "one":
            return Nano(int(rates.max(initial=0)))
        if touches != "all":
            raise InputError(f"touches must be 'one', 'all' or a non-negative integer matrix, got {touches!r}")
        if rates.ndim == 0:
            raise InputError("touches='all' needs one rate per coordinate")
        return Nano(sum(rates.reshape(-1).tolist()))
    return Nano(_largest_row(_checked(touches, rates), rates))


def per_attribute(rates: NanoArray, touches: Touches | NDArray[np.int64], names: Sequence[str]) -> Mapping[str, Nano]:
    """Loss of each attribute for a record of weight one: only the coordinates that carry its name count.

    >>> per_attribute(np.array([3, 5, 4]), "all", ["a", "b", "a"])
    {'a': 7, 'b': 5}
    """
    if rates.ndim != 1 or len(names) != rates.size:
        raise InputError(f"{len(names)} attribute names for {rates.size} rates: give one of each per coordinate")
    losses = {}
    for name in dict.fromkeys(names):
        mine = np.array([n == name for n in names])
        part = touches if isinstance(touches, str) else _checked(touches, rates)[:, mine]
        losses[name] = per_unit(rates[mine], part)
    return losses


def _checked(touches: ArrayLike, rates: NanoArray) -> NDArray[np.int64]:
    matrix = np.asarray(touches)
    if matrix.dtype.kind not in "iu" or matrix.ndim != 2 or matrix.size == 0 or int(matrix.min()) < 0:
        raise InputError("touches must be 'one', 'all' or a non-negative integer matrix with at least one row")
    if rates.ndim != 1 or matrix.shape[1] != rates.size:
        raise InputError(f"the matrix has {matrix.shape[1]} columns for {rates.size} rates")
    return matrix


def _largest_row(matrix: NDArray[np.int64], rates: NanoArray) -> int:
    """The largest entry of ``matrix @ rates``, exactly: in 64 bits where nothing can overflow, else in Python integers."""
    if int(matrix.max()) * int(rates.max()) * rates.size < 1 << 62:
        return int((matrix.astype(np.int64, copy=False) @ rates).max())
    rate_list: list[int] = rates.tolist()
    return max(sum(int(a) * r for a, r in zip(row, rate_list, strict=True)) for row in matrix.tolist())
