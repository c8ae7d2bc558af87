"""A ledger of an older format gets the logs of what it holds, in the transaction that brings it up to date."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger, log_history, schema
from sfumato.privacy.charge import Charge
from support.old_ledgers import restore, version

KEY = "a41297d5930bac22fdae4bf7b166d6652958b9a6abd4d18bd90234f21116da3d"


@pytest.fixture
def old(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A ledger of format 4: a fixed roster, recipients with a device, a living roster, and one that came alive."""
    (tmp_path / "people.key").write_text(KEY)
    monkeypatch.setenv("SFUMATO_PEOPLE_KEY", str(tmp_path / "people.key"))
    return restore(where, 4)


def kinds(ledger: Ledger, dataset: str) -> list[str]:
    return [entry.kind for entry in ledger.log_page(dataset, limit=100)]


def test_everything_that_is_there_is_in_the_log(old: str) -> None:
    assert version(old) == 4
    ledger = Ledger.open(old, create=False)
    assert version(old) == schema.VERSION == 5
    ended = ["reserved", "finished"]
    assert kinds(ledger, "clinic") == ["registered", "people key", *ended, *ended, "migrated"]
    assert kinds(ledger, "shop") == ["registered", "people key", "reserved", "bridged", "migrated"]
    ward = ["registered", "people key", *ended, "reserved", "changed", "changed", "chosen", "migrated"]
    assert kinds(ledger, "ward") == ward
    assert kinds(ledger, "came") == ["registered", "people key", *ended, "changed", "migrated"]
    last = json.loads(ledger.log_page("ward", limit=1)[0].body)
    assert (last["from"], last["ledger"]["version"]) == (4, "5")
    for dataset in ledger.datasets():
        ledger.verify(dataset)
        assert ledger.inclusion(dataset, 1).holds


def test_it_goes_on_from_there(old: str) -> None:
    ledger = Ledger.open(old)
    before = {dataset: ledger.checkpoint(dataset) for dataset in ledger.datasets()}
    life = ledger.people("ward")
    assert life.receipt("ana").waiting == "strict"
    life.epoch()
    ledger.reserve("ward", Charge(1), request="new", standing=life.standing())
    ledger.commit(3, {"folder": "mean"})
    ledger.people("came").withdraw("0")
    ledger.reserve("clinic", Charge(1), request="new")
    for dataset, kept in before.items():
        assert ledger.consistency(dataset, kept.size).old == kept
        ledger.verify(dataset)


def test_a_log_that_cannot_be_made_leaves_the_old_ledger(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise LedgerError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(log_history.log_leaves, "migrated", fails)
        with pytest.raises(LedgerError, match="full"):
            Ledger.open(old)
    assert version(old) == 4
    Ledger.open(old).verify("ward")
