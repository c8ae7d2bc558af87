"""A model from a plan, its folder, and `sfumato predict`."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli import app
from sfumato.errors import InputError
from sfumato.releases.batch import load, release
from sfumato.releases.predicting import predict_file
from support.clinic import make

PLAN = """
[dataset]
name = "clinic"
source = "clinic.parquet"
schema = "clinic.toml"
rows = 2000

[ledger]
location = "clinic.ledger"
epsilon = 3.0

[[release]]
name = "wards"
kind = "model"
target = "ward"
estimator = "naive-bayes"
attributes = ["age", "stay", "region"]
temper = 0.5
epsilon = 1.0

[[release]]
name = "regions"
kind = "model"
target = "region"
mechanism = "svm"
where = "age >= 18"
epsilon = 1.0

[[release]]
name = "old"
kind = "count"
where = "age >= 65"
epsilon = 0.5
"""


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clinic")
    outcomes = release(load(make(folder, PLAN)))
    return folder, {o.name: o for o in outcomes}


def called(*words):
    found = CliRunner().invoke(app, ["predict", *map(str, words)])
    return found, " ".join(found.output.split())


def refused(*words):
    found, _ = called(*words)
    assert isinstance(found.exception, InputError), found.output
    return str(found.exception)


def test_the_artefact_of_a_model(clinic):
    folder, outcomes = clinic
    made = outcomes["wards"]
    assert {p.name for p in made.folder.iterdir()} >= {"model.json", "model.npz", "certificate.json", "report.html"}
    assert {"model.json", "model.npz"} <= set(made.certificate["files"])
    assert made.certificate["mechanism"] == "naive-bayes"
    assert made.certificate["asked"]["mechanism"] == "naive-bayes"
    assert made.certificate["parameters"]["temper"] == 0.5
    assert made.certificate["charged"]["epsilon"] == "1"
    page = (made.folder / "report.html").read_text()
    assert "What the model says" in page
    assert "It looks at age, stay, region." in page
    header = json.loads((made.folder / "model.json").read_text())
    assert header["format_version"] == 1
    assert "patient" not in header["schema"].split("[columns")[1]
    frame = pd.read_parquet(folder / "clinic.parquet")
    model = sf.load(made.folder)
    np.testing.assert_array_equal(model.predict(frame), made.result.predict(frame))
    assert sf.load(outcomes["old"].folder).value == outcomes["old"].result.value
    repeated = release(load(folder / "clinic.plan.toml" if (folder / "clinic.plan.toml").exists() else plan_of(folder)))
    assert all(o.repeated for o in repeated)


def plan_of(folder):
    return next(p for p in folder.glob("*.toml") if "[[release]]" in p.read_text() and "naive-bayes" in p.read_text())


def test_a_file_that_is_not_the_certified_one_is_refused(clinic, tmp_path):
    _, outcomes = clinic
    for name in ("model.json", "model.npz"):
        copied = tmp_path / name
        copied.mkdir()
        for path in outcomes["wards"].folder.iterdir():
            (copied / path.name).write_bytes(path.read_bytes())
        (copied / name).write_bytes((copied / name).read_bytes() + b" ")
        with pytest.raises(InputError, match=f"{name} is not the file that certificate.json speaks of"):
            sf.load(copied)
        (copied / "certificate.json").write_text("{")
        with pytest.raises(InputError, match="cannot be read"):
            sf.load(copied)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_predictions_of_a_file_are_those_of_the_model(clinic, tmp_path, ending):
    folder, outcomes = clinic
    frame = pd.read_parquet(folder / "clinic.parquet").head(300)
    frame.loc[frame.index[3], "region"] = "nowhere"
    rows = tmp_path / f"rows{ending}"
    frame.to_csv(rows, index=False) if ending == ".csv" else frame.to_parquet(rows)
    model = sf.load(outcomes["wards"].folder)
    out = tmp_path / f"out{ending}"
    found = predict_file(model, rows, out, proba=True, keep=["patient"], batch=64)
    assert found.rows == 300
    written = pd.read_csv(out) if ending == ".csv" else pd.read_parquet(out)
    assert written["patient"].astype(str).tolist() == frame["patient"].astype(str).tolist()
    np.testing.assert_array_equal(written["predicted_ward"].to_numpy(dtype=object), model.predict(frame))
    shares = written[[f"probability_{c}" for c in model.classes_]].to_numpy()
    np.testing.assert_allclose(shares, model.predict_proba(frame), rtol=1e-12)


def test_the_command(clinic, tmp_path):
    folder, outcomes = clinic
    rows, out = folder / "clinic.parquet", tmp_path / "out.csv"
    found, said = called(outcomes["regions"].folder, rows, "-o", out)
    assert found.exit_code == 0, found.output
    assert "2,000 rows" in said
    assert "the model does not look at" in said
    assert list(pd.read_csv(out)) == ["predicted_region"]
    model = outcomes["wards"].folder
    assert "already exists" in refused(model, rows, "-o", out)
    assert "ends with neither" in refused(model, rows, "-o", tmp_path / "out.xlsx")
    assert "no folder" in refused(model, rows, "-o", tmp_path / "none" / "out.csv")
    assert "gives no probabilities" in refused(outcomes["regions"].folder, rows, "--proba")
    assert "predicts nothing" in refused(outcomes["old"].folder, rows)
    assert "there is no" in refused(tmp_path / "none", rows)
    assert "takes a key and a value" in refused(model, rows, "--csv", "delimiter")
    pd.read_parquet(rows).head(20).to_csv(tmp_path / "semicolons.csv", sep=";", index=False)
    found, _ = called(model, tmp_path / "semicolons.csv", "-o", tmp_path / "s.parquet", "--csv", "delimiter=;")
    assert found.exit_code == 0, found.output
    assert len(pd.read_parquet(tmp_path / "s.parquet")) == 20
    pd.read_parquet(rows).drop(columns=["age", "stay"]).to_parquet(tmp_path / "few.parquet")
    missing = refused(model, tmp_path / "few.parquet", "-o", tmp_path / "few.csv")
    assert "has no column 'age', 'stay'; the model needs age, stay, region" in missing
    assert "has no column 'name'" in refused(model, rows, "--keep", "name")
    assert not list(tmp_path.glob(".*partial")) + list(tmp_path.glob("few.csv"))


def test_a_table_without_rows_gives_the_headings(clinic, tmp_path):
    folder, outcomes = clinic
    pd.read_parquet(folder / "clinic.parquet").head(0).to_parquet(tmp_path / "none.parquet")
    model = sf.load(outcomes["wards"].folder)
    assert predict_file(model, tmp_path / "none.parquet", tmp_path / "none.csv", keep=["patient"]).rows == 0
    assert (tmp_path / "none.csv").read_text().strip() == '"patient","predicted_ward"'


def test_a_model_of_plain_numbers_is_not_for_the_command(tmp_path):
    rows = np.sin(np.arange(40.0)).reshape(20, 2)
    model = sf.classifiers.PrivateSVM(epsilon=9, bounds=(-1, 1), classes=[0, 1]).fit(rows, (rows[:, 0] > 0).astype(int))
    with pytest.raises(InputError, match="without a schema"):
        predict_file(model, tmp_path / "rows.csv", None)
