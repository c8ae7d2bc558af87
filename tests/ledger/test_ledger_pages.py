"""A page of a long history, a receipt and a charge cost what they show: rows that nobody asked for are not touched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event, text
from typer.testing import CliRunner

from sfumato.cli import app
from sfumato.errors import BudgetError, InputError, LedgerError
from sfumato.ledger import Ledger, Limit, Page, limits, pages, personal, queries
from sfumato.privacy.budgets import AttributeBudgets, PersonBudgets, RecipientBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.units import Nano


@contextmanager
def statements(ledger: Ledger) -> Iterator[list[tuple[str, Any]]]:
    """What is sent to the database meanwhile."""
    sent: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        sent.append((statement, parameters))

    event.listen(ledger._store.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(ledger._store.engine, "before_cursor_execute", note)


@pytest.fixture
def long(where: str) -> Ledger:
    """Two datasets whose 22 releases alternate."""
    ledger = Ledger.open(where)
    for name in ("clinic", "shop"):
        ledger.register(name, epsilon=1000)
    for number in range(22):
        ledger.reserve(("clinic", "shop")[number % 2], Charge(1), request=f"release {number}")
    return ledger


def test_pages_lead_through_the_whole_history_both_ways(long: Ledger) -> None:
    every = [release.id for release in long.releases("clinic")]
    assert every == list(range(1, 22, 2))
    page = long.history("clinic", limit=4)
    assert isinstance(page, tuple)
    assert page.newer is None
    back = [[r.id for r in page]]
    while page.older is not None:
        page = long.history("clinic", limit=4, before=page.older)
        back.insert(0, [r.id for r in page])
    assert [len(ids) for ids in back] == [3, 4, 4]
    assert list(chain(*back)) == every
    forth = [[r.id for r in page]]
    while page.newer is not None:
        page = long.history("clinic", limit=4, after=page.newer)
        forth.append([r.id for r in page])
    assert list(chain(*forth)) == every
    assert long.history("clinic") == tuple(long.releases("clinic"))
    assert long.history("clinic").older is None


def test_the_ends_of_a_history(long: Ledger) -> None:
    assert [r.id for r in long.history("clinic", limit=1)] == [21]
    whole = long.history("clinic", limit=11)
    assert (len(whole), whole.older, whole.newer) == (11, None, None)
    assert (long.history("clinic", before=1), long.history("clinic", before=1).older) == ((), None)
    assert long.history("clinic", after=21) == ()
    assert long.history("clinic", after=21).newer is None
    assert len(long.history("clinic", before=10**30)) == 11
    assert long.balance("clinic", releases=0).releases == ()
    assert long.balance("clinic", releases=3).to_dict()["older"] == 17
    for wrong in ({"limit": 0}, {"limit": True}, {"limit": 2.0}, {"before": -1}, {"after": "3"}, {"before": 9, "after": 3}):
        with pytest.raises(InputError):
            long.history("clinic", **wrong)
    with pytest.raises(LedgerError, match="no dataset 'clinc'"):
        long.releases("clinc")


def test_all_releases_are_read_page_by_page(long: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "RELEASES", 3)
    monkeypatch.setattr(queries, "BALANCE", 2)
    assert len(long.history("clinic")) == 3
    assert [r.id for r in long.balance("clinic").releases] == [19, 21]
    with statements(long) as sent:
        assert [r.id for r in long.releases("clinic")] == list(range(1, 22, 2))
    assert sum("FROM ledger_releases" in statement for statement, _ in sent) == 4


def plans(ledger: Ledger, work: Callable[[], Any]) -> str:
    """How SQLite goes about the statements of some work."""
    with statements(ledger) as sent:
        work()
    said = []
    with ledger._store.read() as connection:
        for statement, parameters in sent:
            if statement.startswith("SELECT"):
                rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                said += [f"{row[3]}   [{statement}]" for row in rows]
    return "\n".join(said)


def test_no_page_and_no_receipt_scans_a_table_or_sorts_it(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "a.ledger")
    ledger.register("clinic", people=PersonBudgets.from_tiers({"open": (1, 3), "strict": ("0.1", 2)}))
    ledger.reserve("clinic", Charge(10), request="before")
    life = ledger.people("clinic")
    life.bring(["a", "b", "c", "d", "e"], ["open"] * 3 + ["strict"] * 2)
    for number in range(6):
        standing = life.standing()
        each = np.full(len(standing.grants), 5 + number)
        ledger.reserve("clinic", Charge.of_people(each), request=f"r{number}", standing=standing)
    asked = [
        lambda: ledger.history("clinic", limit=2),
        lambda: ledger.history("clinic", limit=2, before=4),
        lambda: ledger.history("clinic", limit=2, after=2),
        lambda: ledger.balance("clinic", releases=2),
        lambda: ledger.entry("clinic", 3),
        lambda: ledger.find("clinic", "r1"),
        lambda: life.receipt("a", limit=3),
        lambda: life.receipt("a"),
        lambda: life.receipt("b", before=2),
    ]
    said = "\n".join(plans(ledger, work) for work in asked)
    assert "ledger_releases_pages (dataset_id=? AND id<?)" in said
    assert "SCAN" not in said
    assert "TEMP B-TREE" not in said


def test_a_page_takes_as_many_statements_however_long_the_history_is(long: Ledger) -> None:
    def sent_for(work: Callable[[], Any]) -> int:
        with statements(long) as sent:
            work()
        return len(sent)

    def counts() -> list[int]:
        reads = [lambda: long.history("clinic", limit=5), lambda: long.balance("clinic", releases=5)]
        return [sent_for(read) for read in reads]

    before = counts()
    for number in range(30):
        long.reserve("clinic", Charge(1), request=f"more {number}")
    assert counts() == before


def test_what_is_long_is_read_when_asked_for(where: str) -> None:
    ledger = Ledger.open(where)
    ledger.register("clinic", epsilon=1)
    big = {"table": "é" * (pages.LONG + 1)}
    for number, artefact in enumerate((big, {"small": 1})):
        ledger.commit(ledger.reserve("clinic", Charge(1), request=f"{number}").id, artefact)
    ledger.reserve("clinic", Charge(1), request="unfinished")
    first, second, third = ledger.history("clinic")
    assert first.stored is None
    assert first.artefact == first.to_dict()["artefact"] == big
    assert (second.artefact, third.artefact) == ({"small": 1}, None)
    entry = ledger.entry("clinic", first.id)
    assert entry is not None
    assert entry.stored is not None
    assert entry.artefact == big


def many(where: str, recipients: int, **caps: Any) -> Ledger:
    ledger = Ledger.open(where)
    each = {f"r{n}": Nano(10**9) for n in range(recipients)} | {n: Nano(c) for n, c in caps.items()}
    attributes = AttributeBudgets({f"a{n}": Nano(10**9) for n in range(recipients)})
    ledger.register(f"{recipients}", recipients=RecipientBudgets(each, Nano(10**9)), attributes=attributes)
    return ledger


def test_a_charge_takes_as_many_statements_for_300_recipients_and_attributes_as_for_3(where: str) -> None:
    found = {}
    for recipients in (3, 300):
        ledger, name = many(where, recipients), str(recipients)
        differing = Charge(900, attributes={f"a{n}": Nano(100 + n) for n in range(recipients)})
        for kind, charge in (("everybody", Charge(7)), ("each attribute its own", differing)):
            with statements(ledger) as sent:
                ledger.reserve(name, charge, request=kind)
            found[recipients, kind] = len(sent)
        paid = {limit.name: limit.spent for limit in ledger.balance(name).attributes}
        assert paid == {f"a{n}": 107 + n for n in range(recipients)}
        assert {limit.spent for limit in ledger.balance(name).recipients} == {907}
        first, second = ledger.history(name)
        assert len(first.charges) == len(second.charges) == 2 * recipients + 2
        assert ("recipient", "r2", 7) in first.charges
        assert ("attribute", "a2", 102) in second.charges
        ledger.verify(name)
    assert found[3, "everybody"] == found[300, "everybody"]
    assert found[3, "each attribute its own"] == found[300, "each attribute its own"]


def test_a_release_to_everybody_is_one_line_and_one_to_somebody_is_theirs(where: str) -> None:
    ledger = many(where, 5)
    ledger.reserve("5", Charge(7), request="a")
    ledger.reserve("5", Charge(3), request="b", recipient="r1")
    with ledger._store.read() as connection:
        rows = connection.execute(text("SELECT kind, name, nano FROM ledger_charges WHERE kind = 'recipient'")).all()
    assert sorted(tuple(row) for row in rows) == [("recipient", "", 7), ("recipient", "r1", 3)]
    assert [limit.spent for limit in ledger.balance("5").recipients] == [7, 10, 7, 7, 7]
    ledger.verify("5")
    with ledger._store.write() as connection:
        connection.execute(text("UPDATE ledger_limits SET spent = spent + 1 WHERE name = 'r3'"))
    with pytest.raises(LedgerError, match=r"\(recipient r3\)"):
        ledger.verify("5")


def test_who_lacks_budget_is_named_and_nobody_is_charged(where: str) -> None:
    ledger = many(where, 50, poor=5)
    with pytest.raises(BudgetError, match=r"5 of 0\.000000005 left for recipient 'poor'"):
        ledger.reserve("50", Charge(6), request="a")
    ledger.reserve("50", Charge(5), request="a")
    with pytest.raises(BudgetError, match="recipient 'poor' of '50'"):
        ledger.reserve("50", Charge(1), request="b")
    assert {limit.spent for limit in ledger.balance("50").recipients} == {5}
    ledger.verify("50")


@pytest.mark.parametrize("asked", [{"r0": 7, "r1": 8, "poor": 9}, {"r0": 9, "r1": 9, "poor": 9}])
def test_a_cap_that_is_short_in_the_database_undoes_the_whole_charge(where: str, asked: dict[str, int]) -> None:
    ledger = many(where, 2, poor=5)
    before = ledger.balance("2").to_dict()
    caps = [Limit("recipient", name, None, Nano(0)) for name in asked]  # as if the rule had let it through

    def charge() -> None:
        with ledger._store.write() as connection:
            line = "INSERT INTO ledger_releases (dataset_id, fingerprint, request, total, state, reserved_at) VALUES "
            connection.execute(text(line + "(1, 'f', 'q', 9, 'reserved', '2026-11-16T10:00Z')"))
            limits.charge_limits(connection, 1, 1, [(cap, Nano(asked[cap.name])) for cap in caps])

    with pytest.raises(LedgerError, match="nothing was spent"):
        charge()
    assert ledger.balance("2").to_dict() == before
    ledger.verify("2")


def test_receipts_in_pages_are_the_whole_receipt(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(personal, "_BATCH", 3)
    ledger = Ledger.open(where, key=tmp_path / "people.key")
    ledger.register("clinic", people=PersonBudgets.from_tiers({"open": (1, 2), "strict": ("0.1", 1)}))
    for number in range(4):
        ledger.reserve("clinic", Charge(10 + number), request=f"fixed {number}")
    life = ledger.people("clinic")
    life.bring(["ana", "ben", "cyd"], ["open", "open", "strict"])
    expected = [10, 11, 12, 13]
    for number in range(13):
        if number == 4:
            life.change("ana", "strict")
        if number in (6, 9):
            life.withdraw("ana") if number == 6 else life.join("ana", "open")
        life.epoch()
        standing = life.standing()
        each = np.where(np.arange(len(standing.grants)) % 2 == number % 2, 3 + number, 2)
        made = ledger.reserve("clinic", Charge.of_people(each), request=f"living {number}", standing=standing)
        group = int(life.taking_part(made.id, ["ana"])[0])
        expected += [int(each[group])] if group >= 0 else []
    whole = life.receipt("ana")
    assert [line.charged for line in whole.lines] == expected
    assert (whole.older, whole.spent, len(expected)) == (None, sum(expected), 4 + 13 - 3)
    parts, before = [], None
    while True:
        page = life.receipt("ana", limit=4, before=before)
        assert (page.spent, page.left, page.tier) == (whole.spent, whole.left, whole.tier)
        parts.insert(0, page.lines)
        if page.older is None:
            break
        before = page.older
    assert tuple(chain(*parts)) == whole.lines
    assert [len(part) for part in parts] == [2, 4, 4, 4]
    with pytest.raises(InputError, match="limit is a whole number from 1"):
        life.receipt("ana", limit=0)
    ledger.verify("clinic")


def test_the_command_shows_the_newest_and_says_where_the_others_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.open("clinic.ledger")
    ledger.register("clinic", epsilon=1, recipients=RecipientBudgets({f"r{n:02d}": Nano(10**6 + n) for n in range(40)}))
    for number in range(45):
        ledger.reserve("clinic", Charge(1), request={"kind": "count", "where": f"age >= {number}"}, name=f"release{number}")

    def run(*words: str) -> str:
        done = CliRunner().invoke(app, ["ledger", "clinic", *words], env={"COLUMNS": "200"})
        assert done.exit_code == 0, done.output
        return done.stdout

    newest = run()
    assert "release44" in newest
    assert "release25" in newest
    assert "release24" not in newest
    assert "r00" in newest  # the tightest
    assert "28 more recipients" in newest
    assert "sfumato ledger clinic --before 26, or --all" in newest
    assert len(newest.splitlines()) < 50
    older = run("--before", "26", "--limit", "3")
    assert "release24" in older
    assert "release21" not in older
    told = json.loads(run("--json", "--limit", "2"))["datasets"][0]
    assert ([r["id"] for r in told["releases"]], told["older"]) == ([44, 45], 44)
    assert run("--all").count("  release") == 45
    every = json.loads(run("--all", "--json"))["datasets"][0]
    assert [r["id"] for r in every["releases"]] == list(range(1, 46))
    assert CliRunner().invoke(app, ["ledger", "clinic", "--all", "--before", "3"]).exit_code != 0


def test_a_page_survives_being_copied(long: Ledger) -> None:
    import pickle

    page = long.history("clinic", limit=2)
    again = pickle.loads(pickle.dumps(page))
    assert isinstance(again, Page)
    assert (again, again.older, again.newer) == (page, page.older, page.newer)
