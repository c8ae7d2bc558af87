"""Where the data lives. One Ibis expression runs on whichever engine holds the table; only aggregates come back.

Describing a source touches nothing: no file is looked at and no connection made until the first aggregate or check. Opening
it reads names and types only; frames and text files are read when an aggregate is computed. Errors from an engine may quote
values, so after a table is open they are replaced by a sentence without any.

=========================================  ===========================================
source                                     engine
=========================================  ===========================================
``"clinic.parquet"``, ``"year-*.parquet"``   DuckDB, in this process
``"visits"``, a folder of Parquet files       DuckDB; hive partitions (``year=2024/``) are columns
``"clinic.csv"``, ``"clinic.tsv"``           DuckDB; line by line, converted as the schema says
``"clinic.xlsx"``, ``"clinic.ods"``          DuckDB; the first sheet or ``table=``, converted as the schema says
``"duckdb:///clinic.db"`` and ``table=``      DuckDB, the file opened read-only
``"postgresql://host/db"`` and ``table=``     PostgreSQL
a Spark session and ``table=``               Spark
a Spark DataFrame                          Spark
a pandas, Polars or Arrow frame            DuckDB
an Ibis table                              its own backend
=========================================  ===========================================
"""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from sfumato.errors import InputError, SchemaError
from sfumato.extras import need
from sfumato.tables.addresses import reason_to_tell, without_secrets
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.frames import AsArrow, as_arrow
from sfumato.tables.spark_types import with_instants
from sfumato.tables.words import did_you_mean

TableName: TypeAlias = str | tuple[str, str]
TEXTS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_number = itertools.count()
_reading = threading.RLock()


@dataclass(frozen=True)
class Engine:
    """An open table: the Ibis backend and the table on it."""

    backend: Any
    table: Any
    name: str
    text: bool = False  # an untyped source, where numbers arrive as text
    written: str = ""  # how its lines are, for messages
    url: str | None = None
    # Shared by engines on one backend, which meet in joins: what has yet to be read, and readings that a failure calls for.
    pending: list[Callable[[], None]] = field(default_factory=list)
    spare: list[Callable[[], None]] = field(default_factory=list)

    def fetch(self, expr: Any) -> Any:
        """Run an aggregate and bring back its rows as an Arrow table; engine errors lose their wording."""
        return self._run(lambda: self.backend.to_pyarrow(expr))

    def store(self, expr: Any) -> Any:
        """Compute a table of aggregates and keep it on the engine, until it is released; errors as for `fetch`."""
        return self._run(expr.cache)

    def write(self, expr: Any, path: str) -> None:
        """Write rows to a Parquet file: for `import_table`, whose user owns the table. Errors as for `fetch`."""
        self._run(lambda: self.backend.to_parquet(expr, path))

    def _run(self, compute: Callable[[], Any]) -> Any:
        try:
            with _reading:  # rows that two threads add at once would be there twice
                while self.pending:
                    self.pending[-1]()
                    self.pending.pop()
            try:
                return compute()
            except Exception:
                if not self.spare:
                    raise
            while self.spare:
                self.spare.pop()()
            return compute()
        except Exception:
            pass
        # Raised outside the handler: inside it, the new error would carry the old one, which may quote a value.
        raise InputError(
            f"{self.name} could not compute the aggregate; its message may quote private values and is not shown. "
            "Check that the table still has the types it had when it was opened"
        )

    def column(self, name: str, what: str) -> Any:
        """A column of the table, by its exact name."""
        if name not in self.table.columns:
            # The first line of a file without a header is somebody's record.
            hint = (
                f"the first line must name the columns{self.written}"
                if self.text
                else did_you_mean(name, self.table.columns)
            )
            raise SchemaError(f"{what} {name!r} is not in the table (names are case-sensitive); {hint}")
        return self.table[name]


def fresh_name(what: str) -> str:
    """A name that no other table on an engine has."""
    return f"{what}_{next(_number)}"


def describe(source: Any) -> str:
    """What a source is, for messages; passwords are left out.

    >>> describe("postgresql://ann:secret@db.example.org/clinic")
    'postgresql://ann@db.example.org/clinic'
    """
    if isinstance(source, str | Path):
        return without_secrets(str(source))
    return f"a {type(source).__module__.split('.')[0]} {type(source).__name__}"


def check_source(source: Any, table: TableName | None, csv: CsvOptions | None = None) -> None:
    """Refuse what can be refused without touching the source."""
    kind = type(source).__module__.split(".")[0]
    if csv is not None and not (isinstance(source, str | Path) and str(source).endswith(TEXTS)):
        raise InputError(
            f"csv options say how a .csv or .tsv file is written, and {describe(source)} is none; leave them out"
        )
    if isinstance(source, str | Path):
        text = str(source)
        if "://" in text:
            if text.split("://", 1)[0] not in ("duckdb", "postgresql", "postgres"):
                raise InputError(f"no engine for {describe(text)}; use duckdb:///file, postgresql://..., or an Ibis table")
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
    elif kind == "pyspark":
        if _is_spark_session(source) and table is None:
            raise InputError("a Spark session holds many tables: say which, for example table='patients'")
    elif kind not in ("pandas", "polars", "pyarrow", "ibis"):
        raise InputError(
            f"cannot open {describe(source)}; give a file, a database URL, a Spark session, a pandas, Polars or Arrow "
            "frame, or an Ibis table"
        )


def is_folder(text: str) -> bool:
    """Whether a path without a scheme names a folder, by its spelling: the file system is not asked."""
    named = text.endswith("/") or (bool(Path(text).name) and not Path(text).suffix)
    return named and without_secrets(text) == text  # an address that lost its scheme is no folder


def connect(
    source: Any,
    table: TableName | None = None,
    *,
    columns: Mapping[str, AsArrow],
    near: Engine | None = None,
    csv: CsvOptions | None = None,
) -> Engine:
    """Open a source.

    `columns` says what will be used, and how mixed objects of a frame are brought to one type; `near` is an open engine
    to share, if it can hold this source too, so that the two tables can be joined where they are. `csv` says how a text
    file is written.
    """
    check_source(source, table, csv)
    kind = type(source).__module__.split(".")[0]
    if isinstance(source, str | Path):
        if "://" in str(source):
            return _open_url(str(source), table, near)
        return _open_file(str(source), table, columns, near, csv)
    if kind == "ibis":
        return Engine(source.get_backend(), source, source.get_backend().name)
    if kind == "pyspark":
        return _open_spark(source, table, near)
    if kind == "polars" and type(source).__name__ == "LazyFrame":
        return _open_lazy_polars(source)
    engine, name = shared_duckdb(near), fresh_name("frame")
    engine.backend.con.register(name, as_arrow(source, columns, types_only=True))
    engine.pending.append(lambda: engine.backend.con.register(name, as_arrow(source, columns)))
    return replace(engine, table=engine.backend.table(name))


def _open_file(
    path: str, table: TableName | None, columns: Mapping[str, AsArrow], near: Engine | None, csv: CsvOptions | None
) -> Engine:
    from sfumato.tables import files  # which needs Engine

    if path.endswith(TEXTS):
        return files.open_lines(path, columns, near, csv)[0]
    if path.endswith(SHEETS):
        return files.open_sheet(path, None if table is None else str(table), columns, near)
    return files.open_parquet(path, columns, near)


def _duckdb(path: str | None = None) -> Any:
    """DuckDB in this process; private rows that it spills lie where nobody else can read or spoil them."""
    import ibis

    if path is None:
        spill = tempfile.mkdtemp(prefix="sfumato-spill-")
        backend = ibis.duckdb.connect(temp_directory=spill)
        weakref.finalize(backend, shutil.rmtree, spill, ignore_errors=True)
    else:  # connections of one process to one file must agree on the folder
        backend = ibis.duckdb.connect(path, read_only=True, temp_directory=_spill_of(os.getpid()))
    backend.con.execute("SET enable_progress_bar = false")  # it would write over the caller's output
    return backend


@cache
def _spill_of(_process: int) -> str:
    folder = tempfile.mkdtemp(prefix="sfumato-spill-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def shared_duckdb(near: Engine | None) -> Engine:
    """An engine without a table yet, on the DuckDB of `near` if it is one."""
    if near is not None and near.name == "duckdb":
        return Engine(near.backend, None, "duckdb", pending=near.pending, spare=near.spare)
    return Engine(_duckdb(), None, "duckdb")


def _open_url(url: str, table: TableName | None, near: Engine | None) -> Engine:
    schema, name = (None, table) if isinstance(table, str) else (table or (None, None))
    backend = near.backend if near is not None and near.url == url else _connect_url(url)
    shared = (near.pending, near.spare) if near is not None and near.url == url else ([], [])
    try:
        return Engine(
            backend, backend.table(name, database=schema), backend.name, url=url, pending=shared[0], spare=shared[1]
        )
    except Exception as error:
        shown = name if schema is None else f"{schema}.{name}"
        raise InputError(f"no table {shown!r} in {describe(url)} ({type(error).__name__}); correct table=...") from None


def _connect_url(url: str) -> Any:
    import ibis

    if not url.startswith("duckdb://"):
        need("psycopg", "a PostgreSQL table")
    try:
        if not url.startswith("duckdb://"):
            return ibis.connect(url.replace("postgres://", "postgresql://", 1))
        path = url.removeprefix("duckdb://").removeprefix("/").partition("?")[0]
        if Path(path).exists():
            return _duckdb(path)
    except Exception as error:
        raise InputError(f"cannot connect to {describe(url)}: {reason_to_tell(error)}") from None
    raise InputError(
        f"cannot connect to {describe(url)}: no such file; an absolute path has four slashes, as in duckdb:////data/clinic.db"
    )


def _open_spark(source: Any, table: TableName | None, near: Engine | None) -> Engine:
    import ibis

    session = source if _is_spark_session(source) else source.sparkSession
    backend = near.backend if near is not None and near.name == "pyspark" else ibis.pyspark.connect(session)
    if session is source:
        try:
            name = table if isinstance(table, str) else ".".join(table or ())
            return Engine(backend, with_instants(backend.table(name), session.table(name)), "pyspark")
        except Exception as error:
            raise InputError(
                f"no table {table!r} in the Spark session ({type(error).__name__}); correct table=..."
            ) from None
    name = f"sfumato_frame_{next(_number)}"
    source.createOrReplaceTempView(name)
    return Engine(backend, with_instants(backend.table(name), source), "pyspark")


def _is_spark_session(source: Any) -> bool:
    """By its type: a Spark Connect data frame claims to have every attribute, taking it for a column."""
    return any(kind.__name__ == "SparkSession" for kind in type(source).__mro__)


def _open_lazy_polars(source: Any) -> Engine:
    import ibis

    name = f"frame_{next(_number)}"
    backend = ibis.polars.connect({name: source})
    return Engine(backend, backend.table(name), "polars")
