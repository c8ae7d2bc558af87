"""What a preview foresees is what happens, cap by cap and request by request, and foreseeing leaves no trace."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import BudgetError, InputError, LedgerError
from sfumato.ledger import Ask, Caps, Foreseen, Ledger, datasets_at, foresee
from sfumato.privacy.budgets import AttributeBudgets, PersonBudgets, RecipientBudgets
from sfumato.privacy.charge import Charge
from support.memory import memory

costs = st.integers(0, 8)
grants = st.integers(1, 20)


@st.composite
def registrations(draw: st.DrawFn) -> dict[str, Any]:
    """Any mixture of caps, small enough to be reached."""
    levels = sorted(draw(st.lists(grants, max_size=3)))
    attributes = draw(st.dictionaries(st.sampled_from(["age", "place"]), grants))
    recipients = draw(st.dictionaries(st.sampled_from(["adnet", "bank"]), grants))
    together = draw(st.none() | grants)
    return {
        "epsilon": draw(st.none() | grants.map(lambda nano: f"{nano}e-9")),
        "people": PersonBudgets(np.array(levels), np.arange(len(levels)) + 1) if levels else None,
        "attributes": AttributeBudgets(attributes) if attributes else None,
        "recipients": RecipientBudgets(recipients, together) if recipients else None,
    }


@st.composite
def asks(draw: st.DrawFn) -> Ask:
    """Requests of which some repeat each other, some fit and some name what has no cap or no group."""
    people = draw(st.none() | st.lists(costs, min_size=1, max_size=3))
    total = max(draw(costs), *(people or [0]))
    attributes = draw(st.dictionaries(st.sampled_from(["age", "place"]), costs))
    charge = Charge(total, people=None if people is None else np.array(people), attributes=attributes)
    return Ask(charge, draw(st.sampled_from("abcdef")), draw(st.sampled_from([None, "adnet", "bank"])))


def made(ledger: Ledger, plan: list[Ask]) -> list[Foreseen]:
    """Make the requests for real; what was foreseen should be this."""
    said, new = [], set()
    for ask in plan:
        beforehand = ledger.would_fit("clinic", ask.charge, recipient=ask.recipient)
        stored = ledger.find("clinic", ask.request, recipient=ask.recipient)
        try:
            reserved = ledger.reserve("clinic", ask.charge, request=ask.request, recipient=ask.recipient)
        except (BudgetError, InputError) as refused:
            said.append(Foreseen(refusal=str(refused)))
            fitted = (stored, beforehand) == (None, str(refused))
            assert fitted, "would_fit or find said otherwise"
            continue
        if reserved.repeated:
            assert stored == reserved
            said.append(Foreseen(paid=True, entry=None if reserved.id in new else reserved.id))
        else:
            assert stored is None
            assert beforehand is None
            ledger.commit(reserved.id, {"number": reserved.id})
            new.add(reserved.id)
            said.append(Foreseen())
    return said


@given(registrations(), st.lists(asks(), max_size=5), st.lists(asks(), max_size=5))
@settings(max_examples=30, deadline=None)
def test_what_is_foreseen_happens(granted: dict[str, Any], first: list[Ask], second: list[Ask]) -> None:
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        where = Path(folder) / "clinic.ledger"
        caps = Caps.of("clinic", **granted)
        foreseen = foresee(where, caps, first)
        assert list(Path(folder).iterdir()) == []
        assert foresee(None, caps, first) == foreseen
        ledger = Ledger.open(where)
        ledger.register("clinic", **granted)
        assert foresee(where, caps, first) == foreseen
        assert made(ledger, first) == foreseen
        foreseen = foresee(where, caps, second)
        assert made(ledger, second) == foreseen


TIERS = PersonBudgets.from_tiers({"open": (1, 90), "strict": ("0.5", 10)})
NAMED = RecipientBudgets.of({"adnet": "0.5", "bank": 1}, together="1.1")


@pytest.mark.parametrize(
    ("granted", "recipients", "whose"),
    [
        ({"epsilon": "0.5"}, [None, None], "'clinic'"),
        ({"people": TIERS}, [None, None], "each of 10 people in tier 'strict' in 'clinic'"),
        ({"attributes": AttributeBudgets.of({"age": "0.5"})}, [None, None], "attribute 'age' of 'clinic'"),
        ({"recipients": NAMED}, ["adnet", "adnet"], "recipient 'adnet' of 'clinic'"),
        ({"recipients": NAMED}, ["bank", "bank", "adnet"], "all recipients of 'clinic' together"),
    ],
)
def test_every_kind_of_cap_is_foreseen(
    where: str, granted: dict[str, Any], recipients: list[str | None], whose: str
) -> None:
    plan = [Ask(Charge.of("0.4"), {"number": n}, recipient) for n, recipient in enumerate(recipients)]
    said = foresee(where, Caps.of("clinic", **granted), plan)
    assert [one.refusal is None for one in said] == [True] * (len(plan) - 1) + [False]
    assert f" left for {whose}; lower its epsilon or share" in str(said[-1].refusal)


def test_of_equally_tight_caps_the_same_one_is_named_everywhere(where: str) -> None:
    granted = {"attributes": AttributeBudgets.of({"b": "0.5", "Z": "0.5", "a": "0.5"})}
    caps = Caps.of("clinic", **granted)
    ledger = Ledger.open(where)
    ledger.register("clinic", **granted)
    for number in range(3):  # PostgreSQL moves rows that it updates
        charge = Charge.of("0.1", attributes={"Z": "0.1"})
        ledger.reserve("clinic", charge, request=str(number))
        caps = caps.after(charge)
    ask = Charge.of(1, attributes={"Z": "0.4", "a": 1, "b": 1})
    assert caps.refusal(ask) == ledger.would_fit("clinic", ask)
    assert "attribute 'Z' of 'clinic' (2 more caps would be passed)" in str(caps.refusal(ask))
    ask = Charge.of(1, attributes={"a": 1, "b": 1})
    assert caps.refusal(ask) == ledger.would_fit("clinic", ask)
    assert "attribute 'a' of 'clinic' (1 more cap would be passed)" in str(caps.refusal(ask))


def test_a_recipient_without_a_budget_is_foreseen() -> None:
    (said,) = foresee(None, Caps.of("clinic", recipients=NAMED), [Ask(Charge(1), "a", "bnak")])
    assert "recipient 'bnak' has no budget in 'clinic'; it has adnet, bank" in str(said.refusal)


def test_a_plan_is_judged_after_its_own_first_releases_and_what_is_paid_costs_nothing(where: str) -> None:
    caps = Caps.of("clinic", epsilon=1)
    plan = [Ask(Charge.of("0.4"), {"release": n}) for n in (1, 2, 3)]
    assert [said.refusal is None for said in foresee(where, caps, plan)] == [True, True, False]
    ledger = Ledger.open(where)
    ledger.register("clinic", epsilon=1)
    first = ledger.reserve("clinic", plan[0].charge, request=plan[0].request)
    # A reservation that is not finished is charged again.
    assert [said.refusal is None for said in foresee(where, caps, plan)] == [True, False, False]
    ledger.commit(first.id, "out")
    again = foresee(where, caps, plan)
    assert again[0] == Foreseen(paid=True, entry=first.id)
    assert again[1] == Foreseen()
    assert "asked ε 0.4, 0.2 of 1 left" in str(again[2].refusal)
    assert len(ledger.history("clinic")) == 1
    assert ledger.balance("clinic").total.spent == 4 * 10**8


def test_looking_up_what_was_paid(where: str) -> None:
    ledger = Ledger.open(where)
    ledger.register("shop", recipients=RecipientBudgets.of({"adnet": 1, "bank": 1}))
    reserved = ledger.reserve("shop", Charge.of("0.1"), request={"a": 1}, recipient="adnet")
    assert ledger.find("shop", {"a": 1}, recipient="adnet") is None
    ledger.commit(reserved.id, {"folder": "a"})
    found = ledger.find("shop", '{"a":1}', recipient="adnet")
    assert found is not None
    assert (found.id, found.artefact, found.repeated) == (reserved.id, {"folder": "a"}, True)
    assert ledger.find("shop", {"a": 1}, recipient="bank") is None
    assert ledger.find("shop", {"a": 1}) is None
    with pytest.raises(LedgerError, match="no dataset 'shpo'"):
        ledger.find("shpo", {"a": 1})


def test_other_numbers_than_the_registered_ones_are_foreseen(where: str) -> None:
    Ledger.open(where).register("clinic", epsilon=1)
    with pytest.raises(LedgerError, match=r"total differ.*new ledger period"):
        foresee(where, Caps.of("clinic", epsilon=2), [])
    assert foresee(where, Caps.of("ward", epsilon=2), [Ask(Charge.of(2), "a")]) == [Foreseen()]
    assert Ledger.open(where).datasets() == ["clinic"]


def test_a_place_where_no_ledger_can_be_is_foreseen(tmp_path: Path) -> None:
    table = tmp_path / "clinic.csv"
    table.write_text("age\n65\n")
    for place, why in ((table, "not a Sfumato ledger"), (tmp_path / "none" / "a.ledger", "does not exist")):
        with pytest.raises(LedgerError, match=why):
            foresee(place, Caps.of("clinic", epsilon=1), [])
    empty = tmp_path / "empty.ledger"
    empty.touch()
    assert foresee(empty, Caps.of("clinic", epsilon=1), [Ask(Charge.of(1), "a")]) == [Foreseen()]
    assert empty.read_bytes() == b""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clinic.csv", "empty.ledger"]


def test_looking_changes_no_byte(tmp_path: Path) -> None:
    where = tmp_path / "clinic.ledger"
    ledger = Ledger.open(where)
    ledger.register("clinic", epsilon=1)
    before = where.read_bytes()
    assert datasets_at(where) == ["clinic"]
    assert datasets_at(tmp_path / "none.ledger") == []
    foresee(where, Caps.of("clinic", epsilon=1), [Ask(Charge.of(1), "a")])
    assert ledger.would_fit("clinic", Charge.of(1)) is None
    assert ledger.find("clinic", "a") is None
    assert where.read_bytes() == before
    assert list(tmp_path.iterdir()) == [where]


def test_caps_may_be_numpy_integers(where: str) -> None:
    granted = {
        "attributes": AttributeBudgets({"age": np.int64(9)}),  # type: ignore[dict-item]
        "recipients": RecipientBudgets({"bank": np.int64(8)}, np.int64(7)),  # type: ignore[dict-item, arg-type]
    }
    Ledger.open(where).register("clinic", **granted)  # type: ignore[arg-type]
    (said,) = foresee(where, Caps.of("clinic", **granted), [Ask(Charge(10), "a")])  # type: ignore[arg-type]
    assert "0.000000007 of 0.000000007 left for all recipients of 'clinic' together (2 more caps" in str(said.refusal)


@pytest.mark.parametrize("amount", [0.9, 1.0, True, np.float64(2), "3", None, float("nan")])
def test_a_charge_is_whole_nano(where: str, amount: Any) -> None:
    ledger = Ledger.open(where)
    ledger.register("clinic", epsilon=1, attributes=AttributeBudgets.of({"age": 1}))
    charge = Charge(1)
    for broken in ({"total": amount}, {"attributes": {"age": amount}}):
        for key, value in ({"total": 1, "attributes": {}} | broken).items():
            object.__setattr__(charge, key, value)  # whatever Charge itself lets through
        with pytest.raises(InputError, match=r"whole number of nano-ε.*Charge\.of"):
            ledger.reserve("clinic", charge, request="a")
    assert ledger.balance("clinic").total.spent == 0
    ledger.reserve("clinic", Charge(int(np.int64(5))), request="a")
    object.__setattr__(charge, "total", np.int64(5))
    object.__setattr__(charge, "attributes", {})
    ledger.reserve("clinic", charge, request="b")
    assert ledger.balance("clinic").total.spent == 10
