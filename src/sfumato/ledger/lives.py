"""What `sfumato.ledger.life.Life` does, in the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from sfumato.errors import InputError, LedgerError
from sfumato.ledger import bringing, choices, clock, epochs, menus, persons, receipts, schema, states
from sfumato.ledger.choices import Choices
from sfumato.ledger.life_records import Epoch, Pending, Receipt
from sfumato.ledger.partaking import heads_charged, taking_part
from sfumato.ledger.reserve import lock, unknown
from sfumato.ledger.standing import Menu, Standing
from sfumato.ledger.state import FAR, GONE
from sfumato.privacy.exact import Exact
from sfumato.privacy.units import Epsilon

if TYPE_CHECKING:
    from sfumato.ledger.database import Store


def _listed(people: Any) -> Sequence[Any]:
    """Plain identifiers from a list, an array or a column."""
    for method in ("to_pylist", "tolist"):
        if hasattr(people, method):
            return list(getattr(people, method)())
    return list(people)


def _shown(done: Epoch, menu: Menu) -> Epoch:
    """Of a private roster only that an epoch was closed: how many people did what is not told."""
    return Epoch(done.number, done.at, 0, 0, 0, 0, 0, 0, 0) if menu.private else done


class Lives:
    """See `sfumato.ledger.life.Life`, which says what each of these does."""

    def __init__(self, store: Store, dataset: str, after: Callable[[str], None] | None = None) -> None:
        self._store = store
        self._dataset = dataset
        self._after = after
        self._known: Menu | None = None  # a menu never changes
        with store.read() as connection:
            self._find(connection)

    def join(self, person: Any, grant: str | Epsilon) -> None:
        self._choose(person, grant, newcomers=True)

    def change(self, person: Any, grant: str | Epsilon) -> None:
        self._choose(person, grant, newcomers=False)

    def withdraw(self, person: Any) -> None:
        self._choose(person, None, newcomers=False, leaves=True)

    def bring(self, people: Sequence[Any] | NDArray[Any], grants: Any, *, missing: str = "stay") -> Pending:
        listed = _listed(people)
        if missing not in ("stay", "withdraw"):
            raise InputError(f"missing is 'stay' or 'withdraw', got {missing!r}")
        with self._writing() as connection:
            dataset_id = lock(connection, self._dataset)
            key = persons.key_of(connection, self._store.key, make=True, dataset_id=dataset_id)
            hashed = persons.hashes(key, self._dataset, listed)
            bringing.refuse_twice(hashed)
            menu = menus.load(connection, dataset_id)
            if menu is None:
                return bringing.bring_fixed(connection, dataset_id, self._dataset, hashed, grants, clock.now())
            asked = bringing.bring(connection, dataset_id, menu, hashed, grants, missing=missing)
            return Pending() if menu.private else asked

    def pending(self) -> Pending:
        with self._living() as (connection, dataset_id, menu):
            waiting = choices.read(connection, dataset_id)[0].last_of_each()
            found = bringing.by_kind(states.load(connection, dataset_id), waiting)
        return Pending() if menu.private else found

    def epoch(self, at: datetime | None = None) -> Epoch:
        written = clock.now() if at is None else clock.written(at)
        with self._writing() as connection:
            dataset_id = lock(connection, self._dataset)
            menu = self._menu(connection, dataset_id)
            done = _shown(epochs.close(connection, dataset_id, written), menu)
        self._store.tidy(schema.states.name)
        return done

    def bind(self) -> Epoch | None:
        with self._living() as (connection, dataset_id, menu):
            if not menu.private and not choices.lowering(connection, dataset_id):
                return None
        with self._writing() as connection:
            bound = epochs.bind(connection, lock(connection, self._dataset), clock.now())
            return None if bound is None else _shown(bound, menu)

    def standing(self) -> Standing:
        with self._living() as (connection, dataset_id, menu):
            now = states.load(connection, dataset_id).entered(clock.period_of(menu.period, clock.now()))
            return Standing.of(now, menu)

    def menu(self) -> Menu | None:
        if self._known is None:
            with self._store.read() as connection:
                self._known = menus.load(connection, self._find(connection))
        return self._known

    def knows(self, person: Any) -> bool:
        with self._living() as (connection, dataset_id, _):
            hashed, place = self._place(connection, dataset_id, person)
            return place >= 0 or self._waiting(connection, dataset_id, hashed, place) is not None

    def choose(self, person: Any, grant: str | Epsilon | None) -> Receipt | None:
        with self._writing() as connection:
            dataset_id = lock(connection, self._dataset)
            menu = self._menu(connection, dataset_id)
            if isinstance(grant, str) and grant not in (menu.names or ()):
                tiers = ", ".join(repr(name) for name in menu.names or ()) or "amounts only"
                raise InputError(f"that is no tier of the menu ({tiers})")
            key = persons.key_of(connection, self._store.key, make=True, dataset_id=dataset_id)
            hashed = persons.hashes(key, self._dataset, [person])
            place = int(persons.places(connection, dataset_id, hashed)[0])
            waiting = self._waiting(connection, dataset_id, hashed, place)
            if grant is None and place < 0 and waiting is None:
                return None
            waiting = self._say(connection, dataset_id, (hashed, place, waiting), self._amounts(menu, grant))
            if place < 0 and waiting is None:
                return None
            return self._told(connection, dataset_id, menu, person, place, waiting, receipts.Part(0, None))

    def summary(self, person: Any) -> Receipt | None:
        return self._receipt(person, receipts.Part(0, None))

    def receipt(self, person: Any, *, limit: int | None, before: int | None) -> Receipt:
        found = self._receipt(person, receipts.Part.of(limit, before))
        if found is None:
            raise self._stranger()
        return found

    def _receipt(self, person: Any, part: receipts.Part) -> Receipt | None:
        with self._living() as (connection, dataset_id, menu):
            hashed, place = self._place(connection, dataset_id, person)
            waiting = self._waiting(connection, dataset_id, hashed, place)
            if place < 0 and waiting is None:
                return None
            return self._told(connection, dataset_id, menu, person, place, waiting, part)

    def _told(
        self,
        connection: Connection,
        dataset_id: int,
        menu: Menu,
        person: Any,
        place: int,
        waiting: Choices | None,
        part: receipts.Part,
    ) -> Receipt:
        who = receipts.Who(self._dataset, persons.spelt(person), place, waiting)
        return receipts.receipt(connection, dataset_id, menu, who, part)

    def taking_part(self, release_id: int, people: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
        listed = _listed(people)
        with self._living() as (connection, dataset_id, menu):
            key = persons.key_of(connection, self._store.key, make=False)
            places = persons.places(connection, dataset_id, persons.hashes(key, self._dataset, listed))
            return taking_part(connection, dataset_id, menu, release_id, places)

    def heads_charged(self, release_id: int) -> Exact[NDArray[np.int64]]:
        with self._living() as (_, _, menu):
            if not menu.private:
                raise InputError(f"the people of {self._dataset!r} are public: standing() tells their head counts")
        return Exact.reading(lambda: self._heads(release_id), rows_per_person=1)  # a person is one head in one tier

    def _heads(self, release_id: int) -> NDArray[np.int64]:
        with self._living() as (connection, dataset_id, menu):
            return heads_charged(connection, dataset_id, menu, release_id)

    def _choose(self, person: Any, grant: str | Epsilon | None, *, newcomers: bool, leaves: bool = False) -> None:
        with self._writing() as connection:
            dataset_id = lock(connection, self._dataset)
            asked = self._amounts(self._menu(connection, dataset_id), None if leaves else grant, leaves=leaves)
            hashed, place = self._place(connection, dataset_id, person, make=newcomers)
            waiting = self._waiting(connection, dataset_id, hashed, place)
            if place < 0 and not newcomers and waiting is None:
                raise self._stranger()
            self._say(connection, dataset_id, (hashed, place, waiting), asked, back=newcomers)

    def _amounts(self, menu: Menu, grant: str | Epsilon | None, *, leaves: bool = True) -> tuple[int, int, int]:
        """Grant, tier and cap of a choice; an empty grant takes somebody out only where it is said that it `leaves`."""
        if grant is None and leaves:
            return 0, GONE, 0
        amount, tier, cap = (int(column[0]) for column in menus.granted(menu, grant, 1))
        return amount, tier, cap

    def _say(
        self,
        connection: Connection,
        dataset_id: int,
        who: tuple[Any, int, Choices | None],
        asked: tuple[int, int, int],
        *,
        back: bool = True,
    ) -> Choices | None:
        """Write down what somebody chose, if it is not what they have; what waits for them after it."""
        hashed, place, waiting = who
        now = (0, GONE, FAR)
        if place >= 0:
            grants, tiers, caps = states.at_place(connection, dataset_id, place, ("grants", "tiers", "caps"))
            now = (grants, tiers, caps)
        if now[1] == GONE and place >= 0 and not back and asked[1] != GONE:
            raise InputError(
                f"this person withdrew from {self._dataset!r}; they can join again, with what was spent on them before"
            )
        due = now
        if waiting is not None:
            due = (int(waiting.grants[0]), int(waiting.tiers[0]), int(waiting.caps[0]))
        if due == asked:  # said twice: another line would say nothing new
            return waiting
        one = [np.array([value], dtype=np.int64) for value in asked]
        hashed["place"] = max(place, 0)
        chosen = Choices(hashed, np.array([place >= 0]), *one)
        less = choices.lowers(chosen, *(np.array([value], dtype=np.int64) for value in now))
        choices.write(connection, dataset_id, chosen, less)
        return None if place < 0 and asked[1] == GONE else chosen

    def _place(self, connection: Connection, dataset_id: int, person: Any, *, make: bool = False) -> tuple[Any, int]:
        key = persons.key_of(connection, self._store.key, make=make, dataset_id=dataset_id)
        hashed = persons.hashes(key, self._dataset, [person])
        return hashed, int(persons.places(connection, dataset_id, hashed)[0])

    def _waiting(self, connection: Connection, dataset_id: int, hashed: Any, place: int) -> Choices | None:
        key = place if place >= 0 else (int(hashed["high"][0]) >> 56) - 256
        waiting = choices.read(connection, dataset_id, only=key)[0]
        if place >= 0:
            mine = waiting.known & (waiting.places == place)
        else:
            same = (waiting.people["high"] == hashed["high"]) & (waiting.people["low"] == hashed["low"])
            mine = ~waiting.known & same
        found = np.flatnonzero(mine)
        last = waiting[found[-1:]]
        return None if not len(last) or (place < 0 and last.tiers[0] == GONE) else last

    def _stranger(self) -> InputError:
        return InputError(
            f"nobody of that name is in {self._dataset!r}; check the spelling ('07' is not '7'), or join them first"
        )

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._store.write() as connection:
            yield connection
        if self._after is not None:
            self._after(self._dataset)

    @contextmanager
    def _living(self) -> Iterator[tuple[Connection, int, Menu]]:
        with self._store.read() as connection:
            dataset_id = self._find(connection)
            yield connection, dataset_id, self._menu(connection, dataset_id)

    def _find(self, connection: Connection) -> int:
        query = select(schema.datasets.c.id).where(schema.datasets.c.name == self._dataset)
        found = connection.execute(query).scalar()
        if found is None:
            raise unknown(connection, self._dataset)
        return int(found)

    def _menu(self, connection: Connection, dataset_id: int) -> Menu:
        menu = self._known or menus.load(connection, dataset_id)
        if menu is None:
            raise LedgerError(
                f"{self._dataset!r} has no persons: it was registered without people, or with fixed head counts. "
                "Register it with living=True, or bring the people of its roster: bring(people, tiers)"
            )
        self._known = menu
        return menu
