"""Devices and the custodian: caps that see both, once, and never less than what was spent."""

from __future__ import annotations

import pytest

from sfumato.attributes import DeviceLedger, Limits
from sfumato.errors import BudgetError, InputError, PrivacyError
from sfumato.ledger import Ledger
from sfumato.privacy import Charge
from sfumato.privacy.budgets import AttributeBudgets, PersonBudgets, RecipientBudgets
from sfumato.privacy.statement import Statement

FREE = Limits(10**9, {"price": 10**9, "place": 10**9})


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.open(tmp_path / "shop.ledger")
    made.register(
        "shop",
        epsilon="1e-6",
        attributes=AttributeBudgets.of({"price": "1e-7"}),
        recipients=RecipientBudgets.of({"adnet": "3e-7", "bank": "5e-7"}, together="6e-7"),
        people=PersonBudgets.from_tiers({"open": (1, 5)}),
    )
    return made


def spend(device: DeviceLedger, to: str, total: int, **attributes: int) -> Statement:
    device.charge(to, Charge(total, attributes=attributes), FREE)
    return Statement.from_json(device.statement().to_json())


def spent(ledger: Ledger) -> dict[str, int]:
    ledger.verify("shop")
    balance = ledger.balance("shop")
    caps = [balance.total, balance.together, *balance.attributes, *balance.recipients]
    assert int(balance.people.spent.max()) == 0  # a device's releases are not charged to everybody
    return {f"{cap.kind} {cap.name}".strip(): int(cap.spent) for cap in caps if cap.spent}


def test_caps_see_both_and_a_statement_counts_once(ledger):
    device = DeviceLedger()
    first = spend(device, "adnet", 20, price=8, place=12)
    ledger.bridge("shop", first, person="ann", items=1)
    now = {"total": 20, "together": 20, "attribute price": 8, "recipient adnet": 20}
    assert spent(ledger) == now
    for _ in range(2):
        assert ledger.bridge("shop", first, person="ann", items=1).known
    assert spent(ledger) == now
    assert device.statement().digest == first.digest  # nothing was spent since
    second = spend(device, "bank", 5, price=5)
    ledger.bridge("shop", second, person="ann", items=1)
    assert ledger.bridge("shop", first, person="ann", items=1).known  # an older one is part of it
    now = {"total": 25, "together": 25, "attribute price": 13, "recipient adnet": 20, "recipient bank": 5}
    assert spent(ledger) == now
    ledger.reserve("shop", Charge(280, attributes={"price": 0}), request={"kind": "count"}, recipient="adnet")
    with pytest.raises(BudgetError, match="recipient 'adnet'"):
        ledger.reserve("shop", Charge(1, attributes={"price": 0}), request={"kind": "sum"}, recipient="adnet")


def test_what_counts_is_the_person_whose_devices_spent_most(ledger):
    ann = [DeviceLedger(), DeviceLedger()]
    ben = DeviceLedger()
    ledger.bridge("shop", spend(ann[0], "adnet", 20, price=8), person="ann", items=1)
    ledger.bridge("shop", spend(ben, "adnet", 25, price=3), person="ben", items=1)
    assert spent(ledger) == {"total": 25, "together": 25, "attribute price": 8, "recipient adnet": 25}
    ledger.bridge("shop", spend(ann[1], "adnet", 10, price=1), person="ann", items=1)  # two devices of one person add up
    assert spent(ledger) == {"total": 30, "together": 30, "attribute price": 9, "recipient adnet": 30}
    ledger.bridge("shop", spend(ben, "stranger", 90, price=90), person="ben", items=1)  # who gets nothing of this dataset
    assert spent(ledger)["attribute price"] == 9
    text = str(ledger.history("shop"))
    assert "ann" not in text
    assert "ben" not in text


def test_a_ledger_that_was_put_back_counts_as_a_second_device(ledger, tmp_path):
    device = DeviceLedger(tmp_path / "me.json")
    ledger.bridge("shop", spend(device, "adnet", 20, price=1), person=7, items=1)
    old = (tmp_path / "me.json").read_text()
    ledger.bridge("shop", spend(device, "adnet", 30, price=1), person=7, items=1)
    assert spent(ledger)["recipient adnet"] == 50
    (tmp_path / "me.json").write_text(old)
    back = DeviceLedger(tmp_path / "me.json")
    ledger.bridge("shop", spend(back, "adnet", 10, price=1), person=7, items=1)  # in truth 60 were spent, it says 30
    assert spent(ledger)["recipient adnet"] == 80
    ledger.bridge("shop", spend(back, "adnet", 5, price=1), person="7", items=1)
    assert spent(ledger)["recipient adnet"] == 85


def test_a_cap_that_is_passed_is_used_up_and_nothing_is_refused(ledger):
    device = DeviceLedger()
    done = ledger.bridge("shop", spend(device, "adnet", 100, price=80), person="ann", items=4)
    assert done.charged["recipient", "adnet"] == 300
    assert done.passed == {("attribute", "price"): 220, ("recipient", "adnet"): 100}
    left = {cap.name: cap.left for cap in (*ledger.balance("shop").recipients, *ledger.balance("shop").attributes)}
    assert left == {"adnet": 0, "bank": 500, "price": 0}
    with pytest.raises(BudgetError, match="recipient 'adnet'"):
        ledger.reserve("shop", Charge(1, attributes={"price": 0}), request={"kind": "count"}, recipient="adnet")
    ledger.verify("shop")


def test_a_changed_statement_is_refused():
    made = spend(DeviceLedger(), "adnet", 20, price=8)
    text = made.to_json(key=b"shared")
    assert Statement.from_json(text, key=b"shared").digest == made.digest
    for changed, key in ((text, None), (text, b"other"), (text.replace("20", "10"), b"shared")):
        with pytest.raises(PrivacyError, match="changed after it was made"):
            Statement.from_json(changed, key=key)
    for wrong in ("", "[]", "{}", '{"kind": "sfumato device statement", "version": 2}'):
        with pytest.raises(InputError):
            Statement.from_json(wrong)


def test_items_are_a_whole_number(ledger):
    made = spend(DeviceLedger(), "adnet", 20)
    for items in (0, 1.5, True):
        with pytest.raises(InputError, match="whole number"):
            ledger.bridge("shop", made, person="ann", items=items)
    with pytest.raises(InputError, match="any budget"):
        ledger.bridge("shop", made, person="ann", items=10**18)
    assert spent(ledger) == {}
