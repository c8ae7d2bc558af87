"""Where the data lives. One Ibis expression runs on whichever engine holds the table; only aggregates come back.

Describing a source touches nothing: no file is looked at and no connection made until the first aggregate. Errors
from an engine may quote values, so after a table is open they are replaced by a sentence without any.

=========================================  ===========================================
source                                     engine
=========================================  ===========================================
``"clinic.parquet"``, ``"year-*.parquet"``   DuckDB, in this process
``"clinic.csv"``, ``"clinic.tsv"``           DuckDB; all text, converted as the schema says
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
import glob
import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from sfumato.errors import InputError, SchemaError
from sfumato.extras import need
from sfumato.tables.addresses import reason_to_tell, without_secrets
from sfumato.tables.frames import AsArrow, as_arrow
from sfumato.tables.words import did_you_mean

TableName: TypeAlias = str | tuple[str, str]
_number = itertools.count()


@dataclass(frozen=True)
class Engine:
    """An open table: the Ibis backend and the table on it."""

    backend: Any
    table: Any
    name: str
    text: bool = False  # an untyped source, where numbers arrive as text
    url: str | None = None

    def fetch(self, expr: Any) -> Any:
        """Run an aggregate and bring back its rows as an Arrow table; engine errors lose their wording."""
        try:
            return self.backend.to_pyarrow(expr)
        except Exception:
            raise InputError(
                f"{self.name} could not compute the aggregate; its message may quote private values and is not shown. "
                "Check that the table still has the types it had when it was opened"
            ) from None

    def column(self, name: str, what: str) -> Any:
        """A column of the table, by its exact name."""
        if name not in self.table.columns:
            # The first line of a file without a header is somebody's record.
            hint = "the first line must name the columns" if self.text else did_you_mean(name, self.table.columns)
            raise SchemaError(f"{what} {name!r} is not in the table (names are case-sensitive); {hint}")
        return self.table[name]

    def cap_rows(self, expr: Any, *, person: str, rows: int, lowest: str | None = None) -> Any:
        """At most `rows` rows per person, chosen at random, and none without a person.

        Column `lowest`, if named, becomes its smallest value among all rows of the person: who declares several
        budgets is bound by the smallest.
        """
        import ibis

        known = expr.filter(expr[person].notnull())
        if self.name == "polars":
            return self._cap_polars(known, person, rows, lowest)
        window = ibis.window(group_by=known[person])
        turn = ibis.row_number().over(ibis.window(group_by=known[person], order_by=ibis.random()))
        columns = {"_turn": turn} | ({lowest: known[lowest].min().over(window)} if lowest else {})
        kept = known.mutate(**columns)
        return kept.filter(kept["_turn"] < rows).drop("_turn")

    def _cap_polars(self, expr: Any, person: str, rows: int, lowest: str | None) -> Any:
        """The same for Ibis on Polars, which has no window functions; Polars itself does."""
        pl = need("polars", "a cap on rows per person")
        lazy = self.backend.compile(expr)
        turn = pl.int_range(pl.len()).shuffle().over(person)
        if lowest:
            lazy = lazy.with_columns(pl.col(lowest).min().over(person))
        # Collected here: a lazy frame would draw its random rows anew for every use.
        return self.backend.create_table(f"_sfumato_rows_{next(_number)}", lazy.filter(turn < rows).collect())


def describe(source: Any) -> str:
    """What a source is, for messages; passwords are left out.

    >>> describe("postgresql://ann:secret@db.example.org/clinic")
    'postgresql://ann@db.example.org/clinic'
    """
    if isinstance(source, str | Path):
        return without_secrets(str(source))
    return f"a {type(source).__module__.split('.')[0]} {type(source).__name__}"


def check_source(source: Any, table: TableName | None) -> None:
    """Refuse what can be refused without touching the source."""
    kind = type(source).__module__.split(".")[0]
    if isinstance(source, str | Path):
        text = str(source)
        if "://" in text:
            if text.split("://", 1)[0] not in ("duckdb", "postgresql", "postgres"):
                raise InputError(f"no engine for {describe(text)}; use duckdb:///file, postgresql://..., or an Ibis table")
            if table is None:
                raise InputError(f"{describe(text)} is a database: say which table, for example table='patients'")
        elif not text.endswith((".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz")):
            raise InputError(f"cannot tell what {describe(text)!r} is; use a .parquet, .csv or .tsv file or a database URL")
        elif table is not None:
            raise InputError(f"{text!r} is a file and holds one table; leave out table={table!r}")
    elif kind == "pyspark":
        if _is_spark_session(source) and table is None:
            raise InputError("a Spark session holds many tables: say which, for example table='patients'")
    elif kind not in ("pandas", "polars", "pyarrow", "ibis"):
        raise InputError(
            f"cannot open {describe(source)}; give a file, a database URL, a Spark session, a pandas, Polars or Arrow "
            "frame, or an Ibis table"
        )


def connect(
    source: Any, table: TableName | None = None, *, columns: Mapping[str, AsArrow], near: Engine | None = None
) -> Engine:
    """Open a source.

    `columns` says what will be used, and how mixed objects of a frame are brought to one type; `near` is an open engine
    to share, if it can hold this source too, so that the two tables can be joined where they are.
    """
    check_source(source, table)
    kind = type(source).__module__.split(".")[0]
    if isinstance(source, str | Path):
        return _open_url(str(source), table, near) if "://" in str(source) else _open_file(str(source), near)
    if kind == "ibis":
        return Engine(source.get_backend(), source, source.get_backend().name)
    if kind == "pyspark":
        return _open_spark(source, table, near)
    if kind == "polars" and type(source).__name__ == "LazyFrame":
        return _open_lazy_polars(source)
    backend, name = _shared_duckdb(near), f"frame_{next(_number)}"
    backend.con.register(name, as_arrow(source, columns))
    return Engine(backend, backend.table(name), "duckdb")


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


def _shared_duckdb(near: Engine | None) -> Any:
    return near.backend if near is not None and near.name == "duckdb" else _duckdb()


def _open_file(path: str, near: Engine | None) -> Engine:
    if not (glob.glob(path) or Path(path).exists()):
        raise InputError(f"no file {path!r}; correct the path")
    backend = _shared_duckdb(near)
    quoted = "'" + path.replace("'", "''") + "'"
    name = f"file_{next(_number)}"
    if path.endswith(".parquet"):
        reader = f"read_parquet({quoted})"
    else:
        delimiter = "\t" if ".tsv" in Path(path).name else ","
        # Nothing is guessed from the rows: guesses would depend on private values, and so would their failures.
        reader = (
            f"read_csv({quoted}, auto_detect=false, all_varchar=true, header=true, delim='{delimiter}', quote='\"', "
            "escape='\"', null_padding=true, ignore_errors=true, strict_mode=false, "
            f"columns={_header(path, delimiter)})"
        )
    try:
        backend.con.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM {reader}")
        return Engine(backend, backend.table(name), "duckdb", text=not path.endswith(".parquet"))
    except Exception as error:
        raise InputError(f"cannot read {path!r} ({type(error).__name__}); is it a complete file of that format?") from None


def _header(path: str, delimiter: str) -> str:
    """The column names in the first line of a CSV file, as a DuckDB struct of text columns."""
    import csv
    import gzip

    first = sorted(glob.glob(path))[0] if glob.glob(path) else path
    opener: Any = gzip.open if first.endswith(".gz") else open
    with opener(first, "rt", encoding="utf-8-sig", errors="replace", newline="") as lines:
        names = next(csv.reader(lines, delimiter=delimiter), [])
    if not names:
        raise InputError(f"{first!r} has no header line; the first line must name the columns")
    return "{" + ", ".join("'" + n.replace("'", "''") + "': 'VARCHAR'" for n in names) + "}"


def _open_url(url: str, table: TableName | None, near: Engine | None) -> Engine:
    schema, name = (None, table) if isinstance(table, str) else (table or (None, None))
    backend = near.backend if near is not None and near.url == url else _connect_url(url)
    try:
        return Engine(backend, backend.table(name, database=schema), backend.name, url=url)
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
            return Engine(backend, backend.table(table if isinstance(table, str) else ".".join(table or ())), "pyspark")
        except Exception as error:
            raise InputError(
                f"no table {table!r} in the Spark session ({type(error).__name__}); correct table=..."
            ) from None
    name = f"sfumato_frame_{next(_number)}"
    source.createOrReplaceTempView(name)
    return Engine(backend, backend.table(name), "pyspark")


def _is_spark_session(source: Any) -> bool:
    """By its type: a Spark Connect data frame claims to have every attribute, taking it for a column."""
    return any(kind.__name__ == "SparkSession" for kind in type(source).__mro__)


def _open_lazy_polars(source: Any) -> Engine:
    import ibis

    name = f"frame_{next(_number)}"
    backend = ibis.polars.connect({name: source})
    return Engine(backend, backend.table(name), "polars")
