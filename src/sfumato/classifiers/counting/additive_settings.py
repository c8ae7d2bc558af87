"""How an additive model spends its budget: a function of ε, the number of records and the share of the rarer classes.

The rules were chosen on the two data sets of the bench and are written as what they rest on:

- the *signal* Nε, the number of records times the budget: how many units of noise fit into the table. Below `ONE_TERM` more
  than one term costs more than it finds;
- whether the classes are *mixed*. Where the most frequent class has nearly all the records, the wrong ones are few, and a
  second term adds its noise to all rows for the sake of those few: one larger grid does better, with more columns or finer
  levels as the signal grows (`FAIR`, `STRONG`), until those few times ε reach what a second grid needs (`SECOND` of
  `grids.automatic`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sfumato.errors import InputError
from sfumato.grids.publishers.automatic import SECOND

ONE_TERM = 3_000
FAIR = 12_000
STRONG = 25_000
MIXED = 0.17  # share of the records outside the most frequent class


def are_mixed(rarer: float, rows: float, epsilon: float) -> bool:
    """Whether several terms pay, from the (noisy) number of records outside the most frequent class.

    >>> are_mixed(9_000, 36_000, 0.1), are_mixed(3_700, 33_000, 1), are_mixed(15_000, 240_000, 1)
    (True, False, True)
    """
    return rarer >= MIXED * rows or rarer * epsilon >= SECOND


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
    cells: float = 1.0
    crowd: float = 20.0

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.columns < 1 or self.first < 1 or self.candidates < 1:
            raise InputError("an additive model needs at least one round, one column per term and one candidate")
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


def automatic(
    epsilon: float,
    rows: int,
    *,
    mixed: bool = True,
    rounds: int | str = "auto",
    columns: int | str = "auto",
    candidates: int | str = "auto",
    cap: float = 0.5,
) -> AdditiveSettings:
    """Settings from public facts; what is not "auto" is kept.

    >>> [automatic(e, 36_000).rounds for e in (0.05, 0.1, 0.2, 0.5, 1)]
    [1, 3, 4, 6, 7]
    >>> automatic(1, 36_000, mixed=False).rounds
    1
    """
    signal = epsilon * rows
    # A choice among tens of thousands is off by about ten units of its noise: at small signals that is what costs most.
    select = float(np.clip(0.4 - 0.085 * np.log2(signal / 7200), 0.15, 0.45)) if signal > 0 else 0.45
    if signal < ONE_TERM:
        found = AdditiveSettings(1, first=3, select=0.45, cells=0.22, prior=1.5, cap=cap)
    elif mixed:
        found = AdditiveSettings(int(np.clip(round(1.35 * np.log2(signal / 1000)), 3, 10)), select=select, cap=cap)
    elif signal < FAIR:
        found = AdditiveSettings(1, first=3, select=0.45, cells=0.3, crowd=15.0, cap=cap)
    elif signal < STRONG:
        found = AdditiveSettings(1, first=4, cells=0.3, crowd=13.0, candidates=40_000, cap=cap)
    else:
        found = AdditiveSettings(1, first=3, cells=0.15, crowd=6.0, prior=0.5, cap=cap)
    if not isinstance(rounds, str):
        found = replace(found, rounds=int(rounds))
    if not isinstance(columns, str):
        found = replace(found, columns=int(columns), first=int(columns))
    if not isinstance(candidates, str):
        found = replace(found, candidates=int(candidates))
    return found
