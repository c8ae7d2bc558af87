"""A plan is judged before anything is charged, and one that stops half-way says what was spent."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli import app
from sfumato.errors import BudgetError, InputError, SchemaError
from sfumato.ledger import Ledger
from sfumato.releases.batch import StoppedError, load, preview, release
from sfumato.tables import Dataset
from support import clinic

MORE = """
[[release]]
name = "more"
kind = "count"
"""


def command(*words):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.mark.parametrize(
    ("ledger", "asked", "match"),
    [
        ("", "epsilon = 0.4", r"asked ε 0.4, 0.2 of 1 left for 'clinic'"),
        ("recipients = { alice = 0.3 }", 'recipient = "alice"\nepsilon = 0.1', "alice"),
        ("recipients = { alice = 2 }\ntogether = 0.85", 'recipient = "alice"\nepsilon = 0.1', "together"),
        ("attributes = { ward = 0.5 }", "epsilon = 0.1", "attribute 'ward'"),
    ],
)
def test_the_preview_says_which_release_every_cap_would_refuse(tmp_path, ledger, asked, match):
    text = clinic.UNIFORM.replace("epsilon = 1.0", f"epsilon = 1.0\n{ledger}") + MORE + asked + "\n"
    seen = preview(load(clinic.make(tmp_path, text)))
    refusals = [p.foreseen.refusal for p in seen if p.foreseen.refusal]
    assert any(re.search(match, r) for r in refusals), refusals
    assert seen.refused is not None
    assert not (tmp_path / "clinic.ledger").exists()
    with pytest.raises(BudgetError, match="the plan as a whole cannot be paid"):
        release(load(tmp_path / "plan.toml"))
    assert not (tmp_path / "clinic.ledger").exists()


def test_people_whose_budget_is_gone_are_told_in_the_preview_and_what_is_paid_for_is_free(tmp_path):
    path = clinic.make(tmp_path)
    release(load(path))
    seen = preview(load(path))
    assert [p.foreseen.paid for p in seen] == [True, True]
    path.write_text(path.read_text().replace("age >= 65", "age >= 66"))
    seen = preview(load(path))
    assert "strict" in seen[0].foreseen.refusal
    assert seen[1].foreseen.paid
    said = command("preview", path)
    assert "would be refused" in said.stdout


def test_what_is_publicly_too_large_or_empty_is_told_before_the_charge(tmp_path):
    wide = sf.Schema({c: sf.Numeric(0, 1, bins=5000) for c in "ab"})
    table = sf.open(pd.DataFrame({"a": [0.5], "b": [0.5]}), schema=wide, epsilon=1, rows=1, ledger=":memory:")
    with pytest.raises(SchemaError, match="25,000,000 cells over a, b; at most 20,000,000"):
        table.preview("histogram", columns=["a", "b"], epsilon=0.1)
    long = " or ".join(f"a = {i / 3000}" for i in range(3000))
    with pytest.raises(SchemaError, match="500"):
        table.preview("count", where=long, epsilon=0.1)
    assert "no row can satisfy" in table.preview("count", where="a < 0", epsilon=0.1).priced.notes[0]
    assert table.preview("count", where="a < 0.5", epsilon=0.1).priced.notes == ()


def broken(*_args, **_kwargs):
    raise RuntimeError("patient 4711")


def test_a_plan_that_stops_half_way_says_what_was_released_and_spent(tmp_path, monkeypatch):
    path = clinic.make(tmp_path, clinic.UNIFORM)
    monkeypatch.setattr(Dataset, "counts", broken)
    said = command("release", path)
    assert said.exit_code == 2
    assert "the plan stopped at release 'wards'. Released and spent before that: over65 (ε 0.4)" in said.output
    assert "4711" not in said.output
    assert [h.state for h in Ledger.open(tmp_path / "clinic.ledger").history("clinic")] == ["committed", "failed"]


def test_control_c_says_the_same(tmp_path, monkeypatch):
    path = clinic.make(tmp_path, clinic.UNIFORM)

    def interrupt(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(Dataset, "counts", interrupt)
    with pytest.raises(StoppedError, match="stopped during release 'wards'") as stopped:
        release(load(path))
    assert [o.name for o in stopped.value.outcomes] == ["over65"]
    assert [h.state for h in Ledger.open(tmp_path / "clinic.ledger").history("clinic")] == ["committed", "failed"]


@pytest.mark.parametrize("mechanism", ["dpa", "sdpa", "uniform"])
def test_every_histogram_mechanism_can_be_asked_for_in_a_plan(tmp_path, mechanism):
    plan = load(clinic.make(tmp_path, clinic.UNIFORM.replace('"identity"', f'"{mechanism}"')))
    assert preview(plan)[1].chosen.mechanism == mechanism
    assert release(plan, only="wards")[0].certificate["mechanism"] == mechanism


def test_a_refused_mechanism_lists_the_others_once(tmp_path):
    plan = load(clinic.make(tmp_path, clinic.UNIFORM.replace('"identity"', '"magic"')))
    with pytest.raises(InputError, match="applicable here: auto") as refused:
        preview(plan)
    names = str(refused.value).split("applicable here: ")[1].replace("(the best by preview)", "").split(",")
    assert len({n.strip() for n in names}) == len(names)


def test_a_parameter_of_a_mechanism_is_set_in_the_plan_and_checked(tmp_path):
    asked = clinic.UNIFORM.replace('mechanism = "identity"', 'mechanism = "dpa"\ndelta = 0.5')
    (made,) = release(load(clinic.make(tmp_path / "a", asked)), only="wards")
    assert made.certificate["parameters"]["delta"] == 0.5
    with pytest.raises(InputError, match="`delta` of release 'wards' is a number from 0 to 1, got 7"):
        load(clinic.make(tmp_path / "b", asked.replace("delta = 0.5", "delta = 7")))
    with pytest.raises(InputError, match="it is a parameter of dpa: say mechanism = 'dpa' as well"):
        load(clinic.make(tmp_path / "c", asked.replace('mechanism = "dpa"\n', "")))


def test_release_prints_the_answer_and_the_ledger_tells_what_for_whom_and_by_whom(tmp_path):
    text = clinic.UNIFORM.replace("epsilon = 1.0", "epsilon = 1.0\nrecipients = { alice = 1 }")
    path = clinic.make(tmp_path, text.replace('name = "over65"', 'name = "over65"\nrecipient = "alice"'))
    said = json.loads(command("release", path, "--by", "Ann", "--json").stdout)["releases"]
    assert 0 < said[0]["result"]["value"] < 2000
    assert len(said[1]["result"]["counts"]) > 1
    again = command("release", path).stdout
    assert f"{said[0]['result']['value']:,.0f}" in again
    entries = json.loads(command("ledger", "--plan", path, "--json").stdout)["datasets"][0]["releases"]
    assert [(e["name"], e["recipient"], e["by"], e["columns"]) for e in entries] == [
        ("over65", "alice", "Ann", []),
        ("wards", None, "Ann", ["ward"]),
    ]
    shown = " ".join(command("ledger", "--plan", path).stdout.split())
    for word in ("over65", "wards", "alice", "Ann"):
        assert word in shown


def test_the_ledger_of_a_dataset_is_found_under_any_file_name(tmp_path, monkeypatch):
    release(load(clinic.make(tmp_path, clinic.UNIFORM.replace("clinic.ledger", "hospital.ledger"))))
    monkeypatch.chdir(tmp_path)
    assert json.loads(command("ledger", "clinic", "--json").stdout)["datasets"][0]["dataset"] == "clinic"
    nobody = command("ledger", "nobody")
    assert "no ledger in this folder knows 'nobody' (ledgers here: hospital.ledger)" in str(nobody.exception)


def test_times_tell_the_minute_and_failures_one_kind(tmp_path, monkeypatch):
    plan = load(clinic.make(tmp_path, clinic.UNIFORM))
    (made,) = release(plan, only="over65")
    entry = Ledger.open(plan.ledger).history("clinic")[0]
    for text in (entry.reserved_at, entry.finished_at, made.certificate["created"]):
        assert pd.Timestamp(text).second == 0
        assert pd.Timestamp(text).microsecond == 0
    assert np.datetime64("2020") < np.datetime64(entry.reserved_at[:16])


def test_a_plan_of_an_analyst_is_charged_to_their_allowance_and_refused_without_one(tmp_path):
    path = clinic.make(tmp_path, clinic.UNIFORM)
    plan, ann = load(path), {"analyst": "ann", "purpose": "care"}
    assert "has no allowance" in preview(plan, **ann).refused.foreseen.refusal
    with pytest.raises(BudgetError, match="has no allowance"):
        release(plan, **ann)
    ledger = Ledger.open(tmp_path / "clinic.ledger")
    ledger.register("clinic", epsilon=plan.epsilon)
    ledger.allow("clinic", epsilon="0.7", **ann)
    refused = preview(plan, **ann).refused
    assert "left for analyst 'ann' and purpose 'care'" in refused.foreseen.refusal
    with pytest.raises(BudgetError, match="the plan as a whole"):
        release(plan, **ann)
    assert ledger.allowances("clinic")[0].spent == 0
    ledger.allow("clinic", epsilon="0.8", **ann)
    made = release(plan, **ann)
    assert (ledger.allowances("clinic")[0].spent, ledger.balance("clinic").total.spent) == (800_000_000, 800_000_000)
    assert [again.repeated for again in release(plan, **ann)] == [True] * len(made)
    assert ledger.allowances("clinic")[0].spent == 800_000_000
    ledger.verify("clinic")
