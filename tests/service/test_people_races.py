"""People, custodians and other accounts at the same moment, on both databases."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from sqlalchemy import insert

from sfumato.attributes import DevicePolicy
from sfumato.service.context import Service
from sfumato.service.fresh import fresh_id
from sfumato.service.http.access import Caller
from sfumato.service.http.problems import ProblemError
from sfumato.service.people import bringing, choosing, policies
from sfumato.service.settings import Settings
from sfumato.service.store import schema
from support.service_people import linked, make_dataset


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def shared(request: Any, tmp_path: Any) -> Iterator[Service]:
    """A service on either database."""
    places: dict[str, str] = {}
    if request.param == "postgres":
        url, name = request.getfixturevalue("postgres_url"), fresh_id("people").lower().replace("-", "_")
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(f'CREATE SCHEMA "{name}"')
            place = f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"
            places = {"database": place, "ledger": place}
            yield Service.opened(Settings.in_folder(tmp_path / "state", slot=1, secure_cookies=False, **places))
            server.execute(f'DROP SCHEMA "{name}" CASCADE')
        return
    yield Service.opened(Settings.in_folder(tmp_path / "state", slot=1, secure_cookies=False))


def make_account(service: Service, role: str, name: str) -> Caller:
    caller = Caller(fresh_id("account"), name, role)  # type: ignore[arg-type]
    row = {"id": caller.id, "name": name, "role": role, "state": "active", "created_at": 0}
    with service.store.write() as connection:
        connection.execute(insert(schema.accounts).values(row))
    return caller


def outcome(call: Any) -> Any:
    try:
        return call()
    except ProblemError as error:
        return error.status


def test_whatever_comes_first_the_persons_choice_stands_and_nobody_is_two(shared):
    custodian = make_account(shared, "custodian", "custodian")
    dataset = make_dataset(shared, custodian)
    life, people = shared.ledger.people("clinic"), [f"person {number}" for number in range(4)]
    life.bring(people, "open")
    life.epoch()
    twice = [make_account(shared, "person", f"{person}, {number}") for person in people for number in range(2)]

    def become(number: int) -> Any:
        return outcome(lambda: linked(shared, twice[number], dataset, people[number // 2]))

    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(become, range(8)))
    # Of two accounts that are the same person, exactly one is.
    assert [sorted(map(str, said[pair : pair + 2])) for pair in range(0, 8, 2)] == [["409", "None"]] * 4
    mine = [account for account, status in zip(twice, said, strict=True) if status is None]

    def bring() -> Any:
        return bringing.bring(shared, custodian.id, "clinic", [(person, "open") for person in people])

    calls = [bring, bring]
    calls += [lambda a=account: choosing.grant(shared, a.id, "clinic", tier="strict", epsilon=None) for account in mine[:2]]
    calls += [lambda a=account: choosing.withdraw(shared, a.id, "clinic") for account in mine[2:]]
    calls += [bring, bring]
    with ThreadPoolExecutor(8) as pool:
        assert not [status for status in pool.map(outcome, calls) if isinstance(status, int)]
    bring()
    life.epoch()
    assert [life.receipt(person).tier for person in people[:2]] == ["strict", "strict"]
    assert [life.receipt(person).withdrawn for person in people[2:]] == [True, True]
    shared.ledger.verify("clinic")

    def keep(number: int) -> int:
        policy = DevicePolicy.of({"adnet": {"epsilon": f"0.{number + 1}", "attributes": {"age": "0.1"}}})
        return int(policies.keep(shared, mine[0].id, "clinic", policy)["version"])

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(keep, range(6))) == [1, 2, 3, 4, 5, 6]
