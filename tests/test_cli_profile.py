"""`sfumato profile` and `sfumato bridge`, in this process: what is charged, written, refused and never shown."""

import json
import re

import pandas as pd
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.attributes import DeviceLedger, Policy, read_release
from sfumato.cli import app
from sfumato.errors import BudgetError, InputError, LedgerError, PrivacyError
from sfumato.releases.batch import load, preview, release
from sfumato.results import load_result

PROFILE = """
items = "films.csv"
releases = 2
together = 0.9

[budgets]
action = 0.5
crime = 0.5
romance = 0.1

[recipients]
cinema = 0.8
adnet = 0.2
"""
FILMS = "film,action,crime,romance\nHeat,1,1,\nGhost,,,1\nBullitt,2,1,0\n"


@pytest.fixture
def home(tmp_path):
    (tmp_path / "me.toml").write_text(PROFILE)
    (tmp_path / "films.csv").write_text(FILMS)
    (tmp_path / "history.csv").write_text("when,item\n1,Heat\n2,Ghost\n3,Unheard of\n")
    return tmp_path


def run(*words, fails=None):
    done = CliRunner().invoke(app, list(map(str, words)))
    if fails is not None:
        assert isinstance(done.exception, fails), (done.exception, done.output)
        return str(done.exception)
    assert done.exit_code == 0, (done.exception, done.output)
    return done.stdout


def test_a_release_is_charged_written_and_read_back(home):
    me = home / "me.toml"
    offers = json.loads(run("profile", me, "preview", "--to", "cinema", "--json"))["offers"]
    assert {offer["how"] for offer in offers} == {"mae", "mse", "mael", "composition"}
    assert not (home / "me.ledger.json").exists()
    told = json.loads(
        run("profile", me, "release", home / "history.csv", "--to", "cinema", "--out", home / "r.json", "--json")
    )
    read = read_release(home / "r.json")
    assert load_result(json.loads((home / "r.json").read_text())).counts.tolist() == read.counts.tolist() == told["counts"]
    assert (read.recipient, str(read.guarantee.epsilon)) == ("cinema", told["guarantee"]["epsilon"])
    left = json.loads(run("profile", me, "left", "--json"))
    assert set(left) == {"cinema", "adnet"}
    assert float(left["cinema"]["overall"]) == pytest.approx(0.8 - float(read.guarantee.epsilon))
    assert left["adnet"]["romance"] == "0.1"
    words = run("profile", me, "release", home / "history.csv", "--to", "cinema")
    assert "romance:" in words
    assert "Heat" not in words
    assert "cinema: overall" in run("profile", me, "left", "--to", "cinema")
    assert "towards 'cinema'" in run("profile", me, "release", home / "history.csv", "--to", "cinema", fails=BudgetError)
    again = run("profile", me, "release", home / "history.csv", "--to", "cinema", "--again")
    assert "this is the last release again" in again


def test_what_cannot_be_done_is_refused_before_anything_is_spent(home):
    me = home / "me.toml"
    history = home / "history.csv"
    assert "cannot read the history" in run("profile", me, "release", home / "no.csv", "--to", "cinema", fails=InputError)
    assert "exists" in run("profile", me, "release", history, "--to", "cinema", "--out", history, fails=InputError)
    assert "no folder" in run("profile", me, "release", history, "--to", "cinema", "--out", home / "x/y", fails=InputError)
    assert "no reputation" in run("profile", me, "release", history, "--to", "bank", fails=InputError)
    assert "--to RECIPIENT" in run("profile", me, "stream", home / "s.json", fails=InputError)
    assert not (home / "me.ledger.json").exists()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("budget = 1\n" + PROFILE, "unknown key 'budget'"),
        ("items = 3\n[budgets]\na = 1", "`items` is not what it must be"),
        ('items = "films.csv"', r"needs \[budgets\]"),
        ('items = "gone.csv"\n[budgets]\na = 1', "cannot read the catalogue"),
        ('items = "me.toml"\n[budgets]\na = 1', "lists items and their attributes"),
        ("[budgets]\na = 1\n[items]\nx = 3", "list of names"),
        ('policy = "gone.json"\n[budgets]\na = 1', "cannot read the policy"),
        ("together = 1\n[budgets]\na = 1\n[items]\nx = ['a']", "`together` caps recipients"),
        ("[budgets]\na = 1\n[items]\nx = ['a']\n[rule]\nhigh = 1", r"\[rule\] gives an ε"),
        ("[budgets]\na = 1\n[items]\nx = ['a']\n[rule]\n5 = 1\n[recipients]\nb = 1", "keep one"),
        ("[budgets]\na = 0\n[items]\nx = ['a']", "greater than 0|above 0"),
        ("not toml", "not valid TOML"),
    ],
)
def test_wrong_profiles_say_what_is_wrong(home, text, match):
    (home / "me.toml").write_text(text)
    done = CliRunner().invoke(app, ["profile", str(home / "me.toml"), "left"])
    assert isinstance(done.exception, InputError), done.output
    assert re.search(match, str(done.exception)), done.exception


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("film,a\n", "needs a header"),
        ("film,a\nx,1\nx,2\n", "'x' is listed twice"),
        ("film,a\nx,1,2\n", "2 weights for 1 attributes"),
        ("film,a\nx,much\n", "finite number"),
        ("film,a\nx,-1\n", "must not be negative"),
    ],
)
def test_wrong_catalogues_say_what_is_wrong(home, text, match):
    (home / "films.csv").write_text(text)
    said = run("profile", home / "me.toml", "left", fails=InputError)
    assert match in said


def test_a_policy_file_serves_a_device_without_the_catalogue(home):
    run("profile", home / "me.toml", "policy", "--to", "cinema", "--out", home / "policy.json")
    assert Policy.load(home / "policy.json").attributes == ("action", "crime", "romance")
    (home / "device.toml").write_text('policy = "policy.json"\n[budgets]\naction = 0.5\ncrime = 0.5\nromance = 0.1\n')
    (home / "history.jsonl").write_text('["action", "crime"]\n{"attributes": ["romance"]}\n')
    words = [
        "profile",
        home / "device.toml",
        "release",
        home / "history.jsonl",
        "--to",
        "cinema",
        "--epsilon",
        "0.4",
        "--json",
    ]
    assert len(json.loads(run(*words))["counts"]) == 3
    assert (home / "device.ledger.json").exists()


def test_a_stream_goes_on_and_is_charged_once(home):
    state = home / "stream.json"
    one = json.loads(run("profile", home / "me.toml", "stream", state, home / "history.csv", "--to", "adnet", "--json"))
    spent = DeviceLedger(home / "me.ledger.json").spent("adnet").total
    two = json.loads(run("profile", home / "me.toml", "stream", state, "--json"))
    assert two["counts"] == one["counts"]
    run("profile", home / "me.toml", "stream", state, home / "history.csv", "--skip", "100", "--out", home / "r.json")
    assert DeviceLedger(home / "me.ledger.json").spent("adnet").total == spent > 0
    assert read_release(home / "r.json").recipient == "adnet"
    assert "leave out --to" in run("profile", home / "me.toml", "stream", state, "--to", "adnet", fails=InputError)
    (home / "me.ledger.json").unlink()
    run("profile", home / "me.toml", "stream", state, fails=LedgerError)


PLAN = """
[dataset]
name = "cinema"
source = "seen.csv"
schema = "seen.toml"
rows = 40

[ledger]
location = "cinema.ledger"
epsilon = 10
attributes = { film = 9, romance = 1.0, action = 3.0 }
recipients = { studio = 4.0, adnet = 0.5 }

[[release]]
name = "tastes"
kind = "profile"
column = "film"
catalogue = "films.csv"
budgets = { romance = 0.4 }
recipient = "studio"
epsilon = 2
"""
SCHEMA = """
[unit]
person = "who"
rows_per_person = 2

[columns.film]
type = "categorical"
values = ["Heat", "Ghost", "Bullitt"]
"""


@pytest.fixture
def cinema(home):
    (home / "plan.toml").write_text(PLAN)
    (home / "seen.toml").write_text(SCHEMA)
    pd.DataFrame({"who": range(40), "film": ["Heat", "Ghost"] * 20}).to_csv(home / "seen.csv", index=False)
    return home


def test_a_plan_releases_a_profile_and_counts_a_device_beside_it(cinema):
    seen = json.loads(run("preview", cinema / "plan.toml", "--json"))["releases"][0]
    assert seen["chosen"] == "multilevel"
    assert seen["attributes"]["film"] == "4"
    assert float(seen["attributes"]["romance"]) <= 0.4
    done = release(load(cinema / "plan.toml"))[0]
    result = done.result
    assert type(result).__name__ == "Profiled"
    assert result.to_dict() == load_result(json.loads(json.dumps(result.to_dict()))).to_dict()
    assert done.certificate["guarantee"]["attributes"]["romance"] == done.certificate["charged"]["attributes"]["romance"]
    assert "<img" in (done.folder / "report.html").read_text()
    assert release(load(cinema / "plan.toml"))[0].repeated
    (cinema / "films.csv").write_text(FILMS.replace("Ghost,,,1", "Ghost,1,,1"))  # another catalogue is another question
    assert preview(load(cinema / "plan.toml"))[0].foreseen.paid is False
    (cinema / "films.csv").write_text(FILMS)

    me = cinema / "me.toml"
    run("profile", me, "release", cinema / "history.csv", "--to", "adnet")
    (cinema / "key").write_text("shared")
    run("profile", me, "statement", "--out", cinema / "said.json", "--key", cinema / "key")
    words = ["bridge", cinema / "said.json", "--plan", cinema / "plan.toml", "--person", "7", "--items", "2"]
    run(*words, fails=PrivacyError)  # sealed with a key that is not given
    words += ["--key", cinema / "key"]
    first = json.loads(run(*words, "--json"))
    spent = DeviceLedger(cinema / "me.ledger.json").spent("adnet")
    assert first["charged"]["recipient adnet"] == str(sf.privacy.as_epsilon(2 * spent.total))
    assert json.loads(run(*words, "--json")) == {"known": True, "charged": {}, "passed": {}}
    balance = {
        limit.name: limit.spent for limit in sf.ledger.Ledger.open(cinema / "cinema.ledger").balance("cinema").attributes
    }
    charged = done.certificate["charged"]["attributes"]
    romance = sf.privacy.positive_nano(charged["romance"]) + 2 * spent.attributes["romance"]
    assert balance["romance"] == romance
    assert "counted before" in run(*words)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (('catalogue = "films.csv"\n', ""), "needs `catalogue`"),
        (('"films.csv"', '"gone.csv"'), "cannot read the catalogue"),
        (('"films.csv"', '{ Psycho = ["horror"] }'), "no value of column 'film' is in the catalogue"),
        (('"films.csv"', '{ Heat = ["film"] }'), "'film' is an attribute of the catalogue and a column"),
        (("budgets = { romance = 0.4 }", "budgets = { horror = 0.4 }"), "names 'horror'"),
        (("budgets = { romance = 0.4 }", "budgets = 3"), "table of attributes"),
        (("budgets = { romance = 0.4 }", "budgets = { romance = -1 }"), "romance"),
        (('column = "film"', 'column = "flim"'), "did you mean 'film'"),
        (("epsilon = 2\n", 'epsilon = 2\nmechanism = "multilevel"\nutility = "best"\n'), "one of 'mae', 'mse', 'mael'"),
        (("epsilon = 2\n", "epsilon = 2\nutility = 'mae'\n"), "parameter of multilevel"),
        (("epsilon = 2\n", "epsilon = 1e-9\n"), "below 1e-9"),
    ],
)
def test_wrong_profile_releases_are_refused_from_public_facts(cinema, change, match):
    path = cinema / "plan.toml"
    assert change[0] in PLAN
    path.write_text(PLAN.replace(*change))
    said = run("preview", path, fails=InputError)
    assert match in said
    assert not (cinema / "cinema.ledger").exists()
