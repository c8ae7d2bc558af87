"""Engines under one roof: each gives a function that puts an Arrow table somewhere and returns a source to open."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from support.engines import ENGINES

Put = Callable[[pa.Table], dict[str, Any]]
_number = itertools.count()


def spark_frame(session: Any, table: pa.Table) -> Any:
    from pyspark.sql import types as t

    kinds = {
        pa.float64(): t.DoubleType(),
        pa.int64(): t.LongType(),
        pa.string(): t.StringType(),
        pa.bool_(): t.BooleanType(),
        pa.date32(): t.DateType(),
        pa.timestamp("us"): t.TimestampNTZType(),
        pa.timestamp("us", "UTC"): t.TimestampType(),
        pa.decimal128(18, 3): t.DecimalType(18, 3),
    }
    fields = [t.StructField(f.name, kinds[f.type], True) for f in table.schema]
    rows = [tuple(r) for r in zip(*[c.to_pylist() for c in table.columns], strict=True)]
    return session.createDataFrame(rows, t.StructType(fields))


@pytest.fixture(params=ENGINES)
def put(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Put]:
    """Puts an Arrow table on the engine; the result are the arguments of `open`."""
    if request.param == "duckdb":
        yield lambda table: {"source": table}
    elif request.param == "parquet":
        import pyarrow.parquet as pq

        def write(table: pa.Table) -> dict[str, Any]:
            path = tmp_path / f"t{next(_number)}.parquet"
            pq.write_table(table, path)
            return {"source": str(path)}

        yield write
    elif request.param == "s3":
        import pyarrow.parquet as pq

        store = request.getfixturevalue("object_store")

        def upload(table: pa.Table) -> dict[str, Any]:
            folder, half = f"clinic/t{next(_number)}", len(table) // 2
            for year, part in ((2023, table.slice(0, half)), (2024, table.slice(half))):
                sink = pa.BufferOutputStream()
                pq.write_table(part, sink)
                store.files[f"{folder}/year={year}/rows.parquet"] = sink.getvalue().to_pybytes()
            return {"source": store.url(f"{folder}/")}

        yield upload
    elif request.param == "duckdb_url":
        import duckdb

        def save(table: pa.Table) -> dict[str, Any]:
            path = tmp_path / f"t{next(_number)}.db"
            with duckdb.connect(str(path)) as connection:
                connection.register("given", table)
                connection.execute("CREATE TABLE hard AS SELECT * FROM given")
            return {"source": f"duckdb:///{path}", "table": "hard"}

        yield save
    elif request.param == "polars":
        yield lambda table: {"source": pl.from_arrow(table).lazy()}
    elif request.param == "postgres":
        import ibis

        url = request.getfixturevalue("postgres_url")
        backend, made = ibis.connect(url), []

        def create(table: pa.Table) -> dict[str, Any]:
            made.append(f"sfumato_test_{os.getpid()}_{next(_number)}")
            backend.create_table(made[-1], table)
            return {"source": url, "table": made[-1]}

        yield create
        for name in made:
            backend.drop_table(name)
        backend.disconnect()
    elif request.param == "spark-connect":
        session, url = request.getfixturevalue("spark_connect"), request.getfixturevalue("spark_url")
        shown: list[str] = []

        def show(table: pa.Table) -> dict[str, Any]:
            shown.append(f"sfumato_test_{next(_number)}")
            spark_frame(session, table).createGlobalTempView(shown[-1])
            return {"source": url, "table": f"global_temp.{shown[-1]}"}

        yield show
        for name in shown:
            session.catalog.dropGlobalTempView(name)
    else:
        session = request.getfixturevalue("spark")
        yield lambda table: {"source": spark_frame(session, table)}
