"""Reserve, commit, fail, repeat: what is charged to whom, and what a refusal says."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sfumato.errors import BudgetError, InputError, LedgerError
from sfumato.ledger import Ledger
from sfumato.privacy.budgets import AttributeBudgets, PersonBudgets, RecipientBudgets
from sfumato.privacy.charge import Charge


@pytest.fixture
def ledger(where: str) -> Ledger:
    ledger = Ledger.open(where)
    ledger.register("clinic", epsilon=1)
    return ledger


def test_a_reservation_is_spent_at_once_and_seen_by_others(ledger: Ledger, where: str) -> None:
    ledger.reserve("clinic", Charge.of("0.3"), request="a")
    total = Ledger.open(where, create=False).balance("clinic").total
    assert (total.cap, total.spent, total.left) == (10**9, 3 * 10**8, 7 * 10**8)


def test_refusal_says_what_was_asked_what_is_left_and_what_to_do(ledger: Ledger) -> None:
    ledger.reserve("clinic", Charge.of("0.9"), request="a")
    with pytest.raises(BudgetError) as refusal:
        ledger.reserve("clinic", Charge.of("0.4"), request="b")
    assert str(refusal.value) == (
        "asked ε 0.4, 0.1 of 1 left for 'clinic'; lower its epsilon or share, or open a new ledger period. Nothing was spent"
    )
    assert ledger.balance("clinic").total.left == 10**8
    assert len(ledger.history("clinic")) == 1


def test_the_last_nano_can_be_spent_and_no_more(ledger: Ledger) -> None:
    ledger.reserve("clinic", Charge.of("0.999999999"), request="a")
    with pytest.raises(BudgetError):
        ledger.reserve("clinic", Charge(2), request="b")
    ledger.reserve("clinic", Charge(1), request="b")
    assert ledger.balance("clinic").total.left == 0


def test_an_identical_committed_request_is_returned_at_no_cost(ledger: Ledger) -> None:
    request = {"kind": "count", "where": "age >= 65"}
    first = ledger.reserve("clinic", Charge.of("0.6"), request=request)
    assert (first.state, first.repeated, first.artefact) == ("reserved", False, None)
    ledger.commit(first.id, {"folder": "over65"})
    again = ledger.reserve("clinic", Charge.of("0.6"), request=dict(reversed(request.items())))
    assert (again.id, again.state, again.repeated) == (first.id, "committed", True)
    assert again.artefact == {"folder": "over65"}
    assert ledger.balance("clinic").total.spent == 6 * 10**8


@pytest.mark.parametrize("ending", ["crashed", "failed"])
def test_an_unfinished_request_is_charged_again(ledger: Ledger, ending: str) -> None:
    first = ledger.reserve("clinic", Charge.of("0.3"), request="a")
    if ending == "failed":
        ledger.fail(first.id)
    second = ledger.reserve("clinic", Charge.of("0.3"), request="a")
    assert second.id != first.id
    assert not second.repeated
    assert ledger.balance("clinic").total.spent == 6 * 10**8


def test_a_release_is_finished_once(ledger: Ledger) -> None:
    done = ledger.reserve("clinic", Charge.of("0.1"), request="a").id
    ledger.commit(done, "out/a")
    ledger.commit(done, "out/a")  # a retry after a lost answer
    with pytest.raises(LedgerError, match="committed already"):
        ledger.commit(done, "out/b")
    with pytest.raises(LedgerError, match="cannot become failed"):
        ledger.fail(done)
    lost = ledger.reserve("clinic", Charge.of("0.1"), request="b").id
    ledger.fail(lost)
    with pytest.raises(LedgerError, match="failed already"):
        ledger.commit(lost, "out/b")
    with pytest.raises(LedgerError, match="no release 4711"):
        ledger.commit(4711, "out/c")
    with pytest.raises(InputError, match="JSON"):
        ledger.commit(lost, {"value": float("nan")})
    assert [r.state for r in ledger.history("clinic")] == ["committed", "failed"]
    assert ledger.history("clinic")[0].artefact == {"path": "out/a"}


def test_attribute_caps(where: str) -> None:
    ledger = Ledger.open(where)
    ledger.register("shop", attributes=AttributeBudgets.of({"location": "0.05", "price": "0.3"}))
    ledger.reserve("shop", Charge.of("0.2", attributes={"location": "0.04", "price": "0.2"}), request="a")
    with pytest.raises(BudgetError, match=r"asked ε 0\.02, 0\.01 of 0\.05 left for attribute 'location'"):
        ledger.reserve("shop", Charge.of("0.02", attributes={"location": "0.02"}), request="b")
    ledger.reserve("shop", Charge.of("0.1", attributes={"price": "0.1"}), request="c")
    with pytest.raises(InputError, match="attribute 'locatoin' has no budget"):
        ledger.reserve("shop", Charge.of("0.1", attributes={"locatoin": "0.1"}), request="d")
    spent = {limit.name: limit.spent for limit in ledger.balance("shop").attributes}
    assert spent == {"location": 4 * 10**7, "price": 3 * 10**8}
    # A charge that says nothing about attributes may concern each of them.
    with pytest.raises(BudgetError, match="attribute 'price'"):
        ledger.reserve("shop", Charge(1), request="e")


def test_recipient_caps_and_collusion(where: str) -> None:
    ledger = Ledger.open(where)
    ledger.register("shop", recipients=RecipientBudgets.of({"adnet": "0.1", "bank": 1}, together="1.05"))
    ledger.reserve("shop", Charge.of("0.1"), request="a", recipient="adnet")
    with pytest.raises(BudgetError, match=r"0 of 0\.1 left for recipient 'adnet'"):
        ledger.reserve("shop", Charge.of("0.01"), request="b", recipient="adnet")
    with pytest.raises(BudgetError, match=r"0\.95 of 1\.05 left for all recipients of 'shop' together"):
        ledger.reserve("shop", Charge.of(1), request="c", recipient="bank")
    ledger.reserve("shop", Charge.of("0.5"), request="c", recipient="bank")
    with pytest.raises(InputError, match="recipient 'stranger' has no budget"):
        ledger.reserve("shop", Charge.of("0.1"), request="d", recipient="stranger")
    with pytest.raises(BudgetError, match="recipient 'adnet'"):  # to everybody is to adnet too
        ledger.reserve("shop", Charge.of("0.1"), request="e")
    balance = ledger.balance("shop")
    assert balance.together is not None
    assert balance.together.spent == 6 * 10**8
    assert balance.total.cap is None


def test_a_stored_release_goes_only_to_those_who_paid_for_it(where: str) -> None:
    ledger = Ledger.open(where)
    ledger.register("shop", recipients=RecipientBudgets.of({"adnet": 1, "bank": 1}))
    private = ledger.reserve("shop", Charge.of("0.1"), request="a", recipient="adnet")
    ledger.commit(private.id, "a")
    assert ledger.reserve("shop", Charge.of("0.1"), request="a", recipient="adnet").repeated
    assert not ledger.reserve("shop", Charge.of("0.1"), request="a", recipient="bank").repeated
    assert not ledger.reserve("shop", Charge.of("0.1"), request="a").repeated
    public = ledger.reserve("shop", Charge.of("0.1"), request="b")
    ledger.commit(public.id, "b")
    assert ledger.reserve("shop", Charge.of("0.1"), request="b", recipient="bank").id == public.id


def test_registering_twice(ledger: Ledger) -> None:
    ledger.register("clinic", epsilon="1.0")
    with pytest.raises(LedgerError, match=r"total differ.*new ledger period"):
        ledger.register("clinic", epsilon=2)
    with pytest.raises(LedgerError, match="people differ"):
        ledger.register("clinic", epsilon=1, people=PersonBudgets.of([0.1]))
    roster = PersonBudgets.from_tiers({"open": (1, 5), "strict": ("0.1", 2)})
    for _ in range(2):
        ledger.register("ward", people=roster)
    with pytest.raises(LedgerError, match="people differ"):
        ledger.register("ward", people=PersonBudgets.from_tiers({"open": (1, 5), "strict": ("0.1", 3)}))
    assert ledger.datasets() == ["clinic", "ward"]


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "much"])
def test_a_cap_must_be_a_positive_number(ledger: Ledger, epsilon: object) -> None:
    with pytest.raises(InputError):
        ledger.register("other", epsilon=epsilon)  # type: ignore[arg-type]
    assert ledger.datasets() == ["clinic"]


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\0b"])
def test_a_dataset_needs_a_printable_name(ledger: Ledger, name: str) -> None:
    with pytest.raises(InputError, match="printable"):
        ledger.register(name, epsilon=1)


@pytest.mark.parametrize("name", ["Klinik Süd – 'A\"", "'; DROP TABLE ledger_limits; --", "\N{GRINNING FACE}" * 90])
def test_absurd_names_are_only_names(ledger: Ledger, name: str) -> None:
    ledger.register(name, epsilon=1, attributes=AttributeBudgets.of({name: 1}))
    reserved = ledger.reserve(name, Charge.of(1), request={name: "\0 \ud800"}, recipient=name, by=name)
    ledger.commit(reserved.id, {name: name})
    assert ledger.balance(name).attributes[0].left == 0
    assert ledger.history(name)[0].artefact == {name: name}


def test_a_request_that_is_not_json(ledger: Ledger) -> None:
    for request in ({"epsilon": float("nan")}, {"a": object()}):
        with pytest.raises(InputError, match="JSON"):
            ledger.reserve("clinic", Charge(1), request=request)
    assert ledger.balance("clinic").total.spent == 0


def test_unknown_dataset(ledger: Ledger) -> None:
    for ask in (lambda: ledger.balance("clinc"), lambda: ledger.reserve("clinc", Charge(1), request="a")):
        with pytest.raises(LedgerError, match=r"no dataset 'clinc' \('clinic'\)"):
            ask()


def test_a_dataset_without_caps_still_records(where: str) -> None:
    ledger = Ledger.open(where)
    ledger.register("notes")
    ledger.reserve("notes", Charge.of(3, attributes={"anything": 1}), request="a", recipient="anybody", by="me")
    (line,) = ledger.history("notes")
    assert (line.total, line.recipient, line.by) == (3 * 10**9, "anybody", "me")


def test_balance_as_json(ledger: Ledger) -> None:
    ledger.register("ward", epsilon=2, people=PersonBudgets.from_tiers({"open": (1, 5), "strict": ("0.1", 2)}))
    ledger.reserve("ward", Charge(5 * 10**8, people=np.array([10**8, 5 * 10**8])), request='{"a":1}')
    shown = json.loads(json.dumps(ledger.balance("ward").to_dict()))
    assert shown["total"] == {"cap": "2", "spent": "0.5", "left": "1.5"}
    assert [(row["name"], row["people"], row["left"]) for row in shown["people"]] == [
        ("strict", 2, ["0", "0"]),
        ("open", 5, ["0.5", "0.5"]),
    ]
    assert shown["releases"][0]["state"] == "reserved"
    assert shown["releases"][0]["people"] == "the budget, at most 0.5"


def test_threads_share_a_ledger(ledger: Ledger) -> None:
    def ask(number: int) -> bool:
        try:
            ledger.reserve("clinic", Charge.of("0.1"), request=str(number))
        except BudgetError:
            return False
        return True

    with ThreadPoolExecutor(16) as threads:
        assert sum(threads.map(ask, range(16))) == 10


def test_importing_the_ledger_does_not_load_a_database() -> None:
    code = "import sys, sfumato.ledger; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
