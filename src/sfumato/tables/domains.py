"""Public domains of single columns: which cell a value belongs to, decided without looking at the data.

Every column has cells 0..size-1. A value that is not in the domain (NULL, NaN, a category nobody listed) goes to
the *other* cell, the last one, if the column has one (`other=True` or a label); otherwise such a row counts in no
cell of this column. Numbers beyond the bounds, infinities included, are clamped to the nearest bound
(`outside="clamp"`, the default) or treated like any value outside the domain (`outside="other"`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.tables.taxonomy import Leaf, Taxonomy

Number: TypeAlias = int | float
MAX_BOUND = 2**53  # beyond it not every whole number is a double, and engines would disagree
MAX_EDGES = 4096  # explicit edges become a tree of comparisons inside the engine
MAX_BINS = 1_000_000


def check_text(text: str, what: str) -> None:
    """Refuse text that some engine cannot hold."""
    if "\x00" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise SchemaError(f"{what} {text!r} holds a character that databases cannot store")


def _other_label(other: bool | str, taken: Sequence[str], what: str) -> bool | str:
    if not isinstance(other, bool | str):
        raise SchemaError(f"{what}: other must be true, false or a label, got {other!r}")
    if isinstance(other, str) and (not other or other in taken):
        raise SchemaError(f"{what}: the label of the other cell {other!r} is empty or already a value")
    if other is True and "other" in taken:
        raise SchemaError(f"{what}: 'other' is already a value; name the extra cell, for example other = 'elsewhere'")
    # True is short for the label "other", kept as one form so that equal domains compare equal.
    return "other" if other is True else other


def _group_codes(taxonomy: Taxonomy, level: int, values: Sequence[Leaf], extra: bool) -> NDArray[np.int64]:
    groups = taxonomy.groups(level)
    place = {(type(leaf), leaf): number for number, (_, leaves) in enumerate(groups) for leaf in leaves}
    codes = [place[type(v), v] for v in values]
    return np.array([*codes, 0 if level == 0 else len(groups)] if extra else codes, dtype=np.int64)


@dataclass(frozen=True, repr=False)
class Numeric:
    """Numbers between public bounds, cut into bins.

    Give either `low`, `high` and a number of `bins` of equal width, or the `edges` of the bins. Bin i holds
    ``edges[i] <= x < edges[i + 1]``; the last bin also holds its upper edge, `high`. In an integer column the last bin
    can be the single number `high`: its two edges, as stated, are then equal. `boundaries` always increase.

    Parameters
    ----------
    low, high : number
        Public bounds, at most 2**53 in size. Never taken from the data.
    bins : int, optional
        Number of bins of equal width.
    edges : sequence of numbers, optional
        Increasing edges, for bins of unequal width.
    integer : bool
        Whole numbers: values are rounded down, and bins of equal width hold equally many whole numbers.
    outside : {"clamp", "other"}
        Where numbers beyond the bounds go.
    other : bool or str
        Adds a last cell for values outside the domain (see the module).
    taxonomy : Taxonomy, optional
        A tree over the bin numbers 0, 1, 2...

    Examples
    --------
    >>> age = Numeric(0, 119, bins=4, integer=True)
    >>> age.size, age.edges, age.labels()
    (4, (0, 30, 60, 90, 119), ('0 to 29', '30 to 59', '60 to 89', '90 to 119'))
    >>> Numeric(1, 3, bins=3, integer=True).boundaries
    (1, 2, 3, 4)
    >>> Numeric(edges=[0, 1.5, 10], other="unknown").labels()
    ('[0, 1.5)', '[1.5, 10]', 'unknown')
    >>> Numeric(0, 120)
    Traceback (most recent call last):
    ...
    sfumato.errors.SchemaError: a numeric column needs bins: give bins = 10 (equal width) or edges = [0, 10, ...]
    """

    low: Number = None  # type: ignore[assignment]  # filled from the edges
    high: Number = None  # type: ignore[assignment]
    bins: int | None = None
    edges: Sequence[Number] = None  # type: ignore[assignment]  # filled from the bins; a tuple once built
    integer: bool = False
    outside: Literal["clamp", "other"] = "clamp"
    other: bool | str = False
    taxonomy: Taxonomy | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        if str(self.integer) not in ("True", "False"):
            raise SchemaError(f"integer must be true or false, got {self.integer!r}")
        if str(self.outside) not in ("clamp", "other"):
            raise SchemaError(f"outside must be 'clamp' or 'other', got {self.outside!r}")
        given: Any = self.edges
        if self.bins is None and given is None:
            raise SchemaError("a numeric column needs bins: give bins = 10 (equal width) or edges = [0, 10, ...]")
        if self.bins is not None and given is not None:
            raise SchemaError("give bins (equal width) or edges, not both")
        if self.bins is None:
            self._from_edges()
        else:
            self._from_bins()
        put(self, "other", _other_label(self.other or self.outside == "other", (), "numeric column"))
        if self.taxonomy is not None:
            put(self, "taxonomy", Taxonomy.of(self.taxonomy))
            self.taxonomy.check_covers(range(len(self.edges) - 1), "numeric column")

    def _number(self, value: Any, what: str) -> Number:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise SchemaError(f"{what} must be a finite number, got {value!r}")
        if abs(value) > MAX_BOUND:
            raise SchemaError(f"{what} {value!r} is beyond ±2^53; rescale the column")
        if self.integer and value != int(value):
            raise SchemaError(f"{what} must be a whole number in an integer column, got {value!r}")
        return int(value) if self.integer else value

    def _from_edges(self) -> None:
        put = object.__setattr__
        given: Any = self.edges
        if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray) or len(given) < 2:
            raise SchemaError(f"edges must be a list of at least two numbers, got {given!r}")
        plain = given.tolist() if isinstance(given, np.ndarray) else given
        edges = tuple(self._number(e, "an edge") for e in plain)
        if any(b <= a for a, b in itertools.pairwise(edges)):
            raise SchemaError("edges must increase strictly")
        if len(edges) - 1 > MAX_EDGES:
            raise SchemaError(f"{len(edges) - 1} explicit bins; at most {MAX_EDGES}. Use bins = ... of equal width")
        if (self.low is not None and self.low != edges[0]) or (self.high is not None and self.high != edges[-1]):
            raise SchemaError("low and high differ from the first and last edge; leave them out")
        put(self, "edges", edges)
        put(self, "low", edges[0])
        put(self, "high", edges[-1])

    def _from_bins(self) -> None:
        put = object.__setattr__
        for name in ("low", "high"):
            if getattr(self, name) is None:
                raise SchemaError(f"a numeric column needs public bounds: give {name} = ... (never taken from the data)")
            put(self, name, self._number(getattr(self, name), name))
        if self.low >= self.high:
            raise SchemaError(f"low must be less than high, got low = {self.low!r}, high = {self.high!r}")
        if isinstance(self.bins, bool) or not isinstance(self.bins, int) or not 1 <= self.bins <= MAX_BINS:
            raise SchemaError(f"bins must be a whole number from 1 to {MAX_BINS}, got {self.bins!r}")
        if self.integer:
            span = int(self.high) - int(self.low) + 1
            if self.bins > span:
                raise SchemaError(
                    f"{self.bins} bins for {span} whole numbers from {self.low} to {self.high}; use at most {span}"
                )
            if span * self.bins >= 2**52:
                raise SchemaError(
                    f"{self.bins} bins over {span} whole numbers are too fine to compute exactly; use fewer bins"
                )
            cuts = [int(self.low) + -(-i * span // self.bins) for i in range(1, self.bins)]
            put(self, "edges", (self.low, *cuts, self.high))
        else:
            put(self, "edges", (self.low, *self._equal_cuts(), self.high))

    def _equal_cuts(self) -> list[float]:
        """Edges by the two operations that engines repeat (``low + i * width``), so that all agree to the last bit."""
        low, high, n = float(self.low), float(self.high), int(self.bins or 1)
        if self.width <= 16 * np.spacing(max(abs(low), abs(high))):
            raise SchemaError(f"{n} bins between {self.low!r} and {self.high!r} are too fine for double precision")
        cuts: list[float] = (low + np.arange(1, n) * self.width).tolist()
        return cuts

    def __repr__(self) -> str:
        cut = f"bins={self.bins}" if self.bins else f"edges={self.edges}"
        other = f", other={self.other!r}" if self.other else ""
        return f"Numeric({self.low}, {self.high}, {cut}, integer={self.integer}, outside={self.outside!r}{other})"

    @property
    def boundaries(self) -> tuple[Number, ...]:
        """Where bins begin and end, strictly increasing: bin i is ``boundaries[i] <= x < boundaries[i + 1]``.

        The last boundary of an integer column is therefore ``high + 1``; that of others is `high`, which the last bin holds.
        """
        return (*self.edges[:-1], self.high + 1) if self.integer else tuple(self.edges)

    def places(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The bin of every number, -1 where it is outside the domain: the rule of the engines, in memory.

        Bounds are compared with the number itself, before an integer column rounds it down.

        >>> Numeric(0, 119, bins=4, integer=True, outside="other").places(np.array([29.5, 119, 119.5, np.nan])).tolist()
        [0, 3, -1, -1]
        """
        found = np.searchsorted(np.array(self.edges[1:-1], dtype=np.float64), values, side="right")
        lost = np.isnan(values)
        if self.outside == "other":
            lost |= (values < self.low) | (values > self.high)
        return np.where(lost, -1, found).astype(np.int64)

    @property
    def width(self) -> float:
        """Width of a bin (equal width, not integer)."""
        return (float(self.high) - float(self.low)) / int(self.bins or 1)

    @property
    def size(self) -> int:
        """Number of cells, the other cell included."""
        return len(self.edges) - 1 + bool(self.other)

    @property
    def depth(self) -> int:
        """Levels of the taxonomy below its root (1 without a taxonomy)."""
        return self.taxonomy.depth if self.taxonomy else 1

    def labels(self) -> tuple[str, ...]:
        """A name for each cell."""
        pairs = list(itertools.pairwise(self.boundaries))
        if self.integer:
            names = [f"{a}" if a == b - 1 else f"{a} to {b - 1}" for a, b in pairs]
        else:
            names = [f"[{a:.12g}, {b:.12g})" for a, b in pairs]
            names[-1] = names[-1][:-1] + "]"
        return (*names, self.other) if isinstance(self.other, str) else tuple(names)

    def group_codes(self, level: int) -> NDArray[np.int64]:
        """For each cell its node at `level` of the taxonomy; the other cell is a node of its own below the root."""
        tree = self.taxonomy or Taxonomy(leaves=tuple(range(len(self.edges) - 1)))
        return _group_codes(tree, level, range(len(self.edges) - 1), bool(self.other))


@dataclass(frozen=True)
class Categorical:
    """A public list of values: text, whole numbers or true/false.

    Parameters
    ----------
    values : sequence of str, int or bool
        All of one type. Cell i is ``values[i]``.
    other : bool or str
        Adds a last cell for everything else, NULL included; a string names it.
    taxonomy : Taxonomy or nested mapping, optional
        A tree whose leaves are the values.

    Examples
    --------
    >>> Categorical(["F", "M"], other=True).labels()
    ('F', 'M', 'other')
    >>> place = Categorical(["oslo", "bern", "nice"], taxonomy={"north": ["oslo"], "south": ["bern", "nice"]})
    >>> place.group_codes(1).tolist()
    [0, 1, 1]
    >>> Categorical(["F", "M", "F"])
    Traceback (most recent call last):
    ...
    sfumato.errors.SchemaError: the value 'F' is listed twice
    """

    values: Sequence[Leaf]  # a tuple once built
    other: bool | str = False
    taxonomy: Taxonomy | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        given: Any = self.values
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise SchemaError(f"values must be a list, got {given!r}")
        values: tuple[Leaf, ...] = tuple(given)
        if not values:
            raise SchemaError("a categorical column needs its public values: give values = ['a', 'b', ...]")
        if len({type(v) for v in values}) > 1 or not isinstance(values[0], str | int):
            raise SchemaError("values must be all text, all whole numbers or all true/false")
        seen: set[Leaf] = set()
        for value in values:
            if value in seen:
                raise SchemaError(f"the value {value!r} is listed twice")
            seen.add(value)
            if isinstance(value, str):
                check_text(value, "the value")
            elif abs(value) > MAX_BOUND:
                raise SchemaError(f"the value {value!r} is beyond ±2^53; use text")
        put(self, "values", values)
        put(self, "other", _other_label(self.other, [str(v) for v in values], "categorical column"))
        if self.taxonomy is not None:
            put(self, "taxonomy", Taxonomy.of(self.taxonomy))
            self.taxonomy.check_covers(values, "categorical column")

    @property
    def size(self) -> int:
        """Number of cells, the other cell included."""
        return len(self.values) + bool(self.other)

    @property
    def depth(self) -> int:
        """Levels of the taxonomy below its root (1 without a taxonomy)."""
        return self.taxonomy.depth if self.taxonomy else 1

    def labels(self) -> tuple[str, ...]:
        """A name for each cell."""
        names = tuple(str(v) for v in self.values)
        return (*names, self.other) if isinstance(self.other, str) else names

    def group_codes(self, level: int) -> NDArray[np.int64]:
        """For each cell its node at `level` of the taxonomy; the other cell is a node of its own below the root."""
        return _group_codes(self.taxonomy or Taxonomy(leaves=tuple(self.values)), level, self.values, bool(self.other))


Domain: TypeAlias = Numeric | Categorical
