"""A ledger of format 3 gets the indexes by which pages are read; what it holds stays as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlalchemy import text

from sfumato.ledger import Ledger, schema
from sfumato.privacy.charge import Charge
from support.old_ledgers import restore, version

KEY = "a41297d5930bac22fdae4bf7b166d6652958b9a6abd4d18bd90234f21116da3d"


@pytest.fixture
def old(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A ledger of format 3: a fixed roster, recipients, and a living roster in which somebody withdrew."""
    key = tmp_path / "people.key"
    key.write_text(KEY)
    monkeypatch.setenv("SFUMATO_PEOPLE_KEY", str(key))
    return restore(where, 3)


def test_everything_stands_as_it_stood_and_goes_on(old: str) -> None:
    assert version(old) == 3
    ledger = Ledger.open(old, create=False)
    assert version(old) == schema.VERSION == 5
    assert [(r.id, r.state, r.name) for r in ledger.history("clinic")] == [(1, "committed", "over65"), (2, "failed", None)]
    shop = ledger.history("shop", limit=1)[0]
    assert ("recipient", "adnet", 10**8) in shop.charges
    assert ("recipient", "bank", 10**8) not in shop.charges
    life = ledger.people("ward")
    assert [line.charged for line in life.receipt("ana").lines] == [3 * 10**7, 10**7]
    ben = life.receipt("ben")
    assert (ben.withdrawn, [line.charged for line in ben.lines]) == (True, [3 * 10**7])
    assert life.receipt("ana").waiting == "strict"
    ledger.reserve("shop", Charge(10**8), request="everybody")  # a line for all beside lines for some
    assert {limit.name: limit.spent for limit in ledger.balance("shop").recipients} == {"adnet": 2 * 10**8, "bank": 10**8}
    for dataset in ledger.datasets():
        ledger.verify(dataset)


def test_the_migrated_indexes_are_those_of_a_new_ledger(old: str, tmp_path: Path) -> None:
    found = []
    for store in (Ledger.open(old)._store, Ledger.open(tmp_path / "fresh.ledger")._store):
        of = "sql FROM sqlite_master WHERE type = 'index'" if store.is_sqlite else "indexname FROM pg_indexes"
        with store.read() as connection:
            rows = connection.execute(text(f"SELECT {of}")).scalars().all()
        found.append({re.sub(r"\s+", "", str(sql)) for sql in rows if sql and "ledger_" in str(sql)})
    if found[0] and not old.startswith("postgresql"):
        assert found[0] == found[1]
    assert all(any(name in sql for sql in found[0]) for name in schema.INDEXES_SINCE_4)
