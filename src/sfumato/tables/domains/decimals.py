"""Decimal numbers with a fixed number of places, such as prices, added up without rounding.

A value is held as a whole number of its last place: 12.34 with two places as 1234. Everything else is that of whole numbers
(`Numeric`). It is read as a double first, like any number, and put to the nearest place.

*Why that is exact.* Let v have at most p decimals and k = v 10^p with |k| <= 2^49. The double that is read is off by at most
2^-52 |v|: some engines round twice between a decimal and a double. Its product with 10^p, which is a double itself, is
rounded by another 2^-53 of itself, so it differs from k by at most 3/16 and a little of second order; adding 1/2 rounds by
at most 1/16; and the floor of a number between k + 1/4 and k + 3/4, give or take that little, is k. Values with more places
go to the nearest.
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, SchemaError
from sfumato.privacy.source import Generator
from sfumato.tables.columns import Column, Expr, exact_double, number_column
from sfumato.tables.domains.base import Domain
from sfumato.tables.domains.cells import Codes
from sfumato.tables.domains.declared import extra_labels, extras, register, told_bounds
from sfumato.tables.domains.number_expressions import COMPARISONS
from sfumato.tables.domains.numeric import Numeric
from sfumato.tables.lattice import MAX_STEPS, Lattice
from sfumato.tables.predicate_tree import Atom, Compare, Op, Predicate
from sfumato.tables.raw_groups import Grouping, whole_grouping
from sfumato.tables.taxonomy import Taxonomy
from sfumato.tables.values import numbers

MOST_PLACES = 9
MOST_SCALED = 2**49
_ENDS = ("low", "high")


@register
@dataclass(frozen=True)
class Decimals(Domain):
    """Decimal numbers between public bounds, with a fixed number of places, cut into bins.

    Parameters
    ----------
    low, high : number, str or decimal.Decimal
        Public bounds, both included, with no more decimals than there are places.
    bins : int, optional
        Number of bins that hold equally many decimals.
    decimals : int
        How many places there are behind the point (``places`` in a schema file); values with more go to the nearest.
    edges : sequence, optional
        Where bins begin, and the upper bound, for bins of unequal width.
    outside : {"clamp", "other"}
        Where numbers beyond the bounds go.
    other, missing : bool or str
        Add a cell for values outside the domain, and one for rows without a number.
    taxonomy : Taxonomy, optional
        A tree over the bin numbers 0, 1, 2...

    Examples
    --------
    >>> price = Decimals(0, "99.99", bins=2, decimals=2)
    >>> price.labels(), price.scaled([0.1 + 0.2, "49.995", None]).tolist()
    (('0.00 to 49.99', '50.00 to 99.99'), [30.0, 5000.0, nan])
    >>> price.lattice()
    Lattice(low=0.0, high=99.99, steps=9999, exact=True)
    """

    type_name: ClassVar[str] = "decimal"
    keys: ClassVar[tuple[str, ...]] = ("low", "high", "bins", "places", "edges", "outside", "other", "missing", "taxonomy")
    ordered: ClassVar[bool] = True

    low: Any = None  # decimals once built
    high: Any = None
    bins: int | None = None
    decimals: int = None  # type: ignore[assignment]  # needed
    edges: Sequence[Any] | None = None
    outside: Literal["clamp", "other"] = "clamp"
    other: bool | str = False
    missing: bool | str = False
    taxonomy: Taxonomy | None = None

    def __post_init__(self) -> None:
        put, places = object.__setattr__, self.decimals
        if isinstance(places, bool) or not isinstance(places, int) or not 0 <= places <= MOST_PLACES:
            raise SchemaError(f"places must be a whole number from 0 to {MOST_PLACES}, such as places = 2, got {places!r}")
        made = self.whole
        put(self, "low", self._decimal(made.low))
        put(self, "high", self._decimal(made.high))
        put(self, "edges", None if self.edges is None else tuple(self._decimal(e) for e in made.edges))
        put(self, "taxonomy", made.taxonomy)
        extra_labels(self, (), other=self.other or self.outside == "other")

    @cached_property
    def whole(self) -> Numeric:
        """The same in whole last places."""
        ends: dict[str, Any] = {key: self._whole(getattr(self, key), key) for key in _ENDS if getattr(self, key) is not None}
        edges: Any = None if self.edges is None else [self._whole(e, "an edge") for e in self._listed_edges()]
        more: dict[str, Any] = {"outside": self.outside, "other": bool(self.other), "taxonomy": self.taxonomy}
        return Numeric(**ends, bins=self.bins, edges=edges, integer=True, **more)

    def _listed_edges(self) -> Sequence[Any]:
        if isinstance(self.edges, str) or not isinstance(self.edges, Sequence):
            raise SchemaError(f"edges must be a list of at least two numbers, got {self.edges!r}")
        return self.edges

    def _whole(self, value: Any, what: str) -> int:
        """A bound in whole last places."""
        try:
            given = decimal.Decimal(str(value) if isinstance(value, float) else value)
            scaled = given.scaleb(self.decimals)
            if isinstance(value, bool) or not given.is_finite() or abs(scaled) > MOST_SCALED or scaled != int(scaled):
                raise ValueError
        except (ValueError, TypeError, decimal.DecimalException):
            raise SchemaError(
                f"{what} must be a number with at most {self.decimals} decimals, and at most {MOST_SCALED:,} in the last of "
                f"them, got {value!r}"
            ) from None
        return int(scaled)

    def _decimal(self, whole: float) -> decimal.Decimal:
        return decimal.Decimal(int(whole)).scaleb(-self.decimals)

    # ------------------------------------------------------------------------------------------ cells

    @cached_property
    def scale(self) -> float:
        """Last places in one."""
        return float(10**self.decimals)

    @property
    def listed(self) -> int:
        return self.whole.listed

    def names(self) -> tuple[str, ...]:
        return tuple(self.span(i, i + 1) for i in range(self.listed))

    def span(self, start: int, end: int) -> str:
        low, high = self.whole.boundaries[start], self.whole.boundaries[end] - 1
        return f"{self._decimal(low)}" if low == high else f"{self._decimal(low)} to {self._decimal(high)}"

    @property
    def cell_edges(self) -> tuple[float, ...] | None:
        return None if self.extra else tuple(float(self._decimal(b)) for b in self.whole.boundaries)

    def told(self) -> str:
        return f"{told_bounds(self)}, to {self.decimals} places"

    # ------------------------------------------------------------------------------- values in memory

    def scaled(self, values: Any) -> NDArray[np.float64]:
        """Each of `values` in whole last places, the nearest to it; NaN where it is no number."""
        limit = 2 * MOST_SCALED / self.scale
        return np.floor(np.clip(numbers(values), -limit, limit) * self.scale + 0.5)

    def places(self, values: Any) -> Codes:
        """The bin of each of `values`, -1 where it is outside the domain: the rule of the engines, in memory."""
        return self.whole.places(self.scaled(values))

    def absent(self, values: Any) -> NDArray[np.bool_]:
        return np.isnan(numbers(values))

    def draw(self, cells: Codes, random: Generator) -> NDArray[Any]:
        """A number of each of `cells`, any of them as likely by `random`; NaN in the extra cells."""
        return np.round(self.whole.draw(cells, random) / self.scale, self.decimals)

    def to_arrow(self, values: list[Any]) -> Any:
        return self.whole.to_arrow(values)

    # ---------------------------------------------------------------------------------------- engines

    def column(self, expr: Expr, *, engine: str, what: str, text: bool = False) -> Column:
        """`expr` in whole last places, judged by its type.

        `engine` is the engine's name, `what` names the column in errors, `text` is for untyped tables (CSV).
        """
        import ibis

        found = number_column(expr, engine=engine, what=what, text=text)
        x = found.expr.cast("float64") if found.kind == "int" else found.expr
        limit = 2 * MOST_SCALED / self.scale
        most, least = exact_double(limit), exact_double(-limit)
        held = ibis.cases((x < least, least), (x <= most, x), ((x > most) & ~x.isnan(), most))
        tiny = exact_double(0.25 / self.scale)  # PostgreSQL raises an error where a product is too small for a double
        held = ibis.ifelse((held < tiny) & (held > exact_double(-0.25 / self.scale)), 0.0, held)
        return Column((held * self.scale + 0.5).floor().cast("int64"), "int")

    def cell(self, column: Column) -> Expr:
        return self.whole.cell(column)

    def grouping(self, column: Column, *, blank: bool = False) -> Grouping:
        low, high, counts = float(self.whole.low), float(self.whole.high), blank or bool(self.extra)
        return whole_grouping(column, low, high, self.code, absent_counts=counts) or super().grouping(column)

    def inside(self, column: Column) -> Expr:
        return self.whole.inside(column)

    def number(self, column: Column) -> Expr:
        return self.whole.number(column) / self.scale

    def kept(self, column: Column) -> Expr:
        return column.expr.cast("float64") / self.scale

    @property
    def whole_ends(self) -> tuple[int, int] | None:
        return self.whole.whole_ends

    def lattice(self, steps: int | None = None, *, what: str = "the column") -> Lattice:
        """The lattice of `steps` steps between the bounds, by default the decimals; `what` names the column in errors."""
        whole = int(self.whole.high) - int(self.whole.low)
        if steps is None and whole > MAX_STEPS:
            raise InputError(f"{what} spans {whole:,} decimals, more than the 2^30 steps of a lattice; give steps=1000000")
        steps = whole if steps is None else steps
        return Lattice(float(self.low), float(self.high), steps, isinstance(steps, int) and steps % whole == 0)

    # ---------------------------------------------------------------------------------------- `where`

    def compare(self, name: str, op: Op, value: Any) -> Predicate:
        if (found := self.extra_cell(name, op, value)) is not None:
            return found
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise SchemaError(f"column {name!r} is decimal; compare it with a number, not {value!r}")
        return Compare(name, op, value)

    def _literal(self, value: Any) -> float:
        """A literal in whole last places, exactly as it was written."""
        return float(decimal.Decimal(repr(value)).scaleb(self.decimals))

    def _atoms(self, atoms: Sequence[Atom]) -> list[Atom]:
        return [replace(a, value=self._literal(a.value)) if isinstance(a, Compare) else a for a in atoms]

    def compared(self, column: Column, op: Op, value: Any) -> Expr:
        return self.whole.compared(column, op, self._literal(value))

    def witnesses(self, atoms: Sequence[Atom]) -> Sequence[float]:
        return self.whole.witnesses(self._atoms(atoms))

    def pieces(self, atoms: Sequence[Atom]) -> Sequence[tuple[float, float]]:
        return self.whole.pieces(self._atoms(atoms))

    def cell_of_witness(self, witness: Any) -> int:
        return self.whole.cell_of_witness(witness)

    def may_compare(self, op: Op, value: Any, witness: Any) -> bool:
        return COMPARISONS[op](witness, self._literal(value))

    # ----------------------------------------------------------------------------------- schema files

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Decimals:
        return cls(**{"decimals" if key == "places" else key: value for key, value in plain.items()})

    def to_plain(self) -> dict[str, Any]:
        cut: dict[str, Any] = {"low": str(self.low), "high": str(self.high), "bins": self.bins}
        if self.edges is not None:
            cut = {"edges": [str(e) for e in self.edges]}
        outside = {"outside": self.outside} if self.outside != "clamp" else {}
        return {**cut, "places": self.decimals, **outside, **extras(self)}
