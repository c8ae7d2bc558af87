"""`sfumato.tables.open`: what is known of a table without touching it, checked and put together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import InputError, SchemaError
from sfumato.tables.csv_options import CsvOptions
from sfumato.tables.dataset import Dataset
from sfumato.tables.engine_settings import EngineSettings
from sfumato.tables.roster import Roster
from sfumato.tables.schema import Schema
from sfumato.tables.sources import TableName, check_source


def open(
    source: Any,
    *,
    schema: Schema | str | Path,
    table: TableName | None = None,
    budgets: Roster | str | None = None,
    csv: CsvOptions | Mapping[str, Any] | None = None,
    engine: EngineSettings | Mapping[str, Any] | None = None,
) -> Dataset:
    """Describe a table; nothing is opened until the first aggregate.

    Parameters
    ----------
    source
        A Parquet or CSV file (or glob), a folder of Parquet files (also on object storage, as ``s3://bucket/visits/``), a
        spreadsheet, the URL of a database (``duckdb:///``, ``postgresql://``, ``sc://``, ... : `sfumato engines` lists
        them), a Spark session or DataFrame, a pandas, Polars or Arrow frame, or an Ibis table.
    schema : Schema or path
        The public schema, or the TOML file that holds it.
    table : str or tuple of str, optional
        The table in a database (or its schema and name), or the sheet of a spreadsheet: its first if left out.
    budgets : Roster or str, optional
        Where each person's budget is written; a plain name is a column of the table, in ε.
    csv : mapping or CsvOptions, optional
        How a text file is written: delimiter, quote, encoding, decimal (see `sfumato.tables.CsvOptions`).
    engine : mapping or EngineSettings, optional
        What DuckDB in this process may use: memory_limit, threads, spill (see `sfumato.tables.EngineSettings`).

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import pandas as pd
    >>> from sfumato.privacy import Meter
    >>> from sfumato.tables import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 99, bins=2, integer=True), "sex": Categorical(["F", "M"])})
    >>> clinic = open(pd.DataFrame({"age": [31, 77, 230], "sex": ["F", "M", "M"]}), schema=schema)
    >>> clinic.count("age >= 65 and sex = 'M'")
    <Exact: a private value>
    >>> Meter().laplace(clinic.counts(["age", "sex"]), rate=50 * 10**9).tolist()
    [[1, 0], [0, 2]]
    """
    written = CsvOptions.of(csv)
    settings = EngineSettings.of(engine)
    check_source(source, table, written, settings)
    if not isinstance(schema, Schema):
        if not isinstance(schema, str | Path):
            raise SchemaError(f"schema must be a Schema or the path of its TOML file, got {type(schema).__name__}")
        schema = Schema.from_toml(schema)
    roster = Roster.column(budgets) if isinstance(budgets, str) else budgets
    if roster is not None and not isinstance(roster, Roster):
        raise InputError(f"budgets must be a Roster or the name of a column in ε, got {type(roster).__name__}")
    if roster is not None and not roster.in_table and schema.unit.person is None:
        raise SchemaError(
            "these budgets are joined on the person, but the schema's unit is the row; add to it: "
            f"[unit] person = {roster.person or 'the column that names the person'!r}, rows_per_person = 1"
        )
    return Dataset(source=source, schema=schema, table=table, budgets=roster, csv=written, settings=settings)
