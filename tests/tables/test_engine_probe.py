"""Every engine that is not our own DuckDB is tried with hard constants when it is opened, and refused if it fails."""

from __future__ import annotations

import math

import ibis
import pyarrow as pa
import pytest

import sfumato.tables as tables
from sfumato.errors import InputError
from sfumato.tables import Numeric, Schema, engine_probe
from sfumato.tables.connecting import connect
from sfumato.tables.engine_probe import wrong_answers
from sfumato.tables.engines import Engine
from sfumato.testing import reveal

SCHEMA = Schema({"x": Numeric(0, 9, bins=2)})


def engine_on(backend) -> Engine:
    return Engine(backend, None, backend.name)


@pytest.fixture(scope="module")
def fakes():
    """DuckDB with something changed: on its way to the engine every query is handed to `change`, every answer to `spoil`."""
    from ibis.backends.duckdb import Backend

    def make(change=lambda sql: sql, spoil=lambda table: table):
        class Fake(Backend):
            asked = 0

            def to_pyarrow(self, expr, /, **_):
                Fake.asked += 1
                return spoil(self.con.execute(change(self.compile(expr))).to_arrow_table())

        backend = Fake()
        backend.do_connect()
        return backend

    return make


def test_duckdb_and_polars_pass():
    assert wrong_answers(engine_on(ibis.duckdb.connect())) == []
    assert wrong_answers(engine_on(ibis.polars.connect())) == []


@pytest.mark.postgres
def test_postgres_passes(postgres_url):
    backend = ibis.connect(postgres_url)
    assert wrong_answers(engine_on(backend)) == []
    backend.disconnect()


@pytest.mark.spark
def test_spark_passes(spark, spark_connect):
    from sfumato.tables.spark_backend import backend_on

    for session in (spark, spark_connect):
        assert wrong_answers(engine_on(backend_on(session))) == []


def _with(found, name, values):
    place = found.schema.get_field_index(name)
    return found if place < 0 else found.set_column(place, name, pa.array(values))


def _raise_on(word):
    def change(sql):
        if word in sql.lower():
            raise ValueError("NaN 0.123 is not supported")
        return sql

    return change


@pytest.mark.parametrize(
    ("fake", "said"),
    [
        ({"change": _raise_on("nan")}, "it raises ValueError"),
        ({"change": _raise_on("inf")}, "it raises ValueError"),
        ({"change": lambda sql: sql.replace("'NaN'", "'0'").replace("'nan'", "'0'")}, "cells of numbers"),
        ({"change": lambda sql: sql.replace("'Infinity'", "'2'").replace("'inf'", "'2'")}, "budgets"),
        ({"spoil": lambda found: _with(found, "holds", [True] * len(found))}, "conditions"),
        ({"spoil": lambda found: _with(found, "word", [0] * len(found))}, "text"),
        ({"spoil": lambda found: _with(found, "n", [2] * len(found))}, "counts of rows"),
        ({"change": lambda sql: sql.replace("9223372036854775807", "3")}, "whole numbers"),
        ({"change": lambda sql: sql.replace("9999", "1999")}, "dates"),
        ({"spoil": lambda table: table.slice(1)}, "how many rows there are"),
    ],
)
def test_one_that_raises_or_answers_otherwise_is_refused(fakes, fake, said):
    backend = fakes(**fake)
    table = backend.create_table("t", schema=ibis.schema({"x": "float64"}))
    with pytest.raises(InputError, match="refused") as caught:
        connect(table, columns={})
    assert said in str(caught.value)
    assert "0.123" not in str(caught.value)
    assert caught.value.__context__ is None


def test_one_that_does_not_answer_at_all_is_not_called_wrong(fakes):
    def gone(_):
        raise OSError("connection refused by hush.example.org")

    backend = fakes(change=gone)
    table = backend.create_table("t", schema=ibis.schema({"x": "float64"}))
    with pytest.raises(InputError, match="cannot connect to duckdb: nothing listens there") as caught:
        connect(table, columns={})
    assert caught.value.__context__ is None


def test_a_connection_that_ibis_takes_for_another_is_tried_too(fakes):
    good = fakes()
    connect(good.create_table("t", schema=ibis.schema({"x": "float64"})), columns={})
    bad = fakes(spoil=lambda found: found.slice(1))
    with pytest.raises(InputError, match="refused"):
        connect(bad.create_table("t", schema=ibis.schema({"x": "float64"})), columns={})


def test_it_is_tried_once_for_a_connection_and_before_any_row(fakes):
    backend = fakes()
    table = backend.create_table("t", schema=ibis.schema({"x": "float64"}))
    first = tables.open(table, schema=SCHEMA)
    assert reveal(first.count()) == 0
    assert type(backend).asked == 2  # the constants, then the count
    assert reveal(tables.open(table, schema=SCHEMA).count()) == 0
    assert type(backend).asked == 3


def test_the_answers_it_asks_for_are_the_rule_in_memory():
    """The figures that stand in the file, against their definitions."""
    domain = engine_probe._schema()["number"]
    for value, nano, place in zip(engine_probe.NUMBERS, engine_probe.NANO, engine_probe.LATTICE, strict=True):
        known = value is not None and not math.isnan(value)
        budget = min(value, 1e6) if known and value > 0 else 0.0
        assert nano == math.floor(budget * 1e9 + 1e-6)
        clamped = min(max(value, domain.low), domain.high) if known else domain.low
        assert place == math.floor((clamped - domain.low) / (domain.high - domain.low) * 10 + 0.5)


@pytest.mark.parametrize("engine", ["duckdb", "pyspark"])
def test_rows_of_constants_reach_an_engine_to_the_last_bit(engine):
    columns = {"x": ("float64", (0.1 + 0.2, -0.0, 5e-324, math.inf)), "n": ("int64", (2**63 - 1, None, 0, -1))}
    found = ibis.duckdb.connect().to_pyarrow(engine_probe.literal_rows(columns, engine)).to_pydict()
    assert sorted(map(repr, found["x"])) == sorted(map(repr, columns["x"][1]))
    assert sorted(found["n"], key=str) == sorted(columns["n"][1], key=str)
