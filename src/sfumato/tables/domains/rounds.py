"""Periods that come round again: hours of the day, days of the week."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.columns import Expr
from sfumato.tables.domains.periods import DAY, WEEKDAYS

_MONDAY = 4  # days since 1970 of the first one


@dataclass(frozen=True)
class Rounds:
    """Cells of `width` numbers each that come round after all of them; a round begins at `origin`.

    Examples
    --------
    >>> hours = Rounds.of("hour of day", 86400)
    >>> hours.cells_of(np.array([0, 3599, 3600, -1])).tolist(), hours.names[8]
    ([0, 0, 1, 23], '08:00')
    >>> hours.first(8, 100), hours.count(8, 0, 2 * 86400 + 28800 + 60)
    (28800, 7260)
    """

    names: tuple[str, ...]
    width: int
    origin: int

    @classmethod
    def of(cls, by: str, unit: int) -> Rounds | None:
        """The rounds of a word of a schema file, with `unit` numbers a day; None if its periods are intervals."""
        if by == "hour of day":
            return cls(tuple(f"{hour:02}:00" for hour in range(24)), DAY // 24, 0)
        return cls(WEEKDAYS, unit, _MONDAY * unit) if by == "day of week" else None

    @property
    def cells(self) -> int:
        """How many there are."""
        return len(self.names)

    @property
    def length(self) -> int:
        """Numbers of a whole round."""
        return self.cells * self.width

    def cells_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cell of each of `numbers`."""
        return np.asarray((numbers - self.origin) % self.length // self.width)

    def cell(self, number: Expr, low: int) -> Expr:
        """The same for an engine; no `number` is below `low`."""
        start = low - (low - self.origin) % self.length
        place = number - float(start)
        within = place - (place / float(self.length)).floor().cast("float64") * float(self.length)
        return (within / float(self.width)).floor()

    def first(self, cell: int, start: int) -> int:
        """The first number of a `cell` from `start` on."""
        place = (start - self.origin) % self.length
        if place // self.width == cell:
            return start
        return start + (cell * self.width - place) % self.length

    def count(self, cell: int, start: int, end: int) -> int:
        """How many numbers from `start` up to, not including, `end` are in a `cell`."""

        def below(number: int) -> int:
            whole, place = divmod(number - self.origin, self.length)
            return whole * self.width + min(max(place - cell * self.width, 0), self.width)

        return below(end) - below(start)

    def draw(self, cells: NDArray[np.int64], low: int, high: int, uniform: Any) -> NDArray[np.int64]:
        """A number between the bounds from each of `cells`; `uniform(n)` draws n numbers from 0 to 1."""
        start = low - (low - self.origin) % self.length + cells * self.width
        start = np.where(start + self.width <= low, start + self.length, start)
        turns = np.maximum((high - start) // self.length + 1, 1)
        found = start + (uniform(cells.size) * turns).astype(np.int64) * self.length
        found = found + (uniform(cells.size) * self.width).astype(np.int64)
        return np.asarray(np.where((low <= found) & (found <= high), found, np.maximum(start, low)))
