"""How a release spends its budget: settings, and the automatic ones, which follow from public facts only."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from sfumato.errors import InputError
from sfumato.grids.search.pool import Order
from sfumato.privacy.units import Nano

Calibration = Literal["spread", "published"]
PAPER_SPLIT = (0.03, 0.37, 0.60)
MOST_CELLS = 1 << 22  # counts that one release publishes at most


@dataclass(frozen=True)
class Settings:
    """Everything that decides a release beside the data, ε and the schema.

    Attributes
    ----------
    grids : 1, 2 or "auto"
        One grid; a second one chosen for what the first misses; or a second one only if noisy class counts, for a fiftieth
        of the budget, say that there is enough to find.
    most : int
        Θ, the largest number of candidate grids.
    order : "balanced" or "paper"
        Which candidates are taken when there are too many: whole layers of columns and then the finest grids, whatever the
        order of the columns; or the first ones.
    widest : int or None
        The largest number of attributes in a candidate grid.
    split : (size, select, count)
        Shares of ε for the number of records, the choice and the counts. With a public number of records the first share
        goes to the counts.
    calibration : "spread" or "published"
        How the choice is priced: by the spread of the changes, or as in the paper (2.2).
    cells : float
        A candidate has at most ``cells * N * ε`` cells, ε that of the counts.
    crowd : float
        And at most ``N / crowd`` cells, so that they hold so many records on average: with fewer, chance rather than noise
        decides what a cell says. 0 for no such limit, as in the paper.
    """

    grids: int | str = 1
    most: int = 10_000
    order: Order = "balanced"
    widest: int | None = None
    split: tuple[float, float, float] = PAPER_SPLIT
    calibration: Calibration = "spread"
    cells: float = 0.2
    crowd: float = 0.0

    def __post_init__(self) -> None:
        if self.grids not in (1, 2, "auto"):
            raise InputError(f"grids must be 1, 2 or 'auto', got {self.grids!r}")
        if not _is_whole(self.most) or not 1 <= self.most <= 5_000_000:
            raise InputError(f"the pool must have between 1 and 5,000,000 grids, got {self.most!r}")
        if self.order not in get_args(Order):
            raise InputError(f"order must be 'balanced' or 'paper', got {self.order!r}")
        if self.widest is not None and (not _is_whole(self.widest) or self.widest < 1):
            raise InputError(f"widest must be a whole number of columns, at least 1, got {self.widest!r}")
        if self.calibration not in get_args(Calibration):
            raise InputError(f"calibration must be 'spread' or 'published', got {self.calibration!r}")
        if not _is_split(self.split):
            raise InputError(f"the split needs three shares (size, select, count) that add up to 1, got {self.split!r}")
        if not _is_number(self.cells) or self.cells <= 0:
            raise InputError(f"cells must be a positive number, got {self.cells!r}")
        if not _is_number(self.crowd) or self.crowd < 0:
            raise InputError(f"crowd must be a number of records, 0 or more, got {self.crowd!r}")

    def shares(self, nano: Nano, *, public_size: bool) -> tuple[Nano, Nano, Nano]:
        """How `nano` nano-ε are divided among the three steps, the first of which is free at a `public_size`.

        >>> Settings().shares(10**9, public_size=False), Settings().shares(10**9, public_size=True)
        ((30000000, 370000000, 600000000), (0, 370000000, 630000000))
        """
        size = 0 if public_size else int(nano * self.split[0])
        select = int(nano * self.split[1])
        if (not public_size and size < 1) or select < 1 or nano - size - select < 1:
            raise InputError(f"a budget of {nano} nano-ε is too small to be split into {self.split}; raise epsilon")
        return Nano(size), Nano(select), Nano(nano - size - select)

    def most_cells(self, records: float, rate: float) -> int:
        """τ: the largest number of cells of a candidate grid, for `records` and counts of this `rate` (Equation 6).

        >>> Settings().most_cells(30_000, 0.5), Settings(crowd=20).most_cells(30_000, 0.5)
        (3000, 1500)
        """
        noisy = self.cells * records * rate
        return max(2, int(min(noisy, records / self.crowd) if self.crowd else noisy))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, as certificates show them."""
        return {**asdict(self), "split": list(self.split)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_split(shares: Any) -> bool:
    if not isinstance(shares, tuple) or len(shares) != 3 or not all(_is_number(share) for share in shares):
        return False
    return min(shares[1:]) > 0 and shares[0] >= 0 and abs(sum(shares) - 1) <= 1e-9


PAPER = Settings(most=10_000, order="paper", split=PAPER_SPLIT, calibration="published")
"""The settings of the paper: its order of candidates, its split and its price of the choice."""
