"""A plan with a release of every kind from columns of every type: from check to verified folders, on every engine alike."""

import tomllib

import ibis
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli import app
from sfumato.demo import write_everything
from sfumato.releases import load, read_result, verify
from sfumato.releases.kinds import all_kinds
from sfumato.tables.domains import DOMAINS

run = CliRunner().invoke


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("everything")
    write_everything(place, visits=1500)
    return place


@pytest.fixture(scope="module")
def asked(folder):
    return tomllib.loads((folder / "every.toml").read_text(encoding="utf-8"))["release"]


def test_no_kind_of_release_and_no_type_of_column_is_left_out(folder, asked):
    assert {release["kind"] for release in asked} | {"mean", "count"} == set(all_kinds())
    schema = load(folder / "every.toml").schema()
    assert {domain.type_name for domain in schema.columns.values()} == set(DOMAINS)
    assert schema["diagnosis"].size == 5002
    assert schema["housing"].labels() == ("owned", "rented", "shared")


@pytest.mark.slow
def test_from_check_to_verified_folders(folder, asked, monkeypatch):
    monkeypatch.setattr("sfumato.releases.report._picture", lambda *_: "")  # they take longer than all the rest
    plan = str(folder / "every.toml")
    assert "no mistake" in run(app, ["check", plan]).stdout
    seen = run(app, ["preview", plan], env={"COLUMNS": "200"})
    assert all(release["name"] in seen.stdout for release in asked)
    done = run(app, ["release", plan], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert len(list((folder / "every").iterdir())) == len(asked)
    for release in asked:
        place = folder / "every" / release["name"]
        found = verify(place)
        assert found.holds, (release["name"], [c for c in found.checks if not c.holds])
        again = read_result(place)
        assert type(again).from_dict(again.to_dict()).to_frame().equals(again.to_frame())
        assert "data.csv" in {p.name for p in place.iterdir()}
    assert "owned" in (folder / "every" / "housing, ward and weight" / "data.csv").read_text(encoding="utf-8")
    assert "2024-03" in (folder / "every" / "admissions by month" / "data.csv").read_text(encoding="utf-8")
    book = run(app, ["ledger", "--plan", plan], env={"COLUMNS": "250"}).stdout
    assert all(release["kind"] in book for release in asked)


def answers(source, folder, asked, table=None):
    """Every release of the plan, at noise that can be repeated."""
    plan = load(folder / "every.toml")
    opened = sf.open(
        source,
        schema=plan.schema(),
        table=table,
        epsilon=40,
        rows=4000,
        noise=sf.Seeded(3),
        ledger=":memory:",
        name="visits",
    )
    made = {}
    for request in plan.releases:
        keys = {"where": request.where, "mechanism": request.mechanism, "epsilon": request.epsilon}
        given = {k: v for k, v in {**keys, **request.parameters}.items() if v is not None}
        made[request.name] = opened.release(request.kind, **given).to_frame()
    return made


@pytest.fixture(scope="module")
def on_duckdb(folder, asked):
    return answers(str(folder / "visits.parquet"), folder, asked)


@pytest.mark.slow
@pytest.mark.postgres
def test_postgres_gives_the_same_answers(folder, asked, on_duckdb, postgres_url):
    backend = ibis.connect(postgres_url)
    backend.create_table("visits_of_every_type", pq.read_table(folder / "visits.parquet"), overwrite=True)
    try:
        found = answers(postgres_url, folder, asked, table="visits_of_every_type")
    finally:
        backend.drop_table("visits_of_every_type")
        backend.disconnect()
    same(found, on_duckdb)


@pytest.mark.spark
def test_spark_gives_the_same_answers(folder, asked, on_duckdb, spark):
    same(answers(spark.read.parquet(str(folder / "visits.parquet")), folder, asked), on_duckdb)


def same(found, expected):
    for name, frame in expected.items():
        assert found[name].equals(frame), name
