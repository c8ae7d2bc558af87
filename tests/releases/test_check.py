"""`sfumato check`: all mistakes at once, without a look at the private table."""

from __future__ import annotations

import builtins
import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from sfumato.cli import app
from sfumato.releases import check
from sfumato.tables import Categorical, Schema
from sfumato.tables.toml_text import MOST_BYTES
from support import clinic

MANY = """
[dataset]
name = "clinic"
source = "clinic.parquet"
schema = "clinic.toml"
rows = "many"
colour = "blue"

[ledger]
location = "clinic.ledger"
epsilon = "0,5"

[[release]]
name = "over65"
kind = "cuont"
epsilon = 0.1

[[release]]
name = "a/b"
kind = "mean"
column = "aeg"
selectivity = 40
epsilon = -1

[[release]]
name = "old"
kind = "count"
where = "aeg > 65"
epsilon = 0.1

[[release]]
name = "wards"
kind = "histogram"
columns = ["wrad", "agee"]
epsilon = 0.1
"""


def test_all_mistakes_are_told_at_once(tmp_path):
    found = check(clinic.make(tmp_path, MANY)).mistakes
    for words in (
        "[dataset] rows",
        "unknown key 'colour'",
        "[ledger] epsilon",
        "asks for kind 'cuont'",
        "'a/b', which cannot be a folder name",
        "`selectivity`",
        "must not be negative",
        "release 'old': where: no column 'aeg'",
        "release 'wards': no column 'wrad'",
        "release 'wards': no column 'agee'",
    ):
        assert sum(words in sentence for sentence in found) == 1, (words, found)
    assert len(found) == 10


def test_the_schema_is_told_its_mistakes_column_by_column(tmp_path):
    plan = clinic.make(tmp_path, clinic.UNIFORM)
    schema = tmp_path / "clinic.toml"
    text = schema.read_text().replace("high = 105", "high = -1").replace('["f", "m"]', '["f", "f"]')
    schema.write_text(text.replace("rows_per_person = 1", "rows_per_person = 0"))
    found = check(plan).mistakes
    assert len(found) == 3
    assert {"column 'age'", "column 'sex'"} <= {sentence.split(":")[0] for sentence in found}


def test_no_private_file_is_opened(tmp_path, monkeypatch):
    plan = clinic.make(tmp_path)
    opened = []
    real = builtins.open

    def watch(file, *args, **kwargs):
        opened.append(str(file))
        return real(file, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", watch)
    monkeypatch.setattr("sfumato.tables.dataset.connect", lambda *_args, **_kwargs: pytest.fail("the table was opened"))
    before = sorted(p.name for p in tmp_path.rglob("*"))
    assert check(plan).mistakes == ()
    assert not any("clinic.parquet" in name for name in opened)
    assert sorted(p.name for p in tmp_path.rglob("*")) == before  # nothing is written either


def test_with_the_table_names_and_types_are_compared(tmp_path):
    plan = clinic.make(tmp_path, clinic.UNIFORM)
    assert check(plan, table=True).mistakes == ()
    frame = pd.read_parquet(tmp_path / "clinic.parquet")
    frame.rename(columns={"ward": "Ward"}).assign(age=frame["age"].astype(str)).to_parquet(tmp_path / "clinic.parquet")
    assert check(plan).mistakes == ()
    found = check(plan, table=True).mistakes
    assert len(found) == 2
    assert any("'ward' is not in the table" in sentence for sentence in found)
    assert any("'age' is numeric in the schema" in sentence for sentence in found)
    (tmp_path / "clinic.parquet").unlink()
    assert len(check(plan, table=True).mistakes) == 1


def test_what_a_ledger_would_refuse_is_told(tmp_path):
    plan = clinic.make(tmp_path, clinic.UNIFORM.replace("epsilon = 1.0", "epsilon = 0.5"))
    (found,) = check(plan).mistakes
    assert found.startswith("release 'wards' would be refused: asked ε 0.4, 0.1 of 0.5 left")
    done = CliRunner().invoke(app, ["check", str(plan), "--json"])
    assert done.exit_code == 2
    assert json.loads(done.stdout)["mistakes"] == [found]
    done = CliRunner().invoke(app, ["check", str(plan)])
    assert done.exit_code == 2
    assert "1 mistake; its table was not opened" in done.output


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_bytes(b"#" * (MOST_BYTES + 1))
    assert check(plan).mistakes == (f"the plan {plan} is larger than 8 MB, so it is none; check the path",)
    plan.write_bytes(b'name = "\xff"')
    assert "save it as UTF-8" in check(plan).mistakes[0]
    assert "there is no plan" in check(tmp_path / "none.toml").mistakes[0]
    assert "check the path" in check(tmp_path).mistakes[0]
    assert "larger than" in check("/dev/zero").mistakes[0]


def test_neither_rich_nor_the_terminal_obeys_the_names_of_columns_and_values(tmp_path):
    odd = "[/bold]\x1b[2J"
    schema = Schema({"[/bold]X": Categorical(["[red]", odd])})
    schema.save(tmp_path / "t.toml")
    pd.DataFrame({"[/bold]X": ["[red]", odd, odd]}).to_parquet(tmp_path / "t.parquet")
    (tmp_path / "plan.toml").write_text(
        '[dataset]\nname = "odd"\nsource = "t.parquet"\nschema = "t.toml"\nrows = 3\n'
        '[ledger]\nlocation = "t.ledger"\nepsilon = 1\n'
        '[[release]]\nname = "one"\nkind = "count"\nwhere = "`[/bold]X` = \'[red]\'"\nepsilon = 0.1\n'
        '[[release]]\nname = "all"\nkind = "histogram"\ncolumns = ["[/bold]X"]\nepsilon = 0.1\n'
    )
    for verb in ("check", "preview", "release", "ledger"):
        words = [verb, "--plan", "plan.toml"] if verb == "ledger" else [verb, "plan.toml"]
        words[-1] = str(tmp_path / "plan.toml")
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (verb, done.output, done.exception)
        assert all(c.isprintable() or c == "\n" for c in done.output), verb
    assert "[red]" in done.output
