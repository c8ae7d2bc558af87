"""A public list of values: text, whole numbers or true/false."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.privacy.source import Generator
from sfumato.tables.columns import Column, Expr, any_of, exact_double, number_column, text_column, truth_column
from sfumato.tables.domains.base import MAX_BOUND, Domain
from sfumato.tables.domains.cells import Groups, Partitions
from sfumato.tables.domains.declared import extra_labels, extras, register
from sfumato.tables.domains.number_expressions import COMPARISONS
from sfumato.tables.one_value import text_of, truth_of
from sfumato.tables.predicate_tree import InCells, Not, Op, Predicate, literal_text
from sfumato.tables.raw_groups import Grouping, text_grouping, whole_grouping
from sfumato.tables.taxonomy import Leaf, Taxonomy
from sfumato.tables.values import category_codes, elements, numbers
from sfumato.tables.words import check_text, did_you_mean

MOST_COMPARED = 64  # values that a row is compared with one by one; in a longer list a join finds them


@register
@dataclass(frozen=True)
class Categorical(Domain):
    """A public list of values: text, whole numbers or true/false.

    Parameters
    ----------
    values : sequence of str, int or bool, or a mapping of them to labels
        All of one type. Cell i is ``values[i]``.
    other : bool or str
        Adds a cell for everything else, NULL included unless there is a missing cell; a string names it.
    taxonomy : Taxonomy or nested mapping, optional
        A tree whose leaves are the values.
    missing : bool or str
        Adds a last cell for rows without a value; a string names it.
    value_labels : mapping or sequence of str
        What values are called where they are shown: ``{0: "owned", 1: "rented"}``. A condition may use either.

    Examples
    --------
    >>> Categorical(["F", "M"], other=True).labels()
    ('F', 'M', 'other')
    >>> place = Categorical(["oslo", "bern", "nice"], taxonomy={"north": ["oslo"], "south": ["bern", "nice"]})
    >>> place.group_codes(1).tolist()
    [0, 1, 1]
    >>> Categorical({0: "owned", 1: "rented"}, missing="not asked").labels()
    ('owned', 'rented', 'not asked')
    >>> Categorical(["F", "M", "F"])
    Traceback (most recent call last):
    ...
    sfumato.errors.SchemaError: the value 'F' is listed twice
    """

    type_name: ClassVar[str] = "categorical"
    keys: ClassVar[tuple[str, ...]] = ("values", "labels", "other", "missing", "taxonomy")

    values: Sequence[Leaf]  # a tuple once built
    other: bool | str = False
    taxonomy: Taxonomy | None = None
    missing: bool | str = False
    value_labels: Sequence[str] = ()  # one for each value once built, or none at all

    def __post_init__(self) -> None:
        put = object.__setattr__
        given: Any = self.values
        if isinstance(given, Mapping):
            put(self, "value_labels", self.value_labels or given)
            given = tuple(given)
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
        put(self, "value_labels", labels_of(values, self.value_labels))
        extra_labels(self, [*map(str, values), *self.value_labels])
        if self.taxonomy is not None:
            put(self, "taxonomy", Taxonomy.of(self.taxonomy))
            self.taxonomy.check_covers(values, "categorical column")

    # ------------------------------------------------------------------------------------------ cells

    @property
    def listed(self) -> int:
        return len(self.values)

    def names(self) -> tuple[str, ...]:
        return tuple(self.value_labels) or tuple(str(v) for v in self.values)

    @property
    def leaves(self) -> Sequence[Leaf]:
        return self.values

    def classes(self) -> tuple[Any, ...]:
        return (*self.values, *self.extra)

    @cached_property
    def _codes(self) -> dict[tuple[type, Any], int]:
        """Where each value stands, and each label: True is not 1 here, and 'a' may be called 'b'."""
        called = enumerate(self.value_labels)
        known: dict[tuple[type, Any], int] = {(str, label): code for code, label in called}
        return known | {(type(v), v): code for code, v in enumerate(self.classes())}

    def levels(self) -> tuple[Partitions, Groups]:
        partitions, groups = super().levels()
        if self.taxonomy is not None and self.value_labels:  # a tree is made of values; readers see their labels
            called = dict(zip(map(str, self.values), self.names(), strict=True))
            groups[-1] = [called.get(name, name) for name in groups[-1]]
        return partitions, groups

    # ------------------------------------------------------------------------------- values in memory

    def places(self, values: Any) -> NDArray[np.int64]:
        """The place of each of `values` in the list, -1 where it is not listed.

        >>> Categorical(["F", "M"]).places(["M", "F", None, 3]).tolist()
        [1, 0, -1, -1]
        """
        return category_codes(values, self.values)

    def draw(self, cells: NDArray[np.int64], random: Generator) -> NDArray[Any]:
        """The value of each of `cells`; None in the other cell. A cell has one value, so `random` is not asked.

        Beside a missing cell, text in the other cell is its label, which is not one of the values either.
        """
        outside = cells >= self.listed
        column = np.array(self.values, dtype=object)[np.where(outside, 0, cells)]
        column[outside] = None
        if self.other and self.missing and isinstance(self.values[0], str):
            column[cells == self.listed] = self.other
        return column

    def absent(self, values: Any) -> NDArray[np.bool_]:
        if isinstance(self.values[0], str):
            return np.array([text_of(v) is None for v in elements(values)], dtype=bool)
        if isinstance(self.values[0], bool):
            return np.array([truth_of(v) is None for v in elements(values)], dtype=bool)
        return np.isnan(numbers(values))

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

    def long_list(self) -> Sequence[Leaf] | None:
        return self.values if self.listed > MOST_COMPARED else None

    def cell(self, column: Column) -> Expr:
        import ibis

        other = self.listed if self.other else None
        if column.place is not None:
            return column.place if other is None else column.place.fill_null(other)
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

    def grouping(self, column: Column, *, blank: bool = False) -> Grouping:
        """Listed values of `column` and all others together; in a long list all values, which are looked up by group."""
        if column.place is not None:
            return super().grouping(column)
        if self.long_list() is not None:
            return Grouping(column.expr, None, column.kind, self.code, listed=self.values)
        if column.kind == "text":
            other, missing = self.listed if self.other else None, self.size - 1 if self.missing else None
            return text_grouping(column, [str(v) for v in self.values], self.code, other=other, missing=missing)
        if column.kind == "bool":
            return Grouping(column.expr, 3, "bool", self.code)
        numbers = [int(v) for v in self.values]
        counts = blank or bool(self.extra)
        return whole_grouping(column, min(numbers), max(numbers), self.code, absent_counts=counts) or super().grouping(
            column
        )

    def inside(self, column: Column) -> Expr:
        return column.expr.notnull() & self.in_cells(column, set(range(self.listed)))

    def in_cells(self, column: Column, codes: set[int]) -> Expr:
        """Whether the raw value of `column` is one of `codes`, so that engines can skip what cannot match.

        Not true where there is no value. Boolean columns are compared with each, which all engines can.
        """
        import ibis

        known = sorted(code for code in codes if code < self.listed)
        wanted = self._literals(column, [self.values[code] for code in known])
        if not wanted:
            found = ibis.literal(False)
        elif column.place is not None and len(wanted) > MOST_COMPARED:
            found = column.place.notnull() if len(wanted) == self.listed else column.place.isin(known).fill_null(False)
        elif column.kind == "bool" or len(wanted) == 1:
            found = any_of([column.expr == v for v in wanted])
        else:
            found = column.expr.isin(wanted)
        return any_of([found, *self.beyond(column, codes)])

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
        words = [literal_text(v) for v in (self.labels() if self.value_labels else self.classes())]
        unique = tuple(sorted(set(codes)))
        return InCells(name, unique, tuple(words[c] for c in unique))

    def _code(self, name: str, value: Any) -> int:
        found = self._codes.get((type(value), value))
        if found is not None:
            return found
        hint = did_you_mean(str(value), self.labels()[:20])
        as_text = [str(v) for v in self.classes()]
        if str(value) in as_text:
            hint = f"write it as {literal_text(self.classes()[as_text.index(str(value))])}"
        raise SchemaError(f"{value!r} is not a value of column {name!r}; {hint}")

    # ----------------------------------------------------------------------------------- schema files

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Categorical:
        renamed = {"value_labels" if key == "labels" else key: value for key, value in plain.items()}
        return cls(**{"values": (), **renamed})

    def to_plain(self) -> dict[str, Any]:
        called = zip(self.values, self.names(), strict=True)
        labels = {_key(v): label for v, label in called if label != _key(v)} if self.value_labels else {}
        return {"values": list(self.values)} | ({"labels": labels} if labels else {}) | extras(self)


def labels_of(values: Sequence[Leaf], given: Any) -> tuple[str, ...]:
    """A label for each of `values`, none at all if none is `given`: a mapping, whose keys may be text, or one for each."""
    if not given:
        return ()
    if isinstance(given, Mapping):
        named = {_key(value): label for value, label in given.items()}
        known = set(map(_key, values))
        unknown = [key for key in named if key not in known]
        if unknown:
            raise SchemaError(f"labels names {unknown[0]!r}, which is not a value of the column; remove it or add the value")
        labels: tuple[Any, ...] = tuple(named.get(_key(v), str(v)) for v in values)
    elif isinstance(given, Sequence) and not isinstance(given, str) and len(given) == len(values):
        labels = tuple(given)
    else:
        raise SchemaError("labels must be a table of value and label, such as labels = { 0 = 'owned', 1 = 'rented' }")
    own = {str(v): v for v in values}
    seen: set[str] = set()
    for value, label in zip(values, labels, strict=True):
        if not isinstance(label, str) or not label:
            raise SchemaError(f"the label of {value!r} must be text that is not empty, got {label!r}")
        check_text(label, "the label")
        if label in seen or own.get(label, value) != value:
            raise SchemaError(f"the label {label!r} stands for two values; give each value its own")
        seen.add(label)
    return () if labels == tuple(map(str, values)) else labels


def _key(value: Any) -> str:
    """A value as the key of a table in a schema file."""
    return str(value).lower() if isinstance(value, bool) else str(value)
