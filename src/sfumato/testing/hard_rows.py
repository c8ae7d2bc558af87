"""Rows on which engines are known to disagree: NaN, infinities, NULL, both zeros, huge numbers, quotes, other alphabets.

All tests of agreement between engines use them, and so does `sfumato engines check`, on an engine of one's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from sfumato.tables import Categorical, Numeric, Schema

INF, NAN = math.inf, math.nan
WEIRD: Final = 'we"ird; DROP TABLE x --'
HOSTILE: Final = "a'); DROP TABLE patients; --"

SCHEMA: Final = Schema(
    {
        "age": Numeric(0, 119, bins=12, integer=True),
        "income": Numeric(-5.0, 5.0, bins=40, other="unknown"),
        "stay": Numeric(edges=[0, 1, 2.5, 7, 30], outside="other"),
        "sex": Categorical(["F", "M"], other=True),
        "place": Categorical(["Oslo", "back\\slash", HOSTILE, "ünï→", "tab\tnew\nline"]),
        "ward": Categorical([3, -1, 0, 7, 9, 11], other=False),
        "smoker": Categorical([True, False]),
        WEIRD: Numeric(0.1, 10.3, bins=33),
    }
)
_FLOATS = [0.0, -0.0, NAN, None, INF, -INF, 1e308, -5.0, 5.0, 4.999999, 0.25, 2.5, 7.0, 30.0, 30.000001, 119.0, 119.5, 64.9]
_WHOLES = [0, 9, 10, None, 2**62, -(2**62), 65, 64, 119, 120, 3, -1, 7, 11, 5, 1, 2, 30]
_TEXTS = [
    *("F", "M", None, "f", "", "Oslo", "back\\slash", HOSTILE, "ünï→"),
    *("tab\tnew\nline", "x", "F", "M", "Oslo", "F ", "F", "M", "M"),
]


def _rotated(values: list[Any], by: int) -> tuple[Any, ...]:
    return tuple(values[(i * by + by) % len(values)] for i in range(2 * len(values)))


COLUMNS: Final[dict[str, tuple[str, tuple[Any, ...]]]] = {
    "age": ("int64", _rotated(_WHOLES, 1)),
    "income": ("float64", _rotated(_FLOATS, 5)),
    "stay": ("float64", _rotated(_FLOATS, 7)),
    "sex": ("string", _rotated(_TEXTS, 5)),
    "place": ("string", _rotated(_TEXTS, 7)),
    "ward": ("int64", _rotated(_WHOLES, 11)),
    "smoker": ("boolean", (True, False, None, True) * 9),
    WEIRD: ("float64", _rotated(_FLOATS, 11)),
    "epsilon": ("float64", (0.1, 0.3, 1.0, None, NAN, 0.0, -1.0, INF, 0.1) * 4),
    "consent": ("string", ("open", "strict", None, "unheard of") * 9),
    "patient": ("int64", tuple(i // 3 if i % 7 else None for i in range(36))),
}
"""The columns: by name their type and a value for each row."""

ROSTER: Final[dict[str, tuple[str, tuple[Any, ...]]]] = {
    "patient": ("int64", (0, 1, 1, 2, 3, None, 99)),
    "budget": ("float64", (0.5, 0.2, 0.1, None, 0.3, 9.0, 1.0)),
}
"""A roster of their people, in the same form."""

PREDICATES: Final[Sequence[str]] = (
    "age >= 65",
    "age < 10 or age = 119",
    "not (age between 10 and 65)",
    "age != 64",
    "age > 118.5",
    "income <= -5 or income >= 5",
    "income = 0",
    "not (income > 0.25)",
    "income is missing and sex is not missing",
    "stay > 1 and stay <= 30",
    "not (stay in (1, 2.5))",
    "stay is missing",
    "sex = 'F' or sex = 'other'",
    "sex != 'F'",
    "not (sex in ('F', 'other'))",
    "place in ('Oslo', 'a''); DROP TABLE patients; --')",
    'place = "back\\slash" or place = "ünï→"',
    "ward < 7",
    "not (ward >= 0)",
    "smoker = true",
    "not (smoker = true)",
    f'"{WEIRD.replace(chr(34), chr(34) * 2)}" >= 2.5',
    "age >= 500 or age < -3",
    "age <= 1e300 and income > -1e300",
)


def as_arrow(columns: dict[str, tuple[str, tuple[Any, ...]]]) -> Any:
    """Columns in this form as an Arrow table."""
    import pyarrow as pa

    kinds = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string(), "boolean": pa.bool_()}
    return pa.table({name: pa.array(values, kinds[kind]) for name, (kind, values) in columns.items()})
