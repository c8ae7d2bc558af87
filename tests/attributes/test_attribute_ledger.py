"""The person's ledger: caps per recipient and together, durability, races, damage."""

from __future__ import annotations

import json
import multiprocessing
import os

import pytest

from sfumato.attributes import DeviceLedger, Limits, Profile, Recipients
from sfumato.errors import BudgetError, InputError, LedgerError, PrivacyError
from sfumato.privacy import Charge, RecipientBudgets

SHOP = {"a": ["x", "y"], "b": ["y"]}
BUDGETS = {"x": 0.2, "y": 0.4}
RULE = Recipients({"shop": 5, "adnet": 1}, rule={0: 0.1, 5: 0.4}, together=0.45)


def profile(path=None, **more):
    return Profile(SHOP, budgets=BUDGETS, recipients=RULE, ledger=DeviceLedger(path), **more)


def test_repeated_releases_add_up_until_the_budget_is_gone():
    person = profile(releases=4)
    for n in range(1, 5):
        person.release(["a"], to="shop")
        assert person.ledger.spent("shop").total == n * person.policy(to="shop").charge.total
    with pytest.raises(BudgetError, match="left towards 'shop'"):
        person.release(["a"], to="shop")
    spent = person.ledger.spent("shop")
    assert spent.total <= 400_000_000
    assert spent.attributes["x"] <= 200_000_000
    assert spent.attributes["y"] <= 400_000_000


def test_colluding_recipients_meet_the_common_cap():
    person = profile()
    person.release(["a"], to="shop")
    with pytest.raises(BudgetError, match="all recipients together"):
        person.release(["a"], to="adnet")
    assert person.ledger.spent("adnet").total == 0
    assert person.ledger.spent_together().total <= 450_000_000


def test_attributes_have_a_common_cap_too():
    person = Profile(SHOP, budgets=BUDGETS, together={"x": 0.3})
    first = person.release(["a"], to="one", epsilon=1)
    assert first.guarantee.attributes["x"] == 200_000_000
    with pytest.raises(BudgetError, match="attribute 'x' towards all recipients together"):
        person.release(["a"], to="two", epsilon=1)


def test_when_a_budget_is_used_up_the_last_release_can_be_shown_again(tmp_path):
    path = tmp_path / "me.json"
    person = profile(path)
    first = person.release(["a"], to="shop")
    again = profile(path).release(lambda: pytest.fail("the history was read"), to="shop", exhausted="repeat")
    assert again.repeated
    assert again.counts.tolist() == first.counts.tolist()
    assert again.guarantee.nano == first.guarantee.nano
    assert any("used up" in w for w in again.warnings)
    with pytest.raises(BudgetError):
        person.release(["a"], to="adnet", exhausted="repeat")  # nothing to repeat


def test_the_charge_is_on_disk_before_the_history_is_read(tmp_path):
    path = tmp_path / "me.json"
    person = profile(path)

    def history():
        stored = json.loads(path.read_text())
        assert stored["spent"]["shop"]["overall"] == person.policy(to="shop").charge.total
        raise RuntimeError("the device dies here")

    with pytest.raises(PrivacyError, match="why is not told"):
        person.release(history, to="shop")
    assert DeviceLedger(path).spent("shop").total > 0
    with pytest.raises(BudgetError):
        profile(path).release(["a"], to="shop")


def test_a_refused_charge_changes_nothing(tmp_path):
    path = tmp_path / "me.json"
    ledger = DeviceLedger(path)
    limits = Limits(100, {"x": 100})
    ledger.charge("r", Charge(60, attributes={"x": 60}), limits)
    before = path.read_bytes()
    for price in (
        Charge(41, attributes={"x": 1}),
        Charge(40, attributes={"x": 41 - 1 + 1}),
        Charge(1, attributes={"new": 1}),
    ):
        with pytest.raises(BudgetError):
            ledger.charge("r", price, limits)
    assert path.read_bytes() == before
    ledger.charge("r", Charge(40, attributes={"x": 40}), limits)
    assert ledger.left("r", limits) == {"overall": 0, "x": 0}


def _race(path: str, wins) -> None:
    ledger = DeviceLedger(path)
    for _ in range(5):
        try:
            ledger.charge("r", Charge(10, attributes={"x": 10}), Limits(100, {"x": 1000}))
        except BudgetError:
            continue
        with wins.get_lock():
            wins.value += 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_processes_racing_for_ten_charges_get_exactly_ten(tmp_path):
    context = multiprocessing.get_context("fork")
    wins = context.Value("i", 0)
    racers = [context.Process(target=_race, args=(str(tmp_path / "me.json"), wins)) for _ in range(6)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(30)
    assert wins.value == 10
    assert DeviceLedger(tmp_path / "me.json").spent("r").total == 100


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"kind": "sfumato device ledger", "version": 2, "spent": {}, "latest": {}}',
        '{"kind": "sfumato device ledger", "version": 1, "spent": {"r": {"overall": 0.5, "attributes": {}}}, "latest": {}}',
        '{"kind": "sfumato device ledger", "version": 1, "spent": {"r": {"overall": 5}}, "latest": {}}',
        '{"kind": "sfumato device ledger", "version": 1, "spent": {}, "la',
    ],
)
def test_a_damaged_ledger_is_never_taken_for_an_empty_one(tmp_path, text):
    path = tmp_path / "me.json"
    path.write_text(text)
    with pytest.raises(LedgerError):
        DeviceLedger(path)
    assert path.read_text() == text


def test_a_ledger_that_cannot_be_written_releases_nothing(tmp_path):
    ledger = DeviceLedger(tmp_path / "missing" / "me.json")
    with pytest.raises(LedgerError):
        Profile(SHOP, budgets=BUDGETS, ledger=ledger).release(lambda: pytest.fail("read"), to="r", epsilon=0.1)


def test_a_ledger_that_disappears_is_not_taken_for_an_empty_one(tmp_path):
    path = tmp_path / "me.json"
    person = profile(path)
    person.release(["a"], to="shop")
    path.unlink()
    with pytest.raises(LedgerError, match="disappeared"):
        person.release(["a"], to="shop")


def test_reputation_decides_and_a_worse_one_never_gets_more():
    assert RULE.nano("shop") == 400_000_000
    assert RULE.budgets.together == 450_000_000
    by_function = Recipients({"low": 1, "high": 9}, rule=lambda r: 0.01 * r, stranger=0.5)
    assert by_function.nano("high") == 90_000_000
    assert by_function.nano("unheard of") == 5_000_000
    with pytest.raises(InputError, match="never get less"):
        Recipients({"low": 1, "high": 9}, rule=lambda r: 1 / r)
    with pytest.raises(InputError, match="never get less"):
        Recipients({}, rule={0: 0.5, 5: 0.1})
    with pytest.raises(InputError, match="no reputation"):
        RULE.nano("stranger")
    with pytest.raises(InputError, match="lower step"):
        Recipients({"worst": -1}, rule={0: 0.1})
    with pytest.raises(InputError):
        Recipients({"odd": float("nan")}, rule=lambda r: 0.1)
    fixed = Recipients.fixed(RecipientBudgets.of({"a": 0.1, "b": 1}, together=1))
    assert (fixed.nano("a"), fixed.nano("b"), fixed.budgets.together) == (10**8, 10**9, 10**9)


def test_preview_spends_nothing_and_ranks_by_expected_error():
    person = profile()
    options = person.preview(to="shop")
    assert [o.expected_rmse for o in options] == sorted(o.expected_rmse for o in options)
    assert any("composition" in o.note for o in options)
    assert all(o.charge.total <= 400_000_000 for o in options)
    assert person.ledger.spent_together().total == 0


def test_questions_without_an_answer_say_what_is_missing():
    with pytest.raises(InputError, match="give epsilon"):
        Profile(SHOP, budgets=BUDGETS).release([], to="who")
    with pytest.raises(InputError, match="catalogue"):
        Profile(None, budgets=BUDGETS)
    with pytest.raises(InputError, match="no policy"):
        Profile(None, budgets=BUDGETS, policies={}).release([], to="who", epsilon=1)
    with pytest.raises(InputError, match="releases"):
        Profile(SHOP, budgets=BUDGETS, releases=0)
