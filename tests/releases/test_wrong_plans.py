"""Every wrong plan gets a sentence that names the place and the remedy, exit code 2, and nothing is opened or spent."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import pytest
import typer

from sfumato.cli import app, main
from support.wrong_plans import LONG, PERSONAL, PLAIN, ROSTER, SCHEMA, Wrong, every_case

CASES = every_case()
COMMAND = typer.main.get_command(app)  # typer would build all commands anew for every call


@pytest.fixture(autouse=True)
def table_is_not_opened(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("the private table was opened")

    monkeypatch.setattr("sfumato.tables.dataset.connect", refuse)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.delenv("SFUMATO_NO_SUCH", raising=False)


def call(monkeypatch, *words):
    """The command line in this process: exit code, standard output, standard error."""
    out, err = StringIO(), StringIO()
    monkeypatch.setattr(sys, "argv", ["sfumato", *map(str, words)])
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("sfumato.cli.app", COMMAND)
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
            code = 0
        except SystemExit as left:
            code = int(left.code or 0)
    return code, out.getvalue(), err.getvalue()


def written(folder, case):
    """The files of a case; what a link would lead to is there as well."""
    files = {"plan.toml": case.base, "clinic.toml": SCHEMA, "roster.csv": ROSTER}
    for name, text in files.items():
        text = case.text(text) if name == case.file else text
        for word, long in LONG.items():
            text = text.replace(word, long)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "clinic.parquet").write_bytes(b"private")
    (folder / "elsewhere").mkdir()
    (folder / "link").symlink_to("elsewhere")
    (folder / "link.ledger").symlink_to("clinic.parquet")
    (folder / "planted").mkdir()
    (folder / "planted" / "over65").symlink_to("../elsewhere")
    (folder / "taken" / "over65").mkdir(parents=True)
    return folder / "plan.toml"


def nothing_happened(folder):
    made = {p.name for p in folder.iterdir()} - {"plan.toml", "clinic.toml", "roster.csv", "clinic.parquet", "releases"}
    assert made == {"elsewhere", "link", "link.ledger", "planted", "taken"}, made
    assert (folder / "clinic.parquet").read_bytes() == b"private"
    left = [p for f in ("releases", "elsewhere", "planted", "taken") for p in folder.joinpath(f).rglob("*") if p.is_file()]
    assert left == []


def fit_to_show(text):
    assert "Traceback" not in text
    assert "hush" not in text
    assert all(c.isprintable() or c == "\n" for c in text)
    assert len(text) < 5000


def test_there_are_enough_and_none_twice():
    assert len({case.name for case in CASES}) == len(CASES) >= 150


@pytest.mark.parametrize("base", [PLAIN, PERSONAL], ids=["plain", "personal"])
def test_the_plans_are_right_before_they_are_made_wrong(tmp_path, monkeypatch, base):
    plan = written(tmp_path, Wrong("right", (), "", "", base))
    code, out, err = call(monkeypatch, "check", plan, "--json")
    assert (code, json.loads(out)["mistakes"]) == (0, []), err
    assert json.loads(out)["prices"]
    nothing_happened(tmp_path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_wrong_plan_is_told_its_mistake(tmp_path, monkeypatch, case):
    plan = written(tmp_path, case)
    code, out, err = call(monkeypatch, "check", plan, "--json")
    assert code == 2, (out, err)
    assert err == ""
    mistakes = json.loads(out)["mistakes"]
    fit_to_show(out)
    for sentence in mistakes:
        fit_to_show(sentence)
    said = [m for m in mistakes if case.place in m and case.remedy in m]
    assert said, mistakes
    assert case.mistakes in (0, len(mistakes)), mistakes
    nothing_happened(tmp_path)

    code, out, err = call(monkeypatch, "release", plan)
    assert code == 2, (out, err)
    assert err.startswith("sfumato: ")
    fit_to_show(out + err)
    assert err.removeprefix("sfumato: ").strip() in mistakes or (case.place in err and case.remedy in err), (err, mistakes)
    nothing_happened(tmp_path)
