"""The list of engines says what is true: tested is what the suite runs, and what was not run says so."""

from __future__ import annotations

import json
import re
import tomllib
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sfumato as sf
import sfumato.tables as tables
from sfumato.cli import app
from sfumato.cli.engines import markdown_table
from sfumato.errors import InputError, UntestedEngineWarning
from sfumato.extras import EXTRAS
from sfumato.tables import Numeric, Schema, engine_list
from sfumato.tables.engine_list import OFFERED, SCHEMES, notes_of, offered_for
from support.engines import ENGINES, MORE_ENGINES, names

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SCHEMA = Schema({"x": Numeric(0, 1, bins=2)})


def test_tested_is_what_the_agreement_suite_runs():
    run = [name for offered in OFFERED for name in offered.suite]
    assert sorted(run) == sorted(names([*ENGINES, *MORE_ENGINES]))
    for offered in OFFERED:
        assert bool(offered.versions) == offered.tested, offered.name
    suite = (Path(__file__).parent / "test_engines_agree.py").read_text(encoding="utf-8")
    assert 'pytestmark = pytest.mark.parametrize("put", [*ENGINES, *MORE_ENGINES], indirect=True)' in suite


def test_an_engine_is_named_once_and_its_extra_brings_its_driver():
    assert len({offered.name for offered in OFFERED}) == len(OFFERED)
    for offered in OFFERED:
        if offered.extra is None:
            assert offered.driver == ()
            assert offered.installed
            continue
        assert offered.extra in PROJECT["optional-dependencies"]
        for module in offered.driver:
            known = next(m for m in (module, ".".join(module.split(".")[:2]), module.split(".")[0]) if m in EXTRAS)
            assert EXTRAS[known] == offered.extra


def test_extras_ask_for_what_ibis_asks_for():
    """Ibis's own extra for Spark pins other versions; the others are taken from it without its pins of shared packages."""
    from importlib.metadata import distribution

    for extra in ("trino", "bigquery", "snowflake", "databricks"):
        wanted = [r for r in distribution("ibis-framework").requires or () if f"extra == '{extra}'" in r]
        drivers = {re.match(r"[\w-]+", r)[0] for r in wanted} - {"numpy", "pandas", "pyarrow", "rich"}
        assert drivers == {re.match(r"[\w-]+", r)[0] for r in PROJECT["optional-dependencies"][extra]}


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_every_scheme_is_known_and_untested_ones_say_so(scheme):
    url = f"{scheme}://somewhere/clinic/"
    table = None if scheme in engine_list.OBJECT_STORES else "visits"
    tables.open(url, table=table, schema=SCHEMA)  # touches nothing
    said = notes_of(url, table)
    assert bool(said) != SCHEMES[scheme].tested
    assert all(SCHEMES[scheme].name in sentence and "untested" in sentence for sentence in said)


def test_a_scheme_that_is_not_known_is_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"no engine for trinoo://ann@h/c; did you mean 'trino'\?"):
        tables.open("trinoo://ann:hush@h/c", table="x", schema=SCHEMA)


def test_lakes_through_spark_are_untested_by_path():
    assert offered_for("sc://host", "delta:/data/visits").name == "Delta tables through Spark"
    assert offered_for("sc://host", "iceberg:/data/visits").name == "Iceberg tables through Spark"
    assert notes_of("sc://host", "delta:/data/visits")
    assert notes_of("sc://host", "parquet:/data/visits") == ()


def test_an_ibis_table_on_another_engine_is_untested():
    ibis = pytest.importorskip("ibis")
    backend = ibis.sqlite.connect()
    backend.raw_sql("CREATE TABLE t (x REAL)").close()
    assert "sqlite is untested" in notes_of(backend.table("t"))[0]
    duck = ibis.duckdb.connect()
    assert notes_of(duck.create_table("t", schema=ibis.schema({"x": "float64"}))) == ()


def test_the_warning_comes_once_and_names_no_host(monkeypatch):
    monkeypatch.setattr(engine_list, "_said", set())
    data = tables.open("trino://ann:hush@host.example.org/clinic", table="visits", schema=SCHEMA)
    with pytest.warns(UntestedEngineWarning, match="Trino is untested") as caught, pytest.raises(InputError):
        data.count()
    assert "example.org" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match="not installed"):
            data.count()


def test_previews_say_so_in_python_and_for_a_plan(tmp_path):
    url = "trino://ann:hush@host.example.org/clinic"
    table = sf.open(url, table="visits", schema=SCHEMA, ledger=tmp_path / "l", name="clinic", epsilon=1, rows=100)
    assert any("Trino is untested" in note for note in table.preview("count", epsilon=0.1).notes)
    (tmp_path / "schema.toml").write_text('[columns.x]\ntype = "numeric"\nlow = 0\nhigh = 1\nbins = 2\n')
    (tmp_path / "plan.toml").write_text(
        f'[dataset]\nname = "clinic"\nsource = "{url}"\ntable = ["clinic", "visits"]\nschema = "schema.toml"\nrows = 100\n'
        '[ledger]\nlocation = "l"\nepsilon = 1\n[[release]]\nname = "all"\nkind = "count"\nepsilon = 0.1\n'
    )
    shown = CliRunner().invoke(app, ["preview", str(tmp_path / "plan.toml"), "--json"])
    assert shown.exit_code == 0, shown.output
    assert any("Trino is untested" in note for note in json.loads(shown.stdout)["findings"])
    assert "hush" not in shown.output


def test_the_command_lists_all_with_what_to_install():
    listed = json.loads(CliRunner().invoke(app, ["engines", "--json"]).stdout)["engines"]
    assert [e["name"] for e in listed] == [offered.name for offered in OFFERED]
    trino = next(e for e in listed if e["name"] == "Trino")
    assert (trino["tested"], trino["install"]) == (False, 'pip install "sfumato[trino]"')
    text = CliRunner().invoke(app, ["engines"], env={"COLUMNS": "200"}).stdout
    assert text.count("untested") == sum(not offered.tested for offered in OFFERED)


def test_the_page_has_the_table_of_the_command():
    page = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    assert markdown_table() in page, "sfumato engines --markdown prints the table"
    assert CliRunner().invoke(app, ["engines", "--markdown"]).stdout.strip() == markdown_table()
