"""What a living roster survives: stray SQL, a lost key, races, kill -9; and what a copy of its file tells."""

from __future__ import annotations

import os
import random
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select, text, update

from sfumato.errors import LedgerError
from sfumato.ledger import Ledger, persons, schema, triggers
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge

MENU = PersonBudgets.from_tiers({"open": (1, 0), "strict": ("0.1", 0)})
E = 10**9


def opened(where: str, key: Path) -> Ledger:
    ledger = Ledger.open(where, key=key)
    ledger.register("clinic", people=MENU, living=True)
    return ledger


@pytest.fixture
def ledger(where: str, tmp_path: Path) -> Ledger:
    """Two epochs, a release, and a choice that waits."""
    made = opened(where, tmp_path / "people.key")
    life = made.people("clinic")
    life.bring(["ann", "ben", "cyd"], ["open", "strict", "open"])
    life.epoch()
    now = life.standing()
    made.reserve("clinic", Charge.of_people([5, 7]), request="a", standing=now)
    made.reserve("clinic", Charge.of("0.01"), request="b")
    life.withdraw("cyd")
    life.epoch()
    life.change("ann", "strict")
    return made


STRAY = [
    "DELETE FROM ledger_lives",
    "DELETE FROM ledger_persons",
    "DELETE FROM ledger_states",
    "DELETE FROM ledger_choices",
    "DELETE FROM ledger_changes",
    "DELETE FROM ledger_change_chunks",
    "DELETE FROM ledger_life_charges",
    "DELETE FROM ledger_charge_chunks",
    "UPDATE ledger_lives SET private = 1",
    "UPDATE ledger_persons SET members = substr(members, 1, 19)",
    "UPDATE ledger_persons SET bucket = bucket + 1",
    "UPDATE ledger_states SET vector = vector",
    "UPDATE ledger_states SET turn = turn + 1, vector = substr(vector, 1, 8)",
    "UPDATE ledger_states SET turn = turn + 1, part = 'spend' WHERE part = 'spent'",
    "UPDATE ledger_choices SET lowers = 0",
    "UPDATE ledger_changes SET applied = 99",
    "UPDATE ledger_changes SET epoch = 0",
    "UPDATE ledger_change_chunks SET chunk = 7",
    "UPDATE ledger_life_charges SET step = 0",
    "UPDATE ledger_charge_chunks SET entries = entries",
    "INSERT INTO ledger_charge_chunks VALUES (4711, 0, '')",
]


def _run(ledger: Ledger, statement: str) -> None:
    with ledger._store.write() as connection:
        connection.execute(text(statement))
    raise AssertionError(f"accepted: {statement}")


def test_stray_sql_cannot_make_the_ledger_forget_people(ledger: Ledger) -> None:
    life = ledger.people("clinic")
    before = [life.receipt(name).to_dict() for name in ("ann", "ben", "cyd")]
    for statement in STRAY:
        with pytest.raises(LedgerError, match="refused a change"):
            _run(ledger, statement)
    assert [life.receipt(name).to_dict() for name in ("ann", "ben", "cyd")] == before
    ledger.verify("clinic")


def test_a_vector_changed_from_outside_stops_everything(ledger: Ledger) -> None:
    forged = np.zeros(3, dtype="<i8").tobytes()
    with ledger._store.write() as connection:
        change = text("UPDATE ledger_states SET vector = :v, turn = turn + 1 WHERE part = 'spent'")
        connection.execute(change, {"v": forged})
    life = ledger.people("clinic")
    for act in (life.standing, life.epoch, life.bind, lambda: life.receipt("ann"), lambda: ledger.verify("clinic")):
        with pytest.raises(LedgerError, match="changed from outside"):
            act()


def test_verify_notices_two_people_whose_histories_were_swapped(where: str, tmp_path: Path) -> None:
    ledger = opened(where, tmp_path / "people.key")
    life = ledger.people("clinic")
    for early in (True, False):  # two epochs with newcomers
        life.bring([f"{early} {number}" for number in range(40)], "open")
        life.epoch()
    ledger.verify("clinic")
    with ledger._store.write() as connection:
        rows = connection.execute(select(schema.persons.c.bucket, schema.persons.c.members)).all()
        members = {int(bucket): np.frombuffer(bytes(raw), dtype=persons.MEMBER).copy() for bucket, raw in rows}
        first, second = sorted(members)[0], sorted(members)[-1]
        places = int(members[first]["place"][0]), int(members[second]["place"][0])
        members[first]["place"][0], members[second]["place"][0] = reversed(places)
        triggers.remove(connection)
        for bucket in (first, second):
            here = schema.persons.c.bucket == bucket
            connection.execute(update(schema.persons).where(here).values(members=members[bucket].tobytes()))
        triggers.install(connection)
    with pytest.raises(LedgerError, match=r"not the sum of its charges \(people\)"):
        ledger.verify("clinic")


def test_verify_notices_a_history_that_leads_elsewhere(ledger: Ledger) -> None:
    with ledger._store.write() as connection:
        connection.execute(
            text("DROP TRIGGER ledger_life_charges_change" + ("" if ledger._store.is_sqlite else " ON ledger_life_charges"))
        )
        connection.execute(text("UPDATE ledger_life_charges SET step = step - 1 WHERE form = 'grant'"))
    with pytest.raises(LedgerError, match=r"not the sum of its charges \(people\)"):
        ledger.verify("clinic")


def test_the_key_is_made_once_for_its_owner_only_and_never_kept_inside(tmp_path: Path) -> None:
    where = tmp_path / "clinic.ledger"
    ledger = Ledger.open(where)
    ledger.register("clinic", people=MENU, living=True)
    key = tmp_path / "clinic.ledger.key"
    assert not ledger.people("clinic").knows("ann")
    assert not key.exists()
    ledger.people("clinic").join("annette-1234", "open")
    ledger.people("clinic").epoch()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    written = key.read_text().strip()
    Ledger.open(where).people("clinic").join("ben", "open")
    assert key.read_text().strip() == written
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path != key)
    for secret in (b"annette", bytes.fromhex(written), written.encode()):
        assert secret not in kept


def test_without_its_key_a_ledger_says_what_is_lost(ledger: Ledger, tmp_path: Path) -> None:
    key = tmp_path / "people.key"
    right = key.read_bytes()
    key.unlink()
    life = ledger.people("clinic")
    for act in (lambda: life.receipt("ann"), lambda: life.join("dan", "open"), lambda: life.bring(["dan"], "open")):
        with pytest.raises(LedgerError, match=r"no receipt, change or withdrawal is possible.*a new key cannot replace it"):
            act()
    assert not key.exists()
    assert len(life.standing().grants) == 2, "caps hold without it"
    key.write_text("00" * 32)
    with pytest.raises(LedgerError, match="not the one with which the people of this ledger were hashed"):
        life.receipt("ann")
    key.write_text("secret")
    with pytest.raises(LedgerError, match="one line of 64 hexadecimal digits"):
        life.receipt("ann")
    key.write_bytes(right)
    assert life.receipt("ann").spent == 7 + 10**7


@pytest.mark.postgres
def test_a_server_keeps_no_key(postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as server:
        server.execute("CREATE SCHEMA keyless")
    where = f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-csearch_path%3Dkeyless"
    ledger = Ledger.open(where)
    ledger.register("clinic", people=MENU, living=True)
    with pytest.raises(LedgerError, match=r"needs a key file.*SFUMATO_PEOPLE_KEY"):
        ledger.people("clinic").join("ann", "open")
    monkeypatch.setenv("SFUMATO_PEOPLE_KEY", str(tmp_path / "k"))
    Ledger.open(where).people("clinic").join("ann", "open")
    assert (tmp_path / "k").exists()


def test_the_same_person_in_two_datasets_cannot_be_joined(ledger: Ledger) -> None:
    ledger.register("ward", people=MENU, living=True)
    ledger.people("ward").bring(["ann", "ben", "cyd"], "open")
    ledger.people("ward").epoch()
    with ledger._store.read() as connection:
        rows = connection.execute(text("SELECT dataset_id, members FROM ledger_persons")).all()
    seen = [{bytes(m)[at : at + 16] for d, m in rows if d == n for at in range(0, len(m), 20)} for n in (1, 2)]
    assert (len(seen[0]), len(seen[1]), seen[0] & seen[1]) == (3, 3, set())


def test_releases_epochs_and_choices_at_once(where: str, tmp_path: Path, race: Callable[..., list[int]]) -> None:
    key = tmp_path / "people.key"
    first = opened(where, key).people("clinic")
    first.bring([f"p{n}" for n in range(40)], ["open", "strict"] * 20)
    first.epoch()

    def live(number: int) -> int:
        ledger = opened(where, key)
        life, draw, charged = ledger.people("clinic"), random.Random(number), 0
        for step in range(6):
            who = f"p{draw.randrange(50)}"
            try:
                if step % 3 == 0:
                    life.join(who, draw.choice(["open", "strict", "0.5"]))
                elif step % 3 == 1 and number % 3 == 0:
                    life.epoch()
                else:
                    life.bind()
                    now = life.standing()
                    asked = Charge.of_people(np.minimum(now.left, 10**6))
                    ledger.reserve("clinic", asked, request=f"{number} {step}", standing=now)
                    charged += 1
            except LedgerError as error:
                if "changed since this was priced" not in str(error):
                    return 90
        return charged

    counts = race(live, 8)
    assert all(0 <= count <= 6 for count in counts)
    ledger = opened(where, key)
    ledger.verify("clinic")
    assert len(ledger.history("clinic")) == sum(counts)
    life = ledger.people("clinic")
    life.epoch()
    everybody = [life.receipt(f"p{n}") for n in range(50) if life.knows(f"p{n}")]
    standing = life.standing()
    assert sum(person.spent for person in everybody) == int((standing.spent * standing.heads).sum())


def test_kill_while_people_change(swift: Path) -> None:
    """Each worker closes epochs of joins and charges; after a kill, all of it happened or none."""
    where, key = str(swift / "clinic.ledger"), swift / "people.key"
    opened(where, key)
    for number in range(12):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            ledger, step = opened(where, key), 0
            life = ledger.people("clinic")
            while True:
                life.bring([f"{number}-{step}-{n}" for n in range(30)], "open")
                life.epoch()
                now = life.standing()
                charge = Charge.of_people(np.minimum(now.left, 1000 + np.arange(len(now.left))))
                ledger.reserve("clinic", charge, request=f"{number} {step}", standing=now)
                os.write(writer, b".")
                step += 1
        os.read(reader, 1)  # one round is done; the kill falls anywhere in those that follow
        time.sleep(random.uniform(0, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)
        ledger = opened(where, key)
        ledger.verify("clinic")
        heads = int(ledger.people("clinic").standing().heads.sum())
        waiting = ledger.people("clinic").pending().join
        assert heads % 30 == 0
        assert waiting % 30 == 0
        assert len(ledger.history("clinic")) > number


def test_registering_again_while_others_charge_sees_one_state(
    where: str, tmp_path: Path, race: Callable[..., list[int]]
) -> None:
    key = tmp_path / "people.key"
    first = opened(where, key).people("clinic")
    first.bring([f"p{n}" for n in range(40)], ["open", "strict"] * 20)
    first.epoch()

    def work(number: int) -> int:
        ledger = opened(where, key)
        for step in range(12):
            if number % 2:
                opened(where, key)  # the same numbers again
            else:
                ledger.reserve("clinic", Charge.of("0.0001"), request=f"{number} {step}")
        return 0

    assert race(work, 6) == [0] * 6
    opened(where, key).verify("clinic")
