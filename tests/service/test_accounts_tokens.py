"""Tokens: what they may do, for how long, and what a thief gets out of one."""

import json

import pytest
from sqlalchemy import select, update

from sfumato.service.accounts import tokens
from sfumato.service.roles import ROLES
from sfumato.service.store import schema
from support.service_accounts import PASSWORD


@pytest.fixture
def officer(world):
    world.account("officer")
    return world.signed_in("officer")


def test_a_token_is_shown_once_and_kept_as_a_digest(world, officer):
    reply = officer.post(
        "/v1/tokens", json={"name": "nightly", "scopes": ["session.read"]}, headers={"Idempotency-Key": "k"}
    )
    secret = reply.json()["token"]
    assert secret.startswith("sfu_")
    assert len(secret) >= 44
    assert secret not in officer.get("/v1/tokens").text
    again = officer.post(
        "/v1/tokens", json={"name": "nightly", "scopes": ["session.read"]}, headers={"Idempotency-Key": "k"}
    )
    assert (again.status_code, secret in again.text) == (409, False)
    with world.service.store.read() as connection:
        for table in schema.metadata.tables.values():
            assert not any(secret in str(row) for row in connection.execute(select(table)))


def test_a_token_needs_no_token_against_forged_requests_and_does_what_its_scopes_say(world, officer):
    program = world.with_token(officer, "session.read", "plans.read")
    told = program.get("/v1/session").json()
    assert (told["actions"], told["csrf_token"]) == (["plans.read", "session.read"], None)
    narrow = world.with_token(officer, "plans.read")
    refused = narrow.get("/v1/session")
    assert (refused.status_code, "session.read" in refused.json()["detail"]) == (403, True)


def test_no_scope_goes_beyond_the_role_or_makes_a_stay_longer(officer):
    for scope in ["accounts.manage", "plans.write", "tokens.manage", "password.change", "nothing", ""]:
        reply = officer.post("/v1/tokens", json={"name": "t", "scopes": ["session.read", scope]})
        assert reply.status_code == 422


def test_scopes_written_into_the_database_do_not_go_beyond_either(world, officer):
    program = world.with_token(officer, "session.read")
    everything = json.dumps(sorted({*tokens.NEVER, "accounts.manage", "session.read"}))
    with world.service.store.write() as connection:
        connection.execute(update(schema.tokens).values(scopes=everything))
    assert program.get("/v1/session").json()["actions"] == ["session.read"]
    for method, path, body in [
        ("POST", "/v1/tokens", {"name": "t", "scopes": ["session.read"]}),
        ("GET", "/v1/tokens", None),
        ("POST", "/v1/account/password", {"password": PASSWORD, "new_password": "another walk by the sea"}),
        ("POST", "/v1/account/second-factor", {"password": PASSWORD}),
        ("POST", "/v1/account/second-factor/confirm", {"code": "000000"}),
        ("POST", "/v1/sign-out-elsewhere", None),
        ("POST", "/v1/accounts", {"name": "x", "role": "officer"}),
    ]:
        assert program.request(method, path, json=body).status_code == 403, path


def test_an_administrators_token_does_not_reset_passwords(world):
    """Not even its own account's: a token would outlive itself."""
    account = world.account("administrator")
    admin = world.signed_in("administrator")
    assert admin.post("/v1/tokens", json={"name": "t", "scopes": ["accounts.manage"]}).status_code == 422
    program = world.with_token(admin, "settings.read")
    with world.service.store.write() as connection:
        connection.execute(update(schema.tokens).values(scopes='["accounts.manage", "settings.read"]'))
    assert program.get("/v1/settings").status_code == 200
    for path in (f"/v1/accounts/{account.id}/reset", "/v1/accounts"):
        assert program.post(path, json={"name": "x", "role": "administrator"}).status_code == 403


def test_a_token_expires(world, officer):
    program = world.with_token(officer, "session.read", days=2)
    world.clock.moment += 2 * 86_400 - 1
    assert program.get("/v1/session").status_code == 200
    world.clock.moment += 1
    assert program.get("/v1/session").status_code == 401


def test_a_token_works_for_a_year_at_most(officer):
    for days in [0, -1, 366, 10**9, 1.5, "x"]:
        reply = officer.post("/v1/tokens", json={"name": "t", "scopes": ["session.read"], "days": days})
        assert reply.status_code == 422


def test_a_stolen_token_ends_when_it_is_revoked(world, officer):
    program, other = world.with_token(officer, "session.read"), world.with_token(officer, "session.read")
    listed = officer.get("/v1/tokens").json()["items"]
    for token in listed[:1]:
        assert officer.delete(f"/v1/tokens/{token['id']}").status_code == 204
        assert officer.delete(f"/v1/tokens/{token['id']}").status_code == 204
    assert sorted([program.get("/v1/session").status_code, other.get("/v1/session").status_code]) == [200, 401]
    assert [t["revoked_at"] is None for t in officer.get("/v1/tokens").json()["items"]].count(True) == 1


def test_another_ones_token_looks_like_none(world, officer):
    world.account("analyst")
    analyst = world.signed_in("analyst")
    world.with_token(officer, "session.read")
    theirs = officer.get("/v1/tokens").json()["items"][0]["id"]
    answers = [analyst.delete(f"/v1/tokens/{token}") for token in (theirs, "token_none")]
    assert [a.status_code for a in answers] == [404, 404]
    assert answers[0].json() == answers[1].json()
    assert analyst.get("/v1/tokens").json() == {"items": [], "older": None}


def test_what_is_no_token_is_nobody(world):
    for shown in [
        "Bearer ",
        "Bearer sfu_",
        "Bearer sfu_x",
        "sfu_x",
        "Basic sfu_x",
        "Bearer  ",
        "Bearer sfu_\xff",
        "Bearer sfu_a sfu_b",
    ]:
        reply = world.nobody().get("/v1/session", headers={"Authorization": shown.encode("latin-1")})
        assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")


def test_with_a_disabled_account_nothing_works_at_once(world, officer):
    program = world.with_token(officer, "session.read")
    world.changed(world.account("administrator"), state="active")
    admin = world.signed_in("administrator")
    account = officer.get("/v1/session").json()["account"]["id"]
    assert admin.post(f"/v1/accounts/{account}/disable").status_code == 200
    assert (program.get("/v1/session").status_code, officer.get("/v1/session").status_code) == (401, 401)
    assert world.nobody().post("/v1/sign-in", json={"name": "officer", "password": PASSWORD}).status_code == 401
    assert admin.post(f"/v1/accounts/{account}/enable").status_code == 200
    assert (program.get("/v1/session").status_code, officer.get("/v1/session").status_code) == (401, 401)
    assert world.signed_in("officer").get("/v1/session").status_code == 200


def test_a_row_that_says_disabled_is_enough(world, officer):
    """Also where somebody forgot to end sessions and tokens."""
    program = world.with_token(officer, "session.read")
    with world.service.store.write() as connection:
        connection.execute(update(schema.accounts).values(state="disabled"))
    assert (program.get("/v1/session").status_code, officer.get("/v1/session").status_code) == (401, 401)


def test_tokens_are_few(world, officer, monkeypatch):
    monkeypatch.setattr(tokens, "MOST", 2)
    world.with_token(officer, "session.read")
    world.with_token(officer, "session.read")
    assert officer.post("/v1/tokens", json={"name": "t", "scopes": ["session.read"]}).status_code == 409


def test_every_role_can_make_a_token_with_all_it_may(world):
    for role in ROLES:
        world.account(role)
        program = world.with_token(world.signed_in(role), *sorted(tokens.scopes_of(role)))
        assert set(program.get("/v1/session").json()["actions"]) == tokens.scopes_of(role)
