"""A budget is worth what its ledger remembers: found reliably, or named, or said loudly that it starts afresh."""

import json
import warnings

import duckdb
import pandas as pd
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli.app import app
from sfumato.errors import PrivacyWarning
from sfumato.releases.batch import load, preview, release
from sfumato.releases.keeping import FORGOTTEN
from support import clinic

SCHEMA = sf.Schema({"age": sf.Numeric(0, 100, bins=4, integer=True)})
FRAME = pd.DataFrame({"age": [10, 20, 30]})


@pytest.fixture
def folder(tmp_path):
    for year in (1, 2):
        FRAME.to_parquet(tmp_path / f"clinic-{year}.parquet")
    FRAME.to_parquet(tmp_path / "clinic.parquet")
    with duckdb.connect(str(tmp_path / "clinic.db")) as base:
        base.execute("CREATE TABLE visits AS SELECT * FROM read_parquet(?)", [str(tmp_path / "clinic.parquet")])
    return tmp_path


def opened(source, **more):
    return sf.open(source, **{"schema": SCHEMA, "epsilon": 1, "rows": 10, **more})


def said(call):
    """What was warned of, in the words of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, PrivacyWarning)]


@pytest.mark.parametrize(
    ("source", "more", "ledger"),
    [
        ("{}/clinic.parquet", {}, "clinic.ledger"),
        ("{}/clinic-*.parquet", {}, "clinic.ledger"),
        ("{}/clinic-?.parquet", {}, "clinic.ledger"),
        ("{}/clinic-[12].parquet", {"name": "years"}, "years.ledger"),
        ("{}/*.parquet", {"name": "clinic"}, "clinic.ledger"),
        ("duckdb:///{}/clinic.db", {"table": "visits"}, "visits.ledger"),
        ("duckdb:///{}/clinic.db", {"table": "visits", "name": "clinic"}, "clinic.ledger"),
    ],
)
def test_the_ledger_beside_the_data_remembers_whatever_way_it_was_opened(folder, source, more, ledger):
    source = source.format(folder)
    opened(source, **more).count(epsilon=0.7)
    assert (folder / ledger).exists()
    with pytest.raises(sf.SfumatoError, match=r"0.3 of 1 left"):
        opened(source, **more).count(epsilon=0.6)


def test_a_glob_finds_the_ledger_that_lies_beside_it(folder):
    opened(folder / "clinic.parquet").count(epsilon=0.7)
    assert opened(f"{folder}/clinic-*.parquet").balance().total.spent == 700_000_000


def test_a_frame_or_a_server_without_a_ledger_is_warned_of_when_it_is_opened():
    for source in (FRAME, "postgresql://db.invalid/clinic"):
        table = "visits" if isinstance(source, str) else None
        with pytest.warns(PrivacyWarning, match=r"fresh budget. Name a ledger.*ledger='clinic.ledger'.*':memory:'"):
            assert "in memory" in repr(opened(source, table=table))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert "in memory" in repr(opened(source, table=table, ledger=":memory:"))
            assert "in memory" in repr(opened(source, table=table, noise=sf.Seeded(1)))


def test_a_ledger_in_memory_is_asked_for_by_name_and_said_wherever_a_reader_looks(tmp_path):
    table = opened(FRAME, ledger=":memory:")
    assert "ledger in memory" in repr(table)
    assert FORGOTTEN in table.preview("count", epsilon=0.1).notes
    assert FORGOTTEN in repr(table.preview("count", epsilon=0.1))
    made = table.count(epsilon=0.1)
    assert FORGOTTEN in made.receipt.certificate["warnings"]
    saved = made.save(tmp_path / "counted")
    assert FORGOTTEN in json.loads((saved / "certificate.json").read_text())["warnings"]
    assert "forgotten with the table" in (saved / "report.html").read_text()
    lasting = opened(FRAME, ledger=tmp_path / "x.ledger", name="x")
    assert str(tmp_path / "x.ledger") in repr(lasting)
    assert FORGOTTEN not in lasting.count(epsilon=0.1).receipt.certificate["warnings"]


def test_a_password_is_not_shown():
    table = opened(FRAME, ledger="postgresql://ann:hidden@db.invalid/ledgers", name="x")
    assert "hidden" not in repr(table)
    assert "postgresql://ann@db.invalid/ledgers" in repr(table)


def test_a_new_ledger_is_said_once_and_before_the_charge(folder):
    source = folder / "clinic.parquet"
    assert any("new ledger is started" in note for note in opened(source).preview("count", epsilon=0.1).notes)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        with pytest.raises(PrivacyWarning, match="new ledger is started"):
            opened(source).count(epsilon=0.1)
    assert not (folder / "clinic.ledger").exists()
    assert len(said(lambda: opened(source).count(epsilon=0.1))) == 1
    assert said(lambda: opened(source).count(epsilon=0.2)) == []
    assert opened(source).preview("count", epsilon=0.1).notes == ()
    assert said(lambda: opened(folder / "clinic-1.parquet", noise=sf.Seeded(1)).count(epsilon=0.1)) == []


def test_another_name_in_a_ledger_is_said(folder):
    source, ledger = folder / "clinic.parquet", folder / "clinic.ledger"
    said(lambda: opened(source).count(epsilon=0.9))
    (heard,) = said(lambda: opened(source, ledger=ledger, name="kliniek").count(epsilon=0.9))
    assert "'kliniek' is new in the ledger" in heard
    assert "'clinic'" in heard


def test_a_ledger_of_another_name_beside_the_table_is_said(folder):
    said(lambda: opened(folder / "clinic.parquet").count(epsilon=0.9))
    heard = said(lambda: opened(folder / "clinic.parquet", name="kliniek").count(epsilon=0.9))
    assert any("clinic.ledger" in sentence and "other ledgers" in sentence for sentence in heard)


def test_a_ledger_that_vanished_is_said_where_its_releases_still_lie(folder):
    said(lambda: opened(folder / "clinic.parquet").count(epsilon=0.9).save(folder / "releases" / "all"))
    (folder / "clinic.ledger").unlink()
    heard = said(lambda: opened(folder / "clinic.parquet").count(epsilon=0.9))
    assert any("certificates of earlier releases of 'clinic'" in sentence for sentence in heard)


def test_plans_say_the_same_to_whoever_listens(tmp_path):
    plan = load(clinic.make(tmp_path, clinic.UNIFORM))
    assert any("new ledger is started" in sentence for sentence in preview(plan).findings)
    assert any("new ledger is started" in sentence for sentence in said(lambda: release(plan, only="over65")))
    assert said(lambda: release(plan, only="wards")) == []
    renamed = load(clinic.make(tmp_path, clinic.UNIFORM.replace('name = "clinic"', 'name = "kliniek"')))
    assert any("'kliniek' is new in the ledger" in sentence for sentence in preview(renamed).findings)
    (tmp_path / "clinic.ledger").unlink()
    assert any("certificates of earlier releases" in sentence for sentence in preview(plan).findings)


def test_the_command_line_says_it_on_stderr_and_in_json(tmp_path):
    path = clinic.make(tmp_path, clinic.UNIFORM)
    found = CliRunner().invoke(app, ["release", str(path), "--only", "over65", "--json"])
    assert found.exit_code == 0, found.output
    assert "new ledger is started" in " ".join(found.stderr.split())
    assert any("new ledger is started" in sentence for sentence in json.loads(found.stdout)["findings"])
    again = CliRunner().invoke(app, ["release", str(path), "--only", "over65", "--json"])
    assert json.loads(again.stdout)["findings"] == []
