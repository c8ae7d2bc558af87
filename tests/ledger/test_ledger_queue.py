"""Writers to a ledger in a file wait in line; the line is politeness, and no charge depends on it."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sfumato.bench.ledger_crowd import charging, measured, prepared
from sfumato.bench.ledger_places import fresh
from sfumato.ledger import Ledger, turns
from sfumato.privacy.charge import Charge


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))  # lines that no other test waits in
    made = Ledger.open(tmp_path / "clinic.ledger")
    made.register("clinic", epsilon=1)
    return made


def _charge(ledger: Ledger, request: str) -> float:
    begun = time.monotonic()
    ledger.reserve("clinic", Charge(1), request=request)
    return time.monotonic() - begun


@contextmanager
def _holder(ledger: Ledger) -> Iterator[int]:
    """Another process whose turn it is; its number."""
    ready, says = os.pipe()
    child = os.fork()
    if child == 0:
        with turns.turn(ledger.location):
            os.write(says, b".")
            time.sleep(20)
        os._exit(0)
    os.read(ready, 1)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)
        os.close(says)


def test_one_writes_while_the_others_wait_and_all_are_charged(ledger: Ledger) -> None:
    spent = []
    with _holder(ledger) as child:
        waiting = threading.Thread(target=lambda: spent.append(_charge(ledger, "a")))
        waiting.start()
        waiting.join(0.3)
        assert spent == [], "a charge did not wait for its turn"
        assert ledger.balance("clinic").total.spent == 0  # whoever reads does not wait
        os.kill(child, signal.SIGKILL)  # and a killed process leaves nothing that has to be cleaned up
        waiting.join(30)
    assert len(spent) == 1
    assert ledger.balance("clinic").total.spent == 1


def test_somebody_who_never_comes_to_an_end_holds_nobody_up_for_ever(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.2)
    with _holder(ledger):
        assert 0.2 <= _charge(ledger, "a") < 30
    ledger.reserve("clinic", Charge(1), request="b")
    assert ledger.balance("clinic").total.spent == 2


def test_a_child_does_not_keep_its_parents_place(ledger: Ledger) -> None:
    with turns.turn(ledger.location):
        (place,) = turns._held
        child = os.fork()
        if child == 0:
            code = 3 if turns._held else 0
            try:
                os.fstat(place)
                code = 4
            except OSError:
                pass
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        line = turns.line_of(ledger.location)
        assert line is not None
        other = os.open(line, os.O_RDONLY)
        with pytest.raises(BlockingIOError):  # and does not end its parent's turn
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)


def _no_flock(_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "fcntl", None)


def _no_file(_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns.tempfile, "gettempdir", lambda: os.devnull)


def _not_ours(_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = turns.tempfile.gettempdir()
    stranger = os.path.join(mine, f"sfumato-{os.geteuid()}")
    assert turns.line_of("x") is not None
    monkeypatch.setattr(turns.os, "lstat", lambda path: os.stat_result([stat.S_IFDIR | 0o777, 0, 0, 1, 4711, 0, 0, 0, 0, 0]))
    assert turns.line_of("x") is None
    assert os.path.isdir(stranger)


def _refused(_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        LOCK_EX, LOCK_NB, LOCK_UN = fcntl.LOCK_EX, fcntl.LOCK_NB, fcntl.LOCK_UN

        @staticmethod
        def flock(_file: int, _how: int) -> None:
            raise OSError(95, "not supported by this file system")

    monkeypatch.setattr(turns, "fcntl", Refusing)


@pytest.mark.parametrize("trouble", [_no_flock, _no_file, _not_ours, _refused])
def test_where_nobody_can_queue_charges_go_on_without(
    ledger: Ledger, trouble: Callable[[Ledger, pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    trouble(ledger, monkeypatch)
    ledger.reserve("clinic", Charge(1), request="a")
    assert ledger.balance("clinic").total.spent == 1
    assert not turns._held


def test_eight_processes_charge_at_once_and_nobody_waits_for_long() -> None:
    with fresh("sqlite") as place:
        ledger = prepared(place)
        found = measured(place, charging, 8, 3)
        assert found["done"] == 24
        assert ledger.balance("clinic").total.spent == 1000 * (24 + 8)
        ledger.verify("clinic")
    # Each waits for seven others at most, and for their disks; ten times that is somebody who was passed over.
    assert found["milliseconds_worst"] < 10 * 8 * 1e3 / found["per_second"]
