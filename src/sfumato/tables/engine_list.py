"""The engines that are offered, as data: what opens them, what to install, and which the agreement suite was run on.

An engine is *tested* if it is a parameter of the suite in which hard rows (NaN, infinity, NULL, huge numbers, quotes, other
alphabets) must give on every engine what the plain rule gives. Whatever was not run is *untested*, and says so when it is
opened, in previews, in certificates and in docs/engines.md. `sfumato engines check` runs the hard rows on an engine of one's
own.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from sfumato.errors import UntestedEngineWarning

# Where a public list goes to the engine as one literal: Ibis would make a table of it, for which the user needs a right; in
# Spark it forgets that table when rows are stored.
LISTS_AS_TEXT: Final = ("postgres", "pyspark", "trino", "bigquery", "snowflake", "databricks")
OBJECT_STORES: Final = ("s3", "gs", "gcs", "abfs", "abfss")


@dataclass(frozen=True)
class Offered:
    """An engine that is offered.

    Attributes
    ----------
    name : str
        What messages call it.
    backend : str
        What Ibis calls it.
    opened_by : str
        What to open, as the documentation shows it.
    schemes : tuple of str
        The URL schemes that open it.
    extra : str or None
        The extra of the distribution that brings its driver; None if nothing more is needed.
    driver : tuple of str
        The modules that the driver consists of.
    suite : tuple of str
        The parameters of the agreement suite under which it is run; none if it is untested.
    versions : str
        What it was run with.
    note : str
        What must be known besides.
    """

    name: str
    backend: str
    opened_by: str
    schemes: tuple[str, ...] = ()
    extra: str | None = None
    driver: tuple[str, ...] = ()
    suite: tuple[str, ...] = ()
    versions: str = ""
    note: str = ""

    @property
    def tested(self) -> bool:
        """Whether the agreement suite is run on it."""
        return bool(self.suite)

    @property
    def installed(self) -> bool:
        """Whether its driver can be imported here; nothing is imported."""
        return all(_is_there(module) for module in self.driver)

    @property
    def install(self) -> str:
        """The command that installs what it needs."""
        return "pip install sfumato" if self.extra is None else f'pip install "sfumato[{self.extra}]"'


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a parent package is missing, or hidden
        return False


_PYSPARK: Final[dict[str, Any]] = {"backend": "pyspark", "extra": "spark", "driver": ("pyspark",)}
_CONNECT: Final[dict[str, Any]] = {**_PYSPARK, "driver": ("pyspark", "grpc", "grpc_status", "google.rpc", "zstandard")}

OFFERED: Final = (
    Offered(
        "DuckDB",
        "duckdb",
        "a Parquet, CSV, TSV or spreadsheet file, a folder of Parquet files, a pandas, Polars or Arrow frame",
        suite=("duckdb", "parquet"),
        versions="DuckDB 1.5",
        note="in this process; takes the settings below",
    ),
    Offered(
        "DuckDB database",
        "duckdb",
        "`duckdb:///clinic.db` and a table",
        schemes=("duckdb",),
        suite=("duckdb_url",),
        versions="DuckDB 1.5",
        note="in this process, the file read-only; takes the settings below",
    ),
    Offered(
        "Parquet on S3",
        "duckdb",
        "`s3://bucket/visits/` or `s3://bucket/visits.parquet`",
        schemes=("s3",),
        suite=("s3",),
        versions="PyArrow 26, DuckDB 1.5, a stand-in server that speaks S3",
        note="read by PyArrow, computed by DuckDB in this process; keys come from the environment",
    ),
    Offered(
        "Parquet on Google Cloud Storage or Azure",
        "duckdb",
        "`gs://bucket/visits/`, `abfss://container@account.dfs.core.windows.net/visits/`",
        schemes=("gs", "gcs", "abfs", "abfss"),
        note="as on S3, by PyArrow's file systems for them",
    ),
    Offered(
        "Polars",
        "polars",
        "a Polars LazyFrame",
        extra="polars",
        driver=("polars",),
        suite=("polars",),
        versions="Polars 2.1",
    ),
    Offered(
        "PostgreSQL",
        "postgres",
        "`postgresql://ann@host/clinic` and a table",
        schemes=("postgresql", "postgres"),
        extra="postgres",
        driver=("psycopg",),
        suite=("postgres",),
        versions="PostgreSQL 18, psycopg 3.3",
    ),
    Offered(
        "Spark",
        **_PYSPARK,
        opened_by="a Spark session and a table, a Spark DataFrame, or `spark://host:7077` and a table",
        schemes=("spark",),
        suite=("spark",),
        versions="PySpark 4.3",
        note="needs Java 17; a table is a name in the catalogue, or a format and a path as in `parquet:/data/visits`",
    ),
    Offered(
        "Spark Connect",
        **_CONNECT,
        opened_by="`sc://host:15002` and a table",
        schemes=("sc",),
        suite=("spark-connect",),
        versions="PySpark 4.3",
        note="a server of Spark's own: others are tried with hard constants when they are opened, and refused if they fail",
    ),
    Offered(
        "Delta tables through Spark",
        **_PYSPARK,
        opened_by="`spark://` or `sc://` and table `delta:/data/visits`, or a name in the catalogue",
        note="Spark must have Delta's jars",
    ),
    Offered(
        "Iceberg tables through Spark",
        **_PYSPARK,
        opened_by="`spark://` or `sc://` and table `iceberg:/data/visits`, or a name in the catalogue",
        note="Spark must have Iceberg's jars",
    ),
    Offered(
        "Trino",
        "trino",
        "`trino://ann:${PASSWORD}@host:8443/catalog/schema` and a table",
        schemes=("trino",),
        extra="trino",
        driver=("trino",),
        note="with a password the connection is encrypted, as Trino asks for",
    ),
    Offered(
        "BigQuery",
        "bigquery",
        "`bigquery://project/dataset` and a table",
        schemes=("bigquery",),
        extra="bigquery",
        driver=("google.cloud.bigquery", "google.cloud.bigquery_storage", "pydata_google_auth", "db_dtypes", "pandas_gbq"),
        note="with the machine's own credentials (`GOOGLE_APPLICATION_CREDENTIALS`): nobody is asked in a browser",
    ),
    Offered(
        "Snowflake",
        "snowflake",
        "`snowflake://ann:${PASSWORD}@account/database/schema?warehouse=small` and a table",
        schemes=("snowflake",),
        extra="snowflake",
        driver=("snowflake.connector",),
        note="Ibis's own functions are not installed in the account",
    ),
    Offered(
        "Databricks",
        "databricks",
        "`databricks://host/sql/1.0/warehouses/abc?catalog=main&schema=clinic` and a table",
        schemes=("databricks",),
        extra="databricks",
        driver=("databricks.sql",),
        note="the token comes from `DATABRICKS_TOKEN`, or stands in the URL as `token:${TOKEN}@host`; "
        "on connecting, Ibis makes an empty volume in the schema",
    ),
)

SCHEMES: Final = {scheme: offered for offered in OFFERED for scheme in offered.schemes}
DATABASES: Final = tuple(scheme for scheme in SCHEMES if scheme not in OBJECT_STORES)


def offered_for(source: Any, table: Any = None) -> Offered | None:
    """The engine that a source will be opened with, as far as its spelling or type tells; None for an Ibis table.

    >>> offered_for("trino://host/catalog", "visits").tested
    False
    >>> offered_for("sc://host", "delta:/data/visits").name
    'Delta tables through Spark'
    """
    if isinstance(source, str | Path):
        scheme, found, _ = str(source).partition("://")
        if not found:
            return OFFERED[0]
        offered = SCHEMES.get(scheme)
    else:
        kind = type(source).__module__.split(".")[0]
        lazy = kind == "polars" and type(source).__name__ == "LazyFrame"
        wanted = {"pyspark": "Spark", "pandas": "DuckDB", "pyarrow": "DuckDB", "polars": "Polars" if lazy else "DuckDB"}
        if kind == "pyspark" and ".connect." in type(source).__module__:
            wanted["pyspark"] = "Spark Connect"
        offered = next((o for o in OFFERED if o.name == wanted.get(kind)), None)
    if offered is not None and offered.backend == "pyspark" and isinstance(table, str):
        lake = table.partition(":")[0].lower()
        return next((o for o in OFFERED if o.name.lower().startswith(f"{lake} tables")), offered)
    return offered


def untested(name: str, what: str = "") -> str:
    """The sentence for an engine that the agreement suite was never run on."""
    return (
        f"{name} is untested: it was not run through the suite in which all engines must agree. Run the hard rows on yours "
        f"before you rely on it: sfumato engines check {what or 'URL'} --scratch SCHEMA"
    )


def notes_of(source: Any, table: Any = None) -> tuple[str, ...]:
    """What a reader of a preview or a certificate must know of the engine; where the data lies is not said."""
    offered = offered_for(source, table)
    if offered is None and isinstance(source, str | Path):  # none at all, which opening it will say
        return ()
    if offered is None:  # an Ibis table, on whatever Ibis has an engine for
        backend = source.get_backend().name
        return () if any(o.backend == backend and o.tested for o in OFFERED) else (untested(backend),)
    return () if offered.tested else (untested(offered.name),)


_said: set[str] = set()


def warn_of_untested(source: Any, table: Any = None) -> None:
    """An `UntestedEngineWarning`, once for each engine in a process."""
    for sentence in notes_of(source, table):
        if sentence not in _said:
            _said.add(sentence)
            warnings.warn(sentence, UntestedEngineWarning, stacklevel=2)
