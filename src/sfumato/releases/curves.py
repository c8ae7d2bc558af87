"""Error against price: what every mechanism of a preview would do at more and at less ε, as figures, in the terminal and
as a picture. Only previews are asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import BudgetError, InputError
from sfumato.offers import Request
from sfumato.privacy.units import NANO, positive_nano
from sfumato.releases.wanted import Pricing, Unit, at_price

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 13
_MOST_LINES = 8  # mechanisms in one picture: the best at the asked price
_BRAILLE = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
STYLES = ("blue", "dark_orange", "green", "red", "magenta", "cyan", "yellow", "white")


@dataclass(frozen=True)
class Curves:
    """Expected errors of every mechanism over a range of prices.

    Attributes
    ----------
    name : str
        The release.
    unit : "epsilon" or "share"
        What the price is.
    at : tuple of float
        The prices.
    errors : mapping of str to tuple of float or None
        By mechanism, best at the asked price first; None where a mechanism has no price or no expected error.
    asked : float or None
        The price of the request itself.
    """

    name: str
    unit: Unit
    at: tuple[float, ...]
    errors: Mapping[str, tuple[float | None, ...]]
    asked: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        errors = {name: list(line) for name, line in self.errors.items()}
        return {"name": self.name, self.unit: list(self.at), "asked": self.asked, "errors": errors}

    @property
    def shown(self) -> dict[str, tuple[float | None, ...]]:
        """The mechanisms that a picture has room for."""
        known = {name: line for name, line in self.errors.items() if sum(e is not None and e > 0 for e in line) > 1}
        return dict(list(known.items())[:_MOST_LINES])

    def lines(self, width: int = 60, height: int = 12) -> list[list[tuple[str, int | None]]]:
        """The chart as rows of (text, number of the mechanism or None for the frame), for a terminal.

        `width` and `height` are in characters; both axes are logarithmic. A letter marks each mechanism on its line.
        """
        shown = self.shown
        if not shown:
            return [[("the data decides the error of every mechanism here: there is nothing to draw", None)]]
        every = [e for line in shown.values() for e in line if e is not None and e > 0]
        low, high = np.log10(min(every)), np.log10(max(every))
        high = max(high, low + 0.1)
        dots = np.zeros((height, width), dtype=np.int64)
        owner = np.full((height, width), -1)
        letters: dict[tuple[int, int], str] = {}
        for number, line in enumerate(shown.values()):
            x, y = self._path(line, 2 * width, 4 * height, float(low), float(high))
            for i, j in zip(x.tolist(), y.tolist(), strict=True):
                row, column = j // 4, i // 2
                dots[row, column] |= _DOTS[j % 4][i % 2]
                owner[row, column] = number
            mark = int(len(x) * (number + 1) / (len(shown) + 1))
            letters[int(y[mark]) // 4, int(x[mark]) // 2] = chr(ord("A") + number)
        out = []
        for row in range(height):
            value = 10 ** (high - (high - low) * row / max(1, height - 1))
            label = f"{value:>9,.3g} ┤" if row % 4 == 0 or row == height - 1 else " " * 10 + "│"
            cells: list[tuple[str, int | None]] = [(label, None)]
            for column in range(width):
                sign = letters.get((row, column)) or (chr(_BRAILLE | int(dots[row, column])) if dots[row, column] else " ")
                cells.append((sign, int(owner[row, column]) if owner[row, column] >= 0 else None))
            out.append(cells)
        first, last, what = f"{self.at[0]:.3g}", f"{self.at[-1]:.3g}", "ε" if self.unit == "epsilon" else "share"
        out.append([(" " * 10 + "└" + "─" * width, None)])
        out.append([(" " * 11 + first + f"{what:^{max(1, width - len(first) - len(last))}}" + last, None)])
        out += [[(f"{' ' * 11}{chr(ord('A') + i)} ", i), (name, i)] for i, name in enumerate(shown)]
        return out

    def _path(self, line: tuple[float | None, ...], width: int, height: int, low: float, high: float) -> tuple[Any, Any]:
        """Where a line passes, in dots from the left and from the top."""
        known = [(np.log10(p), np.log10(e)) for p, e in zip(self.at, line, strict=True) if e is not None and e > 0]
        prices, errors = np.array(known).T
        first, last = np.log10(self.at[0]), np.log10(self.at[-1])
        x = np.arange(width)
        price = first + (last - first) * x / (width - 1)
        inside = (price >= prices[0] - 1e-9) & (price <= prices[-1] + 1e-9)
        error = np.interp(price[inside], prices, errors)
        y = np.rint((high - error) / (high - low) * (height - 1)).astype(np.int64)
        return x[inside], np.clip(y, 0, height - 1)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw error against price for every mechanism, on `ax` or a new figure."""
        from sfumato.palette import CYCLE, GREY, axes

        ax = axes(ax)
        marks = ("o", "s", "^", "D", "v", "P", "X", "*")
        for i, (name, line) in enumerate(self.shown.items()):
            known = [(p, e) for p, e in zip(self.at, line, strict=True) if e is not None]
            style: dict[str, Any] = {"color": CYCLE[i % len(CYCLE)], "marker": marks[i % len(marks)], "ms": 4, "label": name}
            ax.plot(*zip(*known, strict=True), **style)
        if self.asked is not None:
            ax.axvline(self.asked, color=GREY, lw=0.8, ls=":", label="asked")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("ε" if self.unit == "epsilon" else "share of everyone's budget")
        ax.set_ylabel("expected error (RMSE)")
        ax.set_title(self.name, fontsize=10)
        if self.shown:
            ax.legend(fontsize=8, frameon=False)
        return ax


def curves(request: Request, pricing: Pricing, *, unit: Unit) -> Curves:
    """The expected error of every mechanism from a tenth to ten times the asked price (shares: up to 1).

    Parameters
    ----------
    request : Request
        What is asked; without a price of its own, the range is around ε 1, or up to the whole budget.
    pricing : callable
        The preview of a request.
    unit : "epsilon" or "share"

    Returns
    -------
    Curves
    """
    asked = None
    if unit == "epsilon" and request.epsilon is not None:
        asked = positive_nano(request.epsilon) / NANO
    elif unit == "share" and request.share is not None:
        asked = float(request.share)
    middle = asked or 1.0
    prices = np.geomspace(middle / 10, middle * 10 if unit == "epsilon" else min(1.0, middle * 10), _POINTS)
    found: dict[str, list[float | None]] = {}
    at = [max(1, round(p * NANO)) for p in prices.tolist()]
    for place, nano in enumerate(at):
        try:
            offers = pricing(at_price(request, nano, unit)).offers
        except BudgetError:  # too little for any mechanism
            offers = ()
        for offer in offers:
            found.setdefault(offer.mechanism, [None] * len(at))[place] = offer.expected_rmse
    if not found:
        raise InputError(f"release {request.name!r} has no price in this range; raise its budget")
    nearest = int(np.argmin(np.abs(np.log(prices / middle))))
    order = sorted(found, key=lambda name: float("inf") if (e := found[name][nearest]) is None else e)
    return Curves(request.name, unit, tuple(n / NANO for n in at), {n: tuple(found[n]) for n in order}, asked)
