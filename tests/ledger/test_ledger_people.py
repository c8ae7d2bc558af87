"""People with budgets of their own: cohorts are charged exactly, at any number of levels."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sqlalchemy import text

from sfumato.errors import BudgetError, InputError, LedgerError
from sfumato.ledger import Ledger
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge


def charge_of(people: np.ndarray) -> Charge:
    return Charge(int(people.max()), people=people)


def test_each_level_pays_its_own_share(where: str) -> None:
    ledger = Ledger.open(where)
    roster = PersonBudgets.of([0.1, 0.2, 0.2, 1.0])
    ledger.register("clinic", people=roster)
    ledger.reserve("clinic", charge_of(np.minimum(roster.levels, 150_000_000)), request="a")
    ledger.reserve("clinic", charge_of(np.array([0, 50_000_000, 3])), request="b")
    people = ledger.balance("clinic").people
    assert people is not None
    assert people.spent.tolist() == [100_000_000, 200_000_000, 150_000_003]
    assert people.left.tolist() == [0, 0, 849_999_997]
    ledger.verify("clinic")
    assert [r.people for r in ledger.history("clinic")] == ["the budget, at most 0.15", "by group, at most 0.05"]


def test_the_tightest_tier_is_named(where: str) -> None:
    ledger = Ledger.open(where)
    ledger.register("clinic", epsilon=1, people=PersonBudgets.from_tiers({"open": (1, 90), "strict": ("0.1", 540)}))
    ledger.reserve("clinic", Charge(8 * 10**7), request="a")
    with pytest.raises(BudgetError) as refusal:
        ledger.reserve("clinic", Charge.of("0.95"), request="b")
    assert "asked ε 0.95, 0.02 of 0.1 left for each of 540 people in tier 'strict' in 'clinic'" in str(refusal.value)
    assert "(1 more cap would be passed)" in str(refusal.value)
    people = ledger.balance("clinic").people
    assert people is not None
    assert people.spent.tolist() == [8 * 10**7, 8 * 10**7]


def test_tiers_with_equal_budgets_are_charged_apart(where: str) -> None:
    ledger = Ledger.open(where)
    ledger.register("clinic", people=PersonBudgets.from_tiers({"north": ("0.1", 5), "south": ("0.1", 7)}))
    ledger.reserve("clinic", charge_of(np.array([10**8, 0])), request="only the north")
    with pytest.raises(BudgetError, match="tier 'north'"):
        ledger.reserve("clinic", charge_of(np.array([1, 1])), request="both")
    ledger.reserve("clinic", charge_of(np.array([0, 10**8])), request="only the south")
    ledger.verify("clinic")


def test_a_charge_for_another_roster_is_refused(where: str) -> None:
    ledger = Ledger.open(where)
    ledger.register("clinic", people=PersonBudgets.of([0.1, 0.2]))
    with pytest.raises(InputError, match="3 person groups but the ledger's roster has 2"):
        ledger.reserve("clinic", charge_of(np.array([1, 2, 3])), request="a")


@pytest.mark.slow
def test_a_million_distinct_budgets_are_charged_with_less_than_a_second_of_work(where: str) -> None:
    ledger = Ledger.open(where)
    levels = 10**8 + 977 * np.arange(10**6)
    ledger.register("nation", people=PersonBudgets(levels, np.ones_like(levels)))
    spent = np.zeros_like(levels)
    seconds = []
    for number, charge in enumerate((np.minimum(levels, 10**7), levels // 3, levels // 7)):
        start = time.process_time()  # our own work: a clock on the wall would count what else the machine does
        ledger.reserve("nation", charge_of(charge), request=str(number))
        seconds.append(time.process_time() - start)
        spent += charge
    people = ledger.balance("nation").people
    assert people is not None
    assert np.array_equal(people.left, levels - spent)
    assert len(people.summary()) == 12
    assert sum(row["people"] for row in people.summary()) == 10**6
    assert min(seconds) < 1
    with pytest.raises(BudgetError):
        ledger.reserve("nation", charge_of(np.where(np.arange(10**6) == 777, people.left + 1, 0)), request="one")


def test_a_total_changed_from_outside_stops_the_next_release(where: str) -> None:
    ledger = Ledger.open(where)
    ledger.register("clinic", people=PersonBudgets.of([0.1, 0.2]))
    ledger.reserve("clinic", charge_of(np.array([5, 5])), request="a")
    forged = np.zeros(2, dtype="<i8").tobytes()
    with ledger._store.write() as connection:
        connection.execute(text("UPDATE ledger_people SET spent = :s, last_release = 99"), {"s": forged})
    with pytest.raises(LedgerError, match="changed from outside"):
        ledger.reserve("clinic", charge_of(np.array([5, 5])), request="b")
    with pytest.raises(LedgerError, match="changed from outside"):
        ledger.balance("clinic")
