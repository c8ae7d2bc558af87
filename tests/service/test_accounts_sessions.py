"""Signing in, staying signed in, and whoever tries to do it in somebody else's place."""

from sqlalchemy import select

from sfumato.service.fresh import digest_of, fresh_secret
from sfumato.service.store import schema
from support.service_accounts import PASSWORD

COOKIE = "sfumato"


def test_a_session_begins_with_the_password_and_ends_for_good(world):
    world.account("officer")
    client = world.nobody()
    began = client.post("/v1/sign-in", json={"name": "officer", "password": PASSWORD})
    assert (began.status_code, began.json()["account"]["name"]) == (200, "officer")
    client.headers["X-CSRF-Token"] = began.json()["csrf_token"]
    told = client.get("/v1/session").json()
    assert told["csrf_token"] == began.json()["csrf_token"]
    assert told["account"]["role"] == "officer"
    assert "plans.decide" in told["actions"]
    assert "accounts.manage" not in told["actions"]
    kept = client.cookies[COOKIE]
    assert client.post("/v1/sign-out").status_code == 204
    assert client.get("/v1/session").status_code == 401
    assert world.nobody(Cookie=f"{COOKIE}={kept}").get("/v1/session").status_code == 401


def test_the_name_is_one_however_it_is_written(world):
    world.account("officer", "Ada")
    assert world.signed_in("ada").get("/v1/session").json()["account"]["name"] == "Ada"


def test_neither_secrets_nor_passwords_are_in_the_database(world):
    world.account("officer")
    client = world.signed_in("officer")
    secrets = {client.cookies[COOKIE], client.headers["X-CSRF-Token"], PASSWORD}
    with world.service.store.read() as connection:
        for table in schema.metadata.tables.values():
            held = {str(value) for row in connection.execute(select(table)) for value in row}
            assert not secrets & held, table.name


def test_the_cookie_is_for_this_host_and_no_script(world, service, monkeypatch):
    world.account("officer")
    plain = world.nobody().post("/v1/sign-in", json={"name": "officer", "password": PASSWORD}).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(plain.split("; "))
    assert "Domain" not in plain
    world.set(secure_cookies=True)
    secure = world.nobody().post("/v1/sign-in", json={"name": "officer", "password": PASSWORD}).headers["set-cookie"]
    assert secure.startswith("__Host-sfumato=")
    assert {"Secure", "HttpOnly", "SameSite=strict", "Path=/"} <= set(secure.split("; "))


def test_a_session_that_somebody_prepared_is_not_taken_up(world):
    """Fixation: the cookie after signing in is another one than before, and the one before works no more."""
    world.account("officer")
    world.account("analyst")
    attacker = world.signed_in("analyst")
    planted = attacker.cookies[COOKIE]
    victim = world.nobody()
    victim.cookies.set(COOKIE, planted)
    reply = victim.post("/v1/sign-in", json={"name": "officer", "password": PASSWORD})
    assert reply.cookies[COOKIE] != planted
    assert attacker.get("/v1/session").status_code == 401
    invented = fresh_secret()
    other = world.nobody()
    other.cookies.set(COOKIE, invented)
    assert other.post("/v1/sign-in", json={"name": "officer", "password": PASSWORD}).cookies[COOKIE] != invented


def test_a_session_ends_when_it_is_not_used_and_after_half_a_day_in_any_case(world, service):
    world.account("officer")
    client = world.signed_in("officer")
    for _ in range(3):
        world.clock.moment += service.settings.session_idle - 1
        assert client.get("/v1/session").status_code == 200
    world.clock.moment += service.settings.session_idle + 1
    assert client.get("/v1/session").status_code == 401
    client = world.signed_in("officer")
    for _ in range(service.settings.session_longest // 1790):
        world.clock.moment += 1790
        assert client.get("/v1/session").status_code == 200
    world.clock.moment += 1790
    assert client.get("/v1/session").status_code == 401


def test_what_changes_something_needs_the_token_against_forged_requests(world):
    for token in [None, "", "0" * 64, "another's"]:
        world.account("officer")
        world.account("analyst")
        client = world.signed_in("officer")
        if token is None:
            del client.headers["X-CSRF-Token"]
        else:
            client.headers["X-CSRF-Token"] = (
                world.signed_in("analyst").headers["X-CSRF-Token"] if token == "another's" else token
            )
        reply = client.post("/v1/tokens", json={"name": "t", "scopes": ["session.read"]})
        assert (reply.status_code, "X-CSRF-Token" in reply.json()["detail"]) == (403, True)
        assert client.get("/v1/session").status_code == 200
        client.headers["X-CSRF-Token"] = client.get("/v1/session").json()["csrf_token"]
        assert client.post("/v1/tokens", json={"name": "t", "scopes": ["session.read"]}).status_code == 201


def test_another_site_cannot_send_requests_through_the_browser(world):
    for headers in [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://testserver.evil.example"},
        {"Origin": "http://[x"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ]:
        world.account("officer")
        client = world.signed_in("officer")
        assert client.post("/v1/sign-out-elsewhere", headers=headers).status_code == 403
        own = {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}
        assert client.post("/v1/sign-out-elsewhere", headers=own).status_code == 204
        # Nor sign a browser in as the attacker, to see what is then typed.
        body = {"name": "officer", "password": PASSWORD}
        assert world.nobody().post("/v1/sign-in", json=body, headers=headers).status_code == 403


def test_a_cookie_and_a_token_together_are_refused(world):
    world.account("officer")
    client = world.signed_in("officer")
    token = world.with_token(client, "session.read").headers["Authorization"]
    reply = client.get("/v1/session", headers={"Authorization": token})
    assert (reply.status_code, reply.headers["content-type"]) == (400, "application/problem+json")
    assert client.get("/v1/session", headers={"Authorization": "Basic eDp5"}).status_code == 400


def test_a_new_password_ends_all_other_sessions(world):
    world.account("officer")
    here, there = world.signed_in("officer"), world.signed_in("officer")
    new = "another walk by the sea"
    assert here.post("/v1/account/password", json={"password": "wrong wrong wrong", "new_password": new}).status_code == 403
    assert here.post("/v1/account/password", json={"password": PASSWORD, "new_password": "short"}).status_code == 422
    assert there.get("/v1/session").status_code == 200
    assert here.post("/v1/account/password", json={"password": PASSWORD, "new_password": new}).status_code == 204
    assert (here.get("/v1/session").status_code, there.get("/v1/session").status_code) == (200, 401)
    assert world.nobody().post("/v1/sign-in", json={"name": "officer", "password": PASSWORD}).status_code == 401
    assert world.signed_in("officer", new).get("/v1/session").status_code == 200


def test_signing_out_elsewhere_keeps_this_session(world):
    world.account("officer")
    here, there = world.signed_in("officer"), world.signed_in("officer")
    assert here.post("/v1/sign-out-elsewhere").status_code == 204
    assert (here.get("/v1/session").status_code, there.get("/v1/session").status_code) == (200, 401)


def test_an_account_has_a_bounded_number_of_sessions(world, service):
    from sfumato.service.accounts import sessions

    caller = world.account("officer")
    started = []
    for _ in range(sessions.MOST + 3):
        world.clock.moment += 1
        with service.store.write() as connection:
            started.append(sessions.start(connection, service, caller.id))
    with service.store.read() as connection:
        kept = set(connection.execute(select(schema.sessions.c.digest)).scalars())
    assert kept == {digest_of(one.secret) for one in started[-sessions.MOST :]}


def test_easy_passwords_are_refused(world):
    for password in ["short", "a" * 30, "officer", "x" * 257]:
        world.account("officer")
        reply = world.signed_in("officer").post(
            "/v1/account/password", json={"password": PASSWORD, "new_password": password}
        )
        assert reply.status_code == 422
        assert password not in reply.text


def test_a_stronger_cost_is_taken_up_at_the_next_sign_in(world, service):
    caller = world.account("officer")

    def stored():
        with service.store.read() as connection:
            return connection.execute(
                select(schema.accounts.c.password).where(schema.accounts.c.id == caller.id)
            ).scalar_one()

    before = stored()
    assert before.startswith("$argon2id$")
    world.set(password_memory=128)
    world.signed_in("officer")
    assert "m=128" in stored()
    assert stored() != before
