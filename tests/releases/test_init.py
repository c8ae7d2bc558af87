"""`sfumato init`: a schema and a plan to fill in, from names and types only; they do not load until they are filled in."""

from __future__ import annotations

import re

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.cli import app
from sfumato.errors import InputError
from sfumato.releases.batch import load
from sfumato.releases.plan_check import check
from sfumato.releases.skeleton import init
from sfumato.tables import CsvOptions, Schema
from sfumato.tables.blanks import BLANK
from support.sheets import write_ods, write_xlsx

ROWS = ([(31, "F", 1.5, True), (77, "M", 2.5, False)], [(1, "secret-x", 9e9, None)] * 50)


def write_csv(path, rows):
    path.write_text("age,sex,dose,kept\n" + "\n".join(",".join(map(str, row)) for row in rows))


def write_parquet(path, rows):
    ages, sexes, doses, kept = zip(*rows, strict=True)
    kinds = {"age": pa.int64(), "sex": pa.string(), "dose": pa.float64(), "kept": pa.bool_()}
    columns = zip(kinds.items(), (ages, sexes, doses, kept), strict=True)
    pq.write_table(pa.table({name: pa.array(values, kind) for (name, kind), values in columns}), path)


def write_sheet(path, rows):
    (write_ods if path.suffix == ".ods" else write_xlsx)(path, {"A": [["age", "sex", "dose", "kept"], *map(list, rows)]})


def write_database(path, rows):
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE patients (age BIGINT, sex VARCHAR, dose DOUBLE, kept BOOLEAN)")
        connection.executemany("INSERT INTO patients VALUES (?, ?, ?, ?)", rows)


KINDS = [
    ("t.csv", write_csv),
    ("t.parquet", write_parquet),
    ("t.xlsx", write_sheet),
    ("t.ods", write_sheet),
    ("t.db", write_database),
]


@pytest.mark.parametrize(("name", "write"), KINDS, ids=[name for name, _ in KINDS])
def test_other_rows_make_the_same_skeletons(tmp_path, monkeypatch, name, write):
    made = []
    for number, rows in enumerate(ROWS):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder / name, rows)
        monkeypatch.chdir(folder)
        words = ["init", "duckdb:///t.db", "--table", "patients"] if name == "t.db" else ["init", name]
        done = CliRunner().invoke(app, [*words, "-o", "out"])
        assert done.exit_code == 0, done.output
        made.append([(folder / "out" / f).read_bytes() for f in ("schema.toml", "plan.toml")])
    assert made[0] == made[1]
    schema, plan = (text.decode() for text in made[0])
    assert all(f"[columns.{column}]" in schema for column in ("age", "sex", "dose", "kept"))
    assert not re.search(r"secret|31|77|2\.5|9e9|50", schema + plan)


@pytest.mark.parametrize(("name", "write"), KINDS[:2], ids=["t.csv", "t.parquet"])
def test_every_blank_is_named_until_it_is_filled_in(tmp_path, name, write):
    write(tmp_path / name, ROWS[0])
    schema, plan = init(str(tmp_path / name), tmp_path)
    text, blanks = plan.read_text() + schema.read_text(), check(plan).mistakes
    assert len(blanks) == len(re.findall(f'"{BLANK}"', text)) > 5
    assert all("is still blank; write" in sentence for sentence in blanks)
    assert any(s.startswith("[columns.age] `") for s in blanks)
    assert any(s.startswith("[ledger] `epsilon`") for s in blanks)
    with pytest.raises(InputError, match="still blank"):
        load(plan)
    with pytest.raises(InputError, match="still blank"):
        Schema.from_toml(schema)

    filled = plan.read_text().replace(f'rows = "{BLANK}"', "rows = 100").replace(f'epsilon = "{BLANK}"', "epsilon = 1")
    plan.write_text(filled)
    assert {s.split("]")[0] for s in check(plan).mistakes} == {
        "[unit",
        *(f"[columns.{c}" for c in ("age", "sex", "dose", "kept")),
    } - ({"[columns.kept"} if name == "t.parquet" else set())
    schema.write_text(
        '[columns.age]\ntype = "numeric"\ninteger = true\nlow = 0\nhigh = 99\nbins = 10\n'
        '[columns.sex]\ntype = "categorical"\nvalues = ["F", "M"]\n'
    )
    assert check(plan, table=True).mistakes == ()


def test_the_parts_that_are_known_are_written(tmp_path):
    (tmp_path / "stichprobe 2024.csv").write_bytes("größe;a b\n1,5;2\n".encode("latin-1"))
    options = CsvOptions(delimiter=";", encoding="latin-1", decimal=",")
    schema, plan = init(str(tmp_path / "stichprobe 2024.csv"), tmp_path / "deep", csv=options)
    assert '[columns."größe"]' in schema.read_text()
    assert '[columns."a b"]' in schema.read_text()
    text = plan.read_text()
    assert 'source = "../stichprobe 2024.csv"' in text
    assert 'name = "stichprobe-2024"' in text
    assert 'delimiter = ";"' in text
    assert 'decimal = ","' in text


def test_nothing_is_overwritten_and_no_password_is_written(tmp_path, monkeypatch):
    write_csv(tmp_path / "t.csv", ROWS[0])
    (tmp_path / "plan.toml").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        init(str(tmp_path / "t.csv"), tmp_path)
    assert not (tmp_path / "schema.toml").exists()
    assert (tmp_path / "plan.toml").read_text() == "mine"
    with pytest.raises(InputError, match="correct the path"):
        init(str(tmp_path / "none.csv"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr("sfumato.releases.skeleton.names_and_types", lambda *_: [("age", "int64")])
    _, plan = init("postgresql://ann:hush@host/db?sslpassword=hush", tmp_path / "out", table="patients")
    assert "hush" not in plan.read_text()
    assert 'source = "postgresql://ann@host/db"' in plan.read_text()
