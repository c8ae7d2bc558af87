"""People through time: what was spent follows the person, what is lowered binds at once, nothing is ever reset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.errors import BudgetError, InputError, LedgerError
from sfumato.ledger import Ledger, Life, Pending, clock
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge

MENU = PersonBudgets.from_tiers({"open": (1, 0), "strict": ("0.1", 0)})
E = 10**9


@pytest.fixture
def ledger(where: str, tmp_path: Path) -> Ledger:
    made = Ledger.open(where, key=tmp_path / "people.key")
    made.register("clinic", people=MENU, living=True)
    return made


@pytest.fixture
def life(ledger: Ledger) -> Life:
    return ledger.people("clinic")


def spend(ledger: Ledger, name: str, step: int, dataset: str = "clinic") -> int:
    """Charge everybody what they have left, at most `step`."""
    life = ledger.people(dataset)
    life.bind()
    now = life.standing()
    charge = Charge.of_people(np.minimum(now.left, step))
    return ledger.reserve(dataset, charge, request=name, name=name, standing=now).id


def cohorts(life: Life) -> list[tuple[Any, int, int, int, int]]:
    now = life.standing()
    columns = (now.grants.tolist(), now.spent.tolist(), now.left.tolist(), now.heads.tolist())
    return list(zip(now.tiers, *columns, strict=True))


def test_who_joins_waits_for_the_epoch_and_starts_at_zero(ledger: Ledger, life: Life) -> None:
    life.join("ann", "open")
    assert cohorts(life) == []
    assert life.pending() == Pending(join=1)
    ledger.reserve("clinic", Charge.of("0.5"), request="before ann")
    closed = life.epoch()
    assert (closed.number, closed.joined, closed.people, closed.cohorts) == (1, 1, 1, 1)
    assert cohorts(life) == [("open", E, 0, E, 1)]
    assert life.receipt("ann").lines == ()
    assert life.pending().total == 0


def test_two_people_who_swap_tiers_keep_what_was_spent_on_them(ledger: Ledger, life: Life) -> None:
    life.bring(["ann", "ben"], ["open", "strict"])
    life.epoch()
    spend(ledger, "a", E // 2)
    life.change("ann", "strict")
    life.change("ben", "open")
    life.epoch()
    ann, ben = life.receipt("ann"), life.receipt("ben")
    assert (ann.tier, ann.grant, ann.spent, ann.left) == ("strict", E // 10, E // 2, 0)
    assert (ben.tier, ben.grant, ben.spent, ben.left) == ("open", E, E // 10, E - E // 10)
    assert [(line.grant, line.charged, line.tier) for line in ann.lines] == [(E, E // 2, "open")]
    spend(ledger, "b", E // 2)
    assert life.receipt("ann").spent == E // 2
    assert life.receipt("ben").spent == E // 10 + E // 2
    ledger.verify("clinic")


def test_what_is_lowered_binds_before_the_next_release_and_what_is_raised_waits(ledger: Ledger, life: Life) -> None:
    life.bring(["ann", "ben", "cyd"], ["open", "strict", "open"])
    life.epoch()
    life.change("ann", "0.3")
    life.change("ben", "open")
    life.withdraw("cyd")
    assert life.pending() == Pending(raise_=1, lower=1, withdraw=1)
    now = life.standing()  # priced without the new choices
    with pytest.raises(LedgerError, match="changed since this was priced"):
        ledger.reserve("clinic", Charge.of_people(now.left), request="early", standing=now)
    bound = life.bind()
    assert bound is not None
    assert (bound.number, bound.lowered, bound.withdrawn, bound.raised) == (1, 1, 1, 0)
    assert life.bind() is None
    assert life.pending() == Pending(raise_=1)
    assert cohorts(life) == [("strict", E // 10, 0, E // 10, 1), (None, 3 * E // 10, 0, 3 * E // 10, 1)]
    with pytest.raises(LedgerError, match="changed since this was priced"):
        ledger.reserve("clinic", Charge.of_people(now.left), request="late", standing=now)
    spend(ledger, "a", E)
    assert [life.receipt(p).spent for p in ("ann", "ben", "cyd")] == [3 * E // 10, E // 10, 0]
    assert life.epoch().raised == 1
    assert life.receipt("ben").left == 9 * E // 10
    ledger.verify("clinic")


def test_a_charge_to_everybody_alike_binds_by_itself(ledger: Ledger, life: Life) -> None:
    life.bring(["ann", "ben"], "open")
    life.epoch()
    life.change("ann", "0.2")
    life.withdraw("ben")
    with pytest.raises(BudgetError, match=r"0\.2 of 0\.2 left for each of 1 people with that budget and history"):
        ledger.reserve("clinic", Charge.of("0.3"), request="a")
    ledger.reserve("clinic", Charge.of("0.2"), request="a")
    assert [life.receipt(p).spent for p in ("ann", "ben")] == [E // 5, 0]


def test_a_grant_below_what_is_spent_leaves_nothing_and_takes_nothing_back(ledger: Ledger, life: Life) -> None:
    life.join("ann", "open")
    life.epoch()
    spend(ledger, "a", E // 2)
    life.change("ann", "0.2")
    life.epoch()
    ann = life.receipt("ann")
    assert (ann.grant, ann.spent, ann.left, ann.left_for_life) == (E // 5, E // 2, 0, 0)
    life.change("ann", "0.6")
    life.epoch()
    assert life.receipt("ann").left == E // 10


def test_withdrawal_ends_taking_part_and_coming_back_keeps_the_history(ledger: Ledger, life: Life) -> None:
    life.bring(["ann", "ben"], "open")
    life.epoch()
    spend(ledger, "a", E // 4)
    life.withdraw("ann")
    spend(ledger, "b", E // 4)
    ann = life.receipt("ann")
    assert (ann.withdrawn, ann.grant, ann.spent, ann.left, len(ann.lines)) == (True, 0, E // 4, 0, 1)
    with pytest.raises(InputError, match="withdrew from 'clinic'; they can join again"):
        life.change("ann", "open")
    brought = life.bring(["ann", "ben"], "strict")
    assert brought == Pending(lower=1), "an import does not bring back who withdrew"
    life.epoch()
    assert life.receipt("ann").withdrawn
    life.join("ann", "open")
    assert life.pending() == Pending(join=1)
    life.epoch()
    ann = life.receipt("ann")
    assert (ann.withdrawn, ann.spent, ann.left) == (False, E // 4, 3 * E // 4)
    ledger.verify("clinic")


def test_the_last_choice_of_a_person_counts(ledger: Ledger, life: Life) -> None:
    life.join("ann", "strict")
    life.join("ann", "open")
    life.join("ben", "open")
    life.withdraw("ben")
    assert life.pending() == Pending(join=1)
    assert life.receipt("ann").waiting == "open"
    life.epoch()
    assert cohorts(life) == [("open", E, 0, E, 1)]
    assert not life.knows("ben")
    life.change("ann", "strict")
    life.change("ann", "open")
    life.bind()
    assert cohorts(life) == [("open", E, 0, E, 1)]
    assert life.pending().total == 0
    life.withdraw("ann")
    life.join("ann", "2")
    assert life.pending() == Pending(raise_=1)
    ledger.verify("clinic")


def test_strangers_are_refused_and_nothing_is_written(ledger: Ledger, life: Life) -> None:
    for act in (lambda: life.change("zed", "open"), lambda: life.withdraw("zed"), lambda: life.receipt("zed")):
        with pytest.raises(InputError, match="nobody of that name is in 'clinic'"):
            act()
    with pytest.raises(InputError, match=r"'opne' is no tier of the menu \('strict', 'open'\) and no ε"):
        life.join("ann", "opne")
    with pytest.raises(InputError, match="greater than 0"):
        life.join("ann", 0)
    assert life.pending().total == 0
    assert not life.knows("ann")


def test_one_person_has_one_name_however_it_is_written(life: Life) -> None:
    life.bring([7, "Zo\u00e9", np.int64(12)], "open")
    life.epoch()
    assert life.knows("7")
    assert life.knows(12)
    assert life.knows("Zoe\u0301")
    assert not life.knows("07")
    assert not life.knows(" 7")
    with pytest.raises(InputError, match="1 of the identifiers brought are repetitions"):
        life.bring([7, "7"], "open")
    for nobody in (None, float("nan"), 7.0, True, "", b"7"):
        with pytest.raises(InputError, match="identifier"):
            life.join(nobody, "open")


def test_an_import_may_withdraw_who_is_missing(ledger: Ledger, life: Life) -> None:
    life.bring(["ann", "ben", "cyd"], ["open", "open", "strict"])
    life.epoch()
    life.join("dan", "open")
    life.join("eve", "open")
    assert life.bring(["ann", "cyd", "eve"], ["open", "open", "open"], missing="withdraw").withdraw == 1
    assert life.pending() == Pending(join=1, raise_=1, withdraw=1)
    life.epoch()
    assert [life.knows(p) for p in ("ann", "ben", "cyd", "dan", "eve")] == [True, True, True, False, True]
    assert life.receipt("ben").withdrawn
    assert cohorts(life) == [("open", E, 0, E, 3)]
    with pytest.raises(InputError, match="'stay' or 'withdraw'"):
        life.bring(["ann"], "open", missing="forget")
    with pytest.raises(InputError, match="1 persons but 2 grants"):
        life.bring(["ann"], ["open", "open"])


def test_taking_part_names_the_group_of_the_charge_also_later(ledger: Ledger, life: Life) -> None:
    life.bring(["ann", "ben", "cyd"], ["open", "strict", "0.4"])
    life.epoch()
    now = life.standing()
    charge = np.array([0, 5, 7])
    done = ledger.reserve("clinic", Charge.of_people(charge), request="a", standing=now)
    everybody = ["ann", "ben", "cyd", "dan", "ann"]
    expected = [now.tiers.index("open"), -1, now.grants.tolist().index(4 * E // 10), -1, now.tiers.index("open")]
    assert life.taking_part(done.id, everybody).tolist() == expected
    plain = ledger.reserve("clinic", Charge.of("0.01"), request="b").id
    life.join("dan", "open")
    life.change("ann", "strict")
    life.withdraw("cyd")
    life.epoch()
    assert life.taking_part(done.id, everybody).tolist() == expected
    assert life.taking_part(plain, everybody).tolist() == [2, 0, 1, -1, 2]
    with pytest.raises(InputError, match="release 4711 was not charged"):
        life.taking_part(4711, ["ann"])


def test_a_receipt_adds_up_and_tells_of_failed_and_unfinished_releases(ledger: Ledger, life: Life) -> None:
    life.join("ann", "open")
    life.epoch()
    first, second, _ = (spend(ledger, name, E // 10) for name in "abc")
    ledger.commit(first, {"folder": "a"})
    ledger.fail(second)
    ann = life.receipt("ann")
    assert [(line.name, line.state, line.charged, line.epoch) for line in ann.lines] == [
        ("a", "committed", E // 10, 1),
        ("b", "failed", E // 10, 1),
        ("c", "reserved", E // 10, 1),
    ]
    assert (ann.spent, ann.left) == (3 * E // 10, 7 * E // 10)
    written = ann.to_dict()
    assert (written["spent"], written["lines"][0]["charged"], written["person"]) == ("0.3", "0.1", "ann")
    assert [r.epoch for r in ledger.history("clinic")] == [1, 1, 1]


def test_cohorts_are_people_alike_and_the_balance_speaks_of_tiers(ledger: Ledger, life: Life) -> None:
    life.bring([f"p{n}" for n in range(30)], ["open"] * 20 + ["strict"] * 10)
    life.epoch()
    spend(ledger, "a", E // 20)
    life.bring([f"q{n}" for n in range(5)], "open")
    life.epoch()
    assert sorted(cohorts(life)) == [
        ("open", E, 0, E, 5),
        ("open", E, E // 20, E - E // 20, 20),
        ("strict", E // 10, E // 20, E // 20, 10),
    ]
    rows = ledger.balance("clinic").to_dict()["people"]
    assert [(row["name"], row["people"], row["left"]) for row in rows] == [
        ("strict", 10, ["0.05", "0.05"]),
        ("open", 25, ["0.95", "1"]),
    ]


def test_registering_again_and_otherwise(ledger: Ledger) -> None:
    ledger.register("clinic", people=PersonBudgets.from_tiers({"open": (1, 77), "strict": ("0.1", 5)}), living=True)
    for other in (
        {"people": MENU},
        {"people": MENU, "living": True, "period": "year"},
        {"people": PersonBudgets.from_tiers({"open": (2, 0), "strict": ("0.1", 0)}), "living": True},
    ):
        with pytest.raises(LedgerError, match="people differ"):
            ledger.register("clinic", **other)  # type: ignore[arg-type]
    for wrong, why in (
        ({"living": True}, "needs a menu"),
        ({"people": MENU, "period": "year"}, "living=True"),
        ({"people": MENU, "living": True, "period": "week"}, "one of year, quarter, month"),
        ({"people": MENU, "living": True, "per_period": {"open": 1}}, "say also which period"),
        ({"people": MENU, "living": True, "period": "year", "per_period": {"opne": 1}}, "'opne', which is no tier"),
    ):
        with pytest.raises(InputError, match=why):
            ledger.register("ward", **wrong)  # type: ignore[arg-type]


def test_a_charge_for_cohorts_says_for_which_standing(ledger: Ledger, life: Life) -> None:
    life.join("ann", "open")
    life.epoch()
    with pytest.raises(InputError, match="say for which standing"):
        ledger.reserve("clinic", Charge.of_people([5]), request="a")
    with pytest.raises(
        BudgetError, match=r"asked ε 1\.1, 1 of 1 left for each of 1 people in tier 'open' with that history"
    ):
        ledger.reserve("clinic", Charge.of_people([11 * E // 10]), request="a", standing=life.standing())
    ledger.reserve("clinic", Charge.of_people([5]), request="a", standing=life.standing().version)
    assert life.receipt("ann").spent == 5


def test_caps_that_renew_are_kept_beside_the_one_for_life(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = "2026-03-01T10:00Z"
    monkeypatch.setattr(clock, "now", lambda: time)
    ledger = Ledger.open(where, key=tmp_path / "people.key")
    ledger.register("clinic", people=MENU, living=True, period="year", per_period={"open": "0.4"})
    life = ledger.people("clinic")
    life.bring(["ann", "ben"], ["open", "strict"])
    life.epoch()
    spend(ledger, "a", E)
    ann = life.receipt("ann")
    assert (ann.spent, ann.left, ann.left_in_period, ann.left_for_life) == (4 * E // 10, 0, 0, 6 * E // 10)
    assert (ann.period, ann.per_period, ann.spent_in_period) == ("2026", 4 * E // 10, 4 * E // 10)
    assert (life.receipt("ben").left, life.receipt("ben").per_period) == (0, None)
    time = "2027-01-01T00:00Z"
    ann = life.receipt("ann")
    assert (ann.left, ann.left_in_period, ann.spent_in_period, ann.period) == (4 * E // 10, 4 * E // 10, 0, "2027")
    assert life.standing().left.tolist() == [0, 4 * E // 10]
    spend(ledger, "b", 3 * E // 10)
    time = "2026-12-31T23:59Z"  # a clock that is set back opens no old period and resets nothing
    assert life.receipt("ann").left == E // 10
    time = "2028-05-05T05:05Z"
    spend(ledger, "c", E)
    ann = life.receipt("ann")
    assert (ann.spent, ann.left, ann.left_for_life, ann.left_in_period) == (E, 0, 0, E // 10)
    ledger.verify("clinic")


def test_a_lower_cap_per_period_binds_though_the_grant_is_raised(where: str, tmp_path: Path) -> None:
    ledger = Ledger.open(where, key=tmp_path / "people.key")
    menu = PersonBudgets.from_tiers({"slow": (2, 0), "fast": (1, 0)})
    ledger.register("clinic", people=menu, living=True, period="month", per_period={"slow": "0.1", "fast": "0.5"})
    life = ledger.people("clinic")
    life.join("ann", "fast")
    life.epoch()
    life.change("ann", "slow")
    assert life.bind() is not None
    assert cohorts(life) == [("slow", E, 0, E // 10, 1)]
    life.epoch()
    assert cohorts(life) == [("slow", 2 * E, 0, E // 10, 1)]
    ledger.verify("clinic")


def test_a_private_roster_tells_nobody_who_cannot_pay(where: str, tmp_path: Path) -> None:
    ledger = Ledger.open(where, key=tmp_path / "people.key")
    ledger.register("clinic", people=MENU, living=True, private=True)
    life = ledger.people("clinic")
    assert life.bring(["ann", "ben", "cyd"], ["open", "strict", "strict"]) == Pending()
    closed = life.epoch()
    assert (closed.number, closed.people, closed.joined, closed.cohorts) == (1, 0, 0, 0)
    shown = life.standing()
    assert (shown.tiers, shown.heads.tolist(), shown.left.tolist()) == (("strict", "open"), [0, 0], [E // 10, E])
    first = ledger.reserve("clinic", Charge.of_people([6 * E // 100, E // 2]), request="a").id
    assert life.taking_part(first, ["ann", "ben", "cyd", "dan"]).tolist() == [1, 0, 0, -1]
    life.withdraw("cyd")
    second = ledger.reserve("clinic", Charge.of_people([6 * E // 100, E // 2]), request="b").id
    assert life.taking_part(second, ["ann", "ben", "cyd"]).tolist() == [1, -1, -1]
    ledger.reserve("clinic", Charge.of_people([E // 100, E]), request="c")
    assert [life.receipt(p).spent for p in ("ann", "ben", "cyd")] == [E, 7 * E // 100, 6 * E // 100]
    assert life.standing().left.tolist() == [E // 10, E]
    assert ledger.balance("clinic").people is None
    assert life.pending() == Pending()
    with pytest.raises(InputError, match="choose from the menu"):
        life.join("dan", "0.3")
    with pytest.raises(InputError, match="3 person groups but the ledger's roster has 2"):
        ledger.reserve("clinic", Charge.of_people([1, 1, 1]), request="d")
    ledger.verify("clinic")


def test_many_choices_and_one_among_them(ledger: Ledger, life: Life) -> None:
    everybody = np.arange(5000)
    life.bring(everybody, "strict")
    assert life.receipt(4321).waiting == "strict"
    life.join("4321", "open")
    assert life.receipt(4321).waiting == "open"
    life.epoch()
    assert life.receipt(4321).tier == "open"
    assert life.receipt(4321).waiting is None
    grants = np.where(everybody % 2, 0.05, 0.5)
    assert life.bring(everybody, grants) == Pending(raise_=2500, lower=2500)
    assert [life.receipt(n).waiting for n in (4320, 4321)] == ["0.5", "0.05"]
    life.withdraw(4320)
    assert life.bind() is not None
    assert life.pending().raise_ == 2499
    assert life.receipt(4320).withdrawn
    life.epoch()
    assert cohorts(life) == [(None, E // 20, 0, E // 20, 2500), (None, E // 2, 0, E // 2, 2499)]
    ledger.verify("clinic")


def test_who_withdraws_before_they_were_in_is_not_brought_in_by_an_import(life: Life) -> None:
    life.join("ann", "open")
    life.withdraw("ann")
    assert life.bring(["ann", "ben"], "open") == Pending(join=1)
    assert life.epoch().joined == 1
    assert [life.knows(name) for name in ("ann", "ben")] == [False, True]


def test_a_missing_grant_is_no_withdrawal(life: Life) -> None:
    life.join("ann", "open")
    life.epoch()
    for act in (life.join, life.change):
        with pytest.raises(InputError, match="a grant must be a finite number, got None"):
            act("ann", None)  # type: ignore[arg-type]
    assert life.pending().total == 0
