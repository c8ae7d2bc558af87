"""What a source is, told from its spelling or its type alone: nothing is looked at and nothing connected to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from sfumato.errors import InputError
from sfumato.tables.addresses import without_secrets
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.engine_list import OBJECT_STORES, SCHEMES
from sfumato.tables.engine_settings import EngineSettings
from sfumato.tables.spark_engine import is_spark_session
from sfumato.tables.words import did_you_mean

TableName: TypeAlias = str | tuple[str, ...]
TEXTS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


def describe(source: Any) -> str:
    """What a source is, for messages; passwords are left out.

    >>> describe("postgresql://ann:secret@db.example.org/clinic")
    'postgresql://ann@db.example.org/clinic'
    """
    if isinstance(source, str | Path):
        return without_secrets(str(source))
    return f"a {type(source).__module__.split('.')[0]} {type(source).__name__}"


def check_source(
    source: Any, table: TableName | None, csv: CsvOptions | None = None, settings: EngineSettings | None = None
) -> None:
    """Refuse what can be refused without touching the source."""
    kind = type(source).__module__.split(".")[0]
    if csv is not None and not (isinstance(source, str | Path) and str(source).endswith(TEXTS)):
        raise InputError(
            f"csv options say how a .csv or .tsv file is written, and {describe(source)} is none; leave them out"
        )
    if settings is not None and settings.asked and not in_this_process(source):
        raise InputError(
            f"engine settings are for DuckDB in this process, and {describe(source)} is computed elsewhere; leave them out"
        )
    if isinstance(table, tuple) and not (2 <= len(table) <= 3 and all(isinstance(t, str) and t for t in table)):
        raise InputError(f"a table has two or three names, as ('schema', 'patients'); got {table!r}")
    if isinstance(source, str | Path):
        _check_text(str(source), table)
    elif kind == "pyspark":
        if is_spark_session(source) and table is None:
            raise InputError("a Spark session holds many tables: say which, for example table='patients'")
    elif kind not in ("pandas", "polars", "pyarrow", "ibis"):
        raise InputError(
            f"cannot open {describe(source)}; give a file, a database URL, a Spark session, a pandas, Polars or Arrow "
            "frame, or an Ibis table"
        )


def _check_text(text: str, table: TableName | None) -> None:
    scheme = text.partition("://")[0] if "://" in text else None
    if scheme is not None and scheme not in SCHEMES:
        hint = did_you_mean(scheme if scheme.isalnum() else "", SCHEMES)
        raise InputError(f"no engine for {describe(text)}; {hint}. What else Ibis can open may be given as an Ibis table")
    if scheme in OBJECT_STORES:
        if not (text.partition("?")[0].endswith((".parquet", "/")) or is_folder(text.partition("://")[2])):
            raise InputError(
                f"{describe(text)} is neither a .parquet file nor a folder of them (ending with /): of object storage "
                "nothing else is read"
            )
        if table is not None:
            raise InputError(f"{describe(text)} holds one table; leave out table={table!r}")
    elif scheme is not None:
        if table is None:
            raise InputError(f"{describe(text)} is a database: say which table, for example table='patients'")
    elif text.endswith(SHEETS):
        if table is not None and not isinstance(table, str):
            raise InputError(f"the sheet of {text!r} has one name, as table='Sheet1'; got table={table!r}")
    elif not (text.endswith((".parquet", *TEXTS)) or is_folder(text)):
        raise InputError(
            f"cannot tell what {describe(text)!r} is; use a .parquet, .csv, .tsv, .xlsx or .ods file, a folder of "
            "Parquet files (ending with /) or a database URL"
        )
    elif table is not None:
        raise InputError(f"{text!r} holds one table; leave out table={table!r}")


def is_folder(text: str) -> bool:
    """Whether a path without a scheme names a folder, by its spelling: the file system is not asked."""
    named = text.endswith("/") or (bool(Path(text).name) and not Path(text).suffix)
    return named and without_secrets(text) == text  # an address that lost its scheme is no folder


def in_this_process(source: Any) -> bool:
    """Whether DuckDB in this process computes what is asked of a source."""
    if isinstance(source, str | Path):
        scheme, found, _ = str(source).partition("://")
        return not found or scheme == "duckdb" or scheme in OBJECT_STORES
    kind = type(source).__module__.split(".")[0]
    return kind in ("pandas", "pyarrow") or (kind == "polars" and type(source).__name__ != "LazyFrame")


def names_of(table: TableName | None) -> tuple[str, ...]:
    """The names of a table in a catalogue, the widest first; dots part them, unless they are given apart.

    >>> names_of("main.clinic.visits")
    ('main', 'clinic', 'visits')
    """
    return tuple(table.split(".")) if isinstance(table, str) else tuple(table or ())
