"""Many processes, one budget: exactly as many releases as fit."""

from __future__ import annotations

from collections.abc import Callable

from sfumato.errors import BudgetError
from sfumato.ledger import Ledger
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge

SPENT, REFUSED, BROKEN = 0, 3, 1


def _ask(ledger: Ledger, number: int) -> int:
    try:
        reserved = ledger.reserve("clinic", Charge.of("0.1"), request=f"release {number}")
    except BudgetError:
        return REFUSED
    ledger.commit(reserved.id, {"number": number})
    return SPENT


def test_32_processes_race_for_10_releases(where: str, race: Callable[..., list[int]]) -> None:
    ledger = Ledger.open(where)
    ledger.register("clinic", epsilon=1)
    codes = race(lambda number: _ask(ledger, number))  # the same object in every fork
    assert (codes.count(SPENT), codes.count(REFUSED)) == (10, 22)
    assert ledger.balance("clinic").total.left == 0
    assert [r.state for r in ledger.history("clinic")] == ["committed"] * 10
    ledger.verify("clinic")


def test_32_processes_race_to_create_the_ledger_and_spend(where: str, race: Callable[..., list[int]]) -> None:
    roster = PersonBudgets.from_tiers({"strict": (1, 40), "open": (2, 60)})

    def make_and_ask(number: int) -> int:
        ledger = Ledger.open(where)
        ledger.register("clinic", people=roster)
        return _ask(ledger, number)

    codes = race(make_and_ask)
    assert (codes.count(SPENT), codes.count(REFUSED)) == (10, 22)
    ledger = Ledger.open(where, create=False)
    people = ledger.balance("clinic").people
    assert people is not None
    assert people.left.tolist() == [0, 10**9]
    ledger.verify("clinic")


def test_identical_requests_that_run_at_once_each_pay_and_later_ones_do_not(
    where: str, race: Callable[..., list[int]]
) -> None:
    ledger = Ledger.open(where)
    ledger.register("clinic", epsilon=100)

    def same(number: int) -> int:
        reserved = ledger.reserve("clinic", Charge.of("0.1"), request="the same")
        if not reserved.repeated:
            ledger.commit(reserved.id, {"number": number})
        return SPENT

    assert race(same, 8) == [SPENT] * 8
    paid = len(ledger.history("clinic"))
    assert 1 <= paid <= 8
    assert ledger.balance("clinic").total.spent == paid * 10**8
    assert ledger.reserve("clinic", Charge.of("0.1"), request="the same").repeated
