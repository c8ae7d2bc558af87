"""A history added up: private sums, and beside them what one item can have added to them.

The price of a release follows from the rows that an item may have. So the sums carry those rows with them, and a policy that
was priced for lighter items refuses them (`Policy.admit`): a histogram of one catalogue cannot be released at the price of
another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.privacy.exact import Exact

if TYPE_CHECKING:
    from sfumato.attributes.policy import Policy

EACH_TIME = "an item that is there several times is protected each time for itself"
AS_STATED = "no item adds more to the sums than one of the policy's rows, as whoever gave the sums states"

History = Iterable[Any] | Callable[[], Iterable[Any]] | Exact[Iterable[Any]]


def held(history: History) -> Exact[Iterable[Any]]:
    """A history as a private value: what is done with it from here on, only the Meter sees.

    >>> held(["novel", "map"])
    <Exact: a private value>
    """
    if isinstance(history, Exact):
        return history
    return Exact.reading(history) if callable(history) else Exact(history)


@dataclass(frozen=True, eq=False)
class ItemSums:
    """Attribute sums of one history, or of many, and what one item can have added to them.

    Attributes
    ----------
    exact : Exact of int64 array
        The sums in lattice units: one per attribute, or a matrix with one row per person or step.
    rows : integer matrix
        Public: the row of any item lies under one of these.
    attributes : tuple of str
    unit : Fraction
        Worth of a lattice unit.
    length : int or None
        Number of rows of a matrix, which is public; None for the sums of one history.
    notes : tuple of str
        What the guarantee rests on.

    Examples
    --------
    >>> from sfumato.attributes.catalogue import Catalogue
    >>> sums = Catalogue.of({"novel": ["paper", "fiction"], "map": ["paper"]}).histogram(["map", "novel"])
    >>> sums.exact, sums.rows.tolist()
    (<Exact: a private value>, [[1, 1]])
    """

    exact: Exact[NDArray[np.int64]]
    rows: NDArray[Any]
    attributes: tuple[str, ...]
    unit: Fraction
    length: int | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def as_stated(cls, values: ArrayLike, policy: Policy) -> ItemSums:
        """Sums of your own making; that no item adds more than a row of the `policy` is then your word.

        The guarantee says that it rests on it. For simulations, and for histories that were added up elsewhere.

        Parameters
        ----------
        values : integers
            One per attribute, or a matrix with one row per person or step, in lattice units.
        policy : Policy
            Whose rows no item exceeds.

        Returns
        -------
        ItemSums

        Examples
        --------
        >>> from sfumato.attributes.policy import Policy
        >>> policy = Policy(("x",), np.array([10**9]), np.array([[1]]), 10**9, np.array([10**9]))
        >>> ItemSums.as_stated([[3], [4]], policy).length
        2
        """
        given = np.asarray(values)
        m = len(policy.attributes)
        if given.dtype.kind not in "iu" or given.ndim not in (1, 2) or given.shape[-1] != m:
            raise InputError(f"sums are whole numbers, one for each of {m} attributes, or a matrix of such rows")
        length = given.shape[0] if given.ndim == 2 else None
        exact = Exact(given).map(_own)
        return cls(exact, policy.rows, policy.attributes, policy.unit, length, (AS_STATED,))


def _own(values: NDArray[Any]) -> NDArray[np.int64]:
    top = np.iinfo(np.int64).max
    return np.array(np.minimum(values, np.uint64(top)) if values.dtype == np.uint64 else values, dtype=np.int64)
