"""Connections to PostgreSQL are kept and shared, survive a server that hung up, and are never used twice for one charge."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger, connections
from sfumato.privacy.charge import Charge

pytestmark = pytest.mark.postgres
NAME = "sfumato-pool-test"


@pytest.fixture
def address(new_schema: Callable[[], str]) -> str:
    return f"{new_schema()}&application_name={NAME}"


@pytest.fixture
def ledger(address: str) -> Ledger:
    made = Ledger.open(address)
    made.register("clinic", epsilon=1)
    return made


def _ask(address: str, query: str) -> Any:
    with psycopg.connect(address.replace(NAME, "somebody-else"), autocommit=True) as server:
        found = server.execute(query).fetchone()
    return None if found is None else found[0]


def _open(address: str) -> int:
    return int(_ask(address, f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{NAME}'"))


def _hang_up(address: str) -> int:
    cut = f"SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE application_name = '{NAME}'"
    return int(_ask(address, cut))


@contextmanager
def _counted(ledger: Ledger, what: str) -> Iterator[list[Any]]:
    seen: list[Any] = []

    def note(*given: Any) -> None:
        seen.append(given[2] if what == "before_cursor_execute" else given)

    event.listen(ledger._store.engine, what, note)
    try:
        yield seen
    finally:
        event.remove(ledger._store.engine, what, note)


def _spent(ledger: Ledger) -> int:
    ledger.verify("clinic")
    return int(ledger.balance("clinic").total.spent)


def test_operations_reuse_one_connection_and_ledgers_share_it(ledger: Ledger, address: str) -> None:
    with _counted(ledger, "connect") as connects:
        for number in range(5):
            ledger.commit(ledger.reserve("clinic", Charge(1), request=f"{number}").id, {"n": number})
            assert Ledger.open(address).balance("clinic").total.spent == number + 1
    assert connects == []
    assert _open(address) == 1


def test_a_server_that_hung_up_between_charges_is_not_noticed(ledger: Ledger, address: str) -> None:
    for number in range(3):
        assert _hang_up(address) == 1
        ledger.reserve("clinic", Charge(1), request=f"{number}")
    assert _spent(ledger) == 3


def test_a_connection_that_breaks_inside_a_charge_is_an_error_and_nothing_is_tried_again(
    ledger: Ledger, address: str
) -> None:
    def cut(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("UPDATE ledger_limits"):
            _hang_up(address)

    event.listen(ledger._store.engine, "before_cursor_execute", cut)
    try:
        with _counted(ledger, "before_cursor_execute") as sent, pytest.raises(LedgerError):
            ledger.reserve("clinic", Charge(1), request="a")
    finally:
        event.remove(ledger._store.engine, "before_cursor_execute", cut)
    assert sum(statement.startswith("INSERT INTO ledger_releases") for statement in sent) == 1
    assert _spent(ledger) == 0
    ledger.reserve("clinic", Charge(1), request="a")
    assert _spent(ledger) == 1


def test_a_commit_whose_answer_is_lost_is_an_error_and_charged_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    dialect, commits = ledger._store.engine.dialect, []

    def commit(connection: Any) -> None:
        commits.append(connection)
        connection.commit()
        raise OperationalError("COMMIT", {}, psycopg.OperationalError("the connection was lost"))

    with monkeypatch.context() as patch:
        patch.setattr(dialect, "do_commit", commit)
        with pytest.raises(LedgerError, match="look at the balance before asking again"):
            ledger.reserve("clinic", Charge(1), request="a")
    assert len(commits) == 1
    assert _spent(ledger) == 1


def test_a_fork_takes_no_connection_along(ledger: Ledger, address: str) -> None:
    ledger.reserve("clinic", Charge(1), request="before")
    theirs, ours = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            ledger.reserve("clinic", Charge(1), request="child")
            os.write(ours, str(_open(address)).encode())
            del ledger
            gc.collect()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert int(os.read(theirs, 10)) == 2, "parent and child spoke over one connection"
    with _counted(ledger, "connect") as connects:
        ledger.reserve("clinic", Charge(1), request="after")
    assert connects == [], "the child closed its parent's connection"
    assert _spent(ledger) == 3


def test_many_threads_leave_few_connections_and_the_last_ledger_none(address: str) -> None:
    kept = [Ledger.open(address)]
    kept[0].register("clinic", epsilon=1)
    together = threading.Barrier(10)
    wrong: list[BaseException] = []

    def spend(number: int) -> None:
        try:
            together.wait(30)
            kept[0].reserve("clinic", Charge(1), request=f"{number}")
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=spend, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert _spent(kept[0]) == 10
    assert 1 <= _open(address) <= connections.KEPT
    kept.clear()
    gc.collect()
    assert _open(address) == 0
