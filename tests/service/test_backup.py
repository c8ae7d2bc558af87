"""Backup and restore: whatever happens while it is made, the copy has no release without its charge."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.errors import InputError, LedgerError
from sfumato.service.context import Service
from sfumato.service.operations import backup
from sfumato.service.operations.examining import examine
from sfumato.service.runner.loop import Runner
from sfumato.service.settings import Settings
from support.jobs import Clock, clinic, inline, until_told, waiting


class House:
    """A service whose runner makes one release at a time."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.service = clinic(folder)
        self.settings = self.service.settings
        self.clock = Clock(monkeypatch)
        inline(monkeypatch)
        self.runner = Runner(self.service)
        self.made = 0

    def release(self) -> None:
        self.made += 1
        waiting(self.service, ({"name": "n", "kind": "count", "where": f"age >= {self.made}", "epsilon": "0.1"},))
        until_told(self.runner, self.clock)

    def folders(self) -> list[Path]:
        """Of what was released."""
        return sorted(path.parent for path in self.settings.state.rglob("certificate.json"))


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    return House(tmp_path / "house", monkeypatch)


def back(made: backup.Backup, state: Path) -> Service:
    settings = Settings.in_folder(state)
    backup.restore(settings, backup.read(made.folder))
    return Service.opened(settings)


def test_what_comes_back_is_whole_and_verifies(house: House, tmp_path: Path) -> None:
    house.release()
    made = backup.make(house.settings, tmp_path / "copy", with_keys=True)
    found = examine(back(made, tmp_path / "elsewhere"))
    assert (found.datasets, found.releases, found.wrong) == (1, 1, ())
    assert examine(house.service) == found
    assert all(p.stat().st_mode & 0o077 == 0 for p in (tmp_path / "copy").rglob("*"))


def test_no_moment_of_a_backup_loses_a_charge(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release is made after each database was copied; in the copy each that shows has its charge."""
    house.release()
    copy = backup._copy_database
    monkeypatch.setattr(backup, "_copy_database", lambda *given: (copy(*given), house.release()))
    made = backup.make(house.settings, tmp_path / "copy", with_keys=True)
    restored = back(made, tmp_path / "elsewhere")
    found = examine(restored)
    assert (house.made, found.releases, found.wrong) == (3, 1, ())
    assert len(list(restored.ledger.releases("clinic"))) == 2  # one charge more than there are releases


def test_the_keys_stay_at_home_unless_they_are_asked_for(house: House, tmp_path: Path) -> None:
    house.release()
    made = backup.make(house.settings, tmp_path / "copy")
    assert not made.with_keys
    keys = {p.read_bytes() for p in house.settings.keys.rglob("*") if p.is_file()}
    assert keys
    assert not [p for p in made.folder.rglob("*") if p.is_file() and any(k in p.read_bytes() for k in keys)]
    other = Settings.in_folder(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="without keys"):
        backup.restore(other, made)
    assert not Path(other.ledger).exists()
    kept = replace(other, keys=house.settings.keys)
    backup.restore(kept, made)
    assert examine(Service.opened(kept)).wrong == ()


def test_a_changed_backup_is_refused(house: House, tmp_path: Path) -> None:
    house.release()
    made = backup.make(house.settings, tmp_path / "copy", with_keys=True)
    for path in [p for p in made.folder.rglob("*") if p.is_file() and p.name != backup.MANIFEST]:
        before = path.read_bytes()
        path.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
        with pytest.raises(InputError, match="lost, changed"):
            backup.read(made.folder)
        path.unlink()
        with pytest.raises(InputError, match="lost, changed"):
            backup.read(made.folder)
        path.write_bytes(before)
    (made.folder / "extra").write_text("x")
    with pytest.raises(InputError, match="not its own"):
        backup.read(made.folder)
    with pytest.raises(InputError, match="is not a backup"):
        backup.read(tmp_path)


def test_a_backup_that_is_older_than_the_witness_is_refused(house: House, tmp_path: Path) -> None:
    house.release()
    old = backup.make(house.settings, tmp_path / "old")
    house.release()
    new = backup.make(house.settings, tmp_path / "new")
    for name in ("ledger.db", "service.db"):
        for path in house.settings.state.glob(f"{name}*"):
            path.unlink()
    with pytest.raises(LedgerError, match="set back or exchanged"):
        backup.restore(house.settings, old)
    assert not Path(house.settings.ledger).exists()
    backup.restore(house.settings, new)
    found = examine(Service.opened(house.settings))
    assert (found.releases, found.wrong) == (2, ())


def test_nothing_is_overwritten(house: House, tmp_path: Path) -> None:
    made = backup.make(house.settings, tmp_path / "copy", with_keys=True)
    with pytest.raises(InputError, match="is there already"):
        backup.make(house.settings, tmp_path / "copy")
    with pytest.raises(InputError, match="is there already; stop the service"):
        backup.restore(house.settings, made)
    leftover = Settings.in_folder(tmp_path / "half")
    leftover.state.mkdir()
    Path(leftover.ledger + "-wal").write_bytes(b"an older one's")
    with pytest.raises(InputError, match="is there already; stop the service"):
        backup.restore(leftover, made)


def test_a_backup_that_fails_leaves_nothing(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "now", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        backup.make(house.settings, tmp_path / "copies" / "copy")
    assert list((tmp_path / "copies").iterdir()) == []


def test_the_ledger_is_put_back_first(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = backup.make(house.settings, tmp_path / "copy", with_keys=True)
    put: list[str] = []
    monkeypatch.setattr(backup, "_put", lambda source, target: put.append(target.name))
    backup.restore(Settings.in_folder(tmp_path / "elsewhere"), made)
    assert (put[0], put[-1]) == ("ledger.db", "service.db")


def test_what_was_lost_or_changed_is_found(house: House) -> None:
    house.release()
    house.release()
    first, second = house.folders()
    data = json.loads((first / "data.json").read_text())
    (first / "data.json").write_text(json.dumps(data | {"value": 0}))
    (second / "certificate.json").unlink()
    said = "\n".join(examine(house.service).wrong)
    assert "data.json is as it was written: its digest is another one" in said
    assert "its folder is lost" in said


def test_a_server_backs_itself_up(tmp_path: Path) -> None:
    settings = Settings.in_folder(tmp_path / "s", ledger="postgresql://host/db")
    with pytest.raises(InputError, match="pg_dump the service's database first and the ledger last"):
        backup.make(settings, tmp_path / "copy")
