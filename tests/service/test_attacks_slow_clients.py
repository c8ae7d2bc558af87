"""Slow clients: a head or a body that comes drop by drop, somebody who says nothing, somebody who does not read."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from fastapi import FastAPI, Request
from starlette.responses import PlainTextResponse

from support.service_sockets import served

PATIENCE = 0.4


def _application() -> FastAPI:
    app = FastAPI()

    @app.get("/small")
    def small() -> PlainTextResponse:
        return PlainTextResponse("here")

    @app.get("/slow")
    def slow() -> PlainTextResponse:
        time.sleep(3 * PATIENCE)  # the service's own time is not the client's fault
        return PlainTextResponse("late")

    @app.get("/large")
    def large() -> PlainTextResponse:
        return PlainTextResponse("x" * 20_000_000)

    @app.post("/body")
    async def body(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(len(await request.body())))

    return app


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[str, int]]:
    with served(_application(), patience=PATIENCE) as where:
        yield where


def _closed_after(connection: socket.socket, longest: float) -> float:
    """Seconds until the server lets go; fails if it does not."""
    begun = time.monotonic()
    connection.settimeout(longest)
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        pytest.fail("the server still waits")
    return time.monotonic() - begun


@pytest.mark.parametrize(
    "begun",
    [
        b"",  # says nothing
        b"GET /small HTTP/1.1\r\nHost: x\r\n",  # a head that does not end
        b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc",  # a body that does not come
        b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",  # chunks that do not end
        b"GET /small HTTP/1.1\r\nHost: x\r\n\r\nGET /small HT",  # a second request that does not end
    ],
    ids=["silent", "head", "body", "chunks", "second"],
)
def test_a_request_that_does_not_arrive_ends(place, begun):
    with socket.create_connection(place) as connection:
        connection.sendall(begun)
        assert _closed_after(connection, 10 * PATIENCE) >= PATIENCE / 2


def test_drops_do_not_buy_time(place):
    """One letter at a time: the limit is for the whole request, not for the next letter."""
    with socket.create_connection(place) as connection:
        begun = time.monotonic()
        connection.sendall(b"GET /small HTTP/1.1\r\nHost: x\r\n")
        with suppress(ConnectionError):
            while time.monotonic() - begun < 10 * PATIENCE:
                connection.sendall(b"X-A: b\r\n")
                time.sleep(PATIENCE / 8)
        assert time.monotonic() - begun < 5 * PATIENCE


def test_who_does_not_read_is_let_go(place):
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(place)
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(3 * PATIENCE)
        connection.settimeout(10 * PATIENCE)
        got = 0
        with suppress(ConnectionError):
            while piece := connection.recv(1 << 20):
                got += len(piece)
        assert got < 20_000_000


def test_the_time_of_the_service_is_not_counted(place):
    with socket.create_connection(place) as connection:
        connection.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        connection.settimeout(30 * PATIENCE)
        told = b""
        while piece := connection.recv(65536):
            told += piece
    assert told.endswith(b"late")


def test_a_crowd_of_slow_clients_does_not_keep_others_out():
    """With few places: those who hold them are let go, and then somebody else is answered."""
    with served(_application(), patience=PATIENCE, limit_concurrency=5) as where:
        crowd = [socket.create_connection(where) for _ in range(8)]
        for connection in crowd:
            connection.sendall(b"GET /small HTTP/1.1\r\nHost: x\r\n")
        late = time.monotonic() + 20 * PATIENCE
        told = b""
        while b"here" not in told and time.monotonic() < late:
            with socket.create_connection(where) as connection:
                connection.sendall(b"GET /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                told = connection.recv(65536)
                while piece := connection.recv(65536):
                    told += piece
            time.sleep(PATIENCE / 4)
        for connection in crowd:
            connection.close()
    assert b"here" in told
