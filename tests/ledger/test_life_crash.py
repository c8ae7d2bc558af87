"""kill -9 while people come, choose, and are charged: nothing is lost, nothing is half done. `sfumato bench ledger --part
kills` does it 200 times on each database."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.bench.ledger_kills import BULK, DATASET, begin, kills, state, step
from sfumato.ledger import Ledger


@pytest.mark.slow
def test_kills_leave_the_ledger_where_a_twin_stands_that_nobody_killed(where: str, tmp_path: Path) -> None:
    found = kills(where, tmp_path / "people.key", 14)
    assert found["kills"] == 14
    assert found["steps"] >= 15, "the workers were killed before they did anything: this shows nothing"
    assert len(found["hit"]) >= 3, "all kills hit the same kind of step"
    assert Ledger.open(where, create=False, key=tmp_path / "people.key").history(DATASET)


def test_the_script_gives_the_same_on_two_ledgers_and_moves_everything(where: str, tmp_path: Path) -> None:
    one = begin(where, tmp_path / "one.key")
    two = begin(str(tmp_path / "two.ledger"), tmp_path / "two.key")
    seen = set()
    for number in range(18):
        step(one, number)
        step(two, number)
        assert state(one) == state(two)
        seen.add(state(one))
    assert len(seen) >= 14, "the script does next to nothing"
    assert one.people(DATASET).standing().heads.sum() >= BULK
    one.verify(DATASET)
