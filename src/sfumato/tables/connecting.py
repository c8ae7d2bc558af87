"""From a source to an open engine.

Describing a source touches nothing: no file is looked at and no connection made until the first aggregate or check. Opening
it reads names and types only; frames and text files are read when an aggregate is computed.

=========================================  ===========================================
source                                     engine
=========================================  ===========================================
``"clinic.parquet"``, ``"year-*.parquet"``   DuckDB, in this process
``"visits"``, a folder of Parquet files       DuckDB; hive partitions (``year=2024/``) are columns
``"s3://bucket/visits/"``                    DuckDB; the same on object storage
``"clinic.csv"``, ``"clinic.tsv"``           DuckDB; line by line, converted as the schema says
``"clinic.xlsx"``, ``"clinic.ods"``          DuckDB; the first sheet or ``table=``, converted as the schema says
``"duckdb:///clinic.db"`` and ``table=``      DuckDB, the file opened read-only
``"postgresql://host/db"`` and ``table=``     PostgreSQL
``"sc://host"``, ``"spark://host"``, ``table=``   Spark
``"trino://host/catalog"`` and the like      see `sfumato.tables.databases`
a Spark session and ``table=``               Spark
a Spark DataFrame                          Spark
a pandas, Polars or Arrow frame            DuckDB
an Ibis table                              its own backend
=========================================  ===========================================

An engine that is not opened by us on our own DuckDB is tried with constants first (`sfumato.tables.engine_probe`), and one
that the agreement suite was never run on says so (`sfumato.tables.engine_list`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.tables import files
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.databases import open_database
from sfumato.tables.duckdb_engine import shared_duckdb
from sfumato.tables.engine_list import OBJECT_STORES, warn_of_untested
from sfumato.tables.engine_probe import try_hard_constants
from sfumato.tables.engine_settings import EngineSettings
from sfumato.tables.engines import Engine, fresh_name
from sfumato.tables.frames import AsArrow, as_arrow
from sfumato.tables.object_storage import open_stored
from sfumato.tables.plain_duckdb import Named
from sfumato.tables.sources import SHEETS, TEXTS, TableName, check_source
from sfumato.tables.spark_engine import open_spark, open_spark_url

__all__ = ["Engine", "TableName", "check_source", "connect"]


def connect(
    source: Any,
    table: TableName | None = None,
    *,
    columns: Mapping[str, AsArrow],
    near: Engine | None = None,
    csv: CsvOptions | None = None,
    settings: EngineSettings | None = None,
) -> Engine:
    """Open a source.

    `columns` says what will be used, and how mixed objects of a frame are brought to one type; `near` is an open engine
    to share, if it can hold this source too, so that the two tables can be joined where they are. `csv` says how a text
    file is written, `settings` what DuckDB in this process may use.
    """
    check_source(source, table, csv, settings)
    warn_of_untested(source, table)
    kind = type(source).__module__.split(".")[0]
    if isinstance(source, str | Path):
        return _open_text(str(source), table, columns, near, csv, settings)
    if kind == "ibis":
        backend = source.get_backend()
        return try_hard_constants(Engine(backend, source, backend.name), backend)
    if kind == "pyspark":
        engine = open_spark(source, table, near)
        return try_hard_constants(engine, engine.backend._session)
    if kind == "polars" and type(source).__name__ == "LazyFrame":
        return _open_lazy_polars(source)
    engine, name = shared_duckdb(near, settings), fresh_name("frame")
    engine.backend.con.register(name, as_arrow(source, columns, types_only=True))
    engine.pending.append(lambda: engine.backend.con.register(name, as_arrow(source, columns)))
    return replace(engine, opened=Named(name))


def _open_text(
    text: str,
    table: TableName | None,
    columns: Mapping[str, AsArrow],
    near: Engine | None,
    csv: CsvOptions | None,
    settings: EngineSettings | None,
) -> Engine:
    """A path or a URL."""
    scheme, found, _ = text.partition("://")
    if found and scheme in OBJECT_STORES:
        return open_stored(text, columns, near, settings)
    if found and scheme in ("spark", "sc"):
        return try_hard_constants(open_spark_url(text, table, near))
    if found:
        return open_database(text, table, near, settings)
    if text.endswith(TEXTS):
        return files.open_lines(text, columns, near, csv, settings)[0]
    if text.endswith(SHEETS):
        return files.open_sheet(text, None if table is None else str(table), columns, near, settings)
    return files.open_parquet(text, columns, near, settings)


def _open_lazy_polars(source: Any) -> Engine:
    import ibis

    name = fresh_name("frame")
    backend = ibis.polars.connect({name: source})
    return Engine(backend, backend.table(name), "polars")
