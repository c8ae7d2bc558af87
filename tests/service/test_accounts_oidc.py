"""Signing in with OpenID Connect, against a provider in this process that can be made to lie."""

import base64
import hashlib
import time
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from sqlalchemy import func, select

from sfumato.errors import InputError
from sfumato.service.accounts import codes, provider
from sfumato.service.settings import OidcSettings
from sfumato.service.store import schema

ISSUER = "https://op.example"
COOKIE = "sfumato-oidc"


class Provider:
    """Gives codes for what was asked, and tokens for codes; `lies` goes over the claims."""

    def __init__(self, key):
        self.key, self.signing, self.algorithm = key, key, "RS256"
        self.subject, self.lies, self.asked, self.described = "subject 1", {}, {}, {}
        self.used: set[str] = set()

    def code_for(self, url):
        """What somebody who signs in is sent back with."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert urlsplit(url)._replace(query="").geturl() == ISSUER + "/authorize"
        code = f"code{len(self.asked)}"
        self.asked[code] = asked
        return code, asked["state"]

    def answer(self, request):
        path = request.url.path
        if path == "/.well-known/openid-configuration":
            places = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
            told = {"issuer": ISSUER, **{name: ISSUER + place for name, place in places.items()}, **self.described}
            return httpx.Response(200, json=told)
        if path == "/keys":
            return httpx.Response(200, json={"keys": [self.key.as_dict(private=False)]})
        form = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
        asked = self.asked.get(form["code"])
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        credentials = base64.b64encode(b"sfumato:the client's secret").decode()
        if (
            asked is None
            or form["code"] in self.used
            or challenge != asked["code_challenge"]
            or form["redirect_uri"] != asked["redirect_uri"]
            or request.headers["authorization"] != f"Basic {credentials}"
        ):
            return httpx.Response(400, json={"error": "invalid_grant"})
        self.used.add(form["code"])
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": "sfumato", "sub": self.subject, "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
        claims = {name: value for name, value in {**claims, **self.lies}.items() if value is not None}
        token = jwt.encode({"alg": self.algorithm}, claims, self.signing, algorithms=[self.algorithm])
        return httpx.Response(200, json={"id_token": token, "access_token": "a", "token_type": "Bearer"})


@pytest.fixture(scope="module")
def keys():
    return RSAKey.generate_key(2048), RSAKey.generate_key(2048)


@pytest.fixture
def op(world, monkeypatch, keys):
    found = Provider(keys[0])
    monkeypatch.setattr(provider, "http_client", lambda: httpx.Client(transport=httpx.MockTransport(found.answer)))
    world.set(oidc=OidcSettings(ISSUER, "sfumato", "the client's secret"))
    return found


@pytest.fixture
def invitation(world):
    by = world.account("custodian", "the custodian")

    def make(role="analyst"):
        with world.service.store.write() as connection:
            ends = world.clock.moment + 1000
            return codes.invite(connection, role=role, created_by=by.id, expires_at=ends)

    return make


def _start(client, **body):
    reply = client.post("/v1/oidc/start", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()["url"]


def _back(client, code, state):
    return client.get("/v1/oidc/callback", params={"code": code, "state": state})


def _through(world, op, **body):
    client = world.nobody()
    return client, _back(client, *op.code_for(_start(client, **body)))


def test_an_invitation_and_a_provider_make_an_account_that_is_found_again(world, op, invitation):
    client, reply = _through(world, op, code=invitation(), name="Ada")
    assert (reply.status_code, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    told = client.get("/v1/session").json()
    assert (told["account"]["name"], told["account"]["role"]) == ("Ada", "analyst")
    assert COOKIE not in client.cookies
    again, _ = _through(world, op)
    assert again.get("/v1/session").json()["account"] == told["account"]
    op.subject = "subject 2"
    assert _through(world, op)[1].status_code == 403  # nobody knows them


def test_the_way_there_is_bound_by_state_nonce_and_challenge(world, op):
    client = world.nobody()
    reply = client.post("/v1/oidc/start", json={})
    asked = parse_qs(urlsplit(reply.json()["url"]).query)
    assert (asked["code_challenge_method"], asked["response_type"]) == (["S256"], ["code"])
    assert asked["redirect_uri"] == ["http://testserver/v1/oidc/callback"]
    cookie = reply.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
    assert not any(asked[name][0] in cookie for name in ("state", "nonce"))
    second = parse_qs(urlsplit(_start(client)).query)
    assert all(second[name] != asked[name] for name in ("state", "nonce", "code_challenge"))


@pytest.fixture
def known(world, op, invitation):
    """Somebody whom the service knows."""
    _through(world, op, code=invitation(), name="Ada")


def test_what_was_begun_in_another_browser_is_not_finished_in_this_one(world, op, known):
    """An attacker's code and state, sent to a victim, would sign the victim in as the attacker."""
    attacker, victim = world.nobody(), world.nobody()
    code, state = op.code_for(_start(attacker))
    assert _back(victim, code, state).status_code == 403
    own_code, own_state = op.code_for(_start(victim))
    assert _back(victim, own_code, "another state").status_code == 403
    assert _back(victim, code, state).status_code == 403  # their state, not this browser's
    assert _back(victim, code, own_state).status_code == 403  # this browser's state, their code: the challenge differs
    assert "sfumato" not in victim.cookies


def test_a_token_for_another_sign_in_is_not_taken(world, op, known):
    """The nonce: a token that the provider gave at another time."""
    op.lies = {"nonce": "another"}
    client, reply = _through(world, op)
    assert (reply.status_code, "sfumato" in client.cookies) == (403, False)
    op.lies = {"nonce": None}
    assert _through(world, op)[1].status_code == 403


def test_what_the_token_says_is_checked(world, op, known):
    for lies in [
        {"iss": "https://evil.example"},
        {"aud": "another"},
        {"aud": "another", "azp": "sfumato"},
        {"aud": ["another", "sfumato"], "azp": "another"},
        {"exp": int(time.time()) - 120},
        {"exp": None},
        {"iat": None},
        {"sub": None},
        {"sub": 7},
        {"sub": ""},
        {"sub": "x" * 300},
        {"sub": "a\0b"},
        {"at_hash": "wrong"},
    ]:
        op.lies = lies
        client, reply = _through(world, op)
        assert (reply.status_code, "sfumato" in client.cookies) == (403, False)


def test_the_signature_is_checked_and_only_that_of_a_public_key(world, op, known, keys):
    op.signing = keys[1]
    assert _through(world, op)[1].status_code == 403
    op.signing, op.algorithm = OctKey.import_key("the client's secret, as a key of its own"), "HS256"
    assert _through(world, op)[1].status_code == 403
    assert "none" not in [name.lower() for name in provider.ALGORITHMS]


def test_a_way_is_gone_once_and_not_for_long(world, op, known):
    client = world.nobody()
    code, state = op.code_for(_start(client))
    kept = client.cookies[COOKIE]
    assert _back(client, code, state).status_code == 200
    client.cookies.set(COOKIE, kept)
    assert _back(client, code, state).status_code == 403  # the provider gives nothing twice
    code, state = op.code_for(_start(client))
    world.clock.moment += 601
    assert _back(client, code, state).status_code == 403


def test_a_cookie_that_nobody_gave_is_refused(world, op):
    for cookie in ["", "x", "AAAA", "a" * 300, "=="]:
        client = world.nobody(Cookie=f"{COOKIE}={cookie}")
        assert _back(client, "code0", "state").status_code == 403
        assert client.get("/v1/oidc/callback", params={"error": "access_denied"}).status_code == 403


def test_a_session_of_before_ends(world, op, known):
    world.account("officer")
    client = world.signed_in("officer")
    old = client.cookies["sfumato"]
    assert _back(client, *op.code_for(_start(client))).status_code == 200
    assert world.nobody(Cookie=f"sfumato={old}").get("/v1/session").status_code == 401
    assert client.get("/v1/session").json()["account"]["name"] == "Ada"


def test_an_account_that_is_disabled_or_of_another_role_does_not_come_in(world, op, known):
    with world.service.store.read() as connection:
        row = connection.execute(select(schema.accounts).where(schema.accounts.c.name == "Ada")).one()
    world.changed(row, state="disabled")
    assert _through(world, op)[1].status_code == 401
    world.changed(row, state="active", role="administrator")
    assert _through(world, op)[1].status_code == 403


def test_the_administrators_code_binds_an_account_once(world, op):
    world.account("administrator")
    admin = world.signed_in("administrator")
    made = admin.post("/v1/accounts", json={"name": "Grace", "role": "officer"}).json()
    client, reply = _through(world, op, code=made["code"])
    assert (reply.status_code, client.get("/v1/session").json()["account"]["name"]) == (200, "Grace")
    other = admin.post(f"/v1/accounts/{made['account']['id']}/reset").json()["code"]
    op.subject = "somebody else"
    assert _through(world, op, code=other)[1].status_code == 403
    # An account that may not use the provider is not bound by the attempt.
    second = admin.post("/v1/accounts", json={"name": "second", "role": "administrator"}).json()
    op.subject = "a third one"
    assert _through(world, op, code=second["code"])[1].status_code == 403
    with world.service.store.read() as connection:
        bound = select(func.count()).select_from(schema.accounts).where(schema.accounts.c.subject.is_not(None))
        assert connection.execute(bound).scalar_one() == 1


def test_where_the_settings_say_so_nobody_needs_an_invitation(world, op):
    world.set(oidc=OidcSettings(ISSUER, "sfumato", "the client's secret", new_accounts="person"))
    op.lies = {"preferred_username": "grace"}
    client, reply = _through(world, op)
    assert (reply.status_code, client.get("/v1/session").json()["account"]["role"]) == (200, "person")
    op.subject = "subject 2"
    assert _through(world, op)[1].status_code == 409  # the name is another's, and stays so
    op.lies = {"preferred_username": "a\r\nSet-Cookie: x=y"}
    assert _through(world, op)[1].status_code == 422


def test_no_provider_no_address(world):
    assert world.nobody().post("/v1/oidc/start", json={}).status_code == 404
    assert world.nobody().get("/v1/oidc/callback").status_code == 404


def test_a_provider_that_describes_itself_wrongly_is_not_used(world, op):
    for described in [{"issuer": "https://evil.example"}, {"token_endpoint": "http://op.example/token"}, {"jwks_uri": None}]:
        op.described = described
        assert world.nobody().post("/v1/oidc/start", json={}).status_code == 503


@pytest.mark.parametrize("reply", [httpx.Response(500), httpx.Response(200, text="x"), httpx.Response(200, json=[]), None])
def test_a_provider_that_does_not_answer_is_no_error_of_the_service(world, op, monkeypatch, reply):
    def answer(_):
        if reply is None:
            raise httpx.ConnectError("no")
        return reply

    monkeypatch.setattr(provider, "http_client", lambda: httpx.Client(transport=httpx.MockTransport(answer)))
    assert world.nobody().post("/v1/oidc/start", json={}).status_code == 503


@pytest.mark.parametrize(
    "given", [{"roles": ("root",)}, {"new_accounts": "administrator"}, {"roles": ("person",), "new_accounts": "analyst"}]
)
def test_settings_that_let_too_many_in_are_refused(given):
    with pytest.raises(InputError, match="oidc"):
        OidcSettings(ISSUER, "sfumato", "x", **given)
    assert "hidden" not in repr(OidcSettings(ISSUER, "sfumato", "hidden"))
