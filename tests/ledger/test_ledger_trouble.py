"""Wrong files, newer versions, full disks, read-only folders, stray SQL: an error that helps, and no harm done."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge


def test_a_newer_ledger_is_left_alone(where: str) -> None:
    ledger = Ledger.open(where)
    on = "" if ledger._store.is_sqlite else " ON ledger_meta"
    with ledger._store.write() as connection:
        connection.execute(text("DROP TRIGGER ledger_meta_change" + on))
        connection.execute(text("UPDATE ledger_meta SET value = '99' WHERE name = 'version'"))
    with pytest.raises(LedgerError, match=r"format 99.*upgrade Sfumato\. Nothing was changed"):
        Ledger.open(where)


@pytest.mark.parametrize("content", [b"age,readmitted\n65,1\n" * 9, b"x", b"SQLite format 3\0 but not really"])
def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "clinic.csv"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="not a Sfumato ledger"):
        Ledger.open(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_another_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE patients (age INTEGER)")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="a database but not a Sfumato ledger"):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_a_meta_table_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE ledger_meta (name TEXT, value TEXT)")
    with pytest.raises(LedgerError, match="not a Sfumato ledger"):
        Ledger.open(path)


def test_missing_places(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="no ledger at"):
        Ledger.open(tmp_path / "none.ledger", create=False)
    assert not (tmp_path / "none.ledger").exists()
    with pytest.raises(LedgerError, match=r"folder .* does not exist"):
        Ledger.open(tmp_path / "none" / "a.ledger")
    with pytest.raises(LedgerError, match="is a folder"):
        Ledger.open(tmp_path)
    (tmp_path / "empty.ledger").touch()
    with pytest.raises(LedgerError, match="no ledger at"):
        Ledger.open(tmp_path / "empty.ledger", create=False)


def test_a_ledger_says_whether_it_is_new_and_whether_it_vanished(tmp_path: Path) -> None:
    path = tmp_path / "clinic.ledger"
    ledger = Ledger.open(path)
    assert ledger.created
    assert not Ledger.open(path).created
    ledger.register("clinic", epsilon=1)
    path.rename(tmp_path / "moved.ledger")
    with pytest.raises(LedgerError, match="moved or deleted"):
        ledger.reserve("clinic", Charge(1), request="a")


@pytest.mark.parametrize("place", ["", ":memory:", "sqlite://", "mysql://root@localhost/x", "postgresql://[bad"])
def test_places_where_no_ledger_can_be(place: str) -> None:
    with pytest.raises(LedgerError):
        Ledger.open(place)


def test_an_absent_server_and_no_password_in_the_message() -> None:
    with pytest.raises(LedgerError, match="the server does not answer") as refusal:
        Ledger.open("postgresql://someone:secret-word@127.0.0.1:1/clinic")
    assert "secret-word" not in str(refusal.value)


@contextmanager
def _no_file_above(size: int) -> Iterator[None]:
    """What a full disk looks like to a program: the next write fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_spends_nothing_and_the_ledger_works_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "clinic.ledger"
    ledger = Ledger.open(path)
    levels = 10**9 + np.arange(20_000)
    ledger.register("clinic", epsilon=1, people=PersonBudgets(levels, np.ones_like(levels)))
    first = ledger.reserve("clinic", Charge.of("0.1"), request="a")
    for size in (0, 8192, 40_000, 120_000):
        with _no_file_above(size), pytest.raises(LedgerError, match=r"disk|cannot be written"):
            ledger.reserve("clinic", Charge.of("0.1"), request="b")
        assert ledger.balance("clinic").total.spent == 10**8
        ledger.verify("clinic")
    ledger.commit(first.id, "a")
    ledger.reserve("clinic", Charge.of("0.1"), request="b")
    assert ledger.balance("clinic").total.spent == 2 * 10**8


def test_a_full_disk_while_the_ledger_is_made(tmp_path: Path) -> None:
    for size in (0, 4096, 20_000):
        with _no_file_above(size), pytest.raises(LedgerError):
            Ledger.open(tmp_path / "clinic.ledger")
    Ledger.open(tmp_path / "clinic.ledger").register("clinic", epsilon=1)


def test_a_read_only_folder() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        Ledger.open(folder / "clinic.ledger").register("clinic", epsilon=1)
        (folder / "clinic.ledger").chmod(0o444)
        folder.chmod(0o555)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            said = "no error"
            try:
                if os.getuid() == 0:
                    os.setuid(65534)  # permissions do not stop root
                for name in ("clinic.ledger", "new.ledger"):
                    try:
                        Ledger.open(folder / name).reserve("clinic", Charge(1), request="a")
                        said = "no error"
                        break
                    except LedgerError as error:
                        said = f"LedgerError {error}"
                    except BaseException as error:
                        said = repr(error)
                        break
            finally:
                os.write(writer, said.encode())
                os._exit(0)
        os.waitpid(child, 0)
        said = os.read(reader, 10_000).decode()
        assert said.startswith("LedgerError")
        assert "permissions" in said or "read-only" in said
        os.close(reader)
        os.close(writer)
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


STRAY = [
    "DELETE FROM ledger_releases",
    "DELETE FROM ledger_charges",
    "DELETE FROM ledger_limits",
    "DELETE FROM ledger_people",
    "DELETE FROM ledger_datasets",
    "DELETE FROM ledger_meta",
    "UPDATE ledger_limits SET spent = spent - 1",
    "UPDATE ledger_limits SET cap = cap + 1",
    "UPDATE ledger_limits SET cap = NULL",
    "UPDATE ledger_limits SET spent = cap + 1",
    "UPDATE ledger_limits SET name = 'x'",
    "UPDATE ledger_charges SET nano = 0",
    "UPDATE ledger_people SET spent = spent",
    "UPDATE ledger_people_charges SET step = 0",
    "UPDATE ledger_rosters SET counts = levels",
    "UPDATE ledger_datasets SET name = 'x'",
    "UPDATE ledger_releases SET artefact = '{}' WHERE state = 'committed'",
    "UPDATE ledger_releases SET state = 'reserved', artefact = NULL WHERE state = 'committed'",
    "UPDATE ledger_releases SET total = 0",
    "UPDATE ledger_releases SET total = 0, state = 'failed' WHERE state = 'reserved'",
]
ONLY_SQLITE = [
    "INSERT OR REPLACE INTO ledger_limits VALUES (1, 'total', '', 1000000000, 0)",
    "REPLACE INTO ledger_datasets VALUES (7, 'clinic', 'now')",
    "REPLACE INTO ledger_meta VALUES ('version', '0')",
]
ONLY_POSTGRES = ["TRUNCATE ledger_charges", "TRUNCATE ledger_releases CASCADE"]


def _run(ledger: Ledger, statement: str) -> None:
    with ledger._store.write() as connection:
        connection.execute(text(statement))
    raise AssertionError(f"accepted: {statement}")


def test_stray_sql_cannot_make_the_ledger_forget(where: str) -> None:
    ledger = Ledger.open(where)
    ledger.register("clinic", epsilon=1, people=PersonBudgets.of([0.5, 1.0]))
    done = ledger.reserve("clinic", Charge.of("0.1"), request="a")
    ledger.commit(done.id, "a")
    ledger.reserve("clinic", Charge.of("0.1"), request="b")
    before = ledger.balance("clinic").to_dict()
    for statement in STRAY + (ONLY_SQLITE if ledger._store.is_sqlite else ONLY_POSTGRES):
        with pytest.raises(LedgerError, match="refused a change"):
            _run(ledger, statement)
    assert ledger.balance("clinic").to_dict() == before
    ledger.verify("clinic")


def test_verify_notices_totals_that_are_not_the_sum(where: str) -> None:
    ledger = Ledger.open(where)
    ledger.register("clinic", epsilon=1)
    ledger.reserve("clinic", Charge.of("0.1"), request="a")
    with ledger._store.write() as connection:
        connection.execute(text("UPDATE ledger_limits SET spent = spent + 1"))
    with pytest.raises(LedgerError, match=r"not the sum of its charges \(total\)"):
        ledger.verify("clinic")


def test_a_ledger_survives_a_change_of_folder(tmp_path: Path) -> None:
    code = (
        "import os; from sfumato.ledger import Ledger; l = Ledger.open('a.ledger'); os.chdir('/');"
        "l.register('clinic', epsilon=1); print(l.datasets())"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['clinic']"
