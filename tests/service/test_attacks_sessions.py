"""Stolen and spent tokens, and requests that another site makes a browser send: at every endpoint, by kind.

Nobody is put in anybody's place here: whoever calls has a real token or a real session.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from sfumato.service.accounts import sessions, tokens
from sfumato.service.http.access import current_caller
from sfumato.service.roles import ACTIONS, ROLES, SECOND_FACTOR
from sfumato.service.store import schema
from support.service_cases import CASES
from support.service_routes import Endpoint, endpoints
from support.service_world import World

COOKIE = "sfumato"


@pytest.fixture(scope="module")
def world(clinics: World) -> Iterator[World]:
    with clinics.copied() as copy:
        copy.app.dependency_overrides.pop(current_caller)
        yield copy


@pytest.fixture(scope="module")
def asking(world: World) -> list[Endpoint]:
    return [endpoint for endpoint in endpoints(world.app) if endpoint.action is not None]


def _token(world: World, role: str, *scopes: str) -> tuple[str, str]:
    """The id and the secret of a new token."""
    made = tokens.make(world.service, world.callers[role], "t", scopes or sorted(tokens.scopes_of(role)), 1)
    return made[0], made[1]


def _sent(world: World, endpoint: Endpoint, role: str, **headers: str) -> int:
    call = CASES[str(endpoint)].call(world, str(endpoint), role, "own")
    client = TestClient(world.app, raise_server_exceptions=False, headers=headers)
    body = {} if call.body is None else {"json": call.body}
    return int(client.request(call.method, call.url, params=dict(call.query) or None, **body).status_code)


def _refused_everywhere(world: World, asking: list[Endpoint], role: str, status: int, **headers: str) -> None:
    before = world.written()
    for endpoint in asking:
        if role in ACTIONS[endpoint.action]:
            assert _sent(world, endpoint, role, **headers) == status, endpoint
    assert world.written() == before


@pytest.mark.parametrize("how", ["expired", "revoked", "of a disabled account", "cut", "of nobody", "as a cookie", "basic"])
def test_a_token_that_is_no_good_opens_nothing(world, asking, how):
    """At every endpoint of its role, for every role by turns."""
    role = ROLES[["expired", "revoked", "of a disabled account", "cut", "of nobody", "as a cookie", "basic"].index(how) % 5]
    number, secret = _token(world, role)
    headers = {"Authorization": f"Bearer {secret}"}
    changed, mine = {}, schema.tokens.c.id == number
    if how == "expired":
        changed = {"expires_at": 1}
    if how == "revoked":
        changed = {"revoked_at": 1}
    if changed:
        with world.service.store.write() as connection:
            connection.execute(update(schema.tokens).where(mine).values(**changed))
    if how == "of a disabled account":
        _state(world, role, "disabled")
    if how == "cut":
        headers = {"Authorization": f"Bearer {secret[:-1]}"}
    if how == "of nobody":
        headers = {"Authorization": f"Bearer {tokens.PREFIX}{'A' * 43}"}
    if how == "as a cookie":
        headers = {"Cookie": f"{COOKIE}={secret}"}
    if how == "basic":
        headers = {"Authorization": f"Basic {secret}"}
    try:
        _refused_everywhere(world, asking, role, 401, **headers)
    finally:
        _state(world, role, "active")


def _state(world: World, role: str, state: str) -> None:
    with world.service.store.write() as connection:
        mine = schema.accounts.c.id == world.callers[role].id
        connection.execute(update(schema.accounts).where(mine).values(state=state))


@pytest.mark.parametrize("role", ROLES)
def test_a_token_does_nothing_outside_its_scope(world, asking, role):
    """A token for one action: every other endpoint of its role refuses it, and it makes nothing that would outlive it."""
    _, secret = _token(world, role, "session.read")
    before = world.written()
    for endpoint in asking:
        if role in ACTIONS[endpoint.action]:
            status = _sent(world, endpoint, role, Authorization=f"Bearer {secret}")
            assert status == (200 if endpoint.action == "session.read" else 403), endpoint
    assert world.written() == before


def test_no_token_can_have_what_makes_a_thief_stay(world, asking):
    for role in ROLES:
        _, secret = _token(world, role)
        for endpoint in asking:
            if endpoint.action in tokens.NEVER:
                assert _sent(world, endpoint, role, Authorization=f"Bearer {secret}") == 403, (role, endpoint)


def test_a_stolen_token_without_the_second_factor_approves_nothing(world, asking):
    for role in ("officer", "administrator"):
        _, secret = _token(world, role)
        before = world.written()
        for endpoint in asking:
            if endpoint.action in SECOND_FACTOR and role in ACTIONS[endpoint.action]:
                for code in (None, "000000", "12345", "1234567", "' OR 1=1"):
                    headers = {"Authorization": f"Bearer {secret}"} | ({} if code is None else {"X-One-Time-Code": code})
                    assert _sent(world, endpoint, role, **headers) == 403, endpoint
        assert world.written() == before


def _session(world: World, role: str) -> tuple[str, str]:
    with world.service.store.write() as connection:
        started = sessions.start(connection, world.service, world.callers[role].id)
    return started.secret, started.csrf


@pytest.mark.parametrize(
    "forged",
    [
        {},
        {"X-CSRF-Token": "0" * 64},
        {"X-CSRF-Token": "right", "Origin": "https://elsewhere.example"},
        {"X-CSRF-Token": "right", "Origin": "null"},
        {"X-CSRF-Token": "right", "Sec-Fetch-Site": "cross-site"},
        {"X-CSRF-Token": "right", "Sec-Fetch-Site": "same-site"},
        {"X-CSRF-Token": "another's"},
    ],
    ids=["no token", "wrong token", "origin", "null origin", "cross-site", "same-site", "another's token"],
)
def test_another_site_changes_nothing(world, asking, forged):
    """Every endpoint that changes something, with the cookie that the browser sends by itself."""
    for role in ROLES:
        secret, right = _session(world, role)
        _, others = _session(world, "analyst" if role != "analyst" else "officer")
        spelt = {"right": right, "another's": others}
        headers = {"Cookie": f"{COOKIE}={secret}"} | {name: spelt.get(value, value) for name, value in forged.items()}
        before = world.written()
        for endpoint in asking:
            if endpoint.method != "GET" and role in ACTIONS[endpoint.action]:
                assert _sent(world, endpoint, role, **headers) == 403, endpoint
        assert world.written() == before


def test_a_cookie_and_a_token_together_are_refused(world, asking):
    """Whichever of the two were taken, somebody could have meant the other."""
    (secret, right), (_, token) = _session(world, "custodian"), _token(world, "officer")
    headers = {"Cookie": f"{COOKIE}={secret}", "X-CSRF-Token": right, "Authorization": f"Bearer {token}"}
    _refused_everywhere(world, asking, "custodian", 400, **headers)
