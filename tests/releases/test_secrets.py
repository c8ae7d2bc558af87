"""Secrets that a plan takes from the environment are put in where something lies, and shown nowhere."""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO

import pytest

from sfumato.cli import main
from sfumato.errors import InputError, _hidden
from sfumato.ledger import Ledger
from sfumato.privacy.source import SECURE
from sfumato.releases.batch import load, preview, release
from sfumato.releases.pipeline import request_text
from sfumato.releases.variables import expanded
from support import clinic

SECRET = "hunter2-Zx?/@:&%$"


@pytest.fixture(autouse=True)
def forget():
    yield
    _hidden.clear()


def call(monkeypatch, *words):
    out = StringIO()
    monkeypatch.setattr(sys, "argv", ["sfumato", *map(str, words)])
    with redirect_stdout(out), redirect_stderr(out), suppress(SystemExit):
        main()
    return out.getvalue()


def test_values_are_put_in_once_and_only_where_they_are_named(monkeypatch):
    monkeypatch.setenv("SFUMATO_A", "x${SFUMATO_B}$$")
    assert expanded("${SFUMATO_A}/$$/${SFUMATO_A}", "here") == "x${SFUMATO_B}$$/$/x${SFUMATO_B}$$"
    monkeypatch.setenv("SFUMATO_A", SECRET)
    url = expanded("postgresql://${SFUMATO_A}:${SFUMATO_A}@host/${SFUMATO_A}", "here")
    login, _, rest = url.removeprefix("postgresql://").rpartition("@host/")
    assert rest == SECRET.replace("?", "%3F")
    assert not set(login) & set("?/@&$")
    monkeypatch.setenv("SFUMATO_A", "")
    with pytest.raises(InputError, match="not set in the environment"):
        expanded("${SFUMATO_A}", "here")


@pytest.mark.parametrize(
    ("key", "address"),
    [
        ('source = "clinic.parquet"', 'source = "postgresql://${SFUMATO_A}:${SFUMATO_A}@127.0.0.1:1/db"\ntable = "t"'),
        ('source = "clinic.parquet"', 'source = "postgresql://127.0.0.1:1/db?password=${SFUMATO_A}"\ntable = "t"'),
        ('source = "clinic.parquet"', 'source = "${SFUMATO_A}.parquet"'),
        ('source = "clinic.parquet"', 'source = "${SFUMATO_A}.csv"'),
        ('source = "clinic.parquet"', 'source = "${SFUMATO_A}"'),
        ('location = "clinic.ledger"', 'location = "postgresql://ann:${SFUMATO_A}@127.0.0.1:1/${SFUMATO_A}"'),
        ('location = "clinic.ledger"', 'location = "mysql://ann:${SFUMATO_A}@127.0.0.1:1/db"'),
        ('location = "clinic.ledger"', 'location = "${SFUMATO_A}/clinic.ledger"'),
    ],
)
def test_no_message_shows_a_secret(tmp_path, monkeypatch, key, address):
    monkeypatch.setenv("SFUMATO_A", SECRET)
    path = clinic.make(tmp_path, clinic.UNIFORM.replace(key, address))
    said = "".join(call(monkeypatch, verb, path) for verb in ("check", "preview", "release"))
    said += call(monkeypatch, "check", path, "--table", "--json")
    assert "hunter2" not in said
    assert "Traceback" not in said
    assert len(said) > 100
    with suppress(InputError):  # some of them are refused at once
        assert "hunter2" not in repr(load(path))


def test_a_release_from_a_secret_place_says_nowhere_where_it_was(tmp_path, monkeypatch):
    """Certificates, reports and the ledger hold no part of an address; and an address is no part of a request's identity."""
    path = clinic.make(tmp_path / "a", clinic.UNIFORM)
    before = [request_text(p, dataset_name="clinic", source=SECURE) for p in preview(load(path))]
    hidden = tmp_path / "hunter2-folder"
    shutil.move(tmp_path / "a" / "clinic.parquet", tmp_path / "clinic.parquet")
    hidden.mkdir()
    shutil.move(tmp_path / "clinic.parquet", hidden / "clinic.parquet")
    monkeypatch.setenv("SFUMATO_DATA", str(hidden))
    monkeypatch.setenv("SFUMATO_BOOKS", str(tmp_path / "hunter2-books"))
    text = clinic.UNIFORM.replace('"clinic.parquet"', '"${SFUMATO_DATA}/clinic.parquet"')
    path.write_text(text.replace('"clinic.ledger"', '"${SFUMATO_BOOKS}.ledger"'))
    plan = load(path)
    assert [request_text(p, dataset_name="clinic", source=SECURE) for p in preview(plan)] == before
    told = []
    release(plan, notice=told.append)
    ledger = Ledger.open(plan.ledger)
    kept = json.dumps([entry.to_dict() for entry in ledger.history("clinic")], default=str)
    for file in (tmp_path / "a" / "releases").rglob("*"):
        kept += file.read_bytes().decode("latin-1") if file.is_file() else ""
    kept += (tmp_path / "hunter2-books.ledger").read_bytes().decode("latin-1")
    assert "hunter2" not in kept
    assert "hunter2" not in "".join(told)
    assert "hunter2" not in repr(plan) + repr(plan.roster())
