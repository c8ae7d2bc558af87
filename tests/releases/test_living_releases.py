"""Releases on a living roster: who takes part, at which weight, and what certificates and receipts say of it."""

from __future__ import annotations

import time
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import BudgetError, InputError
from sfumato.ledger import Receipt
from sfumato.offers import Request
from sfumato.privacy.charge import Charge
from sfumato.privacy.units import epsilon_text
from sfumato.releases.living import Part, charged_to
from sfumato.releases.session import Table
from sfumato.tables import Numeric, PrivacyUnit, Roster, Schema

SCHEMA = Schema({"age": Numeric(0, 99, bins=10, integer=True)}, unit=PrivacyUnit(person="who", rows_per_person=1))
TIERS = {"strict": "0.1", "open": 1}


def frame(people: int = 5) -> pd.DataFrame:
    return pd.DataFrame({"who": [f"p{i}" for i in range(people)], "age": [(7 * i) % 100 for i in range(people)]})


def clinic(tmp_path: Path, *, people: int = 5, noise: Any = None, **living: Any) -> Table:
    budgets = Roster.living(TIERS, **living)
    more = {} if noise is None else {"noise": noise}
    return sf.open(frame(people), schema=SCHEMA, budgets=budgets, name="clinic", ledger=tmp_path / "clinic.ledger", **more)


@pytest.fixture
def table(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> Table:
    made = clinic(tmp_path)
    made.people.bring([f"p{i}" for i in range(5)], ["strict", "strict", "open", "open", "open"])
    made.people.epoch()
    return made


def told(receipt: Receipt, certificates: dict[int, dict[str, Any]]) -> int:
    """What the certificates say that this person was charged, found by what their receipt tells of them."""
    total, spent = Decimal(0), 0
    for line in receipt.lines:
        where = {"tier": line.tier, "granted": epsilon_text(line.grant), "spent_before": epsilon_text(spent)}
        said = charged_to(certificates[line.release], **where)
        assert said is not None
        assert Decimal(said) == Decimal(epsilon_text(line.charged))
        total += Decimal(said)
        spent += line.charged
    return int(total * 10**9)


def certificates(table: Table) -> dict[int, dict[str, Any]]:
    return {r.id: (r.artefact or {})["certificate"] for r in table.ledger.history("clinic") if r.state == "committed"}


def test_a_life_of_five_people(table: Table) -> None:
    life = table.people
    table.count(share="0.5", name="first")
    life.change("p0", "open")  # p0 and p2 swap their tiers
    life.change("p2", "strict")
    table.count(share="0.25", where="age >= 20", name="second")  # the lower grant binds, the higher waits
    assert [line.name for line in life.receipt("p2").lines] == ["first"]  # which took more than what they grant now
    assert [line.grant for line in life.receipt("p0").lines] == [10**8, 10**8]
    life.withdraw("p4")
    life.join("p9", "strict")
    life.epoch()
    table.count(share="0.25", where="age >= 20", name="third")
    table.mean("age", epsilon="0.04", name="fourth")
    life.join("p4", "open")
    life.epoch()
    table.count(share="0.1", name="fifth")
    made = certificates(table)
    assert len(made) == 5
    for person in [f"p{i}" for i in range(5)] + ["p9"]:
        receipt = life.receipt(person)
        assert told(receipt, made) == receipt.spent == sum(line.charged for line in receipt.lines)
        assert receipt.spent <= max(line.grant for line in receipt.lines)
    assert life.receipt("p2").spent >= 5 * 10**8  # what was spent on them in the other tier stays theirs
    assert life.receipt("p0").lines[0].charged <= 5 * 10**7
    names = [[line.name for line in life.receipt(p).lines] for p in ("p4", "p9")]
    assert names == [["first", "second", "fifth"], ["third", "fourth", "fifth"]]
    table.ledger.verify("clinic")


def test_a_lowered_budget_that_is_spent_takes_no_part(table: Table) -> None:
    table.count(share="0.5", name="first")
    table.people.change("p4", "strict")
    result = table.count(share="1", where="age >= 10", name="second")
    assert [line.name for line in table.people.receipt("p4").lines] == ["first"]
    assert result.guarantee.to_dict()["people"][-1]["people"] == 2  # p2 and p3


def test_one_epsilon_for_all_leaves_out_who_cannot_pay(table: Table) -> None:
    seen = table.preview("count", epsilon="0.2")
    assert "2 people of the roster take no part: they have too little left" in seen.notes
    table.count(epsilon="0.2")
    assert [table.people.receipt(f"p{i}").spent for i in range(5)] == [0, 0, 2 * 10**8, 2 * 10**8, 2 * 10**8]
    with pytest.raises(BudgetError, match="nobody can pay"):
        table.count(epsilon="1.5")


def test_preview_says_who_takes_part_with_less(table: Table) -> None:
    table.count(share="0.6", where="age >= 10")
    notes = table.preview("count", share="0.6").notes
    assert "5 of 5 people take part with less than was asked: they have less left" in notes


def test_the_same_question_is_charged_once_in_an_epoch_and_again_in_the_next(table: Table) -> None:
    first = table.count(share="0.6")
    again = table.count(share="0.6")
    assert (again.repeated, again.value) == (True, first.value)
    table.people.epoch()
    assert not table.count(share="0.2").repeated
    table.people.epoch()
    assert not table.count(share="0.2").repeated
    requests = [r.request for r in table.ledger.history("clinic")]
    assert len(set(requests)) == 3


def test_what_was_paid_is_returned_when_nobody_has_anything_left(table: Table) -> None:
    first = table.count(share=1, mechanism="partition")
    standing = table.people.standing()
    table.people.bring([f"p{i}" for i in range(5)], "0.000000001")
    table.people.bind()
    assert standing.epoch == table.people.standing().epoch
    assert table.count(share=1, mechanism="partition").value == first.value


def test_nothing_is_released_before_an_epoch(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    table = clinic(tmp_path)
    table.people.join("p1", "open")
    with pytest.raises(InputError, match=r"no epoch was closed.*sfumato people PLAN epoch"):
        table.count(share="0.5")
    with pytest.raises(InputError, match="no epoch was closed"):
        table.preview("count")
    assert table.ledger.history("clinic") == ()


def test_a_preview_reads_nothing_private(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    missing = tmp_path / "not-there.parquet"
    table = sf.open(missing, schema=SCHEMA, budgets=Roster.living(TIERS), ledger=tmp_path / "clinic.ledger")
    table.people.join("p1", "open")
    table.people.epoch()
    assert table.preview("count", share="0.5").priced.chosen.mechanism


def test_weights_are_what_was_charged(table: Table) -> None:
    """Over every choice of who withdrew and who spent before: a noise-free reading of the table by group."""
    life = table.people
    for turn, gone in enumerate(product([False, True], repeat=3)):
        for person, out in zip(("p0", "p2", "p3"), gone, strict=True):
            life.withdraw(person) if out else life.join(person, "open")
        life.epoch()
        before = {p: life.receipt(p).spent for p in frame()["who"]}
        result = table.count(epsilon="0.001", name=f"count {turn}")
        del result
        for person, out in zip(("p0", "p2", "p3"), gone, strict=True):
            assert life.receipt(person).spent - before[person] == (0 if out else 10**6)
        release = table.ledger.history("clinic")[-1].id
        groups = life.taking_part(release, list(frame()["who"]))
        assert [bool(g >= 0) for g in groups] == [not gone[0], True, not gone[1], not gone[2], True]


def test_an_exact_count_is_of_those_who_were_charged(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    table = clinic(tmp_path, people=4, noise=sf.Seeded(1))
    table.people.bring(["p0", "p1", "p2", "nobody"], [10**6, 10**6, 50, 10**6])  # so much that there is no noise to speak of
    table.people.epoch()
    assert round(table.count(epsilon=100_000).value) == 2
    table.people.withdraw("p1")
    assert round(table.count(epsilon=100_001).value) == 1
    assert round(table.count(epsilon=10, where="age >= 0").value) == 2


def test_caps_per_period(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    table = clinic(tmp_path, period="year", per_period={"open": "0.3"})
    table.people.bring(["p0", "p1"], ["strict", "open"])
    table.people.epoch()
    table.count(share="0.5")
    receipt = table.people.receipt("p1")
    assert receipt.spent <= 3 * 10**8
    assert receipt.left_in_period == 3 * 10**8 - receipt.spent
    assert receipt.left_for_life == 10**9 - receipt.spent
    assert (receipt.per_period, table.people.receipt("p0").per_period) == (3 * 10**8, None)
    cohorts = certificates(table)[1]["living"]["cohorts"]
    assert {c["spent_in_period"] for c in cohorts} == {"0"}


def test_a_table_whose_people_do_not_change_says_how_they_could(recwarn: pytest.WarningsRecorder) -> None:
    table = sf.open(frame(), schema=SCHEMA, epsilon=1, ledger=":memory:")
    with pytest.raises(InputError, match=r"Roster\.living"):
        _ = table.people


def test_groups_and_cohorts_are_the_same_people(table: Table) -> None:
    table.count(share="0.3")
    table.people.change("p2", "0.5")
    table.people.bind()
    standing = table.people.standing()
    part = Part.of(Request("r", "count", share=Fraction(1, 2)), standing)
    budgets = part.budgets()
    assert (np.diff(budgets.levels) > 0).all()
    assert budgets.people == part.people == 5
    assert ((part.usable <= standing.left) & (part.usable <= standing.grants)).all()
    charge = part.charge(Charge.of_people(budgets.levels))
    assert charge.people is not None
    assert np.array_equal(charge.people, part.usable)
    low, high = part.granted()
    assert (low <= high).all()
    assert (budgets.levels <= low).all()


def test_a_hundred_thousand_people(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    many = 100_000
    table = clinic(tmp_path, people=many)
    who = frame(many)["who"].tolist()
    table.people.bring(who, [round(0.1 + (i % 5000) / 10_000, 4) for i in range(many)])
    table.people.epoch()
    start = time.perf_counter()
    table.count(share="0.5")
    assert time.perf_counter() - start < 60
    assert table.people.receipt("p7").spent > 0
    living = certificates(table)[1]["living"]
    assert (living["people"], living["cohorts"], len(living["cohorts_sha256"])) == (many, None, 64)
