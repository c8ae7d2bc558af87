"""`Domain`: everything that has to be known about a kind of column, in one class.

Cells and their names, levels, values in memory, expressions for engines, comparisons in a `where`, keys in a schema file.
The rest of the package asks a domain and never which kind it is, so a new kind of column is one new file.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.privacy.source import Generator
from sfumato.tables.columns import Column, Expr, any_of
from sfumato.tables.domains.cells import Cells, Codes
from sfumato.tables.lattice import Lattice, on_lattice
from sfumato.tables.notes import Wording
from sfumato.tables.predicate_tree import OPPOSITE, Atom, Compare, Either, InCells, Missing, Not, Op, Predicate, literal_text
from sfumato.tables.raw_groups import Grouping
from sfumato.tables.taxonomy import Leaf

MAX_BOUND = 2**53  # beyond it not every whole number is a double, and engines would disagree


class Outside(Enum):
    """Values outside a domain, where it tells them apart: there is a value, but not one of the domain's."""

    ELSEWHERE = "elsewhere"


ELSEWHERE: Final = Outside.ELSEWHERE


class Domain(Cells):
    """The public domain of one column.

    The *listed* cells 0..listed-1 hold the values of the domain; `other`, if it is a label, names one more cell for
    everything else, and `missing` one for where there is no value that can be read, which then is no longer in `other`. A
    subclass is immutable and compares equal to one that was made alike.

    Attributes
    ----------
    type_name : str
        The word in a schema file: ``type = "numeric"``.
    keys : tuple of str
        The other keys a schema file may give.
    other : str or False
        The name of the cell after the listed ones, for values outside the domain.
    missing : str or False
        The name of the last cell, for rows without a value that can be read.
    taxonomy : Taxonomy or None
        A tree over `leaves`.
    ordered : bool
        Whether neighbouring cells are alike.
    adds_up : bool
        Whether a sum of its numbers means something, where it has a lattice; that of dates does not.
    """

    type_name: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]
    adds_up: ClassVar[bool] = True

    def told(self) -> str:
        """The domain as a reader of figures must know it: what values were clamped to, or which are listed."""
        labels = self.labels()
        more = f" and {len(labels) - 12:,} more" if len(labels) > 12 else ""
        return f"one of {', '.join(labels[:12])}{more}"

    # ------------------------------------------------------------------------------- values in memory

    @abstractmethod
    def places(self, values: Any) -> Codes:
        """The listed cell of each of `values`, -1 outside the domain: the rule of the engines, in memory. Never fails."""

    def absent(self, values: Any) -> NDArray[np.bool_]:
        """Where one of `values` cannot be read at all: the rule for the missing cell, in memory. Never fails."""
        raise TypeError(f"{type(self).__name__} does not say which values cannot be read")

    def cells(self, values: Any) -> Codes:
        """The cell of each of `values`, -1 where it has none."""
        found = self.places(values)
        if self.other:
            found = np.where(found < 0, self.listed, found)
        return np.where(self.absent(values), self.size - 1, found) if self.missing else found

    @abstractmethod
    def draw(self, cells: Codes, random: Generator) -> Any:
        """A column with a value from each of `cells`, drawn by `random`; a missing value in the other cell."""

    @abstractmethod
    def to_arrow(self, values: list[Any]) -> Any:
        """Python objects `values` of any kind as an Arrow array for `column`; what does not fit is missing. Never fails."""

    # ---------------------------------------------------------------------------------------- engines

    @abstractmethod
    def column(self, expr: Expr, *, engine: str, what: str, text: bool = False) -> Column:
        """A physical column `expr` made ready for this domain, judged by its type.

        `engine` is the engine's name, `what` names the column in errors, `text` is for untyped tables (CSV).
        """

    def steps(self, kind: Any, *, what: str) -> Sequence[Callable[[Expr], Expr]]:
        """How a column of the type `kind` becomes that of `column`, in steps that each are computed once; `what` names it.

        The last one makes whole numbers. By default there are none, and `column` is asked to do it all.
        """
        return ()

    @abstractmethod
    def cell(self, column: Column) -> Expr:
        """The number of each row's listed or other cell by `column`, NULL if it has none; `code` adds the missing cell."""

    def code(self, column: Column) -> Expr:
        """The number of each row's cell by `column`, NULL if it has none."""
        import ibis

        found = self.cell(column)
        return ibis.ifelse(column.known, found, self.size - 1) if self.missing else found

    def grouping(self, column: Column, *, blank: bool = False) -> Grouping:
        """What rows are grouped by before the groups are coded; by default the code of `column`.

        Rows without a cell may be left out, unless `blank` says that they matter and have a NULL code.
        """
        return Grouping(self.code(column), self.size + 1)

    def kept(self, column: Column) -> Expr:
        """The values of `column` as an imported file keeps them, so that they are read back alike."""
        return column.expr

    def long_list(self) -> Sequence[Leaf] | None:
        """The values of the listed cells, if too many to compare each row with: a join then gives `Column.place`."""
        return None

    @abstractmethod
    def inside(self, column: Column) -> Expr:
        """True where the value of `column` is in the domain; never NULL."""

    @property
    def whole_ends(self) -> tuple[int, int] | None:
        """The least and the largest of the whole numbers that values are in `column`; None if they are not whole."""
        return None

    @property
    def whole_steps(self) -> int | None:
        """Steps of the coarsest lattice that has a point for every value; None if there is no such lattice."""
        return None if self.whole_ends is None else self.whole_ends[1] - self.whole_ends[0]

    def point(self, column: Column, lattice: Lattice, base: int = 0) -> Expr:
        """The place of `column` on a `lattice` of this domain, counted from `base`; 0 where there is no value.

        Whole numbers with a point for each are held between the bounds and subtracted, and never become doubles.
        """
        import ibis

        if column.kind != "int" or self.whole_ends is None or lattice.steps != self.whole_steps:
            return on_lattice(self.number(column), lattice, base)
        x, (low, high), held = column.expr, self.whole_ends, column.expr.type().bounds
        if not held.lower <= low <= high <= held.upper:  # there is nothing to compare with in the column's own type
            return on_lattice(self.number(column), lattice, base)
        within = ibis.cases((x < low, low), (x > high, high), else_=x).cast("int64")
        return ibis.ifelse(self.inside(column), within - (low - base), 0)

    def lattice(self, steps: int | None = None, *, what: str = "the column") -> Lattice:
        """The lattice of `steps` steps on which this column is added up, if it can be; `what` names the column in errors."""
        raise SchemaError(f"{what} is {self.type_name}; a measure must be numeric")

    def wording(self, unit: str = "") -> Wording:
        """How numbers of the lattice are put into words: by default with the column's `unit` behind them."""
        return Wording(unit)

    def words(self, number: float) -> str:
        """A `number` between the bounds of the lattice, in words.

        >>> from sfumato.tables.domains import Numeric
        >>> Numeric(0, 8, bins=4).words(2.5)
        '2.5'
        """
        return self.wording().words(number)

    def number(self, column: Column) -> Expr:
        """The cleaned value of `column` as a double, NULL where missing: what `lattice` is about."""
        raise TypeError(f"{type(self).__name__} does not say how it is added up")

    # ---------------------------------------------------------------------------------------- `where`

    @abstractmethod
    def compare(self, name: str, op: Op, value: Any) -> Predicate:
        """What ``name op value`` means for the column `name`; refuses a literal `value` that `op` cannot compare it with."""

    def extra_cell(self, name: str, op: Op, value: Any) -> Predicate | None:
        """What `name` `op` `value` means if `value` is the name of an extra cell; None if it is not."""
        if op not in ("=", "!=") or not isinstance(value, str) or value not in self.extra:
            return None
        found = InCells(name, (self.listed + self.extra.index(value),), (literal_text(value),))
        return found if op == "=" else Not(found)

    def one_of(self, name: str, values: Sequence[Any]) -> Predicate:
        """What ``name in (values)`` means for the column `name` and literals `values`."""
        found = tuple(self.compare(name, "=", value) for value in values)
        if not all(isinstance(part, InCells) for part in found):
            return Either(found)
        cells = [part for part in found if isinstance(part, InCells)]
        named = {code: label for part in cells for code, label in zip(part.codes, part.labels, strict=True)}
        return InCells(name, tuple(sorted(named)), tuple(named[code] for code in sorted(named)))

    def check_atom(self, atom: Atom) -> None:
        """Refuse a comparison `atom` that was not made by `compare` or `one_of` and does not fit."""
        if isinstance(atom, InCells) and not set(atom.codes) <= set(range(self.size)):
            raise SchemaError(f"column {atom.column!r} has {self.size} cells, numbered from 0; got {atom.codes}")
        if isinstance(atom, Compare) and atom.op not in OPPOSITE:
            raise SchemaError(f"no comparison {atom.op!r}; use one of {' '.join(OPPOSITE)}")
        if isinstance(atom, Compare) and self.compare(atom.column, atom.op, atom.value) != atom:
            raise SchemaError(f"column {atom.column!r} is {self.type_name}; compare its cells, not {atom.value!r}")

    def holds(self, column: Column, atom: Atom, *, negate: bool = False) -> Expr:
        """Whether `atom`, or its negation with `negate`, holds for `column`; where it does not, false or NULL."""
        if isinstance(atom, Missing):
            return self.inside(column) if negate else ~self.inside(column)
        if isinstance(atom, InCells):
            codes = set(atom.codes)
            return self.in_cells(column, set(range(self.listed)) - codes if negate else codes)
        return self.compared(column, OPPOSITE[atom.op] if negate else atom.op, atom.value)

    def in_cells(self, column: Column, codes: set[int]) -> Expr:
        """True where the value of `column` is in one of the cells `codes`."""
        import ibis

        known = sorted(code for code in codes if code < self.listed)
        found = self.cell(column).isin(known).fill_null(False) if known else ibis.literal(False)
        return any_of([found, *self.beyond(column, codes)])

    def beyond(self, column: Column, codes: set[int]) -> list[Expr]:
        """For each extra cell among `codes`, where `column` is in it."""
        outside = [~self.inside(column)] if self.other and self.listed in codes else []
        if not self.missing:
            return outside
        return [column.known & e for e in outside] + ([~column.known] if self.size - 1 in codes else [])

    def compared(self, column: Column, op: Op, value: Any) -> Expr:
        """True where `column op value` holds for the cleaned value; needed only where `compare` makes a `Compare`."""
        raise TypeError(f"{type(self).__name__} does not say how it compares")

    def witnesses(self, atoms: Sequence[Atom]) -> Sequence[Any]:
        """Cleaned values that meet every combination of the comparisons `atoms` that any value meets.

        By default listed cells, one for each set of comparisons that name it. A missing value is always possible and need
        not be among them.
        """
        named: dict[int, tuple[int, ...]] = {}
        for number, atom in enumerate(atoms):
            for code in atom.codes if isinstance(atom, InCells) else ():
                named[code] = (*named.get(code, ()), number)
        alike = {by: code for code, by in named.items() if code < self.listed}
        unnamed = next((code for code in range(self.listed) if code not in named), None)
        return [*alike.values(), *([] if unnamed is None else [unnamed])]

    def pieces(self, atoms: Sequence[Atom]) -> Sequence[tuple[Any, float]]:
        """The domain in pieces on which none of the comparisons `atoms` changes: a value of each and its share of all.

        By default every listed cell has the same share. A missing value is no piece.
        """
        named: dict[int, tuple[int, ...]] = dict.fromkeys(range(self.listed), ())
        for number, atom in enumerate(atoms):
            for code in atom.codes if isinstance(atom, InCells) else ():
                if code in named:
                    named[code] = (*named[code], number)
        alike: dict[tuple[int, ...], list[int]] = {}
        for code, by in named.items():
            alike.setdefault(by, []).append(code)
        return [(codes[0], len(codes) / self.listed) for codes in alike.values()]

    def may_hold(self, atom: Atom, witness: Any, *, negate: bool = False) -> bool:
        """Whether `atom` (its negation with `negate`) may hold for the value `witness`; see `outsiders` for missing ones.

        Never False where it could hold: what is said to be empty must be empty.
        """
        beyond = witness is None or witness is ELSEWHERE
        if isinstance(atom, Missing):
            return beyond != negate
        if isinstance(atom, InCells):
            if beyond:
                return not negate and (self.size - 1 if witness is None and self.missing else self.listed) in atom.codes
            return (self.cell_of_witness(witness) in atom.codes) != negate
        return not beyond and self.may_compare(OPPOSITE[atom.op] if negate else atom.op, atom.value, witness)

    @property
    def outsiders(self) -> tuple[Any, ...]:
        """Witnesses outside the domain: None; with a missing cell None for no value, and one for a value elsewhere."""
        return (None, ELSEWHERE) if self.missing else (None,)

    def cell_of_witness(self, witness: Any) -> int:
        """The listed cell of `witness`, one of `witnesses`."""
        return int(witness)

    def may_compare(self, op: Op, value: Any, witness: Any) -> bool:
        """Whether `witness op value` may hold."""
        return True

    # ----------------------------------------------------------------------------------- schema files

    @classmethod
    @abstractmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Domain:
        """From `plain`, the keys of a schema file without `type`."""

    @abstractmethod
    def to_plain(self) -> dict[str, Any]:
        """The keys of a schema file, without `type`; `from_plain` gives back an equal domain."""
