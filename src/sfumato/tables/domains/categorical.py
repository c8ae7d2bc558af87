"""A public list of values: text, whole numbers or true/false."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.privacy.source import Generator
from sfumato.tables.columns import Column, Expr, any_of, exact_double, number_column, text_column, truth_column
from sfumato.tables.domains.base import MAX_BOUND, Domain, other_label, register
from sfumato.tables.domains.number_expressions import COMPARISONS
from sfumato.tables.predicate_tree import InCells, Not, Op, Predicate, literal_text
from sfumato.tables.taxonomy import Leaf, Taxonomy
from sfumato.tables.values import category_codes
from sfumato.tables.words import check_text, did_you_mean


@register
@dataclass(frozen=True)
class Categorical(Domain):
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

    type_name: ClassVar[str] = "categorical"
    keys: ClassVar[tuple[str, ...]] = ("values", "other", "taxonomy")

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
        put(self, "other", other_label(self.other, [str(v) for v in values], "categorical column"))
        if self.taxonomy is not None:
            put(self, "taxonomy", Taxonomy.of(self.taxonomy))
            self.taxonomy.check_covers(values, "categorical column")

    # ------------------------------------------------------------------------------------------ cells

    @property
    def listed(self) -> int:
        return len(self.values)

    def names(self) -> tuple[str, ...]:
        return tuple(str(v) for v in self.values)

    @property
    def leaves(self) -> Sequence[Leaf]:
        return self.values

    def classes(self) -> tuple[Any, ...]:
        return (*self.values, self.other) if self.other else tuple(self.values)

    # ------------------------------------------------------------------------------- values in memory

    def places(self, values: Any) -> NDArray[np.int64]:
        """The place of each of `values` in the list, -1 where it is not listed.

        >>> Categorical(["F", "M"]).places(["M", "F", None, 3]).tolist()
        [1, 0, -1, -1]
        """
        return category_codes(values, self.values)

    def draw(self, cells: NDArray[np.int64], random: Generator) -> NDArray[Any]:
        """The value of each of `cells`; None in the other cell. A cell has one value, so `random` is not asked."""
        outside = cells >= self.listed
        column = np.array(self.values, dtype=object)[np.where(outside, 0, cells)]
        column[outside] = None
        return column

    def to_arrow(self, values: list[Any]) -> Any:
        from sfumato.tables.frames import number_array, text_array, truth_array

        make = {str: text_array, bool: truth_array}.get(type(self.values[0]), number_array)
        return make(values)

    # ---------------------------------------------------------------------------------------- engines

    def column(self, expr: Expr, *, engine: str, what: str, text: bool = False) -> Column:
        """`expr` as a column that the listed values can be compared with.

        `engine` is the engine's name, `what` names the column in errors, `text` is for untyped tables (CSV).
        """
        if isinstance(self.values[0], str):
            return text_column(expr, what=what)
        if isinstance(self.values[0], bool):
            return truth_column(expr, what=what, text=text)
        if expr.type().is_boolean():
            raise SchemaError(
                f"{what} has whole numbers in the schema, but the table holds {expr.type()}; use true and false"
            )
        return number_column(expr, engine=engine, what=what, text=text)

    def cell(self, column: Column) -> Expr:
        import ibis

        other = self.listed if self.other else None
        values = self._literals(column, self.values)
        if column.kind not in ("int", "float"):
            return ibis.cases(*((column.expr == v, code) for code, v in enumerate(values)), else_=other)
        order = sorted(range(len(values)), key=self.values.__getitem__)

        def search(first: int, last: int) -> Expr:
            if last - first <= 4:
                return ibis.cases(*((column.expr == values[c], c) for c in order[first:last]), else_=other)
            middle = (first + last) // 2
            return ibis.ifelse(column.expr < values[order[middle]], search(first, middle), search(middle, last))

        return search(0, len(values))

    def inside(self, column: Column) -> Expr:
        return self.in_cells(column, set(range(self.listed)))

    def in_cells(self, column: Column, codes: set[int]) -> Expr:
        """Whether the raw value of `column` is one of `codes`, so that engines can skip what cannot match."""
        import ibis

        wanted = self._literals(column, [v for c, v in enumerate(self.values) if c in codes])
        if not wanted:
            found = ibis.literal(False)
        elif column.kind == "bool":
            found = column.expr.notnull() & any_of([column.expr == v for v in wanted])
        else:
            found = column.expr.notnull() & column.expr.isin(wanted)
        return found | ~self.inside(column) if self.listed in codes else found

    def _literals(self, column: Column, values: Sequence[Leaf]) -> list[Any]:
        return [exact_double(float(v)) for v in values] if column.kind == "float" else list(values)

    # ---------------------------------------------------------------------------------------- `where`

    def compare(self, name: str, op: Op, value: Any) -> Predicate:
        if op == "=":
            return self.one_of(name, [value])
        if op == "!=":
            return Not(self.one_of(name, [value]))
        if isinstance(self.values[0], str | bool):
            raise SchemaError(f"the values of column {name!r} have no order; use = or in (...) instead of {op}")
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise SchemaError(f"column {name!r} holds whole numbers; compare it with a number, not {value!r}")
        return self._in(name, [c for c, v in enumerate(self.values) if COMPARISONS[op](v, value)])

    def one_of(self, name: str, values: Sequence[Any]) -> Predicate:
        return self._in(name, [self._code(name, value) for value in values])

    def _in(self, name: str, codes: Sequence[int]) -> InCells:
        words = [literal_text(v) for v in self.classes()]
        unique = tuple(sorted(set(codes)))
        return InCells(name, unique, tuple(words[c] for c in unique))

    def _code(self, name: str, value: Any) -> int:
        for code, known in enumerate(self.classes()):
            if type(known) is type(value) and known == value:
                return code
        hint = did_you_mean(str(value), self.labels()[:20])
        if str(value) in self.labels():
            hint = f"write it as {literal_text(self.classes()[self.labels().index(str(value))])}"
        raise SchemaError(f"{value!r} is not a value of column {name!r}; {hint}")

    # ----------------------------------------------------------------------------------- schema files

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Categorical:
        return cls(**{"values": (), **plain})

    def to_plain(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"values": list(self.values)}
        if self.other:
            plain["other"] = self.other
        if self.taxonomy is not None:
            plain["taxonomy"] = self.taxonomy.plain()
        return plain
