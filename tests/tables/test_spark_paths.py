"""Tables that Spark reads by format and path, and the check of a Spark Connect server from outside."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato.tables as tables
from sfumato.errors import InputError
from sfumato.tables import Numeric, Schema
from sfumato.testing import engine_check, reveal
from sfumato.testing.engine_check import check_url

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::sfumato.errors.UntestedEngineWarning")]
SCHEMA = Schema({"x": Numeric(0, 9, bins=2), "year": Numeric(2020, 2029, bins=10, integer=True)})


@pytest.fixture
def visits(tmp_path):
    for year, rows in ((2023, [1.0, math.nan]), (2024, [7.0])):
        folder = tmp_path / "it's; DROP" / f"year={year}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"x": rows}), folder / "part.parquet")
    return str(tmp_path / "it's; DROP")


def test_spark_reads_a_folder_by_its_format_and_path(spark, spark_url, visits):
    for source in (spark, spark_url):
        data = tables.open(source, table=f"parquet:{visits}", schema=SCHEMA)
        assert reveal(data.counts("x")).tolist() == [1, 1]
        assert reveal(data.count("year = 2023")) == 2


@pytest.mark.parametrize("table", ["delta:/nowhere/hush", "iceberg:/nowhere", "parquet:/nowhere"])
def test_what_spark_cannot_read_is_told(spark, table):
    with pytest.raises(InputError, match=rf"no {table.partition(':')[0]} table at .* see that Spark has the jars") as caught:
        tables.open(spark, table=table, schema=SCHEMA).count()
    assert caught.value.__context__ is None


def test_a_connect_server_of_spark_is_checked_from_outside(spark, spark_url, monkeypatch):
    wanted = {"cells of income", "cells of place", "weighted sum", "at most 1 rows a person"}
    tried = [(name, compute) for name, compute in engine_check._cases() if name in wanted]
    monkeypatch.setattr(engine_check, "_cases", lambda: tried)
    before = {t.name for t in spark.catalog.listTables("default")}
    cases = check_url(spark_url, "default")
    assert [case for case in cases if not case.passed] == []
    assert {case.name for case in cases} == wanted | {"constants"}
    assert {t.name for t in spark.catalog.listTables("default")} == before
