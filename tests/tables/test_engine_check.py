"""`sfumato engines check`: an engine of one's own against DuckDB, case by case, in a schema made for it."""

from __future__ import annotations

import json

import ibis
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from sfumato.cli import app
from sfumato.errors import InputError
from sfumato.testing import engine_check
from sfumato.testing.engine_check import check_sources, check_url
from sfumato.testing.hard_rows import COLUMNS, PREDICATES, ROSTER, as_arrow


@pytest.mark.postgres
def test_postgres_agrees_and_nothing_is_left_of_it(postgres_url, monkeypatch):
    monkeypatch.setattr(engine_check, "PREDICATES", PREDICATES[::5])  # the agreement suite has them all
    backend = ibis.connect(postgres_url)
    backend.raw_sql("CREATE SCHEMA IF NOT EXISTS sfumato_scratch").close()
    backend.con.commit()
    found = CliRunner().invoke(app, ["engines", "check", postgres_url, "--scratch", "sfumato_scratch", "--json"])
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert told["passed"]
    assert len(told["cases"]) == 1 + len(list(engine_check._cases())) > 25
    assert backend.list_tables(database="sfumato_scratch") == []
    with pytest.raises(InputError, match="cannot make a table in 'nowhere'"):
        check_url(postgres_url, "nowhere")
    backend.raw_sql("DROP SCHEMA sfumato_scratch").close()
    backend.con.commit()
    backend.disconnect()


def test_a_row_that_differs_is_found_and_no_value_told(monkeypatch):
    wanted = {"cells of income", "cells of age", "count where income = 0", "points of a lattice"}
    tried = [(name, compute) for name, compute in engine_check._cases() if name in wanted]
    monkeypatch.setattr(engine_check, "_cases", lambda: tried)
    rows = as_arrow(COLUMNS)
    incomes = rows["income"].to_pylist()
    changed = rows.set_column(1, "income", pa.array([0.0 if x is not None and x != x else x for x in incomes], pa.float64()))
    cases = check_sources({"source": changed}, {"source": as_arrow(ROSTER)})
    wrong = {case.name for case in cases if not case.passed}
    assert wrong == wanted - {"cells of age"}
    assert all(case.why == "another answer" for case in cases if not case.passed)


def test_an_engine_that_fails_on_constants_is_not_tried_further(monkeypatch):
    class Backend:
        name = "foreign"

        def to_pyarrow(self, expr):
            if "one" not in expr.columns:
                raise OSError("NaN")

    monkeypatch.setattr(engine_check, "_backend", lambda url: Backend())
    found = CliRunner().invoke(app, ["engines", "check", "sc://host:1", "--scratch", "x"])
    assert found.exit_code == 1
    assert "0 of 1 cases passed on sc://host:1" in found.output
    assert "it raises OSError" in found.output


@pytest.mark.parametrize("url", ["duckdb:///x.db", "s3://bucket/x/", "mysql://h/x", "x.parquet"])
def test_what_is_no_engine_elsewhere_is_refused(url):
    with pytest.raises(InputError, match="no engine to be checked; known: postgresql://"):
        check_url(url, "x")
