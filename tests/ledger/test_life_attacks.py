"""Odd rosters and odd moments: many tiers, nobody at all, everybody gone, two datasets, choices around a charge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import BudgetError, InputError, LedgerError
from sfumato.ledger import Ledger, clock, persons
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge

MENU = PersonBudgets.from_tiers({"strict": ("0.1", 1), "open": (1, 1)})


@pytest.fixture
def ledger(where: str, tmp_path: Path) -> Ledger:
    ledger = Ledger.open(where, key=tmp_path / "people.key")
    ledger.register("clinic", people=MENU, living=True)
    return ledger


def test_everybody_keeps_their_tier_however_many_there_are(where: str, tmp_path: Path) -> None:
    ledger = Ledger.open(where, key=tmp_path / "people.key")
    levels = 10**6 + np.arange(70_000)
    ledger.register("nation", people=PersonBudgets(levels, np.ones_like(levels)), living=True)
    life = ledger.people("nation")
    chosen = np.array([0, 32_767, 32_768, 65_534, 65_535, 65_536, 69_999])
    life.bring(chosen, [f"{int(levels[tier]) / 1e9:.9f}" for tier in chosen])
    assert life.epoch().joined == len(chosen)
    standing = life.standing()
    assert standing.grants.tolist() == levels[chosen].tolist()
    assert standing.heads.tolist() == [1] * len(chosen)
    ledger.reserve("nation", Charge.of_people(standing.left // 2), request="a", standing=standing)
    for tier in chosen.tolist():
        receipt = life.receipt(tier)
        assert (receipt.grant, receipt.spent, receipt.withdrawn) == (levels[tier], levels[tier] // 2, False)
    ledger.verify("nation")


def test_nobody_yet_and_nobody_any_more(ledger: Ledger) -> None:
    life = ledger.people("clinic")
    assert (life.epoch().people, len(life.standing().grants)) == (0, 0)
    ledger.reserve("clinic", Charge.of("0.5"), request="nobody yet")
    life.bring([], [])
    life.bring(["ana", "ben"], ["open", "strict"])
    life.epoch()
    life.bring([], [], missing="withdraw")
    ledger.reserve("clinic", Charge.of(5), request="everybody is gone")
    assert len(life.standing().grants) == 0
    assert [life.receipt(name).spent for name in ("ana", "ben")] == [0, 0]
    assert life.taking_part(2, ["ana", "ben", "nobody"]).tolist() == [-1, -1, -1]
    ledger.verify("clinic")


def test_grants_of_nothing_and_beyond_all_measure_are_refused(ledger: Ledger) -> None:
    life = ledger.people("clinic")
    for grant in (0, "0", -1, "1e-10", 2_000_000, float("inf"), float("nan"), "closed", True, None):
        with pytest.raises(InputError):
            life.join("ana", grant)
        with pytest.raises(InputError):
            life.bring(["ana"], [grant])
    life.join("ana", 1_000_000)
    life.epoch()
    for number in range(3):
        standing = life.standing()
        ledger.reserve("clinic", Charge.of_people(standing.left // 2), request=f"half {number}", standing=standing)
    assert life.receipt("ana").spent == 10**15 // 2 + 10**15 // 4 + 10**15 // 8
    assert not life.knows("ben")
    ledger.verify("clinic")


def test_identifiers_that_are_nobody_are_refused(ledger: Ledger) -> None:
    life = ledger.people("clinic")
    for person in ("", None, float("nan"), 7.0, True, b"ana", ("ana",)):
        with pytest.raises(InputError):
            life.join(person, "open")
        with pytest.raises(InputError):
            life.bring(["ben", person], ["open", "open"])
    assert life.pending().total == 0
    with pytest.raises(InputError):
        life.bring([7, "7"], ["open", "strict"])
    with pytest.raises(InputError):
        life.bring(["ana", "ben"], ["open"])


def test_two_datasets_and_their_people_do_not_mix(ledger: Ledger) -> None:
    ledger.register("school", people=MENU, living=True)
    for dataset in ("clinic", "school"):
        ledger.people(dataset).bring(["ana", "ben"], ["open", "strict"])
        ledger.people(dataset).epoch()
    standing = ledger.people("clinic").standing()
    paid = ledger.reserve("clinic", Charge.of_people(standing.left), request="all", standing=standing)
    other = ledger.people("school")
    assert [other.receipt(name).spent for name in ("ana", "ben")] == [0, 0]
    with pytest.raises(InputError):
        other.taking_part(paid.id, ["ana"])
    ledger.people("clinic").withdraw("ana")
    assert other.pending().total == 0
    ledger.reserve("school", Charge.of("0.1"), request="all")
    assert other.receipt("ana").spent == 10**8
    with pytest.raises(BudgetError):
        ledger.reserve("clinic", Charge.of("0.1"), request="again")
    for dataset in ("clinic", "school"):
        ledger.verify(dataset)


def test_an_epoch_between_reserve_and_commit_leaves_the_release_as_it_was_charged(ledger: Ledger) -> None:
    life = ledger.people("clinic")
    life.bring(["ana", "ben"], ["open", "strict"])
    life.epoch()
    standing = life.standing()
    paid = ledger.reserve("clinic", Charge.of_people([10**7, 0]), request="a", standing=standing)
    before = life.taking_part(paid.id, ["ana", "ben", "cyd"]).tolist()
    assert before == [-1, 0, -1]
    life.change("ana", "strict")
    life.withdraw("ben")
    life.join("cyd", "strict")
    life.epoch()
    assert life.taking_part(paid.id, ["ana", "ben", "cyd"]).tolist() == before
    ledger.commit(paid.id, {"made": 1})
    assert [life.receipt(name).spent for name in ("ana", "ben", "cyd")] == [0, 10**7, 0]
    with pytest.raises(LedgerError):
        ledger.reserve("clinic", Charge.of_people([10**7, 0]), request="b", standing=standing)
    ledger.verify("clinic")


def test_looking_ahead_says_what_reserve_says(ledger: Ledger) -> None:
    life = ledger.people("clinic")
    life.bring(["ana", "ben"], ["open", "strict"])
    life.epoch()
    caps = ledger.caps("clinic")
    assert caps.refusal(Charge.of("0.1")) is None
    refused = caps.after(Charge.of("0.1")).refusal(Charge.of("0.1"))
    assert refused is not None
    ledger.reserve("clinic", Charge.of("0.1"), request="a")
    with pytest.raises(BudgetError) as said:
        ledger.reserve("clinic", Charge.of("0.1"), request="b")
    assert str(said.value) == refused
    assert ledger.would_fit("clinic", Charge.of("0.1")) == refused


def test_who_says_no_before_the_epoch_is_not_brought_in_by_an_import(ledger: Ledger) -> None:
    life = ledger.people("clinic")
    life.join("ana", "open")
    life.withdraw("ana")
    life.bring(["ana", "ben"], ["open", "open"])
    life.epoch()
    assert life.standing().heads.tolist() == [1]
    assert not life.knows("ana")


def test_a_release_told_twice_is_not_charged_twice(ledger: Ledger) -> None:
    life = ledger.people("clinic")
    life.join("ana", "open")
    life.epoch()
    first = ledger.reserve("clinic", Charge.of("0.1"), request="same")
    ledger.commit(first.id, {"made": 1})
    life.withdraw("ana")
    again = ledger.reserve("clinic", Charge.of("0.1"), request="same")
    assert again.repeated
    assert life.receipt("ana").spent == 10**8


@pytest.fixture
def renewing(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setattr(clock, "now", lambda: "2030-05-15T12:00Z")
    ledger = Ledger.open(where, key=tmp_path / "people.key")
    ledger.register("clinic", people=MENU, living=True, period="year", per_period={"open": "0.2"})
    ledger.people("clinic").join("ana", "open")
    ledger.people("clinic").epoch()
    return ledger


def test_no_choice_renews_a_period(renewing: Ledger) -> None:
    life = renewing.people("clinic")
    renewing.reserve("clinic", Charge.of("0.15"), request="a")
    for steps in (["0.9", "open"], [None, "open"]):
        for grant in steps:
            life.withdraw("ana") if grant is None else life.join("ana", grant)
            life.epoch()
        assert life.receipt("ana").left == 5 * 10**7
        assert life.standing().left.tolist() == [5 * 10**7]
    with pytest.raises(BudgetError):
        renewing.reserve("clinic", Charge.of("0.06"), request="b")


def test_a_clock_put_back_does_not_open_a_period_again(renewing: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    renewing.reserve("clinic", Charge.of("0.2"), request="a")
    monkeypatch.setattr(clock, "now", lambda: "2031-01-01T00:00Z")
    renewing.reserve("clinic", Charge.of("0.2"), request="b")
    for moment in ("2030-12-31T23:59Z", "2029-01-01T00:00Z"):
        monkeypatch.setattr(clock, "now", lambda moment=moment: moment)
        assert renewing.people("clinic").receipt("ana").left == 0
        with pytest.raises(BudgetError):
            renewing.reserve("clinic", Charge.of("0.000000001"), request=moment)


def test_of_a_choice_that_gives_and_takes_only_the_taking_binds(renewing: Ledger) -> None:
    life = renewing.people("clinic")
    life.change("ana", "0.9")  # less for life, and no cap per year
    life.bind()
    assert (life.receipt("ana").grant, life.receipt("ana").left) == (9 * 10**8, 2 * 10**8)
    life.epoch()
    assert life.receipt("ana").left == 9 * 10**8


def test_a_choice_comes_into_force_once(ledger: Ledger) -> None:
    life = ledger.people("clinic")
    life.bring(["ana", "ben"], ["open", "strict"])
    life.epoch()
    assert life.pending().total == 0
    assert life.epoch().joined == 0
    assert life.standing().heads.tolist() == [1, 1]
    assert [life.receipt(name).tier for name in ("ana", "ben")] == ["open", "strict"]


def test_an_import_does_not_bring_back_who_withdrew(ledger: Ledger) -> None:
    life = ledger.people("clinic")
    life.bring(["ana", "ben"], ["open", "open"])
    life.epoch()
    life.withdraw("ana")
    life.epoch()
    life.bring(["ana", "ben"], ["open", "strict"])
    life.epoch()
    assert life.receipt("ana").withdrawn
    assert life.standing().heads.tolist() == [1]


def test_who_cannot_pay_in_a_private_roster_takes_no_part(where: str, tmp_path: Path) -> None:
    ledger = Ledger.open(where, key=tmp_path / "people.key")
    ledger.register("clinic", people=MENU, living=True, private=True)
    life = ledger.people("clinic")
    life.bring(["ana", "ben"], ["strict", "open"])
    life.epoch()
    for number, paid in enumerate((6 * 10**7, 6 * 10**7)):
        release = ledger.reserve("clinic", Charge.of("0.06"), request=f"release {number}")
        assert life.receipt("ana").spent == paid
        assert life.taking_part(release.id, ["ana", "ben"]).tolist() == [-1 if number else 0, 1]


def test_without_the_key_nobody_can_be_looked_up() -> None:
    keys = [bytes([number]) * persons.KEY_BYTES for number in range(2)]
    one, two = (persons.hashes(key, "clinic", ["ana", "ben"]) for key in keys)
    assert not set(one["high"].tolist()) & set(two["high"].tolist()), "a hash does not depend on the key"
    again = persons.hashes(keys[0], "clinic", ["ana", "ben"])
    assert one.tobytes() == again.tobytes()
