"""Pages of lists: every row once, whatever comes in meanwhile, and no cursor that breaks anything."""

import base64

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Column, Integer, MetaData, Table, Text, create_engine, insert, select

from sfumato.service.http import problems
from sfumato.service.http.paging import Asked, Listed, Page, cut, packed, page, unpacked

metadata = MetaData()
things = Table("things", metadata, Column("at", Integer), Column("id", Text, primary_key=True))


@pytest.fixture
def connection():
    with create_engine("sqlite://", connect_args={"check_same_thread": False}).connect() as connection:
        metadata.create_all(connection)
        connection.execute(insert(things), [{"at": i // 3, "id": f"t{i:02}"} for i in range(20)])
        yield connection


def test_every_row_comes_once_although_some_are_of_the_same_moment(connection):
    seen, older = [], None
    while True:
        before = None if older is None else unpacked(older)
        rows, older = page(connection, select(things), Asked(4, before), things.c.at, things.c.id)
        seen += [row.id for row in rows]
        connection.execute(insert(things).values(at=99, id=f"new{len(seen)}"))  # newer than what was asked for
        if older is None:
            break
    assert seen == [f"t{i:02}" for i in reversed(range(20))]


def test_a_list_that_is_there_whole_is_cut():
    rows, older = cut(list(range(9, 0, -1)), Asked(4), lambda item: item)
    assert (rows, older) == ([9, 8, 7, 6], packed([6]))


@pytest.fixture
def client(connection):
    app = FastAPI()
    problems.install(app)

    @app.get("/things")
    def listed(page_: Page) -> Listed[str]:
        rows, older = page(connection, select(things), page_, things.c.at, things.c.id)
        return Listed(items=[row.id for row in rows], older=older)

    return TestClient(app, raise_server_exceptions=False)


def test_a_cursor_that_is_none_is_refused(client):
    for before in [
        "x",
        "!!!!",
        "ä",
        packed([1]),
        packed(["1", "t"]),
        packed([1, 2]),
        packed([True, "t"]),
        packed([2**70, "t"]),
        packed([1, "a\0b"]),
        packed([1, "\ud800"]),
        packed([[], {}]),
        packed([]),
        base64.urlsafe_b64encode(b"[" * 300).decode(),
        base64.urlsafe_b64encode(b'{"a": 1}').decode(),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        base64.urlsafe_b64encode(b"[NaN, 1]").decode(),
        "A" * 700,
    ]:
        reply = client.get("/things", params={"before": before})
        assert reply.status_code == 422, reply.text
        assert reply.headers["content-type"] == "application/problem+json"


def test_a_limit_is_between_one_and_two_hundred(client):
    for limit in ["0", "-1", "201", "x", str(10**40)]:
        assert client.get("/things", params={"limit": limit}).status_code == 422
        assert len(client.get("/things", params={"limit": "3"}).json()["items"]) == 3
