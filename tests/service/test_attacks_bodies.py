"""Bodies that are too large, by what they say and by what they send, too deep, or not what they say."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from sfumato.service.context import Service
from sfumato.service.http.app import create_app
from sfumato.service.settings import Settings
from support.service_kinds import Description
from support.service_sockets import served

PIECE = b"x" * 65536


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Service:
    return Service.opened(Settings.in_folder(tmp_path_factory.mktemp("bodies"), slot=1, secure_cookies=False))


@pytest.fixture(scope="module")
def place(house: Service) -> Iterator[tuple[str, int]]:
    with served(create_app(house)) as where:
        yield where


def _posted(place, path: str, head: bytes, pieces) -> tuple[int, int]:
    """The status, and how many bytes the server let us send."""
    sent = 0
    with socket.create_connection(place) as connection:
        connection.settimeout(10)
        connection.sendall(b"POST " + path.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n" + head + b"\r\n")
        connection.setblocking(False)
        told = b""
        with suppress(ConnectionError):
            for piece in pieces:
                while piece:
                    with suppress(BlockingIOError):
                        told = told or connection.recv(65536)
                    if told:
                        return int(told.split()[1]), sent
                    try:
                        count = connection.send(piece)
                    except BlockingIOError:
                        continue
                    sent, piece = sent + count, piece[count:]
        connection.settimeout(10)
        with suppress(ConnectionError):
            told = told or connection.recv(65536)
    return int(told.split()[1]), sent


def _paths(house: Service) -> list[str]:
    operations = Description(create_app(house)).operations()
    return [
        "/v1/nothing",
        *sorted({path.replace("{", "").replace("}", "") for method, path, _ in operations if method == "POST"}),
    ]


def test_a_length_that_is_too_large_is_refused_unread(house, place):
    """At every address that takes something: nothing of the body is waited for."""
    for path in _paths(house):
        status, sent = _posted(place, path, b"Content-Type: application/json\r\nContent-Length: 1000000000000\r\n", [])
        assert (status, sent) == (413, 0), path


def test_chunks_without_an_end_are_stopped(house, place):
    """At every address: the server stops reading soon after the limit, though no length was told."""
    chunk = f"{len(PIECE):x}\r\n".encode() + PIECE + b"\r\n"
    for path in _paths(house)[:4]:
        many = (chunk for _ in range(4096))  # 256 MB
        status, sent = _posted(place, path, b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n", many)
        assert status == 413, path
        assert sent < 100_000_000


@pytest.mark.parametrize("length", [b"-1", b"1e3", b"+5", b"0x10", b"9" * 30, b"5, 6"])
def test_a_length_that_is_none_is_refused(place, length):
    status, _ = _posted(place, "/v1/nothing", b"Content-Length: " + length + b"\r\n", [])
    assert status in (400, 413)


def test_two_ways_to_say_the_length_are_refused_or_one_is_ignored(place):
    """A request that a proxy and the server would cut in different places."""
    head = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n"
    status, _ = _posted(place, "/v1/nothing", head, [b"0\r\n\r\n"])
    assert 400 <= status < 500


BODIES = {
    "brackets": b"[" * 100_000,
    "braces": b'{"a":' * 50_000,
    "closed": b"[" * 5_000 + b"]" * 5_000,
    "digits": b"9" * 500_000,
    "surrogate": b'{"name": "\\ud800"}',
    "nul": b'{"name": "a\\u0000b"}',
    "nan": b'{"name": NaN}',
    "bytes": b"\xff\xfe\x00\x00",
    "utf-16": '{"name": "x"}'.encode("utf-16"),
    "infinity": b'{"name": 1e999}',
    "twice": b'{"a": 1, "a": 2}',
}


def test_bodies_that_break_readers_are_refused(client_as, app):
    """At every address that takes a body, as somebody who may send it: 4xx, and never by an error of ours."""
    for method, path, operation in Description(app).operations():
        if "requestBody" not in operation:
            continue
        client = client_as(next(iter(operation.get("x-roles", ())), None))
        for kind, body in BODIES.items():
            address = path.replace("{", "").replace("}", "")
            answer = client.request(method, address, content=body, headers={"Content-Type": "application/json"})
            assert 400 <= answer.status_code < 500, (method, path, kind, answer.text)
