"""From a text file to a typed Parquet file, once, with a word to the custodian about what was found.

Opening a CSV file works without this, by the same rules (`sfumato.tables.csv_lines`). But how many lines were skipped, and
how many values have no cell, is then told to nobody, since it is a fact about the data. Here the owner of the table is told,
on their own screen.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.tables.columns import Column, Expr
from sfumato.tables.csv_lines import Lines
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.engines import Engine
from sfumato.tables.files import open_lines
from sfumato.tables.frames import AsArrow, number_array, person_array, text_array
from sfumato.tables.schema import Schema
from sfumato.tables.sources import TEXTS, check_source
from sfumato.tables.steps import in_steps

_READY = "\n{} ready"  # no name of a column: one line holds them all
PRIVATE = "These numbers are exact and as private as the table: do not publish them or pass them on."


@dataclass(frozen=True)
class Imported:
    """What `import_table` found. **Exact, and as private as the table**: for its custodian only.

    Attributes
    ----------
    path : str
        The Parquet file.
    records : int
        Lines that became records.
    malformed : int
        Lines that were skipped: an unclosed quote, or another number of fields than the header.
    missing : dict of str to int
        For each column of the schema, records in which it is empty or not in the encoding.
    outside : dict of str to int
        For each column of the schema, records whose value is no number, or outside the domain.
    """

    path: str
    records: int
    malformed: int
    missing: dict[str, int]
    outside: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {"private": PRIVATE, **asdict(self)}


def import_table(
    source: str | Path,
    path: str | Path,
    *,
    schema: Schema | str | Path,
    wholes: Sequence[str] = (),
    numbers: Sequence[str] = (),
    texts: Sequence[str] = (),
    csv: CsvOptions | Mapping[str, Any] | None = None,
) -> Imported:
    """Make a typed Parquet file of a CSV or TSV file.

    A line is a record; a malformed line is skipped and changes no other. Values that do not fit the schema are missing in
    the file, except numbers and text outside the domain, which stay as they are and go where the schema says.

    Parameters
    ----------
    source : str or path
        The text file (or glob), ``.csv``, ``.tsv`` or either with ``.gz``. Its first line names the columns.
    path : str or path
        The Parquet file to be written, readable by its owner only. It must not exist.
    schema : Schema or path
        The public schema: its columns are kept with their types, and its person column as text unless `wholes` names it.
    wholes : sequence of str
        Columns to keep as whole numbers: the person column, if a roster names people by numbers.
    numbers : sequence of str
        Further columns to keep as numbers, such as budgets in ε.
    texts : sequence of str
        Further columns to keep as text, such as consent tiers.
    csv : mapping or CsvOptions, optional
        How the file is written: delimiter, quote, encoding, decimal.

    Returns
    -------
    Imported
        What was found: private.

    Examples
    --------
    >>> import tempfile
    >>> from sfumato.tables import Numeric
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "clinic.csv").write_text('age,note\\n31,"well"\\n77,"never closed\\nold,\\n')
    >>> schema = Schema({"age": Numeric(0, 99, bins=9)})
    >>> found = import_table(folder / "clinic.csv", folder / "clinic.parquet", schema=schema)
    >>> found.records, found.malformed, found.outside
    (2, 1, {'age': 1})
    """
    schema = schema if isinstance(schema, Schema) else Schema.from_toml(schema)
    text, out = str(source), Path(path)
    written = CsvOptions.of(csv)
    if not text.endswith(TEXTS):
        check_source(text, "a table" if "://" in text else None)
        raise InputError(f"{text!r} has types of its own: open it as it is; import is for .csv and .tsv files")
    if out.suffix != ".parquet":
        raise InputError(f"the file to be written must end in .parquet, got {str(out)!r}")
    if out.exists():
        raise InputError(f"{str(out)!r} exists already; remove it, or choose another name")
    persons = [schema.unit.person] if schema.unit.person else []
    columns: dict[str, AsArrow] = {name: domain.to_arrow for name, domain in schema.columns.items()}
    for make, names in ((number_array, numbers), (person_array, [*persons, *wholes]), (text_array, texts)):
        columns = dict.fromkeys(names, make) | columns
    engine, lines = open_lines(text, columns, None, written)
    engine = _in_steps(engine, schema)
    typed, found = _typed(engine, schema, {"whole": wholes, "number": numbers, "text": [*texts, *persons]})
    figures = engine.fetch(engine.table.aggregate(**found)).to_pylist()[0]
    _write(engine, typed, out)
    return _imported(out, lines, schema, figures)


def _in_steps(engine: Engine, schema: Schema) -> Engine:
    """The engine with a column more for every column that is read in steps."""
    kinds = {name: engine.column(name, "column").type() for name in schema.names}
    known = {(n, _READY.format(n)): schema[n].steps(kind, what=f"column {n!r}") for n, kind in kinds.items()}
    return replace(engine, opened=in_steps(engine.table, known))


def _typed(engine: Engine, schema: Schema, others: Mapping[str, Sequence[str]]) -> tuple[dict[str, Expr], dict[str, Expr]]:
    """The columns with their types, and the figures about them."""
    typed, found = {}, {}
    for i, name in enumerate(schema.names):
        raw, what = engine.column(name, "column"), f"column {name!r}"
        if (ready := _READY.format(name)) in engine.table.columns:
            column = Column(engine.table[ready], "int")
        else:
            column = schema[name].column(raw, engine=engine.name, what=what, text=True)
        typed[name] = schema[name].kept(column)
        found[f"missing{i}"] = raw.isnull().sum()
        found[f"outside{i}"] = (raw.notnull() & ~schema[name].inside(column)).sum()
    for kind, names in others.items():
        for name in names:
            typed.setdefault(name, _as(kind, engine.column(name, "column")))
    return typed, found


def _as(kind: str, raw: Expr) -> Expr:
    import ibis

    if kind == "whole":  # a cast by itself would round 7.5, and make one person of two
        return ibis.cases((raw.re_search(r"^[+-]?[0-9]{1,18}$"), raw.try_cast("int64")))
    return raw.try_cast("float64") if kind == "number" else raw


def _write(engine: Engine, typed: dict[str, Expr], out: Path) -> None:
    """All of the file or nothing, and not readable by others at any time."""
    with tempfile.TemporaryDirectory(prefix=".sfumato-import-", dir=out.parent) as beside:
        made = Path(beside) / out.name
        engine.write(engine.table.select(**typed), str(made))
        made.chmod(0o600)
        made.replace(out)


def _imported(out: Path, lines: Lines, schema: Schema, figures: dict[str, Any]) -> Imported:
    each = {
        what: {name: int(figures[f"{what}{i}"] or 0) for i, name in enumerate(schema.names)}
        for what in ("missing", "outside")
    }
    return Imported(str(out), lines.seen["records"], lines.seen["malformed"], each["missing"], each["outside"])
