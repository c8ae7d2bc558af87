"""A ledger of format 2 is brought up to date as it stands, and its fixed roster comes alive when its people are brought."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import inspect, text

from sfumato.errors import BudgetError, InputError, LedgerError
from sfumato.ledger import Ask, Caps, Foreseen, Ledger, Pending, datasets_at, foresee, schema
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge
from support.old_ledgers import restore, version

COUNT = {"kind": "count", "where": "age >= 65", "parameters": {}, "mechanism": "threshold"}
TIERS = PersonBudgets.from_tiers({"open": (1, 2), "strict": ("0.1", 3), "careful": ("0.1", 1)})
PEOPLE = {"ann": "open", "ben": "open", "cyd": "strict", "dan": "strict", "eve": "strict", "fay": "careful"}
SPENT = {"careful": 7 * 10**7, "strict": 9 * 10**7, "open": 37 * 10**7}


@pytest.fixture
def old(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A ledger of format 2: releases that were committed, failed and reserved, tiers, attributes and recipients."""
    monkeypatch.setenv("SFUMATO_PEOPLE_KEY", str(tmp_path / "people.key"))
    return restore(where, 2)


def test_everything_stands_as_it_stood(old: str) -> None:
    assert version(old) == 2
    ledger = Ledger.open(old, create=False)
    assert version(old) == schema.VERSION == 5
    balance = ledger.balance("clinic")
    assert balance.people is not None
    assert dict(zip(balance.people.names or (), balance.people.spent.tolist(), strict=True)) == SPENT
    assert balance.total.spent == 55 * 10**7
    assert [(r.id, r.state, r.name, r.by, r.epoch) for r in balance.releases] == [
        (1, "committed", "over65", "ana", None),
        (2, "failed", None, "ana", None),
        (3, "reserved", "mean age", "ben", None),
    ]
    shop = ledger.balance("shop")
    assert {limit.name: limit.spent for limit in shop.attributes} == {"place": 5 * 10**7, "price": 15 * 10**7}
    assert {limit.name: limit.spent for limit in shop.recipients} == {"adnet": 15 * 10**7, "bank": 5 * 10**7}
    for dataset in ledger.datasets():
        ledger.verify(dataset)


def test_a_fixed_roster_works_on(old: str) -> None:
    ledger = Ledger.open(old)
    ledger.register("clinic", epsilon=2, people=TIERS)
    paid = ledger.reserve("clinic", Charge(5 * 10**7), request=COUNT)
    assert (paid.id, paid.repeated, paid.artefact) == (1, True, {"folder": "over65"})
    with pytest.raises(BudgetError, match=r"0\.01 of 0\.1 left for each of 3 people in tier 'strict'"):
        ledger.reserve("clinic", Charge.of("0.02"), request="b")
    ledger.commit(3, {"folder": "mean"})
    ledger.reserve("clinic", Charge(7, people=np.array([7, 0, 7])), request="b", name="late")
    ledger.verify("clinic")
    with pytest.raises(LedgerError, match="has no persons"):
        ledger.people("clinic").standing()
    with pytest.raises(LedgerError, match="registered without people"):
        ledger.people("shop").bring(["ann"], ["open"])


def test_the_migrated_tables_are_those_of_a_new_ledger(old: str, tmp_path: Path) -> None:
    migrated = Ledger.open(old)._store
    if migrated.is_sqlite:
        fresh = Ledger.open(tmp_path / "fresh.ledger")._store
        tables = []
        for store in (migrated, fresh):
            with store.read() as connection:
                rows = connection.execute(text("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
                tables.append({(kind, name): re.sub(r'[\s"]+', "", str(sql)) for kind, name, sql in rows})
        assert tables[0] == tables[1]
        return
    with migrated.read() as connection:
        found = inspect(connection)
        for table in schema.metadata.sorted_tables:
            columns = {c["name"]: c["nullable"] for c in found.get_columns(table.name)}
            assert columns == {c.name: bool(c.nullable) for c in table.columns}
            count = text("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = CAST(:t AS regclass)")
            assert connection.execute(count, {"t": table.name}).scalar() == (4 if table is schema.limits else 3), table.name


def test_a_preview_reads_format_2_and_leaves_it(old: str) -> None:
    asks = [Ask(Charge(5 * 10**7), COUNT), Ask(Charge.of("0.05"), "b")]
    said = foresee(old, Caps.of("clinic", epsilon=2, people=TIERS), asks)
    assert said[0] == Foreseen(paid=True, entry=1)
    assert "tier 'strict'" in str(said[1].refusal)
    assert datasets_at(old) == ["clinic", "shop"]
    assert version(old) == 2


def test_people_who_are_brought_take_the_history_of_their_tier(old: str) -> None:
    ledger = Ledger.open(old)
    life = ledger.people("clinic")
    for wrong, why in (
        ({**PEOPLE, "fay": "strict"}, r"1 people at careful and 0 were brought \(2 of 3 levels differ\)"),
        ({**PEOPLE, "gus": "open"}, r"2 people at open and 3 were brought"),
        ({**PEOPLE, "fay": "0.1"}, "in tiers"),
    ):
        with pytest.raises(InputError, match=why):
            life.bring(list(wrong), list(wrong.values()))
    assert life.bring(list(PEOPLE), list(PEOPLE.values())) == Pending(join=6)
    assert {life.receipt(name).spent for name, tier in PEOPLE.items() if tier == "strict"} == {SPENT["strict"]}
    ann = life.receipt("ann")
    assert [(line.release, line.name, line.state, line.charged) for line in ann.lines] == [
        (1, "over65", "committed", 5 * 10**7),
        (2, None, "failed", 3 * 10**8),
        (3, "mean age", "reserved", 2 * 10**7),
    ]
    assert [line.release for line in life.receipt("fay").lines] == [1, 3]
    standing = life.standing()
    assert dict(zip(standing.tiers, standing.spent.tolist(), strict=True)) == SPENT
    ledger.verify("clinic")
    ledger.register("clinic", epsilon=2, people=TIERS, living=True)
    life.change("ann", "strict")
    life.join("gus", "open")
    life.epoch()
    now = life.standing()
    ledger.reserve("clinic", Charge.of_people(np.minimum(now.left, 10**7)), request="new", standing=now)
    assert [life.receipt(name).spent for name in ("ann", "ben", "cyd", "gus")] == [
        SPENT["open"],
        SPENT["open"] + 10**7,
        SPENT["strict"] + 10**7,
        10**7,
    ]
    assert [line.epoch for line in life.receipt("ben").lines] == [0, 0, 0, 1]
    ledger.verify("clinic")
    with pytest.raises(LedgerError, match="people differ"):
        ledger.register("clinic", epsilon=2, people=TIERS)


def test_levels_without_names_are_brought_by_their_amounts(where: str, tmp_path: Path) -> None:
    ledger = Ledger.open(where, key=tmp_path / "people.key")
    ledger.register("clinic", people=PersonBudgets.of([0.5, 0.5, 1.0]))
    ledger.reserve("clinic", Charge(10**8, people=np.array([3, 10**8])), request="a")
    life = ledger.people("clinic")
    life.bring(["ann", "ben", "cyd"], [0.5, 1.0, 0.5])
    assert [life.receipt(name).spent for name in ("ann", "ben", "cyd")] == [3, 10**8, 3]
    ledger.verify("clinic")


def test_kill_while_format_2_is_migrated(tmp_path: Path) -> None:
    versions = set()
    for number in range(12):
        where = tmp_path / f"{number}.ledger"
        restore(str(where), 2)
        child = os.fork()
        if child == 0:
            Ledger.open(where)
            os._exit(0)
        time.sleep(random.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        versions.add(version(str(where)))
        ledger = Ledger.open(where)
        assert ledger.balance("clinic").total.spent == 55 * 10**7
        ledger.verify("clinic")
    assert versions <= {2, schema.VERSION}


def test_a_private_roster_of_head_counts_stays_as_it_is(where: str, tmp_path: Path) -> None:
    ledger = Ledger.open(where, key=tmp_path / "people.key")
    ledger.register("clinic", people=TIERS, private=True)
    with pytest.raises(LedgerError, match="is private: no head counts are kept"):
        ledger.people("clinic").bring(list(PEOPLE), list(PEOPLE.values()))
    ledger.reserve("clinic", Charge(5), request="a")
    ledger.verify("clinic")
