"""A database that was set back, exchanged or lost is found when the service starts."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from sfumato.errors import InputError, LedgerError
from sfumato.privacy.charge import Charge
from sfumato.service.context import Service
from sfumato.service.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.in_folder(tmp_path / "state", secure_cookies=False)


def copy(settings: Settings, name: str) -> Path:
    """A whole copy of the ledger's file."""
    connection = sqlite3.connect(settings.ledger)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    kept = settings.state.parent / name
    shutil.copy(settings.ledger, kept)
    return kept


def put_back(settings: Settings, kept: Path) -> None:
    for end in ("-wal", "-shm"):
        Path(f"{settings.ledger}{end}").unlink(missing_ok=True)
    shutil.copy(kept, settings.ledger)


@pytest.fixture
def yesterday(settings: Settings) -> Path:
    """A service that charged something after its ledger was copied."""
    service = Service.opened(settings)
    service.ledger.register("clinic", epsilon=3)
    service.ledger.reserve("clinic", Charge(10**8), request="a")
    kept = copy(settings, "yesterday.db")
    service.ledger.reserve("clinic", Charge(10**8), request="b")
    return kept


def test_a_service_starts_again_and_again(settings: Settings, yesterday: Path) -> None:
    for _ in range(2):
        service = Service.opened(settings)
        assert service.witness.kept() == [service.ledger.checkpoint("clinic")]


def test_a_ledger_of_yesterday_is_refused(settings: Settings, yesterday: Path) -> None:
    put_back(settings, yesterday)
    with pytest.raises(LedgerError, match=r"'clinic' had 3 entries .* and has 2 with .*sfumato service close 'clinic'"):
        Service.opened(settings)


def test_one_that_grew_again_since_is_refused_too(settings: Settings, yesterday: Path) -> None:
    put_back(settings, yesterday)
    ledger = Service.opened(settings, checked=False).ledger
    ledger.witness = None  # a program that knows no witness
    for request in ("c", "d", "e"):
        ledger.reserve("clinic", Charge(10**7), request=request)
    ledger.verify("clinic")
    with pytest.raises(LedgerError, match="the first 3 have the root"):
        Service.opened(settings)


def test_a_dataset_that_is_gone_is_missed(settings: Settings, yesterday: Path) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{settings.ledger}{end}").unlink(missing_ok=True)
    with pytest.raises(LedgerError, match="no such dataset"):
        Service.opened(settings)


def test_each_charge_and_decision_is_witnessed_before_it_returns(settings: Settings) -> None:
    service = Service.opened(settings)
    service.ledger.register("clinic", epsilon=3)
    for number in range(3):
        service.ledger.reserve("clinic", Charge(1), request=f"r{number}")
        assert service.witness.kept() == [service.ledger.checkpoint("clinic")]
    service.ledger.note("clinic", "decision", {"plan": "plan_1"})
    assert service.witness.kept() == [service.ledger.checkpoint("clinic")]


def test_a_crash_before_the_witness_is_no_fault(settings: Settings, yesterday: Path) -> None:
    """The database may be ahead: what is lost is only that the newest entries were not witnessed."""
    ledger = Service.opened(settings).ledger
    ledger.witness = None
    ledger.reserve("clinic", Charge(1), request="crashed")
    assert Service.opened(settings).witness.kept() == [ledger.checkpoint("clinic")]


def test_an_older_checkpoint_never_replaces_a_newer_one(settings: Settings, yesterday: Path) -> None:
    service = Service.opened(settings)
    (before,) = service.witness.kept()
    service.witness.keep(service.ledger.checkpoint("clinic", 1).signed(service.keys))
    assert service.witness.kept() == [before]


@pytest.mark.parametrize("field", ["size", "root", "dataset", "at"])
def test_a_witness_that_was_changed_is_found(settings: Settings, yesterday: Path, field: str) -> None:
    (path,) = (settings.state / "witness").glob("*.json")
    found = json.loads(path.read_text())
    path.write_text(json.dumps({**found, field: 1 if field == "size" else "0" * 64}))
    with pytest.raises(LedgerError, match="is damaged"):
        Service.opened(settings)


@pytest.mark.parametrize("gone", [False, True])
def test_closing_writes_the_loss_down_and_ends_it(settings: Settings, yesterday: Path, gone: bool) -> None:
    with pytest.raises(InputError, match="nothing of 'clinic' was lost"):
        Service.opened(settings).witness.close(Service.opened(settings).ledger, "clinic", "to be rid of it")
    if gone:
        for end in ("", "-wal", "-shm"):
            Path(f"{settings.ledger}{end}").unlink(missing_ok=True)
    else:
        put_back(settings, yesterday)
    service = Service.opened(settings, checked=False)
    service.witness.close(service.ledger, "clinic", "the disk failed")
    service = Service.opened(settings)
    (entry,) = [e for e in service.ledger.log_page("clinic") if e.kind == "closed"]
    assert json.loads(entry.body)["about"]["kept"]["size"] == 3
    assert json.loads(entry.body)["about"]["found"]["size"] == (0 if gone else 2)
    with pytest.raises(LedgerError):
        service.ledger.reserve("clinic", Charge(1), request="c")
    service.ledger.verify("clinic")
