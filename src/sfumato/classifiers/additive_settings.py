"""How an additive model spends its budget: a function of ε, the number of records and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.errors import InputError


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
        Shrinkage of the cells, in units of the noise.
    cells : float
        A candidate has at most ``cells * N * ε`` cells, ε that of the round.
    """

    rounds: int
    columns: int = 3
    first: int = 3
    ahead: float = 1.0
    candidates: int = 20_000
    select: float = 0.3
    cap: float = 0.6
    prior: float = 2.0
    cells: float = 0.3
    damp: float = 1.0

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.columns < 1 or self.first < 1 or self.candidates < 1:
            raise InputError("an additive model needs at least one round, one column per term and one candidate")
        if not 0 < self.select < 1 or not 0 < self.cap <= 1 or self.prior <= 0:
            raise InputError("the share of the choice lies between 0 and 1, the cap in (0, 1], and the prior is positive")

    def shares(self) -> tuple[float, ...]:
        """Share of the budget per round."""
        whole = self.ahead + self.rounds - 1
        return (self.ahead / whole, *([1 / whole] * (self.rounds - 1)))

    def widest(self, number: int) -> int:
        """Largest number of columns in the term of this number."""
        return self.first if number == 0 else self.columns

    def most_cells(self, rows: int, epsilon: float) -> int:
        """Largest number of cells of a candidate."""
        return max(2, int(self.cells * rows * epsilon))


def automatic(
    epsilon: float, rows: int, *, rounds: int | str, columns: int | str, candidates: int | str, cap: float
) -> AdditiveSettings:
    """Settings for a budget and a number of records; what is not "auto" is kept."""
    chosen = round_count(epsilon, rows) if isinstance(rounds, str) else rounds
    widest = 3 if isinstance(columns, str) else columns
    most = 20_000 if isinstance(candidates, str) else candidates
    return AdditiveSettings(rounds=chosen, columns=widest, first=widest, candidates=most, cap=cap)


def round_count(epsilon: float, rows: int) -> int:
    """Number of rounds."""
    return 4
