"""Exact units of privacy loss: integers of nano-ε.

Every budget, charge and noise rate is a whole number of 1e-9 ε, so sums and comparisons are exact. What a person
*grants* is rounded down, what a release *costs* is rounded up: the spender never gains from rounding.

Public arguments are ε (`Epsilon`: a number, a decimal or its text) and become `Nano` here and nowhere else. What holds
nano-ε says so by its type: a plain integer is not one, and mypy refuses to take it for one.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import NewType, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError

NANO = 10**9
"""Nano-ε in one ε."""

MAX_EPSILON = 1_000_000  # a guard against unit mistakes, and against overflow of 64-bit sums

_WIDE = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])  # ours: the caller's may round

Epsilon: TypeAlias = int | float | str | Decimal | Fraction
"""An ε as people write it; a float stands for the shortest decimal that is written so."""

Nano = NewType("Nano", int)
"""Whole nano-ε. What is computed from them is an integer, and becomes Nano again where it is handed on."""

NanoArray: TypeAlias = NDArray[np.int64]
"""Many amounts of nano-ε: one per person group, attribute or coordinate."""


def _fraction(epsilon: Epsilon, what: str) -> Fraction:
    try:
        if isinstance(epsilon, bool):
            raise TypeError
        if isinstance(epsilon, Fraction | int):
            value = Fraction(epsilon)
        else:
            # A float is read as the decimal a person wrote (0.1 is one tenth), not as its binary neighbour.
            written = Decimal(str(epsilon))
            # 1e-999999 is more than nothing but need not be written out; the other end is refused below.
            held = min(max(written.adjusted(), -100), 100) if written else 0
            value = Fraction(written.scaleb(held - written.adjusted(), _WIDE)) if written else Fraction(0)
    except (InvalidOperation, ValueError, OverflowError, TypeError):
        comma = isinstance(epsilon, str) and epsilon.count(",") == 1
        hint = f"; write a point: {epsilon.replace(',', '.')}" if isinstance(epsilon, str) and comma else ""
        raise InputError(f"{what} must be a finite number, got {epsilon!r}{hint}") from None
    if value < 0:
        raise InputError(f"{what} must not be negative, got {epsilon!r}")
    if value > MAX_EPSILON:
        raise InputError(f"{what} is {epsilon!r}; above {MAX_EPSILON} it means no privacy at all: check the unit")
    return value


def nano_down(epsilon: Epsilon, what: str = "epsilon") -> Nano:
    """A granted budget in nano-ε, rounded down.

    Parameters
    ----------
    epsilon : ε
    what : str
        What to call it in an error.

    Returns
    -------
    Nano

    Examples
    --------
    >>> nano_down(0.1), nano_down("0.3333333333")
    (100000000, 333333333)
    """
    return Nano(int(_fraction(epsilon, what) * NANO // 1))


def nano_up(epsilon: Epsilon, what: str = "epsilon") -> Nano:
    """A cost in nano-ε, rounded up.

    Parameters
    ----------
    epsilon : ε
    what : str
        What to call it in an error.

    Returns
    -------
    Nano

    Examples
    --------
    >>> nano_up("0.3333333333")
    333333334
    """
    return Nano(int(-(-_fraction(epsilon, what) * NANO // 1)))


def positive_nano(epsilon: Epsilon, what: str = "epsilon") -> Nano:
    """A budget that must be usable: rounded down and at least one nano-ε.

    Parameters
    ----------
    epsilon : ε
    what : str
        What to call it in an error.

    Returns
    -------
    Nano

    Examples
    --------
    >>> positive_nano(0)
    Traceback (most recent call last):
    ...
    sfumato.errors.InputError: epsilon must be greater than 0 (at least 1e-9), got 0
    """
    nano = nano_down(epsilon, what)
    if nano < 1:
        raise InputError(f"{what} must be greater than 0 (at least 1e-9), got {epsilon!r}")
    return nano


def nano_down_array(epsilons: ArrayLike, what: str = "budgets") -> NanoArray:
    """Many budgets at once, rounded down. As in `nano_down`, a float stands for the shortest decimal that is written so.

    >>> nano_down_array([0.1, 0.3]).tolist()
    [100000000, 300000000]
    """
    values = np.asarray(epsilons, dtype=np.float64)
    if not np.isfinite(values).all():
        raise InputError(f"{what} must be finite numbers; {int((~np.isfinite(values)).sum())} are NaN or infinite")
    if (values < 0).any():
        raise InputError(f"{what} must not be negative; {int((values < 0).sum())} are")
    if (values > MAX_EPSILON).any():
        raise InputError(f"{what} above {MAX_EPSILON} mean no privacy at all: check the unit")
    nearest = np.rint(values * NANO)
    # Division rounds correctly: nearest / 1e9 is the float that a person who writes that decimal gets. So 0.3 is 300000000
    # although 0.3 * 1e9 is 299999999.99999994, and the float just below 0.3 is 299999999.
    return (nearest - (nearest / NANO > values)).astype(np.int64)


def as_epsilon(nano: int) -> Decimal:
    """Nano-ε as an exact decimal.

    Parameters
    ----------
    nano : int

    Returns
    -------
    Decimal

    Examples
    --------
    >>> as_epsilon(150_000_000)
    Decimal('0.15')
    """
    whole, rest = divmod(abs(int(nano)), NANO)
    return Decimal("-" * (nano < 0) + f"{whole}.{rest:09d}".rstrip("0").rstrip("."))


def epsilon_text(nano: int) -> str:
    """Nano-ε as plain decimal text, never in powers of ten.

    >>> epsilon_text(400_000_000), epsilon_text(1)
    ('0.4', '0.000000001')
    """
    return format(as_epsilon(nano), "f")


def nano_of(text: str) -> Nano:
    """The inverse of `epsilon_text`: what was written down exactly is read exactly, without a limit on its size.

    >>> nano_of("0.4"), nano_of(epsilon_text(1))
    (400000000, 1)
    """
    try:
        written = Decimal(text)
        value = Fraction(written if abs(written.adjusted()) < 40 else -1) * NANO
    except (InvalidOperation, ValueError, OverflowError, TypeError):
        raise InputError(f"a stored ε is a decimal, got {text!r}") from None
    if value < 0 or value.denominator != 1:
        raise InputError(f"a stored ε is a whole number of 1e-9, not negative, got {text!r}")
    return Nano(int(value))
