"""The log of a dataset: what goes into it, what it proves, and that it stays cheap."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

from sfumato.errors import InputError, LedgerError
from sfumato.ledger import Ledger, log
from sfumato.ledger.proofs import Checkpoint
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge

TIERS = PersonBudgets.from_tiers({"open": (1, 3), "strict": ("0.1", 2)})


def bodies(ledger: Ledger, dataset: str) -> list[dict[str, Any]]:
    return [json.loads(entry.body) for entry in ledger.log_page(dataset, limit=500)]


def test_everything_is_written_down_and_proved(where: str) -> None:
    ledger = Ledger.open(where)
    ledger.register("clinic", epsilon=3, people=TIERS)
    for number in range(9):
        made = ledger.reserve("clinic", Charge(10**7), request=f"r{number}", name="over65", by="ana")
        ledger.commit(made.id, {"folder": "x"}) if number % 2 else ledger.fail(made.id)
    assert ledger.note("clinic", "decision", {"plan": "plan_1"}) == 19
    kinds = [body["kind"] for body in bodies(ledger, "clinic")]
    assert kinds == ["registered", *["reserved", "finished"] * 9, "decision"]
    now = ledger.checkpoint("clinic")
    assert now.size == 20
    for size in (1, 2, 7, 20):
        assert ledger.consistency("clinic", size).holds
        then = ledger.checkpoint("clinic", size)
        for index in range(size):
            found = ledger.inclusion("clinic", index, size=size)
            assert found.holds
            assert found.checkpoint == then
    charge = ledger.inclusion("clinic", entry=made.id)
    said = json.loads(charge.body)
    assert (said["entry"], said["epsilon"], said["name"], said["dataset"]) == (made.id, "0.01", "over65", "clinic")
    assert "ana" not in charge.body
    ledger.verify("clinic")


def test_datasets_have_logs_of_their_own(swift: Path) -> None:
    ledger = Ledger.open(swift / "a.ledger")
    for dataset in ("clinic", "shop"):
        ledger.register(dataset, epsilon=3)
    before = ledger.checkpoint("clinic")
    ledger.reserve("shop", Charge(1), request="a")
    assert ledger.checkpoint("clinic") == before
    assert not any("shop" in json.dumps(body) for body in bodies(ledger, "clinic"))


def test_no_person_is_in_it_and_the_same_choice_looks_different(swift: Path) -> None:
    ledger = Ledger.open(swift / "a.ledger")
    ledger.register("ward", people=TIERS, living=True)
    life = ledger.people("ward")
    life.bring(["ana", "ben"], ["open", "strict"])
    life.epoch()
    life.change("ana", "strict")
    life.change("ana", "open")
    life.change("ana", "strict")
    written = bodies(ledger, "ward")
    chosen = [body for body in written if body["kind"] == "chosen"]
    assert len({body["seal"] for body in chosen}) == len(chosen) == 4
    assert set(chosen[0]) == {"kind", "dataset", "first", "last", "seal"}
    changed = next(body for body in written if body["kind"] == "changed")
    assert set(changed) == {"kind", "dataset", "change", "epoch", "at", "seal", "standing"}  # no number of people
    ledger.verify("ward")


def test_what_was_chosen_is_forgotten_once_it_is_in_force(swift: Path) -> None:
    """The salt of a choice goes with its line: afterwards nobody can try out what the log's seal was made of."""
    ledger = Ledger.open(swift / "a.ledger")
    ledger.register("ward", people=TIERS, living=True)
    ledger.people("ward").join("ana", "open")
    with ledger._store.read() as connection:
        salt = connection.execute(text("SELECT salt FROM ledger_choices")).scalar()
    ledger.people("ward").epoch()
    with ledger._store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM ledger_choices")).scalar() == 0
        dump = "".join(str(row) for row in connection.execute(text("SELECT * FROM ledger_log")))
    assert len(salt or "") == 32
    assert str(salt) not in dump
    ledger.verify("ward")


def test_an_append_costs_at_most_three_statements_whatever_came_before(swift: Path) -> None:
    ledger = Ledger.open(swift / "a.ledger")
    ledger.register("clinic", epsilon=3)
    counts = []
    with ledger._store.write() as connection:
        statements: list[str] = []
        event.listen(connection, "before_cursor_execute", lambda *given: statements.append(given[2]))
        for number in range(130):
            statements.clear()
            log.append(connection, 1, log.Leaf("note", {"n": number}))
            counts.append(len(statements))
    assert max(counts) == 3
    assert sum(counts) / len(counts) < 2.3


def test_the_kinds_of_the_ledger_are_its_own(swift: Path) -> None:
    ledger = Ledger.open(swift / "a.ledger")
    ledger.register("clinic", epsilon=3)
    for kind in ("reserved", "closed", "allowance", "a\nb"):
        with pytest.raises(InputError):
            ledger.note("clinic", kind, {})
    with pytest.raises(InputError, match="digest"):
        ledger.note("clinic", "decision", {"why": "x" * 100_001})
    with pytest.raises(LedgerError, match="no dataset"):
        ledger.note("shop", "decision", {})
    for size in (-1, 2):
        with pytest.raises(InputError):
            ledger.checkpoint("clinic", size)
    with pytest.raises(InputError, match="which entry"):
        ledger.inclusion("clinic")
    with pytest.raises(LedgerError, match="no charge"):
        ledger.inclusion("clinic", entry=7)


def test_a_closed_dataset_takes_no_more_charges(where: str) -> None:
    ledger = Ledger.open(where)
    ledger.register("clinic", epsilon=3)
    running = ledger.reserve("clinic", Charge(1), request="a")
    ledger.close("clinic", {"reason": "a disk was lost"})
    ledger.commit(running.id, {"folder": "x"})
    with pytest.raises(LedgerError, match="is closed"):
        ledger.reserve("clinic", Charge(1), request="b")
    assert ledger.balance("clinic").total.spent == 1
    assert ledger.reserve("clinic", Charge(1), request="a").repeated
    ledger.verify("clinic")


def test_a_log_that_was_written_anew_holds_together_and_fits_no_checkpoint(swift: Path) -> None:
    """What only a checkpoint in other hands finds."""
    ledger = Ledger.open(swift / "a.ledger")
    ledger.register("clinic", epsilon=3)
    ledger.reserve("clinic", Charge(10**8), request="a")
    kept = ledger.checkpoint("clinic")
    other = Ledger.open(swift / "b.ledger")
    other.register("clinic", epsilon=3)
    other.reserve("clinic", Charge(10**7), request="a")
    other.reserve("clinic", Charge(10**7), request="b")
    other.verify("clinic")
    assert other.checkpoint("clinic", kept.size) != kept
    assert isinstance(kept, Checkpoint)
