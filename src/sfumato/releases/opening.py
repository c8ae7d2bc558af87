"""`sf.open(...)`: from whatever holds a private table to an object that charges a ledger before it reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.privacy.source import SECURE, Source
from sfumato.privacy.units import Epsilon
from sfumato.releases.keeping import kept
from sfumato.releases.session import Table

if TYPE_CHECKING:
    from sfumato.tables import CsvOptions, EngineSettings, Roster, Schema


def open(
    source: Any,
    *,
    schema: Schema | str | Path,
    table: str | tuple[str, ...] | None = None,
    budgets: Roster | str | None = None,
    epsilon: Epsilon | None = None,
    ledger: str | Path | None = None,
    name: str | None = None,
    rows: int | None = None,
    noise: Source = SECURE,
    csv: CsvOptions | Mapping[str, Any] | None = None,
    engine: EngineSettings | Mapping[str, Any] | None = None,
) -> Table:
    """Open a private table for previews and releases. Nothing private is read until a release was charged.

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
    budgets : Roster, optional
        Where each person's own budget is written.
    epsilon : optional
        The most that all releases of this table may cost together.
    ledger : path or URL, optional
        Where spending is written down: by default ``NAME.ledger`` beside a file, the files of a glob or a DuckDB file.
        For anything else it must be named, or asked for as ``":memory:"``: then it is forgotten with this object, and
        previews and certificates say so. (An experiment with seeded noise may leave it out.)
    name : str, optional
        The table's name in the ledger; by default that of the database table, or of the file without its ending.
    rows : int, optional
        A public head count.
    noise : Source
        Secure by default; `sf.Seeded(seed)` for experiments, which are marked not private.
    csv : mapping, optional
        How a text file is written: ``{"delimiter": ";", "quote": '"', "encoding": "latin-1", "decimal": ","}``.
    engine : mapping, optional
        What DuckDB in this process may use: ``{"memory_limit": "4GB", "threads": 2, "spill": "/scratch"}``.

    Returns
    -------
    Table

    Warns
    -----
    PrivacyWarning
        Before the first charge, where the table starts with a fresh budget: there is no ledger yet, or the name is new in
        one that holds others, or certificates of earlier releases lie beside it without their ledger.
    UntestedEngineWarning
        When the table is opened, if the agreement suite was never run on its engine.
    """
    from sfumato.tables import open as describe

    dataset = describe(source, schema=schema, table=table, budgets=budgets, csv=csv, engine=engine)
    place = kept(source, table=table, name=name, ledger=ledger, private=noise.private)
    return Table(dataset, kept=place, epsilon=epsilon, rows=rows, source=noise)
