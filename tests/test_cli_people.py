"""`sfumato people PLAN ...` and `sfumato receipt`: the whole life of a plan through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from sfumato.cli import app

RUNNER = CliRunner()
PLAN = """
[dataset]
name = "clinic"
source = "clinic.csv"
schema = "schema.toml"

[people]
living = true
tiers = { strict = 0.1, open = 1.0 }
period = "year"
per_period = { open = 0.6 }

[ledger]
location = "clinic.ledger"

[[release]]
name = "over65"
kind = "count"
where = "age >= 65"
share = 0.2

[[release]]
name = "all"
kind = "count"
share = 0.2
"""
SCHEMA = """
[unit]
person = "patient"
rows_per_person = 1

[columns.age]
type = "numeric"
low = 0
high = 99
bins = 10
integer = true
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    (tmp_path / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    pd.DataFrame({"patient": range(1, 7), "age": [30, 40, 50, 66, 77, 88]}).to_csv("clinic.csv", index=False)
    roster = {"patient": [1, 2, 3, 4, 5], "tier": ["strict", "strict", "open", "open", "open"]}
    pd.DataFrame(roster).to_csv("roster.csv", index=False)
    return tmp_path


def run(*words: str, code: int = 0, given: str | None = None) -> Any:
    """The command's output; its JSON if it was asked for."""
    done = RUNNER.invoke(app, list(words), input=given)
    if isinstance(done.exception, Exception) and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return json.loads(done.stdout) if "--json" in words else done.output


def people(*words: str, code: int = 0, given: str | None = None) -> Any:
    return run("people", "plan.toml", *words, code=code, given=given)


def test_the_life_of_a_plan(home: Path) -> None:
    assert people("import", "roster.csv", "--json")["pending"]["join"] == 5
    shown = people("show", "--json")
    assert (shown["epoch"], shown["people"], shown["pending"]["join"]) == (0, 0, 5)
    assert "Epoch 1 begins" in people("epoch")
    assert "nothing was pending" in people("epoch")
    preview = run("preview", "plan.toml", "--json")
    assert [r["refusal"] for r in preview["releases"]] == [None, None]
    first = run("release", "plan.toml", "--json")["releases"]
    assert [Path(r["folder"]).parts[-2:] for r in first] == [("epoch-2", "over65"), ("epoch-2", "all")]
    assert [r["repeated"] for r in run("release", "plan.toml", "--json")["releases"]] == [True, True]

    people("change", "1", "open")
    people("change", "3", "strict")
    people("join", "6", "0.25")
    assert people("withdraw", "5", code=1, given="n\n").count("cannot be taken back") == 1
    people("withdraw", "5", "--yes")
    assert "take part with less" not in str(people("show"))
    closed = people("epoch", "--json")
    assert closed["number"] == 3
    second = run("release", "plan.toml", "--json")["releases"]
    assert [r["repeated"] for r in second] == [False, False]
    assert {r["certificate"]["living"]["epoch"] for r in second} == {3}

    made = {r["certificate"]["reservation"]: r["certificate"] for r in (*first, *second)}
    for person, releases in {"1": 4, "2": 4, "4": 3, "5": 2, "6": 2}.items():  # the year of 4 ran out
        receipt = run("receipt", person, "--plan", "plan.toml", "--json")
        assert len(receipt["lines"]) == releases
        for line in receipt["lines"]:
            cohorts = made[line["release"]]["living"]["cohorts"]
            mine = [c["charged"] for c in cohorts if (c["tier"], c["granted"]) == (line["tier"], line["grant"])]
            assert line["charged"] in mine
    swapped = run("receipt", "3", "--plan", "plan.toml", "--json")
    assert swapped["lines"][0]["grant"] == "1"
    assert run("receipt", "5", "--plan", "plan.toml", "--json")["withdrawn"] is True


def test_a_receipt_is_a_page_that_anybody_can_read(home: Path) -> None:
    people("import", "roster.csv")
    people("epoch")
    run("release", "plan.toml")
    said = run("receipt", "3", "--plan", "plan.toml", "--html", "receipt.html")
    assert "Left for life" in said
    page = (home / "receipt.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "http" not in page
    for words in ("What cannot be undone", "over65", "prefers-color-scheme", "width=device-width", "left in this period"):
        assert words in page
    assert run("receipt", "3", "--dataset", "clinic", "--json") == run("receipt", "3", "--plan", "plan.toml", "--json")


def test_a_file_that_no_longer_lists_somebody(home: Path) -> None:
    people("import", "roster.csv")
    people("epoch")
    pd.DataFrame({"patient": [1, 2], "tier": ["strict", "open"]}).to_parquet("later.parquet")
    assert people("import", "later.parquet", "--json")["pending"]["withdraw"] == 0
    gone = people("import", "later.parquet", "--missing", "withdraw", "--json")
    assert gone["pending"]["withdraw"] == 3
    people("epoch")
    assert people("show", "--json")["people"] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("join", "9", "opne"), "did you mean 'open'"),
        (("join", "9", "nan"), "neither a tier"),
        (("change", "nobody", "open"), "nobody of that name"),
        (("withdraw", "nobody", "--yes"), "nobody of that name"),
        (("import", "strange.csv"), "did you mean 'strict'"),
        (("import", "nameless.csv"), "no column 'patient'"),
    ],
)
def test_mistakes_are_said_kindly(home: Path, words: tuple[str, ...], said: str) -> None:
    people("import", "roster.csv")
    people("epoch")
    pd.DataFrame({"patient": [1], "tier": ["strct"]}).to_csv("strange.csv", index=False)
    pd.DataFrame({"who": [1], "tier": ["strict"]}).to_csv("nameless.csv", index=False)
    done = RUNNER.invoke(app, ["people", "plan.toml", *words])
    assert said in str(done.exception)


def test_a_lost_key_is_said(home: Path) -> None:
    people("import", "roster.csv")
    people("epoch")
    (home / "clinic.ledger.key").unlink()
    done = RUNNER.invoke(app, ["receipt", "1", "--plan", "plan.toml"])
    assert "Bring the key back" in str(done.exception)


def test_a_release_before_any_epoch_says_what_to_do(home: Path) -> None:
    people("import", "roster.csv")
    done = RUNNER.invoke(app, ["release", "plan.toml"])
    assert "sfumato people PLAN epoch" in str(done.exception)
    done = RUNNER.invoke(app, ["preview", "plan.toml"])
    assert "sfumato people PLAN epoch" in str(done.exception)


def test_a_preview_writes_nothing(home: Path) -> None:
    people("import", "roster.csv")
    people("epoch")
    people("change", "3", "strict")
    (home / "clinic.csv").unlink()
    before = {p.name: p.read_bytes() for p in home.iterdir() if p.is_file() and not p.name.endswith(("-wal", "-shm"))}
    found = run("preview", "plan.toml", "--json")
    assert any("1 choices wait" in note for note in found["findings"])
    assert {
        p.name: p.read_bytes() for p in home.iterdir() if p.is_file() and not p.name.endswith(("-wal", "-shm"))
    } == before


def test_a_roster_that_never_changes_has_no_such_commands(home: Path) -> None:
    (home / "plan.toml").write_text(PLAN.replace("living = true\n", "living = false\ncolumn = 'tier'\n"), encoding="utf-8")
    done = RUNNER.invoke(app, ["people", "plan.toml", "show"])
    assert done.exception is not None


@pytest.mark.parametrize(
    "words", [("people", "plan.toml", "show"), ("people", "plan.toml", "epoch"), ("release", "plan.toml")]
)
def test_looking_starts_no_ledger(home: Path, words: tuple[str, ...]) -> None:
    done = RUNNER.invoke(app, list(words))
    assert "sfumato people PLAN import roster.csv" in str(done.exception)
    assert not (home / "clinic.ledger").exists()


def test_one_release_of_a_plan_is_priced_for_people_as_they_stand(home: Path) -> None:
    (home / "plan.toml").write_text(PLAN.replace('where = "age >= 65"\nshare = 0.2', "epsilon = 50"), encoding="utf-8")
    people("import", "roster.csv")
    people("epoch")
    done = run("release", "plan.toml", "--only", "all", "--json")["releases"]  # nobody could pay for the other one
    assert [r["name"] for r in done] == ["all"]


def test_a_receipt_says_what_was_asked_and_since_when_somebody_is_gone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    people("import", "roster.csv")
    people("epoch")
    run("release", "plan.toml")
    people("withdraw", "5", "--yes")
    run("receipt", "5", "--plan", "plan.toml", "--html", "before.html")
    assert run("receipt", "5", "--plan", "plan.toml", "--json")["withdrawn_at"] is None  # it waits for the next release
    people("epoch")
    gone = run("receipt", "5", "--plan", "plan.toml", "--html", "gone.html", "--json")
    assert [(line["kind"], line["columns"], line["where"]) for line in gone["lines"]] == [
        ("count", [], "age >= 65"),
        ("count", [], None),
    ]
    page = (home / "gone.html").read_text(encoding="utf-8")
    assert "<h1>How your record was used</h1>" in page
    assert f"since {gone['withdrawn_at'].replace('T', ', ').removesuffix('Z')} UTC no release uses your record" in page
    assert "among the records where age &gt;= 65" in page
    assert "class=bar " not in page  # nothing is granted any more: no bar to read as used up
    assert "0.4 of 1 used" in (home / "before.html").read_text(encoding="utf-8")
    assert "count, where age >= 65" in run("receipt", "3", "--plan", "plan.toml")
    people("join", "5", "open")
    people("epoch")
    assert run("receipt", "5", "--plan", "plan.toml", "--json")["withdrawn_at"] is None


def test_amounts_on_a_page_have_three_digits_and_exact_ones_elsewhere(home: Path) -> None:
    (home / "plan.toml").write_text(PLAN.replace("share = 0.2", "share = 0.123456789"), encoding="utf-8")
    people("import", "roster.csv")
    people("epoch")
    run("release", "plan.toml")
    exact = run("receipt", "3", "--plan", "plan.toml", "--html", "page.html", "--json")
    assert len(exact["spent"]) > 6
    page = (home / "page.html").read_text(encoding="utf-8")
    assert exact["spent"] not in page
    assert "0.247 of 1 used" in page


def test_whoever_lowers_below_what_is_spent_is_said_to_take_no_part(home: Path) -> None:
    people("import", "roster.csv")
    people("epoch")
    assert people("change", "4", "strict", "--json")["note"] is None  # nothing is spent yet
    people("change", "4", "open")
    run("release", "plan.toml")
    said = " ".join(people("change", "3", "strict").split())
    assert "0.4 is spent already, more than strict allows: once that holds, this person takes no part" in said
    assert people("change", "3", "0.4", "--json")["note"].startswith("0.4 is spent already, all that 0.4 allows")
    assert people("change", "3", "0.41", "--json")["note"] is None
    people("withdraw", "5", "--yes")
    people("epoch")
    assert "more than 0.25 allows" in people("join", "5", "0.25", "--json")["note"]
    assert people("join", "9", "strict", "--json")["note"] is None
    people("change", "3", "strict")
    people("epoch")
    again = run("release", "plan.toml", "--json")["releases"]
    mine = [line["release"] for line in run("receipt", "3", "--plan", "plan.toml", "--json")["lines"]]
    assert not {r["certificate"]["reservation"] for r in again} & set(mine)  # it is as was said


@pytest.mark.parametrize("broken", ["epsilon = 50", "epsilon = 0.7"])
def test_a_preview_lists_what_nobody_can_pay_for_as_refused(home: Path, broken: str) -> None:
    """50 is more than anybody granted, 0.7 more than anybody has for this year."""
    plan = PLAN.replace('where = "age >= 65"\nshare = 0.2', broken)
    (home / "plan.toml").write_text(plan, encoding="utf-8")
    people("import", "roster.csv")
    people("epoch")
    first, second = run("preview", "plan.toml", "--json")["releases"]
    assert "nobody can pay for release 'over65'" in first["refusal"]
    assert any("as if everybody had enough left" in note for note in first["notes"])
    assert second["refusal"] is None
    (home / "plan.toml").write_text(
        PLAN.split("[[release]]")[0] + "[[release]]" + plan.split("[[release]]")[2], encoding="utf-8"
    )
    assert run("preview", "plan.toml", "--json")["releases"][0]["offers"] == second["offers"]  # it took nothing from others
    (home / "plan.toml").write_text(plan, encoding="utf-8")
    for words in ((), ("--only", "over65")):
        done = RUNNER.invoke(app, ["release", "plan.toml", *words])
        assert "nobody can pay for release 'over65'" in str(done.exception)
    assert run("receipt", "3", "--plan", "plan.toml", "--json")["lines"] == []
