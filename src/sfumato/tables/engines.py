"""Where the data lives. One Ibis expression runs on whichever engine holds the table; only aggregates come back.

Describing a source touches nothing: no file is looked at and no connection made until the first aggregate or check. Opening
it reads names and types only; frames and text files are read when an aggregate is computed. Errors from an engine may quote
values, so after a table is open they are replaced by a sentence without any.

=========================================  ===========================================
source                                     engine
=========================================  ===========================================
``"clinic.parquet"``, ``"year-*.parquet"``   DuckDB, in this process
``"clinic.csv"``, ``"clinic.tsv"``           DuckDB; line by line, converted as the schema says
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
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from sfumato.errors import InputError, SchemaError
from sfumato.extras import need
from sfumato.tables.addresses import reason_to_tell, without_secrets
from sfumato.tables.csv_lines import Lines
from sfumato.tables.frames import AsArrow, as_arrow
from sfumato.tables.spark_types import with_instants
from sfumato.tables.words import did_you_mean

TableName: TypeAlias = str | tuple[str, str]
_number = itertools.count()
_reading = threading.RLock()


@dataclass(frozen=True)
class Engine:
    """An open table: the Ibis backend and the table on it."""

    backend: Any
    table: Any
    name: str
    text: bool = False  # an untyped source, where numbers arrive as text
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
        kept = self._run(lazy.filter(turn < rows).collect)
        return self.backend.create_table(f"_sfumato_rows_{next(_number)}", kept)


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
        if "://" in str(source):
            return _open_url(str(source), table, near)
        path = str(source)
        return _open_parquet(path, near) if path.endswith(".parquet") else open_lines(path, columns, near)[0]
    if kind == "ibis":
        return Engine(source.get_backend(), source, source.get_backend().name)
    if kind == "pyspark":
        return _open_spark(source, table, near)
    if kind == "polars" and type(source).__name__ == "LazyFrame":
        return _open_lazy_polars(source)
    engine, name = _shared_duckdb(near), f"frame_{next(_number)}"
    engine.backend.con.register(name, as_arrow(source, columns, types_only=True))
    engine.pending.append(lambda: engine.backend.con.register(name, as_arrow(source, columns)))
    return replace(engine, table=engine.backend.table(name))


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


def _shared_duckdb(near: Engine | None) -> Engine:
    """An engine without a table yet, on the DuckDB of `near` if it is one."""
    if near is not None and near.name == "duckdb":
        return Engine(near.backend, None, "duckdb", pending=near.pending, spare=near.spare)
    return Engine(_duckdb(), None, "duckdb")


def _open_parquet(path: str, near: Engine | None) -> Engine:
    _check_exists(path)
    engine, name = _shared_duckdb(near), f"file_{next(_number)}"
    try:
        engine.backend.con.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM read_parquet({_literal(path)})")
        table = engine.backend.table(name)
    except Exception as error:
        raise InputError(f"cannot read {path!r} ({type(error).__name__}); is it a complete file of that format?") from None
    engine.spare.append(lambda: _tolerate_bad_text(engine.backend, name, path))
    return replace(engine, table=table)


def _tolerate_bad_text(backend: Any, name: str, path: str) -> None:
    """Read a Parquet file in which some text is not UTF-8, which DuckDB refuses: as bytes, NULL where they are no text."""
    import pyarrow as pa
    from pyarrow import dataset

    paths = sorted(glob.glob(path)) or [path]
    stated = dataset.dataset(paths, format="parquet").schema
    kinds = {f.name: f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in stated}
    texts = {name for name, kind in kinds.items() if pa.types.is_string(kind) or pa.types.is_large_string(kind)}
    fields = [pa.field(f.name, pa.binary()) if f.name in texts else f for f in stated]
    backend.con.register(f"{name}_bytes", dataset.dataset(paths, schema=pa.schema(fields), format="parquet"))
    columns = [f"TRY(decode({n})) AS {n}" if f.name in texts else n for f in fields for n in [_identifier(f.name)]]
    backend.con.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT {', '.join(columns)} FROM {name}_bytes")


def open_lines(path: str, columns: Iterable[str], near: Engine | None = None) -> tuple[Engine, Lines]:
    """A text file with those `columns` that it has: its header now, its lines with the first aggregate, all as text."""
    import pyarrow as pa

    _check_exists(path)
    engine, name = _shared_duckdb(near), f"file_{next(_number)}"
    try:
        lines = Lines.at(path)
    except (OSError, EOFError) as error:
        raise InputError(f"cannot read {path!r} ({type(error).__name__}); is it a complete file of that format?") from None
    known = set(columns)
    wanted = [column for column in lines.names if column in known] or [lines.names[0]]
    connection = engine.backend.con
    connection.execute(f"CREATE TEMP TABLE {name} ({', '.join(f'{_identifier(n)} VARCHAR' for n in wanted)})")

    def read() -> None:
        schema = pa.schema([(column, pa.string()) for column in wanted])
        connection.register(f"{name}_lines", pa.RecordBatchReader.from_batches(schema, lines.batches(wanted)))
        connection.execute(f"INSERT INTO {name} SELECT * FROM {name}_lines")
        connection.unregister(f"{name}_lines")

    engine.pending.append(read)
    return replace(engine, table=engine.backend.table(name), text=True), lines


def _check_exists(path: str) -> None:
    if not (glob.glob(path) or Path(path).exists()):
        raise InputError(f"no file {path!r}; correct the path")


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


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
