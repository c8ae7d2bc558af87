"""One-time codes: those of the standard, each good once, none by guessing."""

import threading

import pytest
from sqlalchemy import select, update

from sfumato.service.accounts import totp
from sfumato.service.accounts.second_factor import confirm_code
from sfumato.service.http.problems import ProblemError
from sfumato.service.store import schema
from support.service_accounts import PASSWORD

KEYS = {name: (b"1234567890" * 7)[:size] for name, size in (("sha1", 20), ("sha256", 32), ("sha512", 64))}
VECTORS = {  # RFC 6238, appendix B
    59: ("94287082", "46119246", "90693936"),
    1111111109: ("07081804", "68084774", "25091201"),
    1111111111: ("14050471", "67062674", "99943326"),
    1234567890: ("89005924", "91819424", "93441116"),
    2000000000: ("69279037", "90698825", "38618901"),
    20000000000: ("65353130", "77737706", "47863826"),
}


def test_the_codes_are_those_of_the_standard():
    for moment in VECTORS:
        found = [totp.code_at(key, totp.step_at(moment), digits=8, algorithm=name) for name, key in KEYS.items()]
        assert tuple(found) == VECTORS[moment]


def test_the_address_for_apps_holds_no_more_than_it_should():
    address = totp.as_address(b"12345678901234567890", "Ada & Eve?secret=x", "Sfumato")
    assert address.startswith("otpauth://totp/Sfumato:Ada%20%26%20Eve%3Fsecret%3Dx?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&")
    assert address.count("secret=") == 1


@pytest.fixture
def officer(world):
    return world.account("officer")


@pytest.fixture
def secret(world, officer):
    return world.enrolled(world.signed_in("officer"))


def _confirmed(world, caller, code):
    try:
        confirm_code(world.service, caller, code)
    except ProblemError as error:
        return error.status
    return 200


def test_without_a_factor_it_is_refused_and_said_what_to_do(world, officer):
    with pytest.raises(ProblemError, match="second-factor") as refused:
        confirm_code(world.service, officer, "123456")
    assert refused.value.status == 403
    client = world.signed_in("officer")
    client.post("/v1/account/second-factor", json={"password": PASSWORD})  # begun, not confirmed
    with pytest.raises(ProblemError, match="has none yet"):
        confirm_code(world.service, officer, "123456")


def test_a_code_is_good_once(world, officer, secret):
    code = world.code(secret)
    assert [_confirmed(world, officer, code) for _ in range(2)] == [200, 403]
    world.clock.moment += totp.STEP
    assert [_confirmed(world, officer, code), _confirmed(world, officer, world.code(secret))] == [403, 200]


def test_the_code_that_confirmed_the_factor_is_used_up(world, officer):
    client = world.signed_in("officer")
    secret = world.enrolled(client)
    assert _confirmed(world, officer, world.code(secret, -1)) == 403


@pytest.mark.parametrize(("steps", "status"), [(-2, 403), (0, 200), (1, 200), (2, 403), (30, 403)])
def test_clocks_may_differ_by_one_step(world, officer, secret, steps, status):
    assert _confirmed(world, officer, world.code(secret, steps)) == status


def test_an_earlier_code_is_no_good_after_a_later_one(world, officer, secret):
    world.clock.moment += 10 * totp.STEP
    assert _confirmed(world, officer, world.code(secret, 1)) == 200
    assert [_confirmed(world, officer, world.code(secret, steps)) for steps in (-1, 0, 1)] == [403] * 3


def test_of_many_with_one_code_at_once_one_is_let_through(world, officer, secret):
    code, answers, gate = world.code(secret), [], threading.Barrier(4)

    def one():
        gate.wait()
        answers.append(_confirmed(world, officer, code))

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 403, 403, 403]


def test_what_is_no_code_is_refused(world, officer, secret):
    for code in [None, "", "12345", "1234567", "12345a", "１２３４５６", "123456\n", " 123456", "-12345"]:
        assert _confirmed(world, officer, code) == 403


def test_guessing_is_slow(world, officer, secret):
    wrong = f"{(int(world.code(secret)) + 1) % 10**6:06}"
    assert [_confirmed(world, officer, wrong) for _ in range(6)] == [403] * 5 + [429]
    assert _confirmed(world, officer, world.code(secret)) == 429
    world.clock.moment += 900
    assert _confirmed(world, officer, world.code(secret)) == 200


def test_the_code_comes_in_a_header_and_is_asked_for_by_the_table(world, officer, secret, app):
    from typing import Annotated

    from sfumato.service.http.access import Caller, allowed

    @app.post("/v1/decide")
    def decide(caller: Annotated[Caller, allowed("plans.decide")]) -> dict[str, str]:
        return {"by": caller.name}

    client = world.signed_in("officer")
    assert client.post("/v1/decide").status_code == 403
    code = {"X-One-Time-Code": world.code(secret)}
    first = client.post("/v1/decide", headers={**code, "Idempotency-Key": "a"})
    assert (first.status_code, first.json()) == (200, {"by": "officer"})
    assert client.post("/v1/decide", headers=code).status_code == 403  # replayed
    again = client.post("/v1/decide", headers={**code, "Idempotency-Key": "a"})
    assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")  # answered, not done


def test_a_factor_needs_the_password_to_begin_and_is_not_exchanged(world, officer):
    client, elsewhere = world.signed_in("officer"), world.signed_in("officer")
    assert client.post("/v1/account/second-factor", json={}).status_code == 403
    assert client.post("/v1/account/second-factor", json={"password": "wrong wrong wrong"}).status_code == 403
    secret = world.enrolled(client)
    assert (client.get("/v1/session").status_code, elsewhere.get("/v1/session").status_code) == (200, 401)
    assert client.post("/v1/account/second-factor", json={"password": PASSWORD}).status_code == 409
    assert client.post("/v1/account/second-factor/confirm", json={"code": world.code(secret)}).status_code == 409
    assert _confirmed(world, officer, world.code(secret)) == 200


def test_who_has_no_password_must_have_just_come_in(world, officer):
    client = world.signed_in("officer")
    world.changed(officer, password=None)
    world.clock.moment += 601
    assert client.post("/v1/account/second-factor", json={}).status_code == 403
    world.clock.moment -= 2
    assert client.post("/v1/account/second-factor", json={}).status_code == 201


def test_the_secret_is_sealed_for_its_account(world, officer, secret):
    other = world.account("officer", "another officer")
    text = totp.as_text(secret)
    with world.service.store.write() as connection:
        row = connection.execute(select(schema.accounts).where(schema.accounts.c.id == officer.id)).one()
        assert text not in str(row)
        stolen = {"totp": row.totp, "totp_confirmed": 1}
        connection.execute(update(schema.accounts).where(schema.accounts.c.id == other.id).values(**stolen))
    with pytest.raises(Exception, match="does not open"):
        confirm_code(world.service, other, world.code(secret))


def test_the_administrator_resets_a_lost_factor_and_all_sessions_end(world, officer, secret):
    world.account("administrator")
    admin, client = world.signed_in("administrator"), world.signed_in("officer")
    assert admin.post(f"/v1/accounts/{officer.id}/second-factor/reset").status_code == 204
    assert client.get("/v1/session").status_code == 401
    assert _confirmed(world, officer, world.code(secret)) == 403
    with world.service.store.read() as connection:
        last = connection.execute(select(schema.events).order_by(schema.events.c.id.desc()).limit(1)).one()
    assert (last.action, last.target) == ("second factor reset", officer.id)
    world.enrolled(world.signed_in("officer"))
