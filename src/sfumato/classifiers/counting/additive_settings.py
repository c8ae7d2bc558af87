"""How an additive model spends its budget: smooth functions of ε, the number of records and the share of the rarer classes.

- The *signal* Nε, the number of records times the budget, says how many units of noise fit into the table. Each doubling
  pays for one more round, from one at 400 to three at 1,600: ``log2(Nε / 200)``. More rounds than these must be carried by
  the records that are still wrong, and where one class has nearly everything those are few. So from there on the signal is
  counted as if a quarter of the records, and no more, could be wrong: ``1.35 log2(E / 1000)``, E being Nε or four times the
  rarer classes' records times ε, whichever is less.
- The first term gets twice the budget of a later one, or less where there are many: decisions rest on it, the others order
  the rows within its cells.
- Where one class has nearly everything, hardly a grid changes a decision and the noise would choose: the first choice heeds
  that class less, down to as much as the others together, so that a grid is worth what it tells of them. Later terms mend
  the decisions; where there are none, it heeds all alike.
- A choice among tens of thousands of grids is off by about ten units of its noise: its share falls as the signal grows.
- The fainter the signal, and the rarer the classes, the more noise there is in a cell: a grid may then have fewer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sfumato.classifiers.counting.lattice import UNIT
from sfumato.errors import InputError

FIRST_ROUND = 200  # N ε of which each doubling pays for a round, up to FEW
FEW = 3
LATER_ROUND = 1_000  # the same for more rounds, of which a doubling pays for MORE
MORE = 1.35
MOST_ROUNDS = 16
EVEN = 0.25  # share of the rarer classes from which on they are not rare


@dataclass(frozen=True)
class AdditiveSettings:
    """Everything that decides the rounds beside the data and the schema.

    Attributes
    ----------
    rounds : int
        Number of terms.
    columns : int
        Largest number of columns in a term.
    first : int
        The same for the first term, which gets `ahead` times the budget of a later one.
    candidates : int
        Largest number of grids to choose among.
    select : float
        Share of a round that goes into the choice.
    cap : float
        Largest weight of a record after the first round.
    prior : float
        What a cell's prior weighs, in units of the noise.
    damp : float
        Factor on the scores of later terms: a cell mixes rows that need different corrections, so a full step overshoots.
    common, heed : int, float
        The most frequent class, and what a record of it weighs in the choice of the first term.
    cells, crowd : float
        A candidate has at most ``cells * N * ε`` cells (ε that of the round) and at most ``N / crowd``.
    """

    rounds: int
    columns: int = 2
    first: int = 3
    ahead: float = 1.0
    candidates: int = 20_000
    select: float = 0.3
    cap: float = 0.5
    prior: float = 1.0
    damp: float = 0.8
    common: int = 0
    heed: float = 1.0
    cells: float = 1.0
    crowd: float = 20.0

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.columns < 1 or self.first < 1 or self.candidates < 1:
            raise InputError("an additive model needs at least one round, one column per term and one candidate")
        if not 0 <= self.heed <= 1:
            raise InputError("a record weighs between 0 and 1 in the choice of the first term")
        if not 0 < self.select < 1 or not 0 < self.cap <= 1 or self.prior <= 0:
            raise InputError("the share of the choice lies between 0 and 1, the cap in (0, 1], and the prior is positive")

    def shares(self) -> tuple[float, ...]:
        """Share of the budget per round.

        >>> AdditiveSettings(3, ahead=2.0).shares()
        (0.5, 0.25, 0.25)
        """
        whole = self.ahead + self.rounds - 1
        return (self.ahead / whole, *([1 / whole] * (self.rounds - 1)))

    def widest(self, number: int) -> int:
        """Largest number of columns in the term of this number."""
        return self.first if number == 0 else self.columns

    def most_cells(self, rows: int, epsilon: float) -> int:
        """Largest number of cells of a candidate."""
        return max(2, int(min(self.cells * rows * epsilon, rows / self.crowd)))


def rounds_for(signal: float, rarer: float = EVEN) -> int:
    """The number of rounds that a signal pays for, with such a share outside the most frequent class.

    >>> [rounds_for(s) for s in (100, 400, 800, 1_600, 5_000, 20_000, 40_000, 200_000)]
    [1, 1, 2, 3, 3, 6, 7, 10]
    >>> [rounds_for(s, rarer=0.05) for s in (100, 400, 800, 1_600, 5_000, 20_000, 40_000, 200_000)]
    [1, 1, 2, 3, 3, 3, 4, 7]
    """
    few = min(FEW, np.log2(signal / FIRST_ROUND))
    wrong = signal * min(1.0, max(rarer, 1e-9) / EVEN)
    return int(np.clip(round(max(few, MORE * np.log2(wrong / LATER_ROUND))), 1, MOST_ROUNDS))


def heed_for(rarer: float, rounds: int = FEW) -> float:
    """What a record of the most frequent class weighs in the first choice: 1 at an even share of the others, and the rarer
    they are the closer to the odds by which both sides weigh the same. With one round all decisions rest on it: 1.

    >>> [round(heed_for(rarer), 3) for rarer in (0.5, 0.25, 0.2, 0.1, 0.02, 0.0)]
    [1.0, 1.0, 0.758, 0.268, 0.028, 0.004]
    >>> [round(heed_for(0.1, rounds), 3) for rounds in (1, 2, 3, 4)]
    [1.0, 0.517, 0.268, 0.268]
    """
    odds = rarer / max(1.0 - rarer, 1e-9)
    power = max(0.0, 1.0 - rarer / EVEN) * min(1.0, (rounds - 1) / (FEW - 1))
    return float(np.clip(odds**power, 1 / UNIT, 1.0))


def automatic(
    epsilon: float,
    rows: int,
    *,
    rarer: float = EVEN,
    rounds: int | str = "auto",
    columns: int | str = "auto",
    candidates: int | str = "auto",
    cap: float = 0.5,
) -> AdditiveSettings:
    """Settings from public facts; what is not "auto" is kept. `rarer` is the share outside the most frequent class.

    >>> [automatic(e, 36_000).rounds for e in (0.01, 0.05, 0.1, 0.2, 0.5, 1)]
    [1, 3, 3, 4, 6, 7]
    >>> [automatic(1, 36_000, rarer=r).rounds for r in (0.5, 0.25, 0.125, 0.0)]
    [7, 7, 6, 3]
    """
    signal = max(1.0, epsilon * rows)
    even = min(1.0, max(0.0, rarer) / EVEN)
    faint = min(1.0, 2 * FIRST_ROUND / signal)
    most = rounds_for(signal, rarer)
    found = AdditiveSettings(
        most,
        ahead=1.0 + min(1.0, FEW / most),
        select=float(np.clip(0.4 - 0.085 * np.log2(signal / 7200), 0.15, 0.45)),
        prior=1.0 + 0.5 * faint,
        cells=float(np.clip(0.22 / np.sqrt(faint), 0.22, 1.0)) * (0.3 + 0.7 * even),
        cap=cap,
    )
    if not isinstance(rounds, str):
        found = replace(found, rounds=int(rounds))
    if not isinstance(columns, str):
        found = replace(found, columns=int(columns), first=int(columns))
    if not isinstance(candidates, str):
        found = replace(found, candidates=int(candidates))
    return replace(found, heed=heed_for(rarer, found.rounds))
