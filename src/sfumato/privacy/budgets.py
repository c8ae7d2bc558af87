"""Who grants what: budgets per person, per attribute and per recipient. All of them are public input.

A million people are two integer arrays (distinct levels and head counts), not a million objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.extras import need
from sfumato.privacy.units import NANO, Epsilon, Nano, NanoArray, as_epsilon, nano_down_array, positive_nano


@dataclass(frozen=True, eq=False)
class PersonBudgets:
    """The public roster, compressed: distinct budget levels and how many people are at each.

    Parameters
    ----------
    levels : int64 array
        Budgets in nano-ε, sorted, one per person group.
    counts : int64 array
        Number of people per level.
    names : tuple of str, optional
        Names of the groups (consent tiers).
    noise : float array, optional
        Where the roster is private and `counts` are noisy: the scale of the Laplace noise in each of them.

    Examples
    --------
    >>> PersonBudgets.from_tiers({"open": (1.0, 90), "standard": (0.2, 370), "strict": (0.01, 540)})
    PersonBudgets(1000 people in 3 groups, ε 0.01 to 1)
    >>> PersonBudgets.of([0.1, 0.3, 0.1]).counts.tolist()
    [2, 1]
    """

    levels: NanoArray
    counts: NDArray[np.int64]
    names: tuple[str, ...] | None = None
    noise: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        levels = np.array(self.levels, dtype=np.int64)
        counts = np.array(self.counts, dtype=np.int64)
        if (counts != np.asarray(self.counts)).any():
            raise InputError("head counts are whole numbers of people")
        if levels.ndim != 1 or levels.shape != counts.shape:
            raise InputError("levels and counts must be flat arrays of equal length")
        if levels.size == 0:
            raise InputError("a roster needs at least one person with a budget")
        if (levels < 1).any():
            raise InputError("every budget level must be greater than 0; people without a budget stay out of the roster")
        if (counts < 0).any():
            raise InputError("head counts must not be negative")
        if self.names is not None and len(self.names) != levels.size:
            raise InputError(f"{levels.size} levels but {len(self.names)} names")
        if (np.diff(levels) < 0).any():
            raise InputError("budget levels must be sorted; PersonBudgets.of does that for you")
        if self.noise is not None:
            noise = np.array(self.noise, dtype=np.float64)
            if noise.shape != levels.shape or not (np.isfinite(noise) & (noise >= 0)).all():
                raise InputError("the noise of head counts is one scale of at least 0 for each level")
            noise.setflags(write=False)
            object.__setattr__(self, "noise", noise)
        for array in (levels, counts):
            array.setflags(write=False)
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "counts", counts)

    @classmethod
    def of(cls, epsilons: ArrayLike, *, decimals: int | None = None) -> PersonBudgets:
        """From one ε per person (`epsilons`); `decimals` rounds down first, so that few levels remain."""
        return cls.from_nano(nano_down_array(epsilons), decimals=decimals)

    @classmethod
    def from_nano(cls, nano: ArrayLike, *, decimals: int | None = None) -> PersonBudgets:
        """From one budget in `nano`-ε per person; `decimals` as for `of`."""
        values = np.asarray(nano, dtype=np.int64)
        if decimals is not None:
            step = 10 ** max(0, 9 - decimals)
            # A person below one step keeps their own (smaller) budget: rounding to 0 would silence them.
            values = np.where(values >= step, values // step * step, values)
        if (values < 1).any():
            raise InputError(
                f"every budget must be greater than 0 (at least 1e-9); {int((values < 1).sum())} are not: leave them out"
            )
        levels, counts = np.unique(values, return_counts=True)
        return cls(levels, counts.astype(np.int64))

    @classmethod
    def from_tiers(cls, tiers: Mapping[str, tuple[Epsilon, int]]) -> PersonBudgets:
        """From consent `tiers`: name -> (ε, number of people)."""
        if not tiers:
            raise InputError("name at least one tier, for example {'open': (1.0, 500)}")
        rows = sorted((positive_nano(e, f"epsilon of tier {name!r}"), name, int(n)) for name, (e, n) in tiers.items())
        return cls(np.array([r[0] for r in rows]), np.array([r[2] for r in rows]), names=tuple(r[1] for r in rows))

    @classmethod
    def from_file(cls, path: Any, *, column: str = "epsilon") -> PersonBudgets:
        """From a `column` of the public CSV or Parquet file at `path` with one row per person."""
        duckdb = need("duckdb", "reading budgets from a file")
        quoted = '"' + column.replace('"', '""') + '"'
        try:
            frame = duckdb.connect().execute(
                f"SELECT CAST({quoted} AS DOUBLE) AS e FROM '{str(path).replace(chr(39), chr(39) * 2)}'"
            )
            values = frame.fetchnumpy()["e"]
        except duckdb.Error as error:
            raise InputError(f"cannot read budgets from column {column!r} of {path}: {str(error).splitlines()[0]}") from None
        if isinstance(values, np.ma.MaskedArray) and values.mask.any():
            raise InputError(
                f"{int(values.mask.sum())} people in {path} have no budget in column {column!r}: leave them out"
            )
        return cls.of(np.asarray(values, dtype=np.float64))

    def share(self, fraction: Epsilon) -> PersonBudgets:
        """The same groups, each with this `fraction` of their budget (rounded down).

        >>> PersonBudgets.of([0.1, 0.3]).share(0.5).levels.tolist()
        [50000000, 150000000]
        """
        part = Fraction(str(fraction))
        if not 0 < part <= 1:
            raise InputError(f"a share lies above 0 and at most 1, got {fraction!r}")
        if part == 1:
            return self
        levels = part_of(self.levels, part)
        if levels[0] < 1:
            raise InputError(f"a share of {fraction} leaves the most careful group without any budget")
        return PersonBudgets(levels, self.counts, self.names, self.noise)

    @cached_property
    def people(self) -> int:
        """Number of people."""
        return int(self.counts.sum())

    @property
    def most_people(self) -> int:
        """No more people than this take part: `people`, or beyond noisy counts what is missed once in 1e12 rosters."""
        return self.people if self.noise is None else self.people + int(np.ceil(28 * self.noise.sum()))

    @property
    def groups(self) -> int:
        """Number of person groups (levels)."""
        return int(self.levels.size)

    @property
    def epsilons(self) -> NDArray[np.float64]:
        """Levels as floats, for formulas of *expected error* only."""
        return self.levels / NANO

    def name(self, group: int) -> str:
        """What to call a `group` in a sentence."""
        return self.names[group] if self.names else f"ε {as_epsilon(int(self.levels[group]))}"

    def __repr__(self) -> str:
        low, high = as_epsilon(int(self.levels[0])), as_epsilon(int(self.levels[-1]))
        return f"PersonBudgets({self.people} people in {self.groups} groups, ε {low} to {high})"


def part_of(levels: NDArray[np.int64], part: Fraction) -> NDArray[np.int64]:
    """floor(levels * part), exactly: quotient and remainder apart, so that no product leaves 64 bits."""
    top, bottom = part.numerator, part.denominator
    if bottom > 10**9:  # more decimals than a budget has
        return np.array([level * top // bottom for level in levels.tolist()], dtype=np.int64)
    if top * int(levels.max(initial=0)) < 1 << 63:
        return np.asarray(levels * top // bottom)
    whole, rest = np.divmod(levels, bottom)
    return np.asarray(whole * top + rest * top // bottom)


@dataclass(frozen=True)
class AttributeBudgets:
    """What each attribute may lose.

    Attributes
    ----------
    nano : mapping of str to Nano
        Budgets in nano-ε; an item gives one as ε.

    Examples
    --------
    >>> AttributeBudgets.of({"location": 0.05, "price": "0.3"})["location"]
    Decimal('0.05')
    """

    nano: Mapping[str, Nano]

    @classmethod
    def of(cls, budgets: Mapping[str, Epsilon]) -> AttributeBudgets:
        """From `budgets` by name, in ε."""
        if not budgets:
            raise InputError("name at least one attribute and its budget, for example {'location': 0.05}")
        return cls({str(k): positive_nano(v, f"budget of attribute {k!r}") for k, v in budgets.items()})

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes."""
        return tuple(self.nano)

    def array(self, names: Sequence[str]) -> NanoArray:
        """Budgets in nano-ε in the order of `names`."""
        missing = [n for n in names if n not in self.nano]
        if missing:
            raise InputError(f"no budget for attribute {missing[0]!r}; known: {', '.join(self.nano)}")
        return np.array([self.nano[n] for n in names], dtype=np.int64)

    def __getitem__(self, name: str) -> Decimal:
        return as_epsilon(self.nano[name])


@dataclass(frozen=True)
class RecipientBudgets:
    """What each recipient may learn, and what all of them may learn if they collude.

    Attributes
    ----------
    nano : mapping of str to Nano
        Budgets of the recipients in nano-ε.
    together : Nano or None
        Cap over all of them.

    Examples
    --------
    >>> b = RecipientBudgets.of({"adnet": 0.1, "clinic": 1}, together=1)
    >>> b.nano["adnet"], b.together
    (100000000, 1000000000)
    """

    nano: Mapping[str, Nano]
    together: Nano | None = field(default=None)

    @classmethod
    def of(cls, budgets: Mapping[str, Epsilon], *, together: Epsilon | None = None) -> RecipientBudgets:
        """From `budgets` by name, in ε; `together` caps their sum, as guarantees towards colluding recipients add up."""
        if not budgets:
            raise InputError("name at least one recipient and its budget, for example {'adnet': 0.1}")
        each = {str(k): positive_nano(v, f"budget of recipient {k!r}") for k, v in budgets.items()}
        return cls(each, None if together is None else positive_nano(together, "the cap over colluding recipients"))

    @property
    def names(self) -> tuple[str, ...]:
        """The recipients."""
        return tuple(self.nano)
