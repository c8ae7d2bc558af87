"""What a recipient can check without a ledger, and that each check notices what it is for."""

import json
import shutil

import pandas as pd
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli import app
from sfumato.errors import InputError
from sfumato.releases import verify
from sfumato.releases.folder import certificate_text
from sfumato.releases.pdf import browser, print_pdf
from sfumato.tables import Categorical, Numeric, Schema

run = CliRunner().invoke


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("released")
    frame = pd.DataFrame({"age": [30, 40, 70, 80] * 50, "ward": ["a", "b"] * 100})
    schema = Schema({"age": Numeric(0, 99, bins=10, integer=True), "ward": Categorical(["a", "b"])})
    table = sf.open(frame, schema=schema, epsilon=10, rows=200, ledger=folder / "clinic.ledger", name="clinic")
    table.histogram("age", "ward", epsilon=1).save(folder / "cells")
    table.count(where="age >= 65", epsilon=1, recipient="ministry").save(folder / "over65")
    return folder


@pytest.fixture
def copy(released, tmp_path):
    shutil.copytree(released / "cells", tmp_path / "cells")
    return tmp_path / "cells"


@pytest.mark.parametrize("name", ["cells", "over65"])
def test_what_was_released_is_verified_anywhere(released, tmp_path, name):
    shutil.copytree(released / name, tmp_path / "elsewhere")
    found = verify(tmp_path / "elsewhere")
    assert found.holds, [c for c in found.checks if not c.holds]
    whats = {check.what for check in found.checks}
    for file in ("data.json", "data.csv", "data.parquet", "report.html"):
        assert f"{file} is as it was written" in whats
    said = run(app, ["verify", str(tmp_path / "elsewhere"), "--json"])
    assert said.exit_code == 0
    assert json.loads(said.stdout)["holds"] is True
    assert found.digest in run(app, ["verify", str(tmp_path / "elsewhere")]).stdout


def test_the_csv_holds_the_figures(copy):
    table = pd.read_csv(copy / "data.csv")
    expected = sf.releases.read_result(copy).to_frame()
    assert table["count"].tolist() == expected["count"].tolist()
    assert list(table.columns) == list(expected.columns)


def change(path, edit):
    made = json.loads(path.read_text(encoding="utf-8"))
    edit(made)
    path.write_text(certificate_text(made), encoding="utf-8")


def lower_epsilon(made):
    made["guarantee"]["epsilon"] = "0.1"


def other_sentence(made):
    made["guarantee"]["sentence"] = made["guarantee"]["sentence"].replace("at most", "far less than")


def less_charged(made):
    made["charged"]["epsilon"] = "0.5"


def more_lost(made):
    made["guarantee"]["steps"][0]["epsilon"] = "5"


def leads_elsewhere(made):
    made["files"]["../cells.ledger"] = "0" * 64


def future_format(made):
    made["certificate_version"] = 99


def no_files(made):
    del made["files"]


def no_guarantee(made):
    made["guarantee"] = ["none"]


def odd_types(made):
    made["charged"] = {"epsilon": {"a": 1}}


@pytest.mark.parametrize(
    ("edit", "noticed"),
    [
        (lower_epsilon, "the words follow from the figures"),
        (other_sentence, "the words follow from the figures"),
        (less_charged, "no more was used than charged"),
        (more_lost, "the steps lead to the promised ε"),
        (leads_elsewhere, "a listed file lies in the folder"),
        (future_format, "the certificate's format is known"),
        (no_files, "the files are listed with their digests"),
        (no_guarantee, "the promise can be read"),
        (odd_types, "the promise can be read"),
    ],
)
def test_a_certificate_that_was_changed_is_noticed(copy, edit, noticed):
    change(copy / "certificate.json", edit)
    found = verify(copy)
    assert noticed in {c.what for c in found.checks if not c.holds}
    assert run(app, ["verify", str(copy)]).exit_code == 1


@pytest.mark.parametrize("name", ["data.json", "data.csv", "data.parquet", "report.html"])
def test_a_file_that_was_changed_or_lost_is_noticed(copy, name):
    with (copy / name).open("ab") as file:
        file.write(b" ")
    assert {c.what for c in verify(copy).checks if not c.holds} >= {f"{name} is as it was written"}
    (copy / name).unlink()
    assert {c.what for c in verify(copy).checks if not c.holds} >= {f"{name} is as it was written"}


def test_a_file_that_was_slipped_in_is_noticed(copy):
    (copy / "truth.csv").write_text("1\n")
    (failed,) = [c for c in verify(copy).checks if not c.holds]
    assert "truth.csv" in failed.found


def test_figures_and_table_must_agree_even_if_the_digests_do(copy):
    import hashlib

    frame = pd.read_parquet(copy / "data.parquet")
    frame["count"] += 1
    frame.to_parquet(copy / "data.parquet", index=False)
    digest = hashlib.sha256((copy / "data.parquet").read_bytes()).hexdigest()
    change(copy / "certificate.json", lambda made: made["files"].update({"data.parquet": digest}))
    assert [c.what for c in verify(copy).checks if not c.holds] == ["the table holds the same figures"]


def test_an_experiment_is_not_taken_for_a_private_release(tmp_path):
    schema = Schema({"ward": Categorical(["a", "b"])})
    frame = pd.DataFrame({"ward": ["a", "b", "b"]})
    table = sf.open(frame, schema=schema, epsilon=1, noise=sf.Seeded(1), ledger=":memory:", name="t")
    table.histogram("ward", epsilon=1).save(tmp_path / "wards")
    failed = [c for c in verify(tmp_path / "wards").checks if not c.holds]
    assert [c.what for c in failed] == ["the release is private"]


def test_a_folder_without_a_certificate_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(InputError, match=r"holds no readable certificate\.json"):
        verify(tmp_path)


def test_the_report_is_printed_by_a_browser_if_there_is_one(copy, monkeypatch, tmp_path):
    assert run(app, ["report", str(copy)]).stdout.strip() == str(copy / "report.html")
    # A stand-in for a browser: what matters is that its file is taken over whole, and that none is no traceback.
    stub = tmp_path / "browser"
    stub.write_text('#!/bin/sh\nfor a; do case "$a" in --print-to-pdf=*) printf "%%PDF-1.7 page" > "${a#*=}";; esac; done\n')
    stub.chmod(0o755)
    monkeypatch.setenv("SFUMATO_BROWSER", str(stub))
    assert browser() == str(stub)
    assert print_pdf(copy / "report.html", copy / "report.pdf").read_bytes().startswith(b"%PDF")
    assert verify(copy).holds  # a printed report is nothing that was slipped in
    stub.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(sf.SfumatoError, match="printed nothing"):
        print_pdf(copy / "report.html", copy / "again.pdf")
    assert not (copy / "again.pdf").exists()
    monkeypatch.setenv("SFUMATO_BROWSER", "no-such-browser")
    with pytest.raises(InputError, match="no such program"):
        browser()
