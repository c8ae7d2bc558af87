"""A ledger of an older format is brought up to date in one transaction: the same balances, nothing finer than a minute."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import inspect, text

from sfumato.errors import BudgetError, LedgerError
from sfumato.ledger import Ask, Caps, Foreseen, Ledger, datasets_at, foresee, migrate, schema
from sfumato.ledger.database import Store
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge
from support.old_ledgers import restore, version

COUNT = {"kind": "count", "where": "age >= 65", "options": {}, "chosen": "threshold"}
GRANTED = {"epsilon": 2, "people": PersonBudgets.from_tiers({"open": (1, 90), "strict": ("0.1", 540)})}


@pytest.fixture
def old(where: str) -> str:
    """A ledger of format 1: a committed, a failed and a reserved release, and one to a recipient."""
    return restore(where, 1)


def test_an_old_ledger_keeps_what_was_spent_and_forgets_what_it_should_not_have_kept(old: str) -> None:
    ledger = Ledger.open(old, create=False)
    assert not ledger.created
    assert version(old) == schema.VERSION
    balance = ledger.balance("clinic")
    assert (balance.total.cap, balance.total.spent) == (2 * 10**9, 10**8)
    assert balance.people is not None
    assert balance.people.spent.tolist() == [6 * 10**7, 10**8]
    assert [(r.id, r.state, r.by, r.name, r.kind, r.columns) for r in balance.releases] == [
        (1, "committed", "ana", None, "count", ()),
        (2, "failed", "ana", None, "histogram", ("age",)),
        (3, "reserved", "ben", None, "mean", ("age",)),
    ]
    assert {r.reserved_at for r in balance.releases} == {"2026-11-15T19:03Z"}
    assert [r.finished_at for r in balance.releases] == ["2026-11-15T19:03Z", "2026-11-15T19:03Z", None]
    (shop,) = ledger.history("shop")
    assert (shop.recipient, {k: n for k, _, n in shop.charges}["recipient"]) == ("adnet", 10**8)
    for dataset in ledger.datasets():
        ledger.verify(dataset)
    if ledger._store.is_sqlite:
        kept = Path(old).read_bytes()
        assert b"not written" not in kept
        assert not re.search(rb"\d\d:\d\d:\d\d", kept)


def test_an_old_ledger_works_on(old: str) -> None:
    ledger = Ledger.open(old)
    ledger.register("clinic", **GRANTED)  # type: ignore[arg-type]
    paid = ledger.reserve("clinic", Charge(5 * 10**7), request=COUNT)
    assert (paid.id, paid.repeated, paid.artefact) == (1, True, {"folder": "over65"})
    with pytest.raises(BudgetError, match=r"0\.04 of 0\.1 left for each of 540 people in tier 'strict'"):
        ledger.reserve("clinic", Charge.of("0.05"), request="b")
    ledger.commit(3, {"folder": "mean"})
    new = ledger.reserve("clinic", Charge(7, people=np.array([7, 0])), request="b", name="late")
    assert new.id > 4
    ledger.fail(new.id)
    assert [r.state for r in ledger.history("clinic")] == ["committed", "failed", "committed", "failed"]
    ledger.verify("clinic")


def test_the_migrated_tables_are_those_of_a_new_ledger(old: str, tmp_path: Path) -> None:
    migrated = Ledger.open(old)._store
    if migrated.is_sqlite:
        fresh = Ledger.open(tmp_path / "fresh.ledger")._store
        tables = []
        for store in (migrated, fresh):
            with store.read() as connection:
                rows = connection.execute(text("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
                tables.append({(kind, name): re.sub(r"\s+", "", str(sql)) for kind, name, sql in rows})
        assert tables[0] == tables[1]
        return
    with migrated.read() as connection:
        found = inspect(connection)
        for table in schema.metadata.sorted_tables:
            columns = {c["name"]: c["nullable"] for c in found.get_columns(table.name)}
            assert columns == {c.name: bool(c.nullable) for c in table.columns}
            checks = {c["name"] for c in found.get_check_constraints(table.name)}
            assert checks == {c.name for c in table.constraints if c.name and str(c.name).startswith("ledger_")}
        count = text("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = 'ledger_releases'::regclass")
        assert connection.execute(count).scalar() == 3


def test_a_new_ledger_made_after_a_migration_has_every_constraint(old: str, tmp_path: Path) -> None:
    Ledger.open(old)
    store = Ledger.open(tmp_path / "fresh.ledger")._store
    with store.read() as connection:
        checks = {c["name"] for c in inspect(connection).get_check_constraints("ledger_releases")}
    assert "ledger_releases_minute" in checks


def test_stray_sql_is_refused_after_a_migration(old: str) -> None:
    ledger = Ledger.open(old)

    def run(statement: str) -> None:
        with ledger._store.write() as connection:
            connection.execute(text(statement))

    for statement in (
        "DELETE FROM ledger_releases",
        "UPDATE ledger_releases SET total = 0",
        "UPDATE ledger_meta SET value = '1' WHERE name = 'version'",
        "UPDATE ledger_datasets SET created_at = created_at",
        "INSERT INTO ledger_charges VALUES (4711, 'total', '', 1)",
    ):
        with pytest.raises(LedgerError, match="refused a change"):
            run(statement)


def test_a_preview_reads_an_old_ledger_and_leaves_it_old(old: str) -> None:
    asks = [Ask(Charge(5 * 10**7), COUNT), Ask(Charge.of("0.05"), "b")]
    said = foresee(old, Caps.of("clinic", **GRANTED), asks)  # type: ignore[arg-type]
    assert said[0] == Foreseen(paid=True, entry=1)
    assert "tier 'strict'" in str(said[1].refusal)
    assert datasets_at(old) == ["clinic", "shop"]
    assert version(old) == 1
    assert foresee(old, Caps.of("new", epsilon=1), [Ask(Charge.of(1), "a")]) == [Foreseen()]


def test_a_migration_that_fails_leaves_the_old_ledger(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(migrate.triggers, "install", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Ledger.open(old)
    assert version(old) == 1
    store = Store.existing(old)
    assert store is not None
    with store.read() as connection:
        reasons = connection.execute(text("SELECT reason FROM ledger_releases ORDER BY id")).scalars().all()
    assert reasons == [None, "not written", None, None]
    assert Ledger.open(old).balance("clinic").total.spent == 10**8


def test_kill_while_a_ledger_is_migrated(swift: Path) -> None:
    versions = set()
    for number in range(15):
        where = swift / f"{number}.ledger"
        restore(str(where), 1)
        child = os.fork()
        if child == 0:
            Ledger.open(where)
            os._exit(0)
        time.sleep(random.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        versions.add(version(str(where)))
        ledger = Ledger.open(where)
        assert ledger.balance("clinic").total.spent == 10**8
        ledger.verify("clinic")
    assert versions <= {1, schema.VERSION}


def test_many_processes_open_an_old_ledger_at_once(old: str, race: Callable[..., list[int]]) -> None:
    def spend(number: int) -> int:
        ledger = Ledger.open(old)
        ledger.reserve("clinic", Charge(1), request=f"after {number}")
        return 0

    assert race(spend, 12) == [0] * 12
    ledger = Ledger.open(old)
    assert ledger.balance("clinic").total.spent == 10**8 + 12
    ledger.verify("clinic")


@pytest.mark.parametrize("version", ["0", "", "one", "²"])
def test_a_version_that_never_was(where: str, version: str) -> None:
    store = Ledger.open(where)._store
    on = "" if store.is_sqlite else " ON ledger_meta"
    with store.write() as connection:
        connection.execute(text("DROP TRIGGER ledger_meta_change" + on))
        connection.execute(text("UPDATE ledger_meta SET value = :v WHERE name = 'version'"), {"v": version})
    with pytest.raises(LedgerError, match="not a Sfumato ledger"):
        Ledger.open(where)
