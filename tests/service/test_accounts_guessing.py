"""Guessing passwords and names: what it costs, what it tells, and whom it locks out."""

import re
import threading
import time
from dataclasses import replace

import pytest
from sqlalchemy import select

from sfumato.service.accounts import joining, passwords
from sfumato.service.accounts.attempts import Rule, take, take_back
from sfumato.service.http.problems import ProblemError, answer
from sfumato.service.store import schema
from support.service_accounts import PASSWORD


def _try(world, name="officer", password="wrong wrong wrong", address="192.0.2.1"):
    """What the route would answer."""
    try:
        joining.sign_in(world.service, name, password, address)
    except ProblemError as error:
        return answer(error.status, error.detail, error.headers)
    return answer(200, "signed in")


def test_the_route_answers_as_below(world):
    world.account("officer")
    client = world.nobody("192.0.2.1")
    replies = [client.post("/v1/sign-in", json={"name": "officer", "password": "wrong wrong"}) for _ in range(6)]
    assert [reply.status_code for reply in replies] == [401] * 5 + [429]
    assert replies[-1].headers["Retry-After"] == "2"
    assert _try(world, password=PASSWORD).status_code == 429  # its address is the client's
    assert _try(world, password=PASSWORD, address="192.0.2.2").status_code == 200


def test_a_pause_grows_and_the_right_password_waits_too(world):
    world.account("officer")
    assert [_try(world).status_code for _ in range(5)] == [401] * 5
    pauses = []
    for _ in range(6):
        refused = _try(world, password=PASSWORD)
        assert refused.status_code == 429
        pauses.append(int(refused.headers["Retry-After"]))
        world.clock.moment += pauses[-1]
        assert _try(world).status_code == 401
    assert pauses == [2, 4, 8, 16, 32, 64]
    world.clock.moment += 900
    assert _try(world, password=PASSWORD).status_code == 200


def test_a_pause_is_never_longer_than_the_longest(world, service):
    rule = Rule(1, 30)
    for _ in range(40):
        assert take(service, [("x", rule)])  # counted, not refused: the pause before it was over
        world.clock.moment += 30
    assert take(service, [("x", rule)])


def test_a_try_during_a_pause_is_not_looked_at(world, monkeypatch):
    world.account("officer")
    for _ in range(5):
        _try(world)
    monkeypatch.setattr(passwords, "fits", lambda *_: pytest.fail("it was looked at"))
    for _ in range(10):
        assert _try(world).headers["Retry-After"] == "2"  # nor does it make the pause longer


def test_success_begins_the_count_of_this_name_here_anew(world):
    world.account("officer")
    for _ in range(3):
        assert [_try(world).status_code for _ in range(4)] == [401] * 4
        assert _try(world, password=PASSWORD).status_code == 200


def test_names_that_do_not_exist_are_answered_the_same(world):
    """Neither text nor status nor pauses tell whether there is such a name, or one that is disabled or without password."""
    world.account("officer")
    disabled = world.account("analyst")
    world.changed(disabled, state="disabled")
    bare = world.account("custodian")
    world.changed(bare, password=None)
    told = []
    for i, (name, password) in enumerate(
        [("officer", "wrong wrong wrong"), ("nobody at all", PASSWORD), ("analyst", PASSWORD), ("custodian", PASSWORD)]
    ):
        replies = [_try(world, name, password, f"192.0.2.{i + 10}") for _ in range(6)]
        told.append([(r.status_code, r.body, r.headers.get("Retry-After")) for r in replies])
    assert all(one == told[0] for one in told)
    assert [status for status, *_ in told[0]] == [401] * 5 + [429]


def test_a_name_that_does_not_exist_costs_a_whole_verification(world, service):
    """The work is done for nobody's password as for somebody's: counted, and at a cost at which it can be measured."""
    world.set(password_memory=8192)
    stored = passwords.hashed(service, PASSWORD)

    def seconds(against):
        start = time.perf_counter()
        assert not passwords.fits(service, against, "wrong wrong wrong")
        return time.perf_counter() - start

    seconds(None)
    with_one, without = (min(seconds(against) for _ in range(5)) for against in (stored, None))
    assert 0.4 < without / with_one < 2.5


def test_one_address_cannot_try_one_password_on_all_names(world, service):
    statuses = [_try(world, f"name {i}").status_code for i in range(service.settings.limits.sign_ins + 3)]
    assert statuses == [401] * service.settings.limits.sign_ins + [429] * 3
    assert _try(world, "name x", address="192.0.2.77").status_code == 401


def test_many_addresses_cannot_try_one_name_without_pause(world, service):
    world.account("officer")
    world.set(limits=replace(service.settings.limits, failures=2))
    most = 4 * service.settings.limits.failures
    statuses = [_try(world, address=f"198.51.100.{i}").status_code for i in range(most + 2)]
    assert statuses == [401] * most + [429] * 2


def test_strangers_do_not_lock_out_who_has_signed_in_here_before(world, service):
    world.account("officer")
    world.signed_in("officer", address="192.0.2.1")
    for i in range(22):
        _try(world, address=f"198.51.100.{i}")
    for i in range(12):
        _try(world, f"name {i}", address="192.0.2.1")
    assert _try(world, password=PASSWORD, address="198.51.100.200").status_code == 429
    assert _try(world, password=PASSWORD, address="192.0.2.1").status_code == 200
    # From elsewhere it takes a minute at most, however long they go on.
    world.clock.moment += 60
    assert _try(world, password=PASSWORD, address="198.51.100.201").status_code == 200


def test_an_own_account_does_not_wash_the_address_clean(world, service):
    """Who signs in with an account of their own between guesses has not guessed less."""
    world.account("analyst")
    world.set(limits=replace(service.settings.limits, sign_ins=4))
    limit = service.settings.limits.sign_ins
    guesses = 0
    for i in range(limit * 2):
        if _try(world, f"name {i}", address="192.0.2.5").status_code == 401:
            guesses += 1
        _try(world, "analyst", PASSWORD, address="192.0.2.5")
    assert guesses == limit


def test_many_at_once_are_many(world, service):
    """Tries are counted before they are looked at: a hundred at the same moment are not one."""
    rule, let_through, refused, gate = Rule(5, 900), [], [], threading.Barrier(12)

    def one():
        gate.wait()
        try:
            take(service, [("together", rule)])
            let_through.append(1)
        except ProblemError as error:
            refused.append(error.status)

    threads = [threading.Thread(target=one) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(let_through), refused) == (5, [429] * 7)


def test_what_succeeds_is_taken_back_exactly(world, service):
    rule = Rule(2, 900)
    for _ in range(5):
        take_back(service, take(service, [("x", rule)]))
    take(service, [("x", rule)])
    take(service, [("x", rule)])
    with pytest.raises(ProblemError):
        take(service, [("x", rule)])


def test_the_table_tells_neither_names_nor_addresses_and_does_not_grow(world, service):
    for i in range(10):
        _try(world, f"name {i}")
    with service.store.read() as connection:
        buckets = list(connection.execute(select(schema.attempts.c.bucket)).scalars())
    assert len(buckets) == 21
    assert all(re.fullmatch("[0-9a-f]{64}", bucket) for bucket in buckets)
    world.clock.moment += 31 * 86_400
    _try(world, "name x", address="192.0.2.50")
    with service.store.read() as connection:
        assert len(list(connection.execute(select(schema.attempts)))) == 3


def test_a_session_alone_does_not_let_one_guess_the_password(world):
    world.account("officer")
    client = world.signed_in("officer")
    body = {"password": "wrong wrong wrong", "new_password": "another walk by the sea"}
    statuses = [client.post("/v1/account/password", json=body).status_code for _ in range(6)]
    assert statuses == [403] * 5 + [429]


def test_wrong_codes_are_counted_for_their_address(world, service):
    limit = service.settings.limits.sign_ins
    body = {"code": "AAAA-AAAA-AAAA-AAAA-AAAA", "password": PASSWORD}
    statuses = [world.nobody().post("/v1/set-password", json=body).status_code for _ in range(limit + 1)]
    assert statuses == [403] * limit + [429]
