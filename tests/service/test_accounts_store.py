"""The service's tables on both databases: what the revisions make, and what must hold when several write at once."""

from __future__ import annotations

import base64
import threading
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, select, text, update
from sqlalchemy.pool import NullPool

from sfumato.errors import InputError
from sfumato.service.accounts import codes, joining, keeping, second_factor, sessions, totp
from sfumato.service.accounts.attempts import Rule, take
from sfumato.service.context import Service
from sfumato.service.fresh import fresh_id
from sfumato.service.http.access import Caller
from sfumato.service.http.problems import ProblemError
from sfumato.service.store import database, migrations, schema, triggers
from sfumato.service.store.database import Store
from sfumato.service.store.inserting import insert_new
from support.service_accounts import PASSWORD
from support.service_revision import VERSIONS, differences, written

KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=KINDS)
def place(request: Any, tmp_path: Any) -> Iterator[str]:
    """An empty database."""
    if request.param == "sqlite":
        yield str(tmp_path / "tables.db")
        return
    url, name = request.getfixturevalue("postgres_url"), fresh_id("accounts").lower().replace("-", "_")
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f'CREATE SCHEMA "{name}"')
        yield f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"
        server.execute(f'DROP SCHEMA "{name}" CASCADE')


@pytest.fixture
def both(service: Service, place: str) -> Service:
    """A service whose tables are there."""
    return replace(service, store=Store.opened(place))


def _made(connection: Any) -> dict[str, Any]:
    """Everything that can be seen of the tables."""
    found, seen = inspect(connection), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SQLite does not tell about indexes over expressions; they are compared as text
        for table in set(found.get_table_names()) - {migrations.TABLE}:
            seen[table] = {
                "columns": [(c["name"], str(c["type"]), c["nullable"], c["default"]) for c in found.get_columns(table)],
                "key": found.get_pk_constraint(table)["constrained_columns"],
                "checks": sorted((str(c["name"]), c["sqltext"]) for c in found.get_check_constraints(table)),
                "unique": sorted(sorted(c["column_names"]) for c in found.get_unique_constraints(table)),
                "foreign": sorted((c["constrained_columns"], c["referred_table"]) for c in found.get_foreign_keys(table)),
                "indexes": sorted((str(i["name"]), str(i["column_names"]), i["unique"]) for i in found.get_indexes(table)),
            }
    if connection.dialect.name == "sqlite":
        rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"))
        seen["indexes"] = sorted((name, " ".join(sql.split())) for name, sql in rows)
    return seen


@pytest.mark.filterwarnings("ignore:autogenerate skipping", "ignore:Skipped unsupported reflection")
def test_the_revisions_make_what_the_schema_says(place: str) -> None:
    plain = create_engine(Store.opened(place).url, poolclass=NullPool)  # the ledger's connections speak binary
    with plain.connect() as connection:
        assert differences(connection) == []
        assert migrations.revision_of(connection) == migrations.HEAD
        by_revisions = _made(connection)
    with plain.begin() as connection:  # and what Alembic does not compare
        schema.metadata.drop_all(connection)
        schema.metadata.create_all(connection)
        assert _made(connection) == by_revisions
    assert len(by_revisions) >= len(schema.metadata.tables)


def test_there_is_one_newest_revision_and_it_is_the_stated_one() -> None:
    script = ScriptDirectory(str(VERSIONS.parent))
    assert script.get_heads() == [migrations.HEAD]


@pytest.mark.filterwarnings("ignore:autogenerate skipping", "ignore:Skipped unsupported reflection")
def test_the_next_revision_would_change_nothing() -> None:
    source = written(f"{int(migrations.HEAD) + 1:04}", "Nothing")
    assert source.rstrip().endswith("pass"), source


def test_opening_again_changes_nothing_and_brings_triggers_back(place: str) -> None:
    store = Store.opened(place)
    with store.write() as connection:
        insert_new(connection, schema.accounts, id="a", name="a", role="person", state="active", created_at=1)
        triggers.remove(connection)
    again = Store.opened(place)
    with again.read() as connection:
        assert connection.execute(select(schema.accounts.c.id)).scalars().all() == ["a"]
        assert triggers._there(connection) >= {rule.name for rule in triggers.RULES}


def test_many_may_open_an_empty_database_at_once(place: str) -> None:
    failed: list[BaseException] = []

    def one() -> None:
        try:
            Store.opened(place)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_a_revision_that_fails_leaves_nothing(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> None:
        raise RuntimeError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(triggers, "install", broken)
        with pytest.raises(RuntimeError):
            Store.opened(place)
    with Store(place).read() as connection:
        assert not any(name.startswith("service_") for name in inspect(connection).get_table_names())
    Store.opened(place)


def test_a_database_of_a_newer_version_is_refused(place: str) -> None:
    store = Store.opened(place)
    with store.write() as connection:
        connection.execute(text(f"UPDATE {migrations.TABLE} SET version_num = '9999'"))
    with pytest.raises(InputError, match="newer version"):
        Store.opened(place)


# --- several at once -------------------------------------------------------------------------------------------------


def _together(*calls: Any) -> list[int]:
    """What each call ends with: 200, or the status of the problem."""
    answers, gate = [], threading.Barrier(len(calls))

    def one(call: Any) -> None:
        gate.wait()
        try:
            call()
            answers.append(200)
        except ProblemError as error:
            answers.append(error.status)

    threads = [threading.Thread(target=one, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(answers)


def _account(service: Service, role: str, name: str, **values: Any) -> Caller:
    row = {"id": fresh_id("account"), "name": name, "role": role, "state": "active", "created_at": 1, **values}
    with service.store.write() as connection:
        assert insert_new(connection, schema.accounts, **row)
    return Caller(row["id"], name, role)  # type: ignore[arg-type]


def test_tries_at_once_are_all_counted(both: Service) -> None:
    assert _together(*[lambda: take(both, [("x", Rule(3, 900)), ("y", Rule(50, 900))])] * 6) == [200] * 3 + [429] * 3


def test_an_invitation_lets_one_in(both: Service) -> None:
    by = _account(both, "custodian", "by")
    with both.store.write() as connection:
        code = codes.invite(connection, role="analyst", created_by=by.id, expires_at=database.now() + 100)
    calls = [lambda i=i: joining.join(both, code, f"racer {i}", PASSWORD, f"a{i}") for i in range(4)]
    assert _together(*calls) == [200, 403, 403, 403]


def test_a_name_is_given_once(both: Service) -> None:
    admin = _account(both, "administrator", "admin")
    calls = [lambda name=name: keeping.create(both, admin, name, "analyst") for name in ("ada", "Ada", "ADA")]
    assert _together(*calls) == [200, 409, 409]


def test_a_one_time_code_is_good_once(both: Service) -> None:
    officer = _account(both, "officer", "officer")
    text_, _ = second_factor.enrol(both, officer)
    secret = base64.b32decode(text_)
    with both.store.write() as connection:
        connection.execute(update(schema.accounts).values(totp_confirmed=1))
    code = totp.code_at(secret, totp.step_at(database.now()))
    calls = [lambda: second_factor.confirm_code(both, officer, code)] * 4
    assert _together(*calls) == [200, 403, 403, 403]


def test_two_administrators_cannot_disable_each_other(both: Service) -> None:
    one, two = (_account(both, "administrator", name, password="x") for name in ("one", "two"))
    calls = [lambda: keeping.disable(both, one, two.id), lambda: keeping.disable(both, two, one.id)]
    assert _together(*calls) == [200, 409]


def test_a_session_does_not_begin_after_its_account_was_disabled(both: Service) -> None:
    admin, analyst = _account(both, "administrator", "admin", password="x"), _account(both, "analyst", "analyst")

    def enter() -> None:
        with both.store.write() as connection:
            joining.entered(connection, both, analyst.id, "signed in")

    _together(*[enter] * 3, lambda: keeping.disable(both, admin, analyst.id))
    with both.store.read() as connection:
        assert connection.execute(select(schema.sessions)).all() == []
    with pytest.raises(ProblemError), both.store.write() as connection:
        joining.entered(connection, both, analyst.id, "signed in")
    assert sessions.found(both, "x") is None
