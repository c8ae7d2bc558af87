"""`Domain`: everything that has to be known about a kind of column, in one class.

Cells and their names, levels, values in memory, expressions for engines, comparisons in a `where`, keys in a schema file.
The rest of the package asks a domain and never which kind it is, so a new kind of column is one new file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.privacy.source import Generator
from sfumato.tables.columns import Column, Expr
from sfumato.tables.lattice import Lattice
from sfumato.tables.notes import NOTE_KEYS, Wording
from sfumato.tables.predicate_tree import OPPOSITE, Atom, Compare, Either, InCells, Missing, Op, Predicate
from sfumato.tables.taxonomy import Leaf, Taxonomy
from sfumato.tables.words import check_keys

Codes: TypeAlias = NDArray[np.int64]
Partitions: TypeAlias = list[Codes]
Groups: TypeAlias = list[list[str]]
MAX_BOUND = 2**53  # beyond it not every whole number is a double, and engines would disagree


class Domain(ABC):
    """The public domain of one column.

    The *listed* cells 0..listed-1 hold the values of the domain; `other`, if it is a label, names one more cell for
    everything else. A subclass is immutable and compares equal to one that was made alike.

    Attributes
    ----------
    type_name : str
        The word in a schema file: ``type = "numeric"``.
    keys : tuple of str
        The other keys a schema file may give.
    other : str or False
        The name of the last cell, for values outside the domain.
    taxonomy : Taxonomy or None
        A tree over `leaves`.
    ordered : bool
        Whether neighbouring cells are alike.
    adds_up : bool
        Whether a sum of its numbers means something, where it has a lattice; that of dates does not.
    """

    type_name: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]
    ordered: ClassVar[bool] = False
    adds_up: ClassVar[bool] = True
    other: bool | str
    taxonomy: Taxonomy | None

    # ------------------------------------------------------------------------------------------ cells

    @property
    @abstractmethod
    def listed(self) -> int:
        """Number of cells that hold values of the domain."""

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """A name for each listed cell."""

    @property
    def size(self) -> int:
        """Number of cells, the other cell included."""
        return self.listed + bool(self.other)

    def labels(self) -> tuple[str, ...]:
        """A name for each cell."""
        return (*self.names(), self.other) if isinstance(self.other, str) else self.names()

    @property
    def leaves(self) -> Sequence[Leaf]:
        """What a taxonomy has as its leaves: the numbers of the listed cells, unless a kind has better names."""
        return range(self.listed)

    @property
    def cell_edges(self) -> tuple[float, ...] | None:
        """Where the cells begin and end, if every cell is an interval of numbers."""
        return None

    def classes(self) -> tuple[Any, ...] | None:
        """The values to be predicted if this column is a target; None if it cannot be one."""
        return None

    # ----------------------------------------------------------------------------------------- levels

    @property
    def depth(self) -> int:
        """Levels of the taxonomy below its root (1 without a taxonomy)."""
        return self.taxonomy.depth if self.taxonomy else 1

    def group_codes(self, level: int) -> Codes:
        """For each cell its node at `level` of the taxonomy; the other cell is a node of its own below the root."""
        groups = (self.taxonomy or Taxonomy(leaves=tuple(self.leaves))).groups(level)
        place = {(type(leaf), leaf): number for number, (_, leaves) in enumerate(groups) for leaf in leaves}
        codes = [place[type(v), v] for v in self.leaves]
        return np.array([*codes, 0 if level == 0 else len(groups)] if self.other else codes, dtype=np.int64)

    def levels(self) -> tuple[Partitions, Groups]:
        """Per level, coarsest first, the node of every cell and the names of the nodes.

        These are the levels of the given tree. Without one, ordered cells are merged in pairs, level by level; others are
        everything, or each cell by itself. The other cell is a node of its own on every level below the root.

        >>> from sfumato.tables.domains import Numeric
        >>> partitions, groups = Numeric(0, 8, bins=4).levels()
        >>> [p.tolist() for p in partitions]
        [[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 3]]
        >>> groups[1]
        ['0 to 4', '4 to 8']
        """
        if self.taxonomy is not None:
            partitions = [self.group_codes(level) for level in range(self.taxonomy.depth + 1)]
            groups = [[label for label, _ in self.taxonomy.groups(level)] for level in range(len(partitions))]
        elif self.ordered:
            partitions, groups = self._pairs()
        else:
            partitions = [np.zeros(self.size, dtype=np.int64), np.arange(self.size)]
            groups = [["all"], list(self.names())]
        if isinstance(self.other, str):
            for level in range(1, len(groups)):
                groups[level].append(self.other)
        return partitions, groups

    def span(self, start: int, end: int) -> str:
        """A name for the listed cells from `start` up to, not including, `end` (ordered cells only)."""
        names = self.names()
        return names[start] if end == start + 1 else f"{names[start]} to {names[end - 1]}"

    def _pairs(self) -> tuple[Partitions, Groups]:
        codes = np.arange(self.listed)
        partitions, groups = [], []
        while True:
            ends = np.append(np.flatnonzero(np.diff(codes)) + 1, self.listed)
            starts = np.concatenate([[0], ends[:-1]])
            partitions.append(np.append(codes, codes[-1] + 1) if self.other else codes)
            groups.append([self.span(int(a), int(b)) for a, b in zip(starts, ends, strict=True)])
            if codes[-1] == 0:
                break
            codes = codes // 2
        if self.other:
            partitions.append(np.zeros(self.listed + 1, dtype=np.int64))
            groups.append(["all"])
        return partitions[::-1], groups[::-1]

    # ------------------------------------------------------------------------------- values in memory

    @abstractmethod
    def places(self, values: Any) -> Codes:
        """The listed cell of each of `values`, -1 outside the domain: the rule of the engines, in memory. Never fails."""

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

    @abstractmethod
    def cell(self, column: Column) -> Expr:
        """The number of each row's cell by `column`, NULL if it has none."""

    @abstractmethod
    def inside(self, column: Column) -> Expr:
        """True where the value of `column` is in the domain; never NULL."""

    @property
    def whole_steps(self) -> int | None:
        """Steps of the coarsest lattice that has a point for every value; None if there is no such lattice."""
        return None

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

    def one_of(self, name: str, values: Sequence[Any]) -> Predicate:
        """What ``name in (values)`` means for the column `name` and literals `values`."""
        return Either(tuple(self.compare(name, "=", value) for value in values))

    def check_atom(self, atom: Atom) -> None:
        """Refuse a comparison `atom` that was not made by `compare` or `one_of` and does not fit."""
        if isinstance(atom, InCells) and not set(atom.codes) <= set(range(self.size)):
            raise SchemaError(f"column {atom.column!r} has {self.size} cells, numbered from 0; got {atom.codes}")
        if isinstance(atom, Compare) and atom.op not in OPPOSITE:
            raise SchemaError(f"no comparison {atom.op!r}; use one of {' '.join(OPPOSITE)}")
        if isinstance(atom, Compare) and self.compare(atom.column, atom.op, atom.value) != atom:
            raise SchemaError(f"column {atom.column!r} is {self.type_name}; compare its cells, not {atom.value!r}")

    def holds(self, column: Column, atom: Atom, *, negate: bool = False) -> Expr:
        """Whether `atom`, or its negation with `negate`, holds for `column`: an expression that is never NULL."""
        if isinstance(atom, Missing):
            return self.inside(column) if negate else ~self.inside(column)
        if isinstance(atom, InCells):
            codes = set(atom.codes)
            return self.in_cells(column, set(range(self.listed)) - codes if negate else codes)
        return self.compared(column, OPPOSITE[atom.op] if negate else atom.op, atom.value)

    def in_cells(self, column: Column, codes: set[int]) -> Expr:
        """True where the value of `column` is in one of the cells `codes`."""
        import ibis

        known = sorted(codes - {self.listed})
        found = self.cell(column).isin(known).fill_null(False) if known else ibis.literal(False)
        return found | ~self.inside(column) if self.listed in codes else found

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
        """Whether `atom` (its negation with `negate`) may hold for the value `witness`; None stands for a missing one.

        Never False where it could hold: what is said to be empty must be empty.
        """
        if isinstance(atom, Missing):
            return (witness is None) != negate
        if isinstance(atom, InCells):
            if witness is None:
                return not negate and self.listed in atom.codes
            return (self.cell_of_witness(witness) in atom.codes) != negate
        return witness is not None and self.may_compare(OPPOSITE[atom.op] if negate else atom.op, atom.value, witness)

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


DOMAINS: dict[str, type[Domain]] = {}
_Kind = TypeVar("_Kind", bound=type[Domain])


def register(domain: _Kind) -> _Kind:
    """Let schema files use a kind of column, under the word `domain.type_name`."""
    known = DOMAINS.setdefault(domain.type_name, domain)
    if known is not domain:
        raise SchemaError(f"columns of type {domain.type_name!r} are {known.__name__} already; choose another word")
    return domain


def domain_from_plain(what: str, plain: Any) -> Domain:
    """A domain from one column's table of a schema file; `what` names the column in errors."""
    if not isinstance(plain, Mapping):
        raise SchemaError(f"{what}: expected a table such as [columns.age] with type = 'numeric', got {plain!r}")
    kind = plain.get("type", "categorical" if "values" in plain else "numeric")
    if kind not in DOMAINS:
        raise SchemaError(f"{what}: type must be {' or '.join(map(repr, DOMAINS))}, got {kind!r}")
    found = DOMAINS[kind]
    check_keys(plain, ("type", *found.keys, *NOTE_KEYS), f"{what} ({kind})")
    try:
        return found.from_plain({key: value for key, value in plain.items() if key not in ("type", *NOTE_KEYS)})
    except SchemaError as error:
        raise SchemaError(f"{what}: {error}") from None


def other_label(other: bool | str, taken: Sequence[str], what: str) -> bool | str:
    """`other` in one form, a label or False, so that equal domains compare equal."""
    if not isinstance(other, bool | str):
        raise SchemaError(f"{what}: other must be true, false or a label, got {other!r}")
    if isinstance(other, str) and (not other or other in taken):
        raise SchemaError(f"{what}: the label of the other cell {other!r} is empty or already a value")
    if other is True and "other" in taken:
        raise SchemaError(f"{what}: 'other' is already a value; name the extra cell, for example other = 'elsewhere'")
    return "other" if other is True else other
