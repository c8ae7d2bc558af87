"""A value changed in any column of any row of the ledger, behind its back, is found by `verify`."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger, schema
from sfumato.privacy.budgets import AttributeBudgets, PersonBudgets, RecipientBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.statement import Statement

QUIET = 5  # the number of the dataset with a private roster
TIERS = PersonBudgets.from_tiers({"open": (1, 3), "strict": ("0.1", 2)})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with at least one row in every table."""
    where = tmp_path_factory.mktemp("flips") / "all.ledger"
    ledger = Ledger.open(where)
    ledger.register("fixed", epsilon=5, people=TIERS)
    ledger.register(
        "shop", recipients=RecipientBudgets.of({"adnet": 1, "bank": 1}), attributes=AttributeBudgets.of({"age": 1})
    )
    ledger.register("ward", epsilon=5, people=TIERS, living=True, period="year", per_period={"open": "0.5"})
    ledger.register("came", people=TIERS)
    ledger.register("quiet", people=TIERS, living=True, private=True)
    for number, dataset in enumerate(("fixed", "came", "fixed", "shop")):
        made = ledger.reserve(dataset, Charge(10**7 + number), request={"count": number}, name="a", by="ana")
        ledger.commit(made.id, {"folder": "over65"}) if number % 2 else ledger.fail(made.id)
    ledger.reserve("fixed", Charge(7, people=np.array([7, 0])), request="running")
    ledger.reserve("fixed", Charge(0, people=np.array([0, 0])), request="free")
    life = ledger.people("ward")
    life.bring(["ana", "ben", "eve"], ["open", "strict", "0.7"])
    life.epoch()
    standing = life.standing()
    paid = Charge(9, people=np.arange(1, 4, dtype=np.int64))
    ledger.reserve("ward", paid, request="some", standing=standing)
    ledger.reserve("ward", Charge(8), request="all", standing=standing)
    life.withdraw("ben")
    life.bind()
    life.change("eve", "0.9")
    life.join("zoe", "strict")
    quietly(ledger)
    ledger.people("came").bring(range(5), ["open"] * 3 + ["strict"] * 2)
    ledger.bridge("shop", statement(), person="ana", items=2)
    grow(ledger)
    ledger.note("shop", "approved", {"plan": "plan_1"})
    return where


def quietly(ledger: Ledger) -> None:
    """The same of a private roster, whose choices have no entries in the log."""
    life = ledger.people("quiet")
    life.bring(["ana", "ben", "eve"], ["open", "strict", "open"])
    life.epoch()
    life.change("ana", "strict")
    ledger.reserve("quiet", Charge.of_people([10**6, 10**7]), request="some")
    life.withdraw("eve")
    life.join("zoe", "strict")


def grow(ledger: Ledger) -> None:
    if hasattr(ledger, "allow"):
        ledger.allow("fixed", analyst="ana", purpose="study", epsilon=1, per_day="0.5", by="officer")


def statement() -> Statement:
    return Statement("phone", 1, (), {"adnet": Charge(10**6, attributes={"age": 10**5})})  # type: ignore[arg-type, dict-item]


def other(value: Any, way: int) -> Any:
    """The value changed a little, in one of several ways."""
    if value is None:
        return "x"
    if isinstance(value, int):
        return (value + 1, -value - 1, value ^ 2)[way % 3]
    if isinstance(value, bytes):
        return (bytes([value[0] ^ 1]) + value[1:], value[:-1] + bytes([value[-1] ^ 128]), value + b"\0")[way % 3]
    middle = way % len(value) if value else 0
    swapped = value[:middle] + chr(ord(value[middle]) ^ 1) + value[middle + 1 :] if value else "x"
    return (swapped, value + "0", value.swapcase() if value.swapcase() != value else value + " ")[way % 3]


def found(where: Path, first: str) -> bool:
    """Whether `verify` of any dataset finds something, beginning with the one that it should."""
    try:
        ledger = Ledger.open(where, create=False)
        for dataset in sorted(ledger.datasets(), key=lambda name: name != first):
            ledger.verify(dataset)
    except LedgerError:
        return True
    return False


def copied(whole: Path, where: Path) -> sqlite3.Connection:
    """A copy whose database refuses nothing any more."""
    original = sqlite3.connect(whole)
    original.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    original.close()
    shutil.copy(whole, where)
    connection = sqlite3.connect(where, isolation_level=None)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    return connection


def owner(connection: sqlite3.Connection, row: dict[str, Any]) -> str:
    """The dataset that a row belongs to."""
    number = row.get("dataset_id")
    if number is None and "release_id" in row:
        number = connection.execute("SELECT dataset_id FROM ledger_releases WHERE id = ?", (row["release_id"],)).fetchone()[
            0
        ]
    found = connection.execute("SELECT name FROM ledger_datasets WHERE id = ?", (number or row.get("id"),)).fetchone()
    return str(found[0]) if found else "ward"


def sampled(table: Any, rows: list[Any]) -> list[Any]:
    """Rows that differ in kind: all of few, and of many some at the beginning, in between and at the end."""
    if table is schema.meta:
        return rows
    if table in (schema.releases, schema.log):
        in_force = [row for row in rows if "chosen" in row][:1]  # whose choice is gone, so only the chain covers its salt
        return [rows[0], rows[len(rows) // 2], rows[-1], *in_force]
    where = [column.name for column in table.columns].index("dataset_id") + 1 if "dataset_id" in table.c else 0
    last = {row[where]: row for row in rows} if where else {}
    return list(dict.fromkeys([last.get(QUIET, rows[-1]), *[row for of, row in last.items() if of != QUIET][-1:], rows[-1]]))


def test_it_holds_as_it_is(whole: Path) -> None:
    assert not found(whole, "ward")


@pytest.mark.parametrize("table", schema.metadata.sorted_tables, ids=lambda table: table.name)
def test_every_column_is_covered(whole: Path, swift: Path, table: Any) -> None:
    where = swift / "copy.ledger"
    connection = copied(whole, where)
    rows = connection.execute(f"SELECT rowid, * FROM {table.name}").fetchall()
    assert rows
    columns = [column.name for column in table.columns]
    missed = []
    for number, (rowid, *values) in enumerate(sampled(table, rows)):
        first = owner(connection, dict(zip(columns, values, strict=True)))
        for way, (column, value) in enumerate(zip(columns, values, strict=True), start=number):
            new = other(value, way)
            if change(connection, table.name, column, rowid, new, lambda: found(where, first)) is False:  # noqa: B023
                missed.append((column, value, new))
    assert not missed


def change(
    connection: sqlite3.Connection, table: str, column: str, rowid: int, new: Any, then: Callable[[], bool]
) -> bool | None:
    """Put another value in a column, look, and put everything back; None if the database itself refuses."""
    before = connection.execute(f'SELECT *, rowid FROM "{table}" WHERE rowid = ?', (rowid,)).fetchone()
    columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
    try:
        connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (new, rowid))
    except sqlite3.IntegrityError:
        return None
    try:
        return then()
    finally:
        at = new if connection.execute(f'SELECT 1 FROM "{table}" WHERE rowid = ?', (rowid,)).fetchone() is None else rowid
        assigned = ", ".join(f'"{name}" = ?' for name in columns)
        connection.execute(f'UPDATE "{table}" SET {assigned} WHERE rowid = ?', (*before[:-1], at))


# A dataset that is gone altogether is for the witness to miss: tests/service/test_witness.py.
KEPT = [table for table in schema.metadata.sorted_tables if table is not schema.datasets]


@pytest.mark.parametrize("table", KEPT, ids=lambda table: table.name)
def test_a_row_that_is_gone_is_missed(whole: Path, swift: Path, table: Any) -> None:
    where = swift / "copy.ledger"
    connection = copied(whole, where)
    rowid, *values = connection.execute(f"SELECT rowid, * FROM {table.name} ORDER BY rowid LIMIT 1").fetchone()
    first = owner(connection, dict(zip([column.name for column in table.columns], values, strict=True)))
    connection.execute(f"DELETE FROM {table.name} WHERE rowid = ?", (rowid,))
    assert found(where, first)
