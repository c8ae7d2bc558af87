"""Hostile texts in every place where a text goes in: paths, addresses, SQL. By kind: the places come from the description.

Each text is put into one place of a request that is right otherwise, and sent by somebody who may send it. Python's audit
hooks watch what becomes of it: a text of a request never is part of a path, an address, a module or a command.
"""

from __future__ import annotations

import ast
import socket
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

import sfumato.service
from sfumato.service.roles import ACTIONS, ROLES
from support.service_cases import CASES
from support.service_kinds import Call, Description, Place
from support.service_routes import endpoints
from support.service_watch import watching
from support.service_world import World

MARK = "zqxplanted"
TRAVERSAL = (
    f"../../../../../../tmp/{MARK}",
    f"/tmp/{MARK}",
    f"..\\..\\{MARK}",
    f"%2e%2e%2f%2e%2e%2f{MARK}",
    f"....//....//{MARK}",
    f"{MARK}/../../service.key",
    f"~/{MARK}",
    f"{MARK}.toml/.",
)
SQL = (
    f"{MARK}' OR '1'='1",
    f"{MARK}'; DROP TABLE service_accounts; --",
    f'{MARK}" OR 1=1 --',
    f"{MARK}') UNION SELECT password FROM service_accounts --",
    f"{MARK}%' OR name LIKE '%",
    f"{MARK}\\'; UPDATE service_accounts SET role = 'administrator'; --",
    f"{MARK}:name %(name)s ? $1 {{0}} ${{jndi:ldap://x}}",
)


@pytest.fixture(scope="module")
def world(clinics: World) -> Iterator[World]:
    with clinics.copied() as copy:
        yield copy


@pytest.fixture(scope="module")
def places(world: World) -> list[tuple[str, Call, Place]]:
    """Who sends what, and where a text goes into it."""
    description = Description(world.app)
    found = []
    for endpoint in endpoints(world.app):
        if endpoint.path == "/v1/openapi.json":
            continue
        role = ROLES[0] if endpoint.action is None else sorted(ACTIONS[endpoint.action])[0]
        known = CASES[str(endpoint)].call(world, str(endpoint), role, "own")
        for call in (known, description.call(endpoint.method, endpoint.path, Call("", "", known.path, known.query))):
            found += [(role, call, place) for place in description.texts(endpoint.method, endpoint.path, call)]
    unique = {(role, call.method, call.template, place): (role, call, place) for role, call, place in reversed(found)}
    return sorted(unique.values(), key=lambda each: (each[1].template, each[1].method, each[2]))


def _answers(world: World, places: list[tuple[str, Call, Place]], texts: tuple[str, ...], each: int) -> Iterator[tuple]:
    turn = cycle(texts)
    for role, call, place in places:
        for _ in range(each):
            text = next(turn)
            answer = world.send(role, call.with_text(place, text))
            assert answer.status_code < 500, (call.method, call.template, place, text, answer.text)
            yield call, place, text, answer


def test_there_are_places_of_every_kind(places):
    """The attacks below would hold for an empty list too."""
    kinds = {place[0] for _, _, place in places}
    assert kinds >= {"path", "query", "body"}
    assert len(places) > 100


def test_no_text_becomes_a_path(world: World, places):
    with watching(MARK) as watcher:
        for call, place, text, answer in _answers(world, places, TRAVERSAL, 2):
            assert not watcher.seen, (call.method, call.template, place, text, watcher.seen)
            assert b"root:" not in answer.content


def test_no_text_becomes_an_address(world: World, places):
    """Addresses of a socket that listens, in the spellings that some library or other would follow."""
    with socket.create_server(("127.0.0.1", 0)) as listening, watching(MARK) as watcher:
        listening.settimeout(0)
        where = f"127.0.0.1:{listening.getsockname()[1]}"
        spelt = (
            f"http://{where}/{MARK}",
            f"postgresql://u:p@{where}/{MARK}",
            f"//{where}/{MARK}",
            f"s3://{where}/{MARK}",
            f"sc://{where}/{MARK}",
            f"file:///tmp/{MARK}",
            f"sqlite:////tmp/{MARK}",
        )
        for call, place, text, _ in _answers(world, places, spelt, 1):
            assert not watcher.seen, (call.method, call.template, place, text, watcher.seen)
        with pytest.raises(BlockingIOError):
            listening.accept()


def test_sql_in_a_text_is_a_text(world: World, places):
    """Every account, role and table is there afterwards, and no answer has what it would have without the condition."""
    before = world.rows("service_accounts")
    tables = world.tables()
    for call, place, text, answer in _answers(world, places, SQL, 2):
        assert b"argon2" not in answer.content
        if place[0] == "path":
            assert answer.status_code in (404, 422), (call.template, place, text, answer.text)
        assert b"syntax" not in answer.content.lower() or b"sql" not in answer.content.lower()
    assert world.tables() == tables
    kept = {row["id"]: (row["name"], row["role"], row["password"]) for row in before}
    after = {row["id"]: (row["name"], row["role"], row["password"]) for row in world.rows("service_accounts")}
    assert {key: after[key] for key in kept} == kept


SOURCE = Path(sfumato.service.__file__).parent


def test_no_statement_is_put_together_from_texts():
    """`text(...)`, `execute(...)` and `exec_driver_sql(...)` are given a whole statement, or one that SQLAlchemy builds."""
    wrong = []
    for file in SOURCE.rglob("*.py"):
        if file.name == "triggers.py":  # whose statements are put together from its own constants, before any request
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(node, ast.Call)
                and _name(node.func) in {"text", "exec_driver_sql", "literal_column"}
                and node.args
            ):
                given = node.args[0]
                if isinstance(given, ast.JoinedStr | ast.BinOp) or (
                    isinstance(given, ast.Call) and _name(given.func) == "format"
                ):
                    wrong.append(f"{file.relative_to(SOURCE)}:{node.lineno}")
    assert wrong == []


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
