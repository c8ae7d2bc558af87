"""The public schema: which columns a release may use, their domains, and what counts as one person.

A schema is input, never inferred: reading a domain off the data would publish the data. In TOML::

    [unit]                       # leave out if every person has one row
    person = "patient"
    rows_per_person = 3

    [columns.age]
    type = "numeric"
    low = 0
    high = 119
    bins = 12
    integer = true
    unit = "years"               # title, description and unit are for readers

    [columns.sex]
    type = "categorical"
    values = ["F", "M"]
    other = true
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError, SchemaError
from sfumato.privacy.terms import Terms
from sfumato.tables.blanks import refuse_blanks
from sfumato.tables.domains import Domain, domain_from_plain
from sfumato.tables.lattice import Lattice
from sfumato.tables.notes import NOTHING, Note, Wording, note_of
from sfumato.tables.toml_text import parse_toml, read_toml, toml_lines
from sfumato.tables.value_files import with_values
from sfumato.tables.words import check_keys, check_text, did_you_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.tables.predicate_tree import Predicate
    from sfumato.tables.predicates import Where

MAX_CELLS = 20_000_000  # a dense array of counts beyond this is a mistake more often than a wish


@dataclass(frozen=True)
class PrivacyUnit:
    """What one person can put into the table.

    By default a row is a person. With `person` a column names the person and at most `rows_per_person` of their
    rows, chosen at random by the engine, are used in a call; rows whose person is NULL are not used.

    Parameters
    ----------
    person : str, optional
        The column that names the person.
    rows_per_person : int, optional
        How many rows of a person may count; needed where there is a person column.

    Examples
    --------
    >>> PrivacyUnit()
    PrivacyUnit(person=None, rows_per_person=1)
    >>> PrivacyUnit(person="patient")
    Traceback (most recent call last):
    ...
    sfumato.errors.SchemaError: the unit is the person in column 'patient', so say how many of their rows may count:
    rows_per_person = 1 (or more; noise grows with it)
    """

    person: str | None = None
    rows_per_person: int = None  # type: ignore[assignment]  # 1 without a person column

    def __post_init__(self) -> None:
        if self.person is None:
            if self.rows_per_person not in (None, 1):
                raise SchemaError("rows_per_person needs person = 'the column that names the person'")
            object.__setattr__(self, "rows_per_person", 1)
            return
        if not isinstance(self.person, str) or not self.person:
            raise SchemaError(f"person must name a column, got {self.person!r}")
        check_text(self.person, "the person column")
        if self.rows_per_person is None:
            raise SchemaError(
                f"the unit is the person in column {self.person!r}, so say how many of their rows may count: "
                "rows_per_person = 1 (or more; noise grows with it)"
            )
        rows = self.rows_per_person
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= 1_000_000:
            raise SchemaError(f"rows_per_person must be a whole number of at least 1, got {rows!r}")


@dataclass(frozen=True)
class Schema:
    """Ordered public columns and the privacy unit.

    Parameters
    ----------
    columns : mapping of str to Domain
        A `Numeric` or `Categorical` for each column, or another kind that was registered.
        Names match the table's exactly, upper and lower case included.
    unit : PrivacyUnit
        What one person can put into the table.
    notes : mapping of str to Note
        Title, description and unit of columns, for readers; not part of what a request is.
    about : Note
        Title and description of the table.

    Examples
    --------
    >>> from sfumato.tables import Categorical, Numeric
    >>> schema = Schema({"age": Numeric(0, 119, bins=12, integer=True), "sex": Categorical(["F", "M"])})
    >>> schema.names, schema.shape(["sex", "age"]), schema["sex"].labels()
    (('age', 'sex'), (2, 12), ('F', 'M'))
    >>> Schema.from_toml(schema.to_toml()) == schema
    True
    >>> schema["aeg"]
    Traceback (most recent call last):
    ...
    sfumato.errors.SchemaError: no column 'aeg' in the schema; did you mean 'age'? Known: age, sex
    """

    columns: Mapping[str, Domain]
    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    notes: Mapping[str, Note] = field(default_factory=dict)
    about: Note = NOTHING

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise SchemaError("a schema needs at least one column with its public domain")
        if not isinstance(self.unit, PrivacyUnit):
            raise SchemaError(f"unit must be a PrivacyUnit, got {self.unit!r}")
        folded: dict[str, str] = {}
        for name, domain in self.columns.items():
            if not isinstance(name, str) or not name:
                raise SchemaError(f"a column name must be text that is not empty, got {name!r}")
            check_text(name, "the column name")
            if not isinstance(domain, Domain):
                raise SchemaError(f"column {name!r} needs a domain such as Numeric or Categorical, got {domain!r}")
            twin = folded.setdefault(name.casefold(), name)
            if twin != name:
                raise SchemaError(
                    f"columns {twin!r} and {name!r} differ in case only, which some engines ignore: rename one"
                )
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        for name, note in self.notes.items():
            self[name]
            if not isinstance(note, Note):
                raise SchemaError(f"what is said of column {name!r} must be a Note, got {note!r}")
        kept = {name: self.notes[name] for name in self.columns if self.notes.get(name, NOTHING) != NOTHING}
        object.__setattr__(self, "notes", MappingProxyType(kept))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Schema, (dict(self.columns), self.unit, dict(self.notes), self.about))

    def __getitem__(self, name: str) -> Domain:
        try:
            return self.columns[name]
        except (KeyError, TypeError):
            raise SchemaError(f"no column {name!r} in the schema; {did_you_mean(name, self.columns)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    @property
    def terms(self) -> Terms:
        """Whom a release from this table is held to protect: the unit and its rows. Whoever prices one starts from here."""
        return Terms(person=self.unit.person, rows_per_person=self.unit.rows_per_person)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(self.columns)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of what decides about figures: not of titles and descriptions."""
        return hashlib.sha256(self.to_toml(notes=False).encode()).hexdigest()

    def shape(self, columns: Iterable[str] | None = None) -> tuple[int, ...]:
        """Cells of each of `columns`, or of all columns."""
        return tuple(self[c].size for c in (self.names if columns is None else columns))

    def cells(self, columns: Iterable[str] | None = None) -> int:
        """Number of cells of the full table over `columns`."""
        return math.prod(self.shape(columns))

    def check_cells(self, columns: Iterable[str]) -> int:
        """The number of cells over `columns`, refused if there are too many to count them all.

        >>> from sfumato.tables import Numeric
        >>> Schema({"a": Numeric(0, 1, bins=10_000), "b": Numeric(0, 1, bins=10_000)}).check_cells(["a", "b"])
        Traceback (most recent call last):
        ...
        sfumato.errors.SchemaError: 10000 x 10000 = 100,000,000 cells over a, b; at most 20,000,000: use fewer columns or
        coarser bins
        """
        names = tuple(columns)
        if self.cells(names) > MAX_CELLS:
            shape = " x ".join(map(str, self.shape(names)))
            raise SchemaError(
                f"{shape} = {self.cells(names):,} cells over {', '.join(names)}; at most {MAX_CELLS:,}: "
                "use fewer columns or coarser bins"
            )
        return self.cells(names)

    def lattice(self, column: str, steps: int | None = None) -> Lattice:
        """The lattice of `steps` steps on which the numeric `column` is added up; see `Numeric.lattice`."""
        return self[column].lattice(steps, what=f"column {column!r}")

    def note(self, column: str) -> Note:
        """Title, description and unit of a `column`."""
        return self.notes.get(column, NOTHING)

    def heading(self, column: str) -> str:
        """What a picture calls a `column`: its title or name, with its unit."""
        return self.note(column).heading(column)

    def wording(self, column: str) -> Wording:
        """How numbers of a `column` are put into words: with its unit, or as dates."""
        return self[column].wording(self.note(column).unit)

    def condition(self, where: Where) -> Predicate:
        """The condition `where` on the columns, read and checked; see `sfumato.tables.parse_where`."""
        from sfumato.tables.predicates import parse_where

        return parse_where(where, self)

    def is_empty(self, where: Where) -> bool:
        """Whether this schema alone says that no row can satisfy `where`; see `sfumato.tables.is_empty`."""
        from sfumato.tables.predicates import is_empty

        return is_empty(self.condition(where), self)

    def select(self, columns: Iterable[str]) -> Schema:
        """The schema of `columns` alone, same unit."""
        kept = {c: self[c] for c in columns}
        return Schema(kept, self.unit, {c: self.note(c) for c in kept}, self.about)

    @classmethod
    def from_toml(cls, source: str | Path) -> Schema:
        """From `source`, a TOML file or TOML text (anything with a line break, or that begins with ``[``)."""
        is_text = isinstance(source, str) and ("\n" in source or source.lstrip().startswith("["))
        where = "schema" if is_text else str(source)
        if not is_text and not Path(source).exists():
            raise SchemaError(f"no schema file {where!r}; write one (see docs/tables.md) or correct the path")
        try:
            plain = parse_toml(str(source), where) if is_text else read_toml(Path(source), "the schema file")
        except InputError as error:
            raise SchemaError(str(error)) from None
        return cls.from_mapping(plain, what=where, folder=None if is_text else Path(source).parent)

    @classmethod
    def from_mapping(cls, plain: Mapping[str, Any], *, what: str = "schema", folder: Path | None = None) -> Schema:
        """From `plain`, the nested dictionaries that a TOML file holds; `what` names the schema in errors.

        Files of values are looked for in `folder`.
        """
        refuse_blanks(plain)
        check_keys(plain, ("table", "unit", "columns"), what)
        unit, columns, table = plain.get("unit", {}), plain.get("columns"), plain.get("table", {})
        if not isinstance(columns, Mapping) or not columns:
            raise SchemaError(f"{what}: no columns; describe each in a table such as [columns.age]")
        if not isinstance(unit, Mapping):
            raise SchemaError(f"{what}: unit must be a table with person and rows_per_person, got {unit!r}")
        check_keys(unit, ("person", "rows_per_person"), f"{what}: [unit]")
        if not isinstance(table, Mapping):
            raise SchemaError(f"{what}: table must be a table with title and description, got {table!r}")
        check_keys(table, ("title", "description"), f"{what}: [table]")
        columns = {name: with_values(column, folder, f"column {name!r}") for name, column in columns.items()}
        domains = {name: domain_from_plain(f"column {name!r}", column) for name, column in columns.items()}
        notes = {name: note_of(column, f"column {name!r}") for name, column in columns.items()}
        return cls(domains, PrivacyUnit(**unit), notes, note_of(table, f"{what}: [table]"))

    def to_mapping(self, *, notes: bool = True) -> dict[str, Any]:
        """Nested dictionaries, as a TOML file holds them; `from_mapping` gives back an equal schema.

        Without `notes` it holds what decides about figures, and nothing that is only for readers.
        """
        plain: dict[str, Any] = {}
        if notes and self.about != NOTHING:
            plain["table"] = self.about.to_plain()
        if self.unit.person is not None:
            plain["unit"] = {"person": self.unit.person, "rows_per_person": self.unit.rows_per_person}
        plain["columns"] = {
            name: {"type": d.type_name, **(self.note(name).to_plain() if notes else {}), **d.to_plain()}
            for name, d in self.columns.items()
        }
        return plain

    def to_toml(self, *, notes: bool = True) -> str:
        """TOML text; `from_toml` gives back an equal schema, except that without `notes` nothing is said to readers."""
        return "\n".join(toml_lines(self.to_mapping(notes=notes))) + "\n"

    def plot(self, ax: Axes | None = None, *, columns: Iterable[str] | None = None) -> Axes:
        """Draw the levels of `columns` (by default all) on `ax`: given trees, and those made where none is given."""
        from sfumato.tables.plots import plot_schema

        return plot_schema(self, None if columns is None else tuple(columns), ax)

    def save(self, path: str | Path) -> None:
        """Write the TOML text to the file `path`."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")
