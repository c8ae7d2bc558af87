"""Whose row it is, in memory, and the cap on the rows of one person.

Which rows of a person count depends on that person's rows alone, so a person adds or takes away at most as many rows as the
cap says. A row without a person does not count: nobody could say how many of those are one person's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError


def owners_in(X: Any, person: str) -> Any:
    """The column that says whose row it is; refused where there is none."""
    if not hasattr(X, "columns") or person not in X.columns:
        raise InputError(f"the schema's unit is the person in column {person!r}: fit needs a data frame with that column")
    return X[person]


def within_cap(owners: Any, most: int) -> NDArray[np.bool_]:
    """Which rows count: the first `most` of each person, and none without a person. Never fails on a value.

    >>> within_cap(["ann", "bob", "ann", None, 1, 1.0, float("nan"), "ann"], 2).tolist()
    [True, True, True, False, True, True, False, False]
    """
    import pandas as pd

    names = pd.Series([_name(v) for v in _values(owners)], dtype=object)
    # Of a missing name groupby makes a group too: it is left out by `notna`.
    return np.asarray(names.notna() & (names.groupby(names, dropna=False).cumcount() < most))


def _values(owners: Any) -> Any:
    return owners.to_list() if hasattr(owners, "to_list") else list(owners)


def _name(value: Any) -> str | None:
    """A person by name, from this value alone; None for a missing one, or one that has no name to be written down."""
    try:
        if value is None or bool(value != value):
            return None
        whole = isinstance(value, float | np.floating) and value.is_integer()
        name = str(int(value)) if whole else str(value)
        name.encode()
    except Exception:  # a missing value of pandas, half a character, a number too long to write, a broken __str__
        return None
    return name
