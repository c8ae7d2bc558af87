"""What stands before every route: nobody gets past it, and no answer goes out without its headers."""

import asyncio
from dataclasses import replace

import pytest
from fastapi import Request
from fastapi.testclient import TestClient
from sqlalchemy.exc import OperationalError

from sfumato.service.http.addresses import counted_address
from sfumato.service.http.app import create_app
from sfumato.service.http.guarding import SECURITY_HEADERS, Guard
from sfumato.service.http.readable import fault_of_address, fault_of_json
from sfumato.service.http.throttle import Throttle
from support.service_accounts import PASSWORD


@pytest.fixture
def client(app):
    @app.post("/v1/echo")
    async def echo(request: Request) -> dict[str, int]:
        return {"bytes": len(await request.body())}

    @app.post("/v1/body")
    def body(body: dict[str, object]) -> dict[str, object]:
        return body

    @app.get("/v1/broken")
    def broken() -> None:
        raise RuntimeError("a private value")

    return TestClient(app, raise_server_exceptions=False)


def test_every_answer_has_the_headers_also_errors(client):
    replies = [
        client.get("/v1/openapi.json"),
        client.get("/v1/nowhere"),
        client.get("/v1/session"),
        client.get("/v1/broken"),
        client.post("/v1/session"),
        client.get("/v1/session", headers={"Host": "evil.example"}),
        client.post("/v1/echo", content=b"x" * 2_000_000),
        client.get("/v1/a%ff"),
        client.get("/healthz"),
    ]
    assert [reply.status_code for reply in replies] == [200, 404, 401, 500, 405, 400, 413, 422, 200]
    for reply in replies:
        for name, value in SECURITY_HEADERS.items():
            assert reply.headers.get_list(name) == [value], (reply.url, name)
        assert "strict-transport-security" not in reply.headers
        if "/v1/" in str(reply.url):
            assert reply.headers["cache-control"] == "no-store"
    assert "private" not in replies[3].text
    policy = SECURITY_HEADERS["content-security-policy"]
    assert all(part in policy for part in ("default-src 'self'", "object-src 'none'", "frame-ancestors 'none'"))
    assert "unsafe" not in policy


def test_over_https_browsers_are_told_to_stay_there(world):
    world.set(secure_cookies=True)
    reply = TestClient(create_app(world.service)).get("/v1/session")
    assert "max-age=31536000" in reply.headers["strict-transport-security"]


def test_the_service_answers_to_its_names_only(client):
    for host in [
        "evil.example",
        "",
        "testserver.evil.example",
        "testserver@evil.example",
        "evil.example:80",
        "testserver/x",
        "test server",
    ]:
        assert client.get("/v1/session", headers={"Host": host}).status_code == 400
    for own in ("testserver", "TESTSERVER:8000", "localhost", "127.0.0.1:80"):
        assert client.get("/v1/session", headers={"Host": own}).status_code == 401


def test_a_body_has_a_limit_with_and_without_a_length(client, service):
    most = service.settings.limits.body
    assert client.post("/v1/echo", content=b"x" * most, headers={"Content-Type": "text/plain"}).json() == {"bytes": most}
    assert client.post("/v1/echo", content=b"x" * (most + 1)).status_code == 413
    chunked = (b"x" * 65_536 for _ in range(most // 65_536 + 1))
    reply = client.post("/v1/echo", content=chunked)
    assert (reply.status_code, reply.headers["content-type"]) == (413, "application/problem+json")
    for length in ("-1", "x", "1e3", "9" * 30):
        assert client.post("/v1/echo", content=b"x", headers={"Content-Length": length}).status_code in (400, 413)


def _scope(**more):
    return {
        "type": "http",
        "method": "POST",
        "path": "/v1/echo",
        "raw_path": b"/v1/echo",
        "query_string": b"",
        "headers": [(b"host", b"testserver")],
        "client": ("192.0.2.1", 1),
        "scheme": "http",
        "server": ("testserver", 80),
        **more,
    }


def _sent(app, receive, **more):
    """What an application sends for one request."""
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(app(_scope(**more), receive, send))
    return sent


def test_a_body_that_does_not_arrive_is_not_waited_for(world, app):
    world.set(limits=replace(world.service.settings.limits, body_seconds=0.2))

    async def drip():
        await asyncio.sleep(0.05)
        return {"type": "http.request", "body": b"x", "more_body": True}

    sent = _sent(app, drip)
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]


def test_who_hangs_up_before_the_end_reaches_no_route(world):
    async def inside(*_):
        pytest.fail("it was called")

    async def gone():
        return {"type": "http.disconnect"}

    assert _sent(Guard(inside, world.service), gone) == []


def test_sockets_of_the_web_are_closed(world):
    async def inside(*_):
        pytest.fail("it was called")

    assert _sent(Guard(inside, world.service), None, type="websocket") == [{"type": "websocket.close", "code": 1008}]


HOSTILE = [
    b'{"a": "x\\u0000y"}',
    b'{"a\\u0000": 1}',
    b'{"a": [{"b": "\\ud800"}]}',
    b'{"a": "\\udc00\\ud800"}',
    b'{"\\udfff": 1}',
    b'{"a": "\x00"}',
    b'{"a": "\xff"}',
    b'{"a": "\xed\xa0\x80"}',
    '{"a": "x"}'.encode("utf-16"),
    '{"a": "x"}'.encode("utf-16-le"),
    '{"a": "x"}'.encode("utf-32-be"),
    b'{"a": 9223372036854775808}',
    b'{"a": -9223372036854775809}',
    b'{"a": ' + b"9" * 5000 + b"}",
    b'{"a": 1e400}',
    b'{"a": NaN}',
    b'{"a": -Infinity}',
    b'{"a":' * 100 + b"1" + b"}" * 100,
    b"[" * 100_000,
    b'{"a": ' + b"[" * 70 + b"]" * 70 + b"}",
]


def test_what_no_database_or_answer_can_hold_reaches_no_route(client):
    kinds = ("application/json", "Application/Problem+JSON; charset=utf-8", "application/json;charset=utf-16")
    for number, body in enumerate(HOSTILE):
        for kind in kinds if number < 2 else kinds[:1]:
            reply = client.post("/v1/body", content=body, headers={"Content-Type": kind})
            assert reply.status_code == 422, (kind, reply.text)
            assert reply.headers["content-type"] == "application/problem+json"


def test_what_is_unusual_and_right_gets_through(client):
    for body in [
        '{"a": "\\ud83d\\ude00 \\\\u0000 \\\\ud800"}',
        '{"a": 9223372036854775807, "b": [1.5, null, true], "ä": "日本"}',
        "{}",
    ]:
        assert (
            client.post("/v1/body", content=body.encode(), headers={"Content-Type": "application/json"}).status_code == 200
        )


def test_what_is_not_json_is_said_to_be_so_by_its_reader(client):
    for body in (b"{", b"", b"[]", b"nul", b'{"a": 1,}'):
        reply = client.post("/v1/body", content=body, headers={"Content-Type": "application/json"})
        assert reply.status_code == 422, body


def test_addresses_are_utf8_without_control_characters(client):
    for path in [
        "/v1/accounts/%00",
        "/v1/%ff",
        "/v1/x?before=%ff",
        "/v1/x?a=%00",
        "/v1/x%0d%0aSet-Cookie:x",
        "/v1/%ed%a0%80",
    ]:
        assert client.get(path).status_code == 422


def test_faults_are_told_apart():
    assert fault_of_json(b'{"a": "\\u0000"}') != fault_of_json(b'{"a": "\\ud800"}')
    assert fault_of_json(b"not json") is None
    assert fault_of_address(b"/v1/%0a", b"") is not None
    assert fault_of_address(b"/v1/a b", b"x=1&y=%F0%9F%98%80") is None


def test_a_flood_is_stopped_for_its_caller_and_not_for_others(world):
    world.account("officer")
    world.account("analyst")
    world.set(limits=replace(world.service.settings.limits, requests=6))
    world.app = create_app(world.service)
    busy, quiet = world.signed_in("officer", address="192.0.2.1"), world.signed_in("analyst", address="192.0.2.1")
    statuses = [busy.get("/v1/session").status_code for _ in range(8)]
    assert statuses == [200] * 6 + [429] * 2
    reply = busy.get("/v1/session")
    assert (reply.headers["content-type"], int(reply.headers["Retry-After"]) >= 1) == ("application/problem+json", True)
    assert quiet.get("/v1/session").status_code == 200


def test_new_tokens_for_each_request_do_not_get_round_the_rate_of_an_address(world):
    world.set(limits=replace(world.service.settings.limits, requests=5))
    world.app = create_app(world.service)
    statuses = [world.nobody(Authorization=f"Bearer sfu_{i}").get("/v1/session").status_code for i in range(22)]
    assert statuses == [401] * 20 + [429] * 2
    assert world.nobody("192.0.2.2").get("/v1/session").status_code == 401


def test_addresses_of_one_network_are_one_caller(world, service):
    statuses = []
    for i in range(service.settings.limits.failures + 1):
        body = {"name": "officer", "password": PASSWORD}
        statuses.append(world.nobody(f"2001:db8::{i:x}").post("/v1/sign-in", json=body).status_code)
    assert statuses == [401] * service.settings.limits.failures + [429]
    assert world.nobody("2001:db8:0:1::1").post("/v1/sign-in", json=body).status_code == 401
    assert counted_address(("::ffff:192.0.2.1", 1)) == counted_address(("192.0.2.1", 1))


def test_a_database_that_does_not_answer_is_not_an_error_nobody_foresaw(client, service, monkeypatch):
    def gone():
        raise OperationalError("SELECT", {}, Exception("the server closed the connection"))

    monkeypatch.setattr(type(service.store), "read", lambda _: gone())
    reply = client.get("/v1/session", headers={"Authorization": "Bearer sfu_x"})
    assert (reply.status_code, reply.headers["Retry-After"]) == (503, "5")
    assert "SELECT" not in reply.text


def test_a_rate_comes_back_evenly_and_the_memory_is_bounded(monkeypatch):
    moment = [0.0]
    throttle = Throttle(60, clock=lambda: moment[0])
    assert [throttle.wait("a") for _ in range(61)] == [0] * 60 + [1]
    moment[0] = 3.0
    assert [throttle.wait("a") for _ in range(4)] == [0, 0, 0, 1]
    monkeypatch.setattr("sfumato.service.http.throttle.REMEMBERED", 10)
    for i in range(100):
        throttle.wait(str(i))
    assert len(throttle._buckets) == 10


def test_no_text_of_a_caller_becomes_a_header(world):
    for text in ["a\r\nSet-Cookie: x=y", "a\nX: y", "a\r\n\r\n<script>"]:
        replies = [
            world.nobody().post("/v1/sign-in", json={"name": text, "password": PASSWORD}),
            world.nobody().post("/v1/set-password", json={"code": text, "password": PASSWORD}),
            world.nobody().get("/v1/oidc/callback", params={"state": text, "code": text}),
            world.nobody().get("/v1/session", headers={"X-Request-Id": "a" * 500}),
        ]
        for reply in replies:
            assert 400 <= reply.status_code < 500
            assert "set-cookie" not in reply.headers
            assert "x" not in reply.headers
            assert not any(text in value for value in reply.headers.values())
