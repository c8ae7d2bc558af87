"""Whose row it is, in memory, and the cap on the rows of one person.

Which rows of a person count depends on that person's rows alone, so a person adds or takes away at most as many rows as the
cap says. A row without a person does not count: nobody could say how many of those are one person's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.tables.one_value import person_of
from sfumato.tables.values import elements, stated_names


def owners_in(X: Any, person: str) -> Any:
    """The column that says whose row it is; refused where there is none."""
    if person not in (stated_names(X) or ()):
        raise InputError(f"the schema's unit is the person in column {person!r}: fit needs a data frame with that column")
    return X[person]


def within_cap(owners: Any, most: int, among: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
    """Which rows count: the first `most` of each person, and none without a person. Never fails on a value.

    With `among` only rows for which it is true can count, so that the others take no place: which ones these are must
    depend on each row alone.

    >>> within_cap(["ann", "bob", "ann", None, 1, 1.0, float("nan"), "ann"], 2).tolist()
    [True, True, True, False, True, True, False, False]
    >>> within_cap(["ann", "ann", "ann"], 1, np.array([False, True, True])).tolist()
    [False, True, False]
    """
    names = _names(owners)
    if among is not None:
        names = names.where(among)
    # Of a missing name groupby makes a group too: it is left out by `notna`.
    return np.asarray(names.notna() & (names.groupby(names, dropna=False).cumcount() < most))


def smallest_of_person(owners: Any, weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each row the smallest weight among its person's rows, and 0 for a row without a person.

    >>> smallest_of_person(["ann", "bob", "ann", None], np.array([5, 3, 2, 9])).tolist()
    [2, 3, 2, 0]
    """
    names = _names(owners)
    number = names.factorize()[0]  # -1 where there is no name
    found = np.full(int(number.max(initial=-1)) + 2, np.iinfo(np.int64).max)
    np.minimum.at(found, number, weights)
    found[-1] = 0
    return np.asarray(found[number])


def _names(owners: Any) -> Any:
    import pandas as pd

    return pd.Series([person_of(v) for v in elements(owners)], dtype=object)
