"""The names of the engines that tests run on; `put` in tests/tables/conftest.py puts a table on each."""

from __future__ import annotations

import pytest

ENGINES = [
    "duckdb",
    "parquet",
    "polars",
    pytest.param("postgres", marks=pytest.mark.postgres),
    pytest.param("spark-connect", marks=pytest.mark.spark),
]
# The same DuckDB, which finds its rows elsewhere, and the same Spark, asked another way: the agreement suite is enough.
MORE_ENGINES = ["duckdb_url", "s3", pytest.param("spark", marks=pytest.mark.spark)]


def names(engines: list) -> set[str]:
    """The names alone."""
    return {engine if isinstance(engine, str) else str(engine.values[0]) for engine in engines}
