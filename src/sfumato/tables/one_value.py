"""One value in memory as a number, a truth, a text, a person, or a place in a public list.

Each rule looks at one value and nothing else, so no record can change how another is read; and none raises because of a
value, for an error would tell that the value is there. Nothing of a stranger's object is called: what is not a number, a
truth or a text by its type is missing (a person's name alone is whatever ``str`` gives, and missing where that fails).

============================  ==========================================================================
value                         as a number
============================  ==========================================================================
int, float, Decimal, Fraction  itself; infinite beyond the range of doubles
True, False                   1, 0
text                          what it reads as in plain notation, ``" 2.5e3 "``; otherwise missing
complex numbers               the real part, if there is no other
NumPy scalars                 as the Python value
anything else                 missing: dates, periods, lists, bytes, pandas.NA
============================  ==========================================================================
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

NAN: Final = math.nan
WHOLE: Final = 2**53  # up to here every whole number is a double, and no public bound lies beyond
BEYOND: Final = float(WHOLE + 2)
_NUMBER: Final = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_INFINITE: Final = re.compile(r"\s*[+-]?inf(?:inity)?\s*", re.IGNORECASE)
_TRUTHS: Final = {"true": True, "false": False}


def number_of(value: Any) -> float:
    """A value as a double, NaN where it is no number.

    >>> [number_of(v) for v in (1, "2.5", "x", None, 10**400, True, [3])]
    [1.0, 2.5, nan, nan, inf, 1.0, nan]
    """
    kind = type(value)
    if kind is float:
        return float(value)
    if kind is int:
        return _double(value)
    if kind is str:
        return _read(value)
    if value is None:
        return NAN
    plain = _plain(value)
    if isinstance(plain, str):
        return _read(plain)
    return NAN if plain is None else _double(plain)


def text_of(value: Any) -> str | None:
    """A text that every engine can hold, None for anything else.

    >>> [text_of(v) for v in ("F", 3, None, "half a character: " + chr(0xD800))]
    ['F', None, None, None]
    """
    if not issubclass(type(value), str):
        return None
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text


def truth_of(value: Any) -> bool | None:
    """True or false: as such, as the numbers 1 and 0, or as the words; None for anything else.

    >>> [truth_of(v) for v in (True, 0, 1.0, "TRUE", "yes", 2, None)]
    [True, False, True, True, None, None, None]
    """
    plain = _plain(value)
    if isinstance(plain, str):
        return _TRUTHS.get(plain.strip().lower())
    return None if plain is None or plain not in (0, 1) else bool(plain)


def person_of(value: Any) -> str | None:
    """The name of a person in text, None where there is none. Whole numbers of any kind are written alike.

    >>> [person_of(v) for v in (7, 7.0, "7", Decimal("7.00"), 7.5, None, float("nan"))]
    ['7', '7', '7', '7', '7.5', None, None]
    """
    try:
        plain = _plain(value)
        if isinstance(plain, str):
            return text_of(plain)
        if plain is not None:
            if isinstance(plain, float):
                if not math.isfinite(plain):
                    return None if math.isnan(plain) else repr(plain)
                plain = int(plain) if plain.is_integer() else plain
            return repr(plain) if not isinstance(plain, int) or abs(plain) < 10**4000 else hex(plain)
        return None if _is_missing(value) else text_of(str(value))
    except Exception:  # a stranger's object that cannot be written down
        return None


def _is_missing(value: Any) -> bool:
    import pandas as pd

    return value is None or value is pd.NA or value is pd.NaT or bool(value != value)


def _plain(value: Any) -> int | float | str | None:
    """A number, truth or text of whatever type as a plain Python value; None for everything else.

    By the methods of the base types: a subclass may have methods of its own that raise.
    """
    kind = type(value)
    try:
        if issubclass(kind, str):
            return str.__str__(value)
        if issubclass(kind, int):
            return int.__int__(value)
        if issubclass(kind, float):
            return float.__float__(value)
        if issubclass(kind, np.timedelta64):  # an integer, if NumPy is asked
            return None
        if issubclass(kind, np.bool_ | np.integer):
            return int(value)
        if issubclass(kind, np.floating):
            with np.errstate(all="ignore"):
                return float(value)
        if issubclass(kind, Decimal):
            whole = Decimal.is_finite(value) and Decimal.adjusted(value) < 400 and value == int(value)
            return int(value) if whole else Decimal.__float__(value)
        if issubclass(kind, complex | np.complexfloating):  # beside one of them NumPy and pandas make all numbers complex
            return float(value.real) if value.imag == 0 else None
        if issubclass(kind, Fraction):
            return _quotient(value.numerator, value.denominator)
    except Exception:  # a signalling NaN, a subclass that is not what it says
        return None
    return None


def _quotient(top: int, bottom: int) -> int | float:
    if bottom == 1:
        return top
    try:
        return top / bottom
    except OverflowError:
        return math.inf if top > 0 else -math.inf


def _double(number: int | float) -> float:
    """The nearest double, except that what is beyond ±2^53 stays beyond: a bound there must not take it in."""
    if isinstance(number, float) or -WHOLE <= number <= WHOLE:
        return float(number)
    try:
        far = float(number)
    except OverflowError:
        far = math.inf if number > 0 else -math.inf
    return max(far, BEYOND) if far > 0 else min(far, -BEYOND)


def _read(text: str) -> float:
    if _NUMBER.fullmatch(text) or _INFINITE.fullmatch(text):
        return float(text)
    return NAN


class Places:
    """Where a value stands in a public list of text, numbers or truths; of other types only values of the same type.

    >>> place = Places(["F", "M"]); [place.of(v) for v in ("M", "F", None, 3, ["F"])]
    [1, 0, -1, -1, -1]
    >>> place = Places([1, 3]); [place.of(v) for v in (3, 3.0, "3", True, "x")]
    [1, 1, 1, 0, -1]

    Attributes
    ----------
    numbers : float64 array or None
        The listed values as doubles, if all are numbers that doubles hold.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        plain = [_plain(v) for v in values]
        self._kinds = {type(v) for v, p in zip(values, plain, strict=True) if p is None}
        self._place: dict[Any, int] = {}
        for i, (value, p) in enumerate(zip(values, plain, strict=True)):
            self._place.setdefault(value if p is None else p, i)
        self._text_only = all(isinstance(p, str) for p in plain)
        small = all(isinstance(p, int | float) and abs(p) <= WHOLE for p in plain)
        self.numbers = np.array(list(self._place), dtype=np.float64) if small else None
        truths = all(issubclass(type(v), bool | np.bool_) for v in values)
        self._reads: Callable[[str], Any] = truth_of if truths else number_of

    def of(self, value: Any) -> int:
        """The place of one value, -1 where it is not listed."""
        plain = _plain(value)
        if plain is None:
            return self._stranger(value) if type(value) in self._kinds else -1
        found = self._place.get(plain, -1)
        if found < 0 and not self._text_only and isinstance(plain, str):
            found = self._place.get(self._reads(plain), -1)
        return found

    def of_all(self, values: list[Any]) -> NDArray[np.int64]:
        """The place of each value: the same as `of`, faster where all are plain."""
        kinds = set(map(type, values))
        if kinds <= {int, float, bool} or (self._text_only and kinds <= {str, int, float, bool}):
            place = self._place.get
            return np.fromiter((place(v, -1) for v in values), dtype=np.int64, count=len(values))
        return np.fromiter(map(self.of, values), dtype=np.int64, count=len(values))

    def of_numbers(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The place of each double, where the list has only numbers, none of them beyond ±2^53."""
        listed = self.numbers
        assert listed is not None
        order = np.argsort(listed)
        near = np.minimum(np.searchsorted(listed[order], values), listed.size - 1)
        found = np.array(list(self._place.values()), dtype=np.int64)[order][near]
        return np.where(listed[order][near] == values, found, -1)

    def _stranger(self, value: Any) -> int:
        try:
            return self._place.get(value, -1)
        except Exception:  # of a listed type, but without a hash or equality
            return -1
