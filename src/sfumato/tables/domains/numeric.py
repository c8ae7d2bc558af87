"""Numbers between public bounds, cut into bins."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, SchemaError
from sfumato.privacy.source import Generator
from sfumato.tables.columns import Column, Expr, number_column
from sfumato.tables.domains import number_expressions as engine_side
from sfumato.tables.domains.base import MAX_BOUND, Domain
from sfumato.tables.domains.declared import extra_labels, extras, register, told_bounds
from sfumato.tables.lattice import MAX_STEPS, Lattice
from sfumato.tables.predicate_tree import Atom, Compare, InCells, Op, Predicate
from sfumato.tables.raw_groups import Grouping, whole_grouping
from sfumato.tables.taxonomy import Taxonomy
from sfumato.tables.values import numbers

Number: TypeAlias = int | float
MAX_EDGES = 4096  # explicit edges become a tree of comparisons inside the engine
MAX_BINS = 1_000_000


@register
@dataclass(frozen=True, repr=False)
class Numeric(Domain):
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
    other, missing : bool or str
        Add a cell for values outside the domain, and one for rows without a number (see the module).
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

    type_name: ClassVar[str] = "numeric"
    keys: ClassVar[tuple[str, ...]] = ("low", "high", "bins", "edges", "integer", "outside", "other", "missing", "taxonomy")
    ordered: ClassVar[bool] = True

    low: Number = None  # type: ignore[assignment]  # filled from the edges
    high: Number = None  # type: ignore[assignment]
    bins: int | None = None
    edges: Sequence[Number] = None  # type: ignore[assignment]  # filled from the bins; a tuple once built
    integer: bool = False
    outside: Literal["clamp", "other"] = "clamp"
    other: bool | str = False
    taxonomy: Taxonomy | None = None
    missing: bool | str = False

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
        extra_labels(self, (), other=self.other or self.outside == "other")
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
        other = "".join(f", {key}={label!r}" for key in ("other", "missing") if (label := getattr(self, key)))
        return f"Numeric({self.low}, {self.high}, {cut}, integer={self.integer}, outside={self.outside!r}{other})"

    # ------------------------------------------------------------------------------------------ cells

    @property
    def boundaries(self) -> tuple[Number, ...]:
        """Where bins begin and end, strictly increasing: bin i is ``boundaries[i] <= x < boundaries[i + 1]``.

        The last boundary of an integer column is therefore ``high + 1``; that of others is `high`, which the last bin holds.
        """
        return (*self.edges[:-1], self.high + 1) if self.integer else tuple(self.edges)

    @property
    def cell_edges(self) -> tuple[float, ...] | None:
        return None if self.extra else tuple(map(float, self.boundaries))

    @property
    def width(self) -> float:
        """Width of a bin (equal width, not integer)."""
        return (float(self.high) - float(self.low)) / int(self.bins or 1)

    @property
    def listed(self) -> int:
        return len(self.edges) - 1

    def names(self) -> tuple[str, ...]:
        if self.integer:
            return tuple(self.span(i, i + 1) for i in range(self.listed))
        names = [f"[{a:.12g}, {b:.12g})" for a, b in itertools.pairwise(self.boundaries)]
        return (*names[:-1], names[-1][:-1] + "]")

    def span(self, start: int, end: int) -> str:
        low, high = self.edges[start], self.high + 1 if self.integer and end == self.listed else self.edges[end]
        if self.integer:
            return f"{low}" if low == high - 1 else f"{low} to {high - 1}"
        return f"{low:.12g} to {high:.12g}"

    def told(self) -> str:
        return told_bounds(self)

    # ------------------------------------------------------------------------------- values in memory

    def places(self, values: Any) -> NDArray[np.int64]:
        """The bin of each of `values`, -1 where it is outside the domain: the rule of the engines, in memory.

        Bounds are compared with the number itself, before an integer column rounds it down.

        >>> Numeric(0, 119, bins=4, integer=True, outside="other").places([29.5, 119, 119.5, None]).tolist()
        [0, 3, -1, -1]
        """
        given = numbers(values)
        found = np.searchsorted(np.array(self.edges[1:-1], dtype=np.float64), given, side="right")
        lost = np.isnan(given)
        if self.outside == "other":
            lost |= (given < self.low) | (given > self.high)
        return np.where(lost, -1, found).astype(np.int64)

    def absent(self, values: Any) -> NDArray[np.bool_]:
        return np.isnan(numbers(values))

    def draw(self, cells: NDArray[np.int64], random: Generator) -> NDArray[Any]:
        """A number of each of `cells`, spread evenly over the bin by `random`; NaN in the other cell."""
        outside = cells >= self.listed
        inside = np.where(outside, 0, cells)
        edges = np.array(self.boundaries, dtype=np.float64)
        low, high = edges[inside], edges[inside + 1]
        uniform = random.random(cells.size)
        if not self.integer:
            return np.where(outside, np.nan, low + uniform * (high - low))
        whole = np.minimum(np.floor(low + uniform * (high - low)), high - 1)
        return np.where(outside, np.nan, whole) if outside.any() else whole.astype(np.int64)

    def to_arrow(self, values: list[Any]) -> Any:
        from sfumato.tables.frames import number_array

        return number_array(values)

    # ---------------------------------------------------------------------------------------- engines

    def column(self, expr: Expr, *, engine: str, what: str, text: bool = False) -> Column:
        return number_column(expr, engine=engine, what=what, text=text)

    def cell(self, column: Column) -> Expr:
        if self.bins is not None and self.bins > 16:
            return engine_side.equal_cell(column, self)
        return engine_side.tree_cell(column, self)

    def grouping(self, column: Column, *, blank: bool = False) -> Grouping:
        """Whole numbers where the bounds are close, else a quotient or the bin of `column`; `blank`: rows without count."""
        whole = whole_grouping(column, self.low, self.high, self.code, absent_counts=blank or bool(self.extra))
        return whole or engine_side.divided(column, self) or super().grouping(column)

    def inside(self, column: Column) -> Expr:
        return engine_side.inside(column, self)

    def number(self, column: Column) -> Expr:
        return engine_side.cleaned(column, self)

    @property
    def whole_ends(self) -> tuple[int, int] | None:
        return (int(self.low), int(self.high)) if self.integer else None

    def lattice(self, steps: int | None = None, *, what: str = "the column") -> Lattice:
        """The lattice of `steps` steps between the bounds; without `steps`, the whole numbers of an integer column.

        `what` names the column in errors.

        >>> Numeric(0, 2_000_000, bins=10, integer=True).lattice()
        Lattice(low=0.0, high=2000000.0, steps=2000000, exact=True)
        >>> Numeric(0, 50, bins=10).lattice(100).rounding
        0.25
        """
        whole = self.whole_steps
        if steps is None:
            if whole is None:
                raise InputError(f"{what} is not whole numbers; give steps=..., for example steps=1000")
            if whole > MAX_STEPS:
                raise InputError(
                    f"{what} spans {whole} whole numbers, more than the 2^30 steps of a lattice; give steps=..., for "
                    "example steps=1000000"
                )
            steps = whole
        exact = whole is not None and isinstance(steps, int) and steps % whole == 0
        return Lattice(float(self.low), float(self.high), steps, exact)

    # ---------------------------------------------------------------------------------------- `where`

    def compare(self, name: str, op: Op, value: Any) -> Predicate:
        if (found := self.extra_cell(name, op, value)) is not None:
            return found
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise SchemaError(f"column {name!r} is numeric; compare it with a number, not {value!r}")
        return Compare(name, op, value)

    def compared(self, column: Column, op: Op, value: Any) -> Expr:
        return engine_side.compared(column, self, op, value)

    def witnesses(self, atoms: Sequence[Atom]) -> Sequence[float]:
        """The bounds, the literals and edges of cells in `atoms`, and a number on either side of each."""
        low, high = float(self.low), float(self.high)
        asked: list[Any] = [a.value for a in atoms if isinstance(a, Compare)]
        points = {low, high, *(float(value) for value in asked if abs(value) <= 2 * MAX_BOUND)}
        if any(isinstance(a, InCells) for a in atoms):
            cells = super().witnesses(atoms)
            points |= {float(self.edges[edge]) for cell in cells for edge in (cell, cell + 1)}
        if self.integer:
            points = {p + step for x in points for p in (math.floor(x), math.ceil(x)) for step in (-1.0, 0.0, 1.0)}
        within = sorted({min(max(p, low), high) for p in points})
        between = [] if self.integer else [(a + b) / 2 for a, b in itertools.pairwise(within)]
        return [*within, *between]

    def pieces(self, atoms: Sequence[Atom]) -> Sequence[tuple[float, float]]:
        """Intervals between the literals of `atoms` and edges of cells, by length; all integers count alike."""
        cells = [code for a in atoms if isinstance(a, InCells) for code in a.codes if code < self.listed]
        found = self.witnesses([*atoms, *(Compare("", "=", self.edges[c + k]) for c in cells for k in (0, 1))])
        within = sorted({float(math.floor(x)) if self.integer else x for x in found})
        after = [*within[1:], within[-1] + 1.0 if self.integer else within[-1]]
        lengths = [(a if self.integer else (a + b) / 2, b - a) for a, b in zip(within, after, strict=True)]
        return [(x, length / (after[-1] - within[0])) for x, length in lengths if length > 0]

    def cell_of_witness(self, witness: Any) -> int:
        return bisect.bisect_right(self.edges, witness, 1, self.listed) - 1

    def may_compare(self, op: Op, value: Any, witness: Any) -> bool:
        return engine_side.COMPARISONS[op](witness, value)

    # ----------------------------------------------------------------------------------- schema files

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Numeric:
        return cls(**plain)

    def to_plain(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"low": self.low, "high": self.high, "bins": self.bins}
        if self.bins is None:
            plain = {"edges": list(self.edges)}
        if self.integer:
            plain["integer"] = True
        if self.outside != "clamp":
            plain["outside"] = self.outside
        return plain | extras(self)
