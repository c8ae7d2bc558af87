"""The price from a wanted error: the smallest ε, or share of everyone's budget, whose preview reaches it.

Only previews are asked, so nothing is read and nothing is spent. The expected error of what a preview would take falls as
the price rises; where it does not (another mechanism takes over, or sums are rounded), the first price along a grid is
narrowed down, and the answer still reaches the error: it is checked at the price returned, and missed at one nano-ε less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from sfumato.errors import BudgetError, InputError
from sfumato.offers import Offer, Request
from sfumato.privacy.units import NANO
from sfumato.releases.pipeline import Priced

Pricing = Callable[[Request], Priced]
"""The preview of a request."""

Unit = Literal["epsilon", "share"]
MOST_EPSILON = 1000
_GRID = 3  # prices per decade that are tried before one is narrowed down


@dataclass(frozen=True)
class Needed:
    """The smallest price at which a preview reaches a wanted error.

    Attributes
    ----------
    epsilon : Decimal or None
        One ε for everybody.
    share : Fraction or None
        The part of everyone's own budget, where it is that.
    error : float
        The expected error at this price (or half-width, where a confidence was asked).
    wanted : float
        The error that was asked for.
    mechanism : str
        What the preview would take at this price.
    """

    epsilon: Decimal | None
    share: Fraction | None
    error: float
    wanted: float
    mechanism: str

    @property
    def price(self) -> dict[str, Any]:
        """As keywords of a release: ``table.count(**needed.price)``."""
        return {"epsilon": self.epsilon} if self.share is None else {"share": self.share}

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts."""
        told = {"epsilon": None if self.epsilon is None else str(self.epsilon)}
        told["share"] = None if self.share is None else str(Decimal(self.share.numerator) / self.share.denominator)
        return {**told, "error": self.error, "wanted": self.wanted, "mechanism": self.mechanism}

    def __str__(self) -> str:
        what = f"ε {self.epsilon}" if self.share is None else f"a share of {float(self.share):.9g} of everyone's budget"
        return f"{what} gives an expected error of {self.error:,.4g} by {self.mechanism}"


def needed(
    request: Request,
    pricing: Pricing,
    *,
    error: float,
    unit: Unit,
    confidence: float | None = None,
    any_data: bool = False,
) -> Needed:
    """The smallest price at which `request` has an expected error of at most `error`.

    Parameters
    ----------
    request : Request
        What is asked; its own price does not matter.
    pricing : callable
        The preview of a request.
    error : float
        The wanted error, in the unit of the answer.
    unit : "epsilon" or "share"
        What is looked for.
    confidence : float, optional
        The error is then the half-width of an interval of this confidence.
    any_data : bool
        Whether the error must hold for any data, where budgets differ: the worst case of the preview.

    Returns
    -------
    Needed
    """
    if isinstance(error, bool) or not (isinstance(error, int | float) and np.isfinite(error) and error > 0):
        raise InputError(f"a wanted error is a number above 0 in the unit of the answer, got {error!r}")
    stretch = 1.0 if confidence is None else half_width(confidence)
    error_of(pricing(at_price(request, NANO, unit)).chosen, request, any_data)  # what is wrong with it is said here
    seen: dict[int, tuple[float, Offer | None]] = {}

    def at(nano: int) -> float:
        if nano not in seen:
            chosen = priced_at(request, pricing, nano, unit)
            found = float("inf") if chosen is None else error_of(chosen, request, any_data)
            seen[nano] = (found * stretch, chosen)
        return seen[nano][0]

    top = NANO if unit == "share" else MOST_EPSILON * NANO
    least, steps = (NANO // 10**4, 4) if unit == "share" else (NANO // 10**6, 9)
    grid = [int(n) for n in np.geomspace(least, top, 1 + _GRID * steps)]
    best = next((i for i, nano in enumerate(grid) if at(nano) <= error), None)
    if best is None:
        raise InputError(_unreachable(request, min(seen.values(), key=lambda found: found[0]), error, unit))
    nano = grid[0] if best == 0 else _narrowed(at, grid[best - 1], grid[best], error)
    reached, chosen = seen[nano]
    assert chosen is not None
    price = Decimal(nano).scaleb(-9).normalize()
    epsilon, share = (price, None) if unit == "epsilon" else (None, Fraction(nano, NANO))
    return Needed(epsilon, share, reached, float(error), chosen.mechanism)


def priced_at(request: Request, pricing: Pricing, nano: int, unit: Unit) -> Offer | None:
    """What a preview would take at a price; None where it has no price there, being too small (or far too large)."""
    try:
        return pricing(at_price(request, nano, unit)).chosen
    except (BudgetError, InputError):
        return None


def at_price(request: Request, nano: int, unit: Unit) -> Request:
    """The same request at another price."""
    if unit == "share":
        return replace(request, epsilon=None, share=Fraction(nano, NANO))
    return replace(request, epsilon=Decimal(nano).scaleb(-9), share=None)


def error_of(offer: Offer, request: Request, any_data: bool) -> float:
    """The error that a preview shows, or an error that says why there is none."""
    found = offer.errors.worst if any_data and offer.errors is not None else offer.expected_rmse
    if found is None:
        raise InputError(
            f"the error of {offer.mechanism!r} for release {request.name!r} is decided by the data, not known beforehand; "
            "name a mechanism whose preview shows one"
        )
    return float(found)


def half_width(confidence: float) -> float:
    """The half-width of an interval in standard deviations, for errors between Laplace and normal: the larger of both.

    >>> round(half_width(0.95), 3), round(half_width(0.5), 3)
    (2.118, 0.674)
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, for example 0.95; got {confidence!r}")
    from statistics import NormalDist

    return float(max(-np.log1p(-confidence) / np.sqrt(2), NormalDist().inv_cdf((1 + confidence) / 2)))


def _narrowed(at: Callable[[int], float], low: int, high: int, error: float) -> int:
    """The price between two at which the error is first reached.

    A straight line in logarithms, which most errors follow, then a small step to the other side of it; halves now and then.
    """
    turn = 0
    while high - low > 1:
        first, last = at(low), at(high)
        guess, step = (low + high) // 2, max(1, (high - low) // 64)
        if turn % 3 < 2 and np.isfinite(first) and first > last > 0:
            part = float(np.clip(np.log(first / error) / np.log(first / last), 0.0, 1.0))
            guess = int(low * (high / low) ** part)
        for _ in range(2):
            guess = min(max(guess, low + 1), high - 1)
            if at(guess) <= error:
                high, guess = guess, guess - step
            else:
                low, guess = guess, guess + step
            if high - low <= 1:
                break
        turn += 1
    return high


def _unreachable(request: Request, best: tuple[float, Offer | None], error: float, unit: Unit) -> str:
    whole = "everyone's whole budget" if unit == "share" else f"ε {MOST_EPSILON}"
    offer = best[1]
    if offer is None:
        return f"release {request.name!r} cannot be made at any price up to {whole}"
    floor = offer.bias_bound
    why = f" ({floor:,.4g} is possible bias or rounding, which no price takes away)" if floor > 0 else ""
    return (
        f"no {unit} reaches an error of {error:,.6g} for release {request.name!r}: up to {whole} the least is "
        f"{best[0]:,.4g} by {offer.mechanism}{why}; ask for a larger error"
    )


def wanted_error(
    error: float | None, relative: float | None, size: float | None, request: Request, rows: int | None
) -> float:
    """The wanted error in the unit of the answer, from one given so or relative to a public guess of the answer's size."""
    if (error is None) == (relative is None):
        raise InputError("say either the wanted error, in the unit of the answer, or the relative error; not both")
    if error is not None:
        return error
    assert relative is not None
    if not 0 < relative < 1:
        raise InputError(f"a relative error lies between 0 and 1 (0.05 for 5%), got {relative!r}")
    if size is None and request.kind == "count" and rows is not None:
        share = request.parameters.get("selectivity")
        size = rows * share if share is not None else rows if request.where is None else None
    if size is None:
        raise InputError(
            f"a relative error of release {request.name!r} needs `size`, a public guess of the answer that it is relative to"
        )
    if not np.isfinite(size) or size == 0:
        raise InputError(f"the size that an error is relative to must be a number other than 0, got {size!r}")
    return relative * abs(float(size))
