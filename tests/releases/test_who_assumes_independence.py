"""A plan or a call may state that grants and values are independent; the certificate says who did."""

import json

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import sfumato as sf
from sfumato.cli.show import priced_record, show_outcomes, show_preview
from sfumato.errors import InputError
from sfumato.releases.batch import preview as preview_plan
from sfumato.releases.batch import release as release_plan
from sfumato.releases.plan import read_plan

N = 3000
PLAN = """
[dataset]
name = "clinic"
source = "clinic.parquet"
schema = "clinic.toml"

[people]
column = "consent"
tiers = { strict = 0.02, standard = 0.5, open = 2.0 }
counts = { strict = 1600, standard = 1100, open = 300 }
PEOPLE
[ledger]
location = "clinic.ledger"

[[release]]
name = "sick"
kind = "count"
where = "sick = 'yes'"
RELEASE
"""


def written(folder, *, people="", release="", gap=0.0):
    rng = np.random.default_rng(1)
    consent = np.repeat(["strict", "standard", "open"], [1600, 1100, 300])
    sick = rng.random(N) < np.where(consent == "strict", 0.6 - gap, 0.6)
    pd.DataFrame({"consent": consent, "sick": np.where(sick, "yes", "no")}).to_parquet(folder / "clinic.parquet")
    schema = sf.Schema({"sick": sf.Categorical(["yes", "no"]), "consent": sf.Categorical(["strict", "standard", "open"])})
    (folder / "clinic.toml").write_text(schema.to_toml(), encoding="utf-8")
    text = PLAN.replace("PEOPLE", people).replace("RELEASE", release)
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    return read_plan(folder / "plan.toml")


def released(plan):
    return release_plan(plan, source=sf.Seeded(5))[0]


def test_nothing_is_assumed_unless_somebody_says_so(tmp_path):
    outcome = released(written(tmp_path))
    assert outcome.certificate["mechanism"] == "adaptive"
    assert outcome.certificate["assumption"] is None
    assert "independent" not in outcome.certificate["asked"]
    page = (outcome.folder / "report.html").read_text(encoding="utf-8")
    assert "for any data" in page
    assert "gap of 20 points" in page
    assert page.count("data:image/png") == 2
    stored = json.loads((outcome.folder / "data.json").read_text(encoding="utf-8"))
    assert stored["headline"]["interval"] == stored["interval"]
    assert (
        stored["interval"][1] - stored["interval"][0]
        > stored["interval_if_independent"][1] - stored["interval_if_independent"][0]
    )


@pytest.mark.parametrize(("people", "release"), [("independent = true", ""), ("", "independent = true")])
def test_a_plan_that_states_independence_is_named(tmp_path, people, release):
    outcome = released(written(tmp_path, people=people, release=release))
    assert outcome.certificate["mechanism"] == "affine"
    sentence = "Assumes that what people granted has nothing to do with their values; said so by: the plan."
    assert outcome.certificate["assumption"] == sentence
    assert sentence in (outcome.folder / "report.html").read_text(encoding="utf-8")
    console = Console(width=100, record=True)
    show_outcomes(console, [outcome])
    assert sentence in " ".join(console.export_text().split())


def test_a_release_may_withdraw_what_the_plan_states(tmp_path):
    plan = written(tmp_path, people="independent = true", release="independent = false")
    assert not plan.releases[0].independent
    assert preview_plan(plan)[0].chosen.mechanism == "adaptive"


def test_naming_a_mechanism_makes_its_assumption(tmp_path):
    made = released(written(tmp_path, release='mechanism = "affine"')).certificate
    assert "the mechanism affine rests on it; made by: the plan" in made["assumption"]


def test_a_mechanism_for_any_data_assumes_nothing(tmp_path):
    assert released(written(tmp_path, release='mechanism = "robust"')).certificate["assumption"] is None


def test_independence_is_true_or_false(tmp_path):
    with pytest.raises(InputError, match="true or false"):
        written(tmp_path, people='independent = "perhaps"')


def test_a_preview_fits_a_hundred_columns_and_shows_every_gap(tmp_path):
    found = preview_plan(written(tmp_path))
    console = Console(width=100, record=True)
    show_preview(console, found)
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 100
    head = next(line for line in lines if "mechanism" in line)
    assert all(word in head for word in ("if independent", "1 point", "5 points", "20 points", "worst case", "price"))
    assert next(line for line in lines if "affine" in line).count("…") == 0
    record = priced_record(found[0])
    assert record["chosen"] == "adaptive"
    affine = next(o for o in record["offers"] if o["mechanism"] == "affine")["errors"]
    assert affine["independent"] < affine["gap_1_point"] < affine["gap_20_points"] < affine["worst"]
    assert affine["assumes_independence"]


def test_the_alarm_is_the_first_thing_that_is_shown(tmp_path):
    outcome = released(written(tmp_path, gap=0.5))
    page = (outcome.folder / "report.html").read_text(encoding="utf-8")
    alarm = page.index("Consent and values seem to go together here")
    assert alarm < page.index("95% interval")
    assert alarm < page.index("What is promised")
    console = Console(width=300, record=True)
    show_outcomes(console, [outcome])
    shown = console.export_text()
    assert shown.index("Consent and values seem to go together") < shown.index("95% interval")
    ends = next(e["errors"] for e in outcome.certificate["previewed"] if e["mechanism"] == outcome.certificate["mechanism"])
    assert ends["worst"] > ends["independent"]
    for text in (page, shown):  # an error that holds only if there is nothing to be alarmed about is not the only one told
        assert "expected error if independent" in text
        assert "expected error in the worst case" in text
    assert f"expected error in the worst case {ends['worst']:,.4g}" in shown


def test_a_call_that_states_independence_is_named():
    rng = np.random.default_rng(2)
    consent = np.repeat(["strict", "open"], [600, 400])
    frame = pd.DataFrame({"consent": consent, "sick": rng.choice(["yes", "no"], 1000)})
    schema = sf.Schema({"sick": sf.Categorical(["yes", "no"]), "consent": sf.Categorical(["strict", "open"])})
    roster = sf.Roster.tiers({"strict": 0.05, "open": 2.0}, column="consent", counts={"strict": 600, "open": 400})
    table = sf.open(frame, schema=schema, budgets=roster, ledger=":memory:", noise=sf.Seeded(3))
    preview = table.preview("count", where="sick = 'yes'")
    assert preview.to_frame()["mechanism"][0] == "adaptive"
    assert {"gap_1_point", "gap_5_points", "gap_20_points", "worst"} <= set(preview.to_frame().columns)
    assert max(map(len, repr(preview).splitlines()[:10])) <= 100
    assert preview.plot().get_yscale() == "log"
    usual = table.count(where="sick = 'yes'", share=0.3)
    stated = table.count(where="sick = 'yes'", share=0.3, independent=True)
    assert usual.mechanism == "adaptive"
    assert stated.mechanism != "adaptive"
    assert stated.receipt.certificate["assumption"].endswith("said so by: the call.")
    assert usual.receipt.certificate["assumption"] is None
