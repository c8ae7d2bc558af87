"""Many processes choose, close epochs and charge at once: no choice is lost and nobody is charged beyond their grant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from sfumato.errors import BudgetError, LedgerError
from sfumato.ledger import Ledger
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge

FINE = 0
MENU = {"strict": "0.3", "open": "2"}
PROCESSES, ROUNDS = 8, 6


def _ledger(where: str, key: Path) -> Ledger:
    ledger = Ledger.open(where, key=key)
    menu = PersonBudgets.from_tiers({name: (epsilon, 1) for name, epsilon in MENU.items()})
    ledger.register("clinic", people=menu, living=True)
    return ledger


def _charge(ledger: Ledger, request: str) -> int:
    """Ask for a tenth of an ε from whoever has it, again if the standing moved meanwhile; how much was charged."""
    for _ in range(50):
        life = ledger.people("clinic")
        life.bind()
        standing = life.standing()
        if not len(standing.grants):
            return 0
        each = np.minimum(standing.left, 10**8)
        try:
            ledger.reserve("clinic", Charge.of_people(each), request=request, standing=standing)
            return int((each * standing.heads).sum())
        except (LedgerError, BudgetError):
            continue  # somebody else moved it first
    return 0


def test_choices_epochs_and_charges_at_once(where: str, tmp_path: Path, race: Callable[..., list[int]]) -> None:
    key = tmp_path / "people.key"
    ledger = _ledger(where, key)
    (tmp_path / "charged").mkdir()

    def busy(number: int) -> int:
        life = ledger.people("clinic")
        charged = 0
        for turn in range(ROUNDS):
            tier = "open" if (number + turn) % 2 else "strict"
            verb = life.join if turn == 0 else life.change
            verb(f"person {number}", tier)
            life.bring([f"guest {number} {turn}"], ["open"])
            if number % 2:
                life.epoch()
            else:
                charged += _charge(ledger, f"release {number} {turn}")
        (tmp_path / "charged" / str(number)).write_text(str(charged))
        return FINE

    assert race(busy, PROCESSES) == [FINE] * PROCESSES
    ledger.people("clinic").epoch()
    ledger.verify("clinic")
    standing = ledger.people("clinic").standing()
    assert standing.heads.sum() == PROCESSES * (1 + ROUNDS), "somebody who joined is not there"
    charged = sum(int(file.read_text()) for file in (tmp_path / "charged").iterdir())
    assert int((standing.spent * standing.heads).sum()) == charged
    for number in range(PROCESSES):
        receipt = ledger.people("clinic").receipt(f"person {number}")
        assert receipt.tier == ("open" if (number + ROUNDS - 1) % 2 else "strict"), "a choice was lost"
        assert receipt.spent == sum(line.charged for line in receipt.lines)
        running = 0
        for line in receipt.lines:
            running += line.charged
            assert running <= line.grant


def test_one_last_tenth_is_charged_once(where: str, tmp_path: Path, race: Callable[..., list[int]]) -> None:
    key = tmp_path / "people.key"
    ledger = _ledger(where, key)
    ledger.people("clinic").join("ana", "0.1")
    ledger.people("clinic").epoch()
    standing = ledger.people("clinic").standing()

    def ask(number: int) -> int:
        try:
            ledger.reserve("clinic", Charge.of_people(standing.left), request=f"release {number}", standing=standing)
        except (LedgerError, BudgetError):
            return 3
        return FINE

    codes = race(ask, 12)
    assert (codes.count(FINE), codes.count(3)) == (1, 11)
    assert ledger.people("clinic").receipt("ana").spent == 10**8
    ledger.verify("clinic")


def test_pending_choices_are_applied_once_by_epochs_that_run_at_once(
    where: str, tmp_path: Path, race: Callable[..., list[int]]
) -> None:
    ledger = _ledger(where, tmp_path / "people.key")
    names = [f"person {n}" for n in range(300)]
    ledger.people("clinic").bring(names, ["open"] * 300)

    def close(_: int) -> int:
        ledger.people("clinic").epoch()
        return FINE

    assert race(close, 6) == [FINE] * 6
    standing = ledger.people("clinic").standing()
    assert standing.heads.sum() == 300
    assert standing.epoch >= 1
    ledger.verify("clinic")
