"""Values that no schema expects, and the parts of a test about one record more: what it may change, and what not."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from sfumato.privacy import Exact
from sfumato.tables import Categorical, Numeric, Schema
from sfumato.testing import reveal

SECRET = "Ann Smith"


class Broken:
    """Raises whatever it is asked, and says a secret."""

    def _raise(self, *_: Any) -> Any:
        raise RuntimeError(SECRET)

    __str__ = __repr__ = __eq__ = __ne__ = __float__ = __int__ = __bool__ = __len__ = __iter__ = __lt__ = _raise
    __hash__ = _raise  # type: ignore[assignment]
    __class__ = property(_raise)  # type: ignore[assignment]


class BrokenText(str):
    __slots__ = ()
    __eq__ = __hash__ = __str__ = Broken._raise  # type: ignore[assignment]


class BrokenNumber(float):
    __slots__ = ()
    __eq__ = __hash__ = __float__ = Broken._raise  # type: ignore[assignment]


class BrokenList(list):  # type: ignore[type-arg]
    __slots__ = ()
    __len__ = __iter__ = __getitem__ = Broken._raise  # type: ignore[assignment]


# What a list, an object array or a pandas column of objects can hold.
OBJECTS: list[Any] = [
    *(None, "?", "", " ", "nan", "1e999", "\x00", "\ud800", SECRET, b"\xff", "F", "3", "true", "1_000", "٣"),
    *(0, 3, True, 10**400, -(10**400), 10**5000, 2**53 + 1, -(2**63), 2**64, 5e-324, -0.0, math.inf, math.nan, 2j),
    *(Decimal("sNaN"), Decimal("1e400"), Decimal("1e-400"), Fraction(1, 3), Fraction(10**400)),
    *([1], [[1], [2]], [], (1, [2]), {"a": 1}, {1}, np.array([1, 2]), np.array(3)),
    *(pd.NA, pd.NaT, pd.Period("2024-01"), pd.Interval(0, 1), pd.Timestamp("2024-01-01", tz="Europe/Oslo")),
    *(np.datetime64("2024-01-01"), np.timedelta64(3, "D"), np.int8(3), np.float32(3), np.bool_(True), np.str_("M")),
    *(np.longdouble("1e4000"), np.complex64(1), object(), Broken(), BrokenText("F"), BrokenNumber(3.0), BrokenList([1])),
]
# What typed columns can hold.
WHOLE: list[int | None] = [None, 0, -1, 2**53 + 1, 2**63 - 1, -(2**63)]
FLOATS: list[float | None] = [None, 5e-324, -5e-324, 1e-310, -0.0, math.inf, -math.inf, math.nan, 1e308, 2.0**53]
TEXTS: list[str | None] = [None, "", " ", "?", SECRET, "F ", "ünï→", "x" * 5000, "\\", "'", '"', "a,b", "NULL"]
TRUTHS: list[bool | None] = [None, True, False]

SCHEMA = Schema(
    {
        "age": Numeric(0, 99, bins=5, integer=True, outside="other", other=True),
        "dose": Numeric(0.0, 4.0, bins=20, other=True),
        "sex": Categorical(["F", "M"], other=True),
        "ward": Categorical([3, 1, 7], other=True),
        "smoker": Categorical([True, False], other="unknown"),
    }
)
NAMES = list(SCHEMA.names)
Row = tuple[Any, ...]
ROWS: list[Row] = [
    (31, 0.5, "F", 3, True),
    (77, 3.99, "M", 1, False),
    (5, 4.0, "F", 7, True),
    (99, 0.0, "x", 2, False),
    (130, 1.25, "M", 3, True),
]


def look(value: Any) -> Any:
    """What an aggregate holds."""
    return reveal(value) if isinstance(value, Exact) else value


def changed(with_it: Any, without: Any) -> int:
    """By how many records two tables of counts differ, of which one has a record more."""
    difference = np.asarray(with_it) - np.asarray(without)
    assert (difference >= 0).all(), "a record took another one's place"
    return int(difference.sum())
