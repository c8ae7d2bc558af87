"""Invitations, codes for passwords, and what the administrator does with accounts."""

import re
import sys
import threading
import types

import pytest
from sqlalchemy import func, insert, select

from sfumato.errors import InputError
from sfumato.service.accounts import codes, joining, keeping
from sfumato.service.fresh import fresh_code, read_code
from sfumato.service.http.problems import ProblemError
from sfumato.service.store import schema
from support.service_accounts import PASSWORD

NEW = "another walk by the sea"


@pytest.fixture
def admin(world):
    world.account("administrator")
    return world.signed_in("administrator")


@pytest.fixture
def invitation(world):
    """Codes of invitations, for a role or a person."""
    by = world.account("custodian")

    def make(role="analyst", seconds=1000, **more):
        with world.service.store.write() as connection:
            ends = world.clock.moment + seconds
            return codes.invite(connection, role=role, created_by=by.id, expires_at=ends, **more)

    return make


def _join(world, code, name="newcomer", password=PASSWORD, address="192.0.2.1"):
    return world.nobody(address).post("/v1/join", json={"code": code, "name": name, "password": password})


def test_a_code_has_a_hundred_bits_and_is_read_however_it_is_typed(world, invitation):
    code = fresh_code()
    assert re.fullmatch(r"([0-9A-HJKMNP-TV-Z]{4}-){4}[0-9A-HJKMNP-TV-Z]{4}", code)  # 20 letters of 32
    assert read_code(code.lower().replace("-", " ").replace("0", "o").replace("1", "l")) == code
    assert len({fresh_code() for _ in range(200)}) == 200
    assert _join(world, invitation().lower().replace("-", "")).status_code == 201


def test_an_invitation_makes_one_account_of_its_role_with_a_session(world, invitation):
    code = invitation("person")
    reply = _join(world, code)
    assert (reply.status_code, reply.json()["account"]["role"]) == (201, "person")
    again = _join(world, code, "second")
    assert (again.status_code, world.signed_in("newcomer").get("/v1/session").status_code) == (403, 200)


def test_a_code_is_kept_as_a_digest(world, invitation):
    code = invitation()
    with world.service.store.read() as connection:
        rows = str(list(connection.execute(select(schema.invitations))))
    assert code not in rows
    assert code.replace("-", "") not in rows


def test_expired_used_and_invented_codes_look_the_same(world, invitation):
    used, expired = invitation(), invitation(seconds=10)
    assert _join(world, used).status_code == 201
    world.clock.moment += 10
    told = [_join(world, code, "x1").json() for code in (used, expired, fresh_code(), "ä", "A" * 64)]
    assert [one["status"] for one in told] == [403] * 5
    assert all(one == told[0] for one in told)


def test_a_name_that_is_taken_leaves_the_invitation_open(world, invitation):
    world.account("officer", "Ada")
    code = invitation()
    assert _join(world, code, "ada").status_code == 409
    assert _join(world, code, "grace", "short").status_code == 422
    assert _join(world, code, "grace").status_code == 201


def test_names_are_plain(world, invitation):
    for name in ["", " a", "a ", "a\nb", "a/b", "../x", "Ada<script>", "ада", "a" * 81, "a;b", "a\r\nSet-Cookie: x=y"]:
        assert _join(world, invitation(), name).status_code == 422


def test_of_many_with_one_invitation_at_once_one_gets_in(world, invitation, service):
    code, answers, gate = invitation(), [], threading.Barrier(4)

    def one(i):
        gate.wait()
        try:
            joining.join(service, code, f"racer {i}", PASSWORD, f"192.0.2.{i}")
            answers.append(201)
        except ProblemError as error:
            answers.append(error.status)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [201, 403, 403, 403]
    with service.store.read() as connection:
        racers = select(func.count()).select_from(schema.accounts).where(schema.accounts.c.name.like("racer%"))
        assert connection.execute(racers).scalar_one() == 1


def test_using_a_code_is_conditional_by_itself(world, invitation, service):
    """Two who have both seen it open: the second one's use of it fails, whatever was checked before."""
    code, account = invitation(), world.account("analyst")
    with service.store.read() as connection:
        row = codes.open_code(connection, code)
    with service.store.write() as connection:
        codes.use(connection, row, account.id)
    with pytest.raises(ProblemError), service.store.write() as connection:
        codes.use(connection, row, account.id)


def test_a_persons_invitation_links_them_in_the_same_transaction(world, invitation, service, monkeypatch):
    linked, broken = [], []

    def link(connection, given, account_id, row):
        if broken:
            raise ProblemError(409, "somebody else is this person")
        linked.append((given is service, account_id, row.person, row.role))

    module = types.ModuleType("sfumato.service.people.linking")
    module.link = link
    monkeypatch.setitem(sys.modules, "sfumato.service.people.linking", module)
    if "sfumato.service.people" not in sys.modules:
        monkeypatch.setitem(sys.modules, "sfumato.service.people", types.ModuleType("sfumato.service.people"))
    code, second = invitation("person", person="sealed"), invitation("person", person="sealed")
    account = _join(world, code).json()["account"]["id"]
    assert linked == [(True, account, "sealed", "person")]
    broken.append(True)
    assert _join(world, second, "another").status_code == 409
    broken.clear()
    assert _join(world, second, "another").status_code == 201  # neither the account nor the use of the code had stayed


def test_the_first_administrator_comes_in_by_a_code_that_is_new_each_time(world, service):
    old = keeping.first_administrator(service)
    code = keeping.first_administrator(service)
    assert world.nobody().post("/v1/set-password", json={"code": old, "password": PASSWORD}).status_code == 403
    assert world.nobody().post("/v1/set-password", json={"code": code, "password": PASSWORD}).status_code == 204
    assert world.signed_in("administrator").get("/v1/accounts").status_code == 200
    with pytest.raises(InputError, match="there is an administrator"):
        keeping.first_administrator(service)


def test_the_first_administrator_takes_nobodys_name(world, service):
    world.account("analyst", "Administrator")
    with pytest.raises(InputError, match="another name"):
        keeping.first_administrator(service)
    assert keeping.first_administrator(service, "the administrator")


def test_an_account_is_made_with_a_code_for_its_password(world, admin):
    reply = admin.post("/v1/accounts", json={"name": "Ada", "role": "officer"})
    assert reply.status_code == 201
    code, account = reply.json()["code"], reply.json()["account"]
    assert (account["password"], account["second_factor"], account["state"]) == (False, False, "active")
    # It sets a password and is no invitation.
    assert _join(world, code).status_code == 403
    body = {"code": code, "password": PASSWORD}
    assert [world.nobody().post("/v1/set-password", json=body).status_code for _ in range(2)] == [204, 403]
    assert world.signed_in("Ada").get("/v1/session").json()["account"]["role"] == "officer"
    assert admin.post("/v1/accounts", json={"name": "ADA", "role": "analyst"}).status_code == 409
    assert admin.get(f"/v1/accounts/{account['id']}").json()["password"] is True


def test_an_invitation_sets_nobodys_password(world, invitation):
    assert world.nobody().post("/v1/set-password", json={"code": invitation(), "password": PASSWORD}).status_code == 403


def test_a_reset_ends_password_sessions_tokens_and_older_codes(world, admin):
    account = world.account("analyst")
    client = world.signed_in("analyst")
    program = world.with_token(client, "session.read")
    first = admin.post(f"/v1/accounts/{account.id}/reset").json()["code"]
    assert [one.get("/v1/session").status_code for one in (client, program)] == [401, 401]
    assert world.nobody().post("/v1/sign-in", json={"name": "analyst", "password": PASSWORD}).status_code == 401
    second = admin.post(f"/v1/accounts/{account.id}/reset").json()["code"]
    statuses = [
        world.nobody().post("/v1/set-password", json={"code": code, "password": NEW}).status_code for code in (first, second)
    ]
    assert statuses == [403, 204]
    assert world.signed_in("analyst", NEW).get("/v1/session").status_code == 200


def test_a_code_does_not_open_a_disabled_account(world, admin):
    account = admin.post("/v1/accounts", json={"name": "Ada", "role": "officer"}).json()
    assert admin.post(f"/v1/accounts/{account['account']['id']}/disable").json()["state"] == "disabled"
    body = {"code": account["code"], "password": PASSWORD}
    assert world.nobody().post("/v1/set-password", json=body).status_code == 403
    assert admin.post(f"/v1/accounts/{account['account']['id']}/reset").status_code == 409


def test_the_last_administrator_cannot_be_disabled(world, admin):
    me = admin.get("/v1/session").json()["account"]["id"]
    waiting = admin.post("/v1/accounts", json={"name": "second", "role": "administrator"}).json()
    assert admin.post(f"/v1/accounts/{me}/disable").status_code == 409  # the second one cannot sign in yet
    world.nobody().post("/v1/set-password", json={"code": waiting["code"], "password": PASSWORD})
    second = world.signed_in("second")
    assert admin.post(f"/v1/accounts/{waiting['account']['id']}/disable").status_code == 200
    assert second.get("/v1/session").status_code == 401
    assert admin.post(f"/v1/accounts/{me}/disable").status_code == 409


def test_accounts_are_listed_in_pages(world, admin, service):
    with service.store.write() as connection:
        rows = [
            {"id": f"a{i}", "name": f"n{i}", "role": "person", "state": "active", "created_at": 5 + i // 2} for i in range(7)
        ]
        connection.execute(insert(schema.accounts), rows)
    seen, older = [], None
    while True:
        told = admin.get("/v1/accounts", params={"limit": 3, **({"before": older} if older else {})}).json()
        seen += [item["name"] for item in told["items"]]
        older = told["older"]
        if older is None:
            break
    assert len(seen) == len(set(seen)) == 8
    assert "password" not in str(world.nobody().get("/v1/accounts").json().get("items"))


def test_what_is_not_there_is_missing(admin):
    for path in ["reset", "disable", "enable", "second-factor/reset"]:
        assert admin.post(f"/v1/accounts/account_none/{path}").status_code == 404


def test_a_role_is_never_changed(admin, world):
    account = world.account("analyst")
    for method in ("PATCH", "PUT", "POST"):
        assert admin.request(method, f"/v1/accounts/{account.id}", json={"role": "officer"}).status_code == 405
    assert admin.post("/v1/accounts", json={"name": "x", "role": "root"}).status_code == 422
    assert admin.post("/v1/accounts", json={"name": "x", "role": "officer", "state": "active"}).status_code == 422


def test_the_settings_tell_no_place_and_no_secret(admin, world, service):
    from sfumato.service.settings import OidcSettings, SourceSettings

    world.set(
        sources={"clinic": SourceSettings("postgresql://user:hunter2@db/clinic")},
        oidc=OidcSettings("https://op.example", "sfumato", "the client's secret"),
        metrics_token="the token of the metrics",
    )
    reply = admin.get("/v1/settings")
    assert reply.json()["sources"] == ["clinic"]
    for secret in ("hunter2", "postgresql", "client's secret", "token of", str(service.settings.state), "service.db"):
        assert secret not in reply.text
