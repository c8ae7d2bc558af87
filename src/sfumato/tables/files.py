"""Tables in files, read by DuckDB in this process: text line by line, sheets row by row, Parquet as it is.

Opening one reads names and types only. A sheet has no types, so its cells are brought to the type that the schema says, each
by itself (`sfumato.tables.one_value`), as mixed objects of a frame are. The values of a hive partition are text in the names
of folders: DuckDB would guess one type from all of them, so they are converted as the schema says as well.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.extras import need
from sfumato.tables.csv_lines import Lines
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.duckdb_engine import shared_duckdb
from sfumato.tables.engine_settings import EngineSettings
from sfumato.tables.engines import Engine, fresh_name
from sfumato.tables.frames import AsArrow
from sfumato.tables.plain_duckdb import Named, identifier, literal
from sfumato.tables.words import did_you_mean

BATCH = 100_000  # rows of a sheet that are converted at once


def open_lines(
    path: str,
    columns: Mapping[str, AsArrow],
    near: Engine | None = None,
    csv: CsvOptions | None = None,
    settings: EngineSettings | None = None,
) -> tuple[Engine, Lines]:
    """A text file with those `columns` that it has: its header now, its lines with the first aggregate, all as text."""
    import pyarrow as pa

    engine, name = shared_duckdb(near, settings), fresh_name("file")
    with readable(path):
        lines = Lines.at(path, csv)
    wanted = [column for column in lines.names if column in columns] or [lines.names[0]]
    commas = {n for n in wanted if lines.options.decimal == "," and n in columns and _is_number(columns[n]([]).type)}
    connection = engine.backend.con
    connection.execute(f"CREATE TEMP TABLE {name} ({', '.join(f'{identifier(n)} VARCHAR' for n in wanted)})")

    def read() -> None:
        schema = pa.schema([(column, pa.string()) for column in wanted])
        batches = (_with_points(batch, commas) for batch in lines.batches(wanted))
        connection.register(f"{name}_lines", pa.RecordBatchReader.from_batches(schema, batches))
        connection.execute(f"INSERT INTO {name} SELECT * FROM {name}_lines")
        connection.unregister(f"{name}_lines")

    engine.pending.append(read)
    how = f", parted by {lines.delimiter.decode()!r}"
    return replace(engine, opened=Named(name, path), text=True, written=how), lines


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Refuse a file that is not there, or that cannot be read inside."""
    _check_exists(path)
    try:
        yield
    except (OSError, EOFError) as error:
        raise InputError(f"cannot read {path!r} ({type(error).__name__}); is it a complete file of that format?") from None


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _with_points(batch: Any, commas: set[str]) -> Any:
    """Numbers with a decimal comma as every engine reads them. A point is no decimal sign there: 1.234 may mean 1234."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not commas:
        return batch
    arrays = [
        pc.replace_substring(pc.replace_substring(array, ".", "?"), ",", ".") if name in commas else array
        for name, array in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.record_batch(arrays, schema=batch.schema)


# ------------------------------------------------------------------------------------------------------------ sheets


def open_sheet(
    path: str,
    sheet: str | None,
    columns: Mapping[str, AsArrow],
    near: Engine | None = None,
    settings: EngineSettings | None = None,
) -> Engine:
    """A sheet of a workbook with those `columns` that its first row names; rows are converted with the first aggregate."""
    import pyarrow as pa

    places = header_of_sheet(path, sheet)
    wanted = {column: place for column, place in places.items() if column in columns}
    first = next(iter(places))
    make = {column: columns[column] for column in wanted} or {first: _nothing}
    wanted = wanted or {first: places[first]}
    engine, name = shared_duckdb(near, settings), fresh_name("file")
    schema = pa.schema([(column, make[column]([]).type) for column in wanted])
    connection = engine.backend.con
    connection.register(f"{name}_empty", schema.empty_table())
    connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {name}_empty")
    connection.unregister(f"{name}_empty")

    def read() -> None:
        # Opened anew: a failure half-way must be able to start again.
        batches = _batches(_rows_of(path, sheet), wanted, make, schema)
        connection.execute(f"DELETE FROM {name}")
        connection.register(f"{name}_rows", pa.RecordBatchReader.from_batches(schema, batches))
        connection.execute(f"INSERT INTO {name} SELECT * FROM {name}_rows")
        connection.unregister(f"{name}_rows")

    engine.pending.append(read)
    return replace(engine, opened=Named(name, path))


def header_of_sheet(path: str, sheet: str | None) -> dict[str, int]:
    """The columns that the first row of a sheet names, and where each stands."""
    places: dict[str, int] = {}
    for place, cell in enumerate(next(_rows_of(path, sheet), [])):
        name = cell if isinstance(cell, str) else ""
        if name and places.setdefault(name, place) != place:
            raise InputError(f"the first row of {path!r} names two columns {name!r}; rename one")
    if not places:
        raise InputError(f"{path!r} has no header; the first row of the sheet must name the columns")
    return places


def _nothing(values: list[Any]) -> Any:
    import pyarrow as pa

    return pa.nulls(len(values), pa.string())


def _rows_of(path: str, sheet: str | None) -> Iterator[list[Any]]:
    """All rows of a sheet from its first cell on, whatever is empty."""
    _check_exists(path)
    calamine = need("python_calamine", "a spreadsheet")
    try:
        book = calamine.load_workbook(path)
    except Exception as error:
        raise InputError(
            f"cannot read {path!r} ({type(error).__name__}); is it a complete spreadsheet without a password?"
        ) from None
    names = book.sheet_names
    if not names or (sheet is not None and sheet not in names):
        hint = did_you_mean(sheet or "", names)
        raise InputError(f"no sheet {sheet!r} in {path!r}; correct table=...: {hint}")
    try:
        found = book.get_sheet_by_name(names[0] if sheet is None else sheet).to_python(skip_empty_area=False)
    except Exception as error:
        raise InputError(f"cannot read {path!r} ({type(error).__name__}); is it a complete spreadsheet?") from None
    return iter(found)


def _batches(
    rows: Iterator[list[Any]], wanted: Mapping[str, int], make: Mapping[str, AsArrow], schema: Any
) -> Iterator[Any]:
    """Arrow batches of a sheet's records; a row without any cell is no record."""
    import pyarrow as pa

    next(rows, None)  # the header
    held: list[list[Any]] = []

    def batch() -> Any:
        arrays = [make[column]([_cell(row, place) for row in held]) for column, place in wanted.items()]
        return pa.record_batch([a.cast(t) for a, t in zip(arrays, schema.types, strict=True)], schema=schema)

    for row in rows:
        if any(cell != "" for cell in row):
            held.append(row)
        if len(held) == BATCH:
            yield batch()
            held.clear()
    if held:
        yield batch()


def _cell(row: list[Any], place: int) -> Any:
    value = row[place] if place < len(row) else ""
    return None if isinstance(value, str) and value == "" else value


# ----------------------------------------------------------------------------------------------------------- Parquet


def open_parquet(
    path: str, columns: Mapping[str, AsArrow], near: Engine | None = None, settings: EngineSettings | None = None
) -> Engine:
    """A Parquet file, the files of a glob, or those of a folder and the folders in it, whose names may be partitions."""
    folder = Path(path).is_dir()
    paths = _files_in(path) if folder else path
    if not folder:
        _check_exists(path)
        if not path.endswith(".parquet") and not glob.has_magic(path):
            raise InputError(f"{path!r} is neither a folder nor a .parquet file; correct the path")
    engine, name = shared_duckdb(near, settings), fresh_name("file")
    parts = partitions(path, paths) if isinstance(paths, list) else ()
    options = ", union_by_name = true, hive_partitioning = true, hive_types_autocast = false" if folder else ""
    given = f"[{', '.join(map(literal, paths))}]" if isinstance(paths, list) else literal(paths)
    shown = ", ".join(["*" + (f" EXCLUDE ({', '.join(map(identifier, parts))})" if parts else ""), *_typed(parts, columns)])
    try:
        engine.backend.con.execute(f"CREATE TEMP VIEW {name} AS SELECT {shown} FROM read_parquet({given}{options})")
    except Exception as error:
        raise InputError(f"cannot read {path!r} ({type(error).__name__}); is it a complete file of that format?") from None
    engine.spare.append(lambda: _tolerate_bad_text(engine.backend, name, paths, parts, columns))
    return replace(engine, opened=Named(name, path))


def _files_in(folder: str) -> list[str]:
    """The Parquet files under a folder; what begins with a dot or an underscore is somebody's unfinished work."""
    root = Path(folder)
    found = [p for p in sorted(root.rglob("*.parquet")) if p.is_file()]
    found = [p for p in found if not any(part[0] in "._" for part in p.relative_to(root).parts)]
    if not found:
        raise InputError(f"the folder {folder!r} holds no .parquet file; correct the path")
    return [str(p) for p in found]


def partitions(folder: str, paths: list[str]) -> tuple[str, ...]:
    """The columns that folders are named after: year, month of ``visits/year=2024/month=5/part.parquet``."""
    found = {tuple(part.partition("=")[0] for part in Path(p).relative_to(folder).parts[:-1] if "=" in part) for p in paths}
    if len(found) > 1:
        raise InputError(
            f"the files in {folder!r} lie under different partitions; give all of them the folders of one kind, as "
            "year=2024/month=5/"
        )
    return found.pop()


def _typed(parts: tuple[str, ...], columns: Mapping[str, AsArrow]) -> list[str]:
    """Partitions as the schema says, each value by itself; what does not fit is missing."""
    found = []
    for part in parts:
        name = identifier(part)
        text = f"NULLIF(CAST({name} AS VARCHAR), '__HIVE_DEFAULT_PARTITION__')"
        kind = _duckdb_type(columns[part]([]).type) if part in columns else None
        if kind == "BOOLEAN":
            word = f"lower(trim({text}))"
            text = f"CASE WHEN {word} IN ('true', '1') THEN true WHEN {word} IN ('false', '0') THEN false END"
        elif kind is not None:
            text = f"TRY_CAST({text} AS {kind})"
        found.append(f"{text} AS {name}")
    return found


def _duckdb_type(kind: Any) -> str | None:
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return "BOOLEAN"
    if pa.types.is_date(kind):
        return "DATE"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP"
    return "DOUBLE" if _is_number(kind) else None


def _tolerate_bad_text(
    backend: Any, name: str, path: str | list[str], parts: tuple[str, ...], columns: Mapping[str, AsArrow]
) -> None:
    """Read Parquet files in which some text is not UTF-8, which DuckDB refuses."""
    view_of_dataset(backend, name, path if isinstance(path, list) else sorted(glob.glob(path)) or [path], parts, columns)


def view_of_dataset(
    backend: Any,
    name: str,
    paths: list[str],
    parts: tuple[str, ...],
    columns: Mapping[str, AsArrow],
    filesystem: Any = None,
) -> None:
    """A view called `name` of Parquet files that PyArrow reads: text as bytes, NULL where they are no text."""
    import pyarrow as pa
    from pyarrow import dataset

    hive = dataset.partitioning(pa.schema([(part, pa.string()) for part in parts]), flavor="hive") if parts else None
    found = dataset.dataset(paths, format="parquet", partitioning=hive, filesystem=filesystem)
    stated = found.schema
    if filesystem is not None and len(paths) > 1:  # as DuckDB reads a folder: each column that some file has
        each = [fragment.physical_schema for fragment in found.get_fragments()]
        stated = pa.unify_schemas([*each, stated], promote_options="permissive")
    kinds = {f.name: f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in stated}
    texts = {n for n, kind in kinds.items() if pa.types.is_string(kind) or pa.types.is_large_string(kind)} - set(parts)
    fields = [pa.field(f.name, pa.binary()) if f.name in texts else f for f in stated]
    read = dataset.dataset(paths, schema=pa.schema(fields), format="parquet", partitioning=hive, filesystem=filesystem)
    backend.con.register(f"{name}_bytes", read)
    shown = [
        f"TRY(decode({n})) AS {n}" if f.name in texts else n
        for f in fields
        if f.name not in parts
        for n in [identifier(f.name)]
    ]
    listed = ", ".join([*shown, *_typed(parts, columns)])
    backend.con.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT {listed} FROM {name}_bytes")


def _check_exists(path: str) -> None:
    if not (glob.glob(path) or Path(path).exists()):
        raise InputError(f"no file {path!r}; correct the path")
