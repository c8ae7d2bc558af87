"""Noisy counts of cells with the law of their errors, for intervals of cells and of ranges over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.people.error_law import LaplacePlusNormal
from sfumato.people.estimate import Bracket

Floats = NDArray[np.float64]
_ONE_BY_ONE = 256  # more cells than this read their half-widths off a curve
_CURVE = 65


@dataclass(frozen=True, eq=False)
class CellBracket:
    """Noisy counts of all cells, and how far they may be off.

    Attributes
    ----------
    values : float array
        The counts, flat.
    people : int
        Size of the public roster.
    scale : float
        Scale of the Laplace noise of one cell, in counts.
    imbalance : float
        ``Σ m² / (Σ m)² - 1/n`` for the weights m of n people: what unequal weights add if budgets are independent of the
        values. 0 where nothing of the kind is assumed.
    missing : float
        So many rows may be missing from any set of cells, whatever the data; an interval is centred on half of them.
    rows : int
        How many rows of one person may count.
    heads : tuple of float
        What the noise in each head count of a private roster adds (see `linear`): for any data as it stands, and if budgets
        are independent of the values times the share of the people that the cells hold.
    """

    values: Floats
    people: int
    scale: float
    imbalance: float = 0.0
    missing: float = 0.0
    rows: int = 1
    heads: tuple[float, ...] = ()

    def _law(self, cells: int, spread: float, count: float) -> LaplacePlusNormal:
        """Of so many cells that hold `count` rows."""
        part = 1.0 if self.imbalance == 0 else float(np.clip(count / (self.people * self.rows), 0.0, 1.0))
        return LaplacePlusNormal((self.scale,) * cells, spread, tuple(part * scale for scale in self.heads))

    def spreads(self, counts: Floats) -> Floats:
        """Standard deviation that unequal weights cause in sets of cells with these `counts`."""
        mean = np.clip(counts / self.people, 0.0, self.rows)
        variance = np.maximum(mean * (self.rows - mean), 1 / self.people)
        return np.asarray(self.people * np.sqrt(variance * self.imbalance))

    def over(self, mask: NDArray[np.bool_]) -> Bracket:
        """The cells of a flat `mask` together."""
        value = float(self.values[mask].sum()) + self.missing / 2
        spread = float(self.spreads(np.array([value]))[0])
        return Bracket(value, self._law(int(mask.sum()), spread, value), self.missing / 2)

    def halfwidths(self, confidence: float) -> Floats:
        """Of the interval of every cell on its own."""
        spreads, place = np.unique(self.spreads(self.values), return_inverse=True)
        wanted = spreads if spreads.size <= _ONE_BY_ONE else np.linspace(spreads[0], spreads[-1], _CURVE)
        # The fullest cell stands for all: what head counts do to an emptier one is less.
        fullest = float(self.values.max(initial=0.0))
        found = [halfwidth(self._law(1, sd, fullest), self.missing / 2, confidence) for sd in wanted.tolist()]
        return np.asarray(np.interp(spreads, wanted, found)[place.reshape(-1)])

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """Lower and upper ends of every cell, cut at 0."""
        half = self.halfwidths(confidence)
        centre = self.values + self.missing / 2
        return np.maximum(centre - half, 0.0), np.maximum(centre + half, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists."""
        plain = {name: getattr(self, name) for name in ("people", "scale", "imbalance", "missing", "rows")}
        return {"values": self.values.tolist(), **plain, **({"heads": list(self.heads)} if self.heads else {})}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The bracket that `to_dict` wrote down as `data`."""
        heads = tuple(data.get("heads", ()))
        return cls(**{**data, "values": np.array(data["values"], dtype=np.float64), "heads": heads})


def halfwidth(law: LaplacePlusNormal, bias: float, confidence: float) -> float:
    """h with ``P(|error + β| <= h) >= confidence`` for every bias β up to `bias`, and equality at the largest.

    The law is symmetric with one peak, so the largest bias is the worst. It can push the error out at one end only, so this
    is less than the sum of both.

    >>> law = LaplacePlusNormal((1.0,))
    >>> halfwidth(law, 0.0, 0.95) == law.halfwidth(0.95)
    True
    >>> h = halfwidth(law, 1.0, 0.95)
    >>> round(h, 3), round(float(1 - 0.5 * np.exp(-(h - 1)) - 0.5 * np.exp(-(h + 1))), 6)
    (3.43, 0.95)
    """
    alone = law.halfwidth(confidence)
    if bias == 0:
        return alone
    from scipy import optimize  # slow to import, and only intervals need it

    def beyond(x: float) -> float:
        """P(error > x)."""
        tail = (1 - law.coverage(abs(x))) / 2
        return tail if x >= 0 else 1 - tail

    def missed(h: float) -> float:
        return beyond(h - bias) + beyond(h + bias) - (1 - confidence)

    return float(optimize.brentq(missed, 0.0, alone + bias, xtol=1e-9 * (alone + bias)))


def bracket_interval(bracket: Bracket, confidence: float) -> tuple[float, float]:
    """An interval of a count, cut at 0, with the bias of its `bracket` in it."""
    assert isinstance(bracket.law, LaplacePlusNormal)
    half = halfwidth(bracket.law, bracket.bias, confidence)
    return max(bracket.value - half, 0.0), max(bracket.value + half, 0.0)
