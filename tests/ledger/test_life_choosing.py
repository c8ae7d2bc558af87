"""What a person chooses for themselves, in one transaction, and how it is found among very many others."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import event, select, text

from sfumato.errors import InputError
from sfumato.ledger import Ledger, Life, schema
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge

MENU = PersonBudgets.from_tiers({"open": (1, 0), "strict": ("0.1", 0), "0.5": (2, 0)})


@pytest.fixture
def ledger(where: str, tmp_path: Path) -> Ledger:
    made = Ledger.open(where, key=tmp_path / "people.key")
    made.register("clinic", people=MENU, living=True)
    return made


@pytest.fixture
def life(ledger: Ledger) -> Life:
    return ledger.people("clinic")


def lines(ledger: Ledger) -> int:
    with ledger._store.read() as connection:
        return len(connection.execute(select(schema.choices.c.id)).all())


def test_a_choice_tells_where_one_stands_after_it(ledger: Ledger, life: Life) -> None:
    joined = life.choose("ann", "open")
    assert joined is not None
    assert (joined.waiting, joined.waiting_lowers, joined.grant, joined.lines) == ("open", False, 0, ())
    life.epoch()
    ledger.reserve("clinic", Charge.of_people([10**8]), request="a", standing=life.standing())
    now = life.summary("ann")
    assert now is not None
    whole = life.receipt("ann")
    assert len(whole.lines) == 1
    assert {k: v for k, v in vars(now).items() if k != "lines"} == {k: v for k, v in vars(whole).items() if k != "lines"}
    lower = life.choose("ann", "strict")
    assert lower is not None
    assert (lower.waiting, lower.waiting_lowers, lower.grant, lower.spent) == ("strict", True, 10**9, 10**8)
    back = life.choose("ann", "open")  # what is in force: nothing waits any more
    assert back is not None
    assert (back.waiting, back.waiting_lowers) == (None, False)
    gone = life.choose("ann", None)
    assert gone is not None
    assert (gone.waiting, gone.waiting_lowers) == ("withdraw", True)
    life.bind()
    again = life.choose("ann", "strict")
    assert again is not None
    assert (again.withdrawn, again.waiting, again.waiting_lowers) == (True, "strict", False)
    ledger.verify("clinic")


def test_whom_it_does_not_know_has_nothing_to_leave(ledger: Ledger, life: Life) -> None:
    assert life.choose("nobody", None) is None
    assert life.summary("nobody") is None
    assert lines(ledger) == 0
    life.choose("ann", "open")
    assert life.choose("ann", None) is None  # before the epoch
    assert not life.knows("ann")
    assert life.epoch().joined == 0


def test_a_text_is_a_tier_and_a_number_an_amount(life: Life) -> None:
    for grant, nano in (("0.5", 2 * 10**9), (Decimal("0.5"), 5 * 10**8)):
        life.choose("ann", grant)
        life.epoch()
        assert life.receipt("ann").grant == nano
    with pytest.raises(InputError, match="no tier of the menu"):
        life.choose("ann", "0.7")


def test_what_is_said_again_is_not_written_again(ledger: Ledger, life: Life) -> None:
    for _ in range(3):
        life.join("ann", "open")
        life.choose("ann", "open")
    assert lines(ledger) == 1
    life.epoch()
    life.join("ann", "open")
    life.change("ann", "open")
    assert lines(ledger) == 0
    for _ in range(2):
        life.withdraw("ann")
        life.choose("ann", None)
    assert lines(ledger) == 1
    life.join("ann", "open")  # another choice is
    assert lines(ledger) == 2


def test_one_choice_among_many_is_found_by_an_index(ledger: Ledger, life: Life) -> None:
    people = [f"person {number}" for number in range(300)]
    life.bring(people, "strict")
    life.epoch()
    for person in people[25:40]:
        life.join(person, "open")
    asked: list[tuple[str, object]] = []
    event.listen(ledger._store.engine, "before_cursor_execute", lambda c, cursor, sql, given, *_: asked.append((sql, given)))
    found = life.summary(people[30])
    assert found is not None
    assert found.waiting == "open"
    (query,) = [one for one in asked if "ledger_choices" in one[0]]
    if not ledger._store.is_sqlite:  # a small table is read whole there, whatever its indexes
        return
    with ledger._store.read() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query[0]}", query[1]).all()
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'index'")).scalars().all()
    said = " ".join(str(row) for row in plan)
    assert {"ledger_choices_single", "ledger_choices_ranges"} <= set(names)
    assert "ledger_choices_single" in said
    assert "ledger_choices_ranges" in said
    assert "SCAN ledger_choices" not in said
