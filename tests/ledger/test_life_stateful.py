"""A long life beside a plain model: whatever people choose and whatever is released or crashes, the ledger says the same.

After every step, for every person: the lines of their receipt are what the charges said, they add up to the total, and no
charge passed what they granted at the time, for life and in the period.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import event

from sfumato.errors import BudgetError, InputError, LedgerError
from sfumato.ledger import Ledger, clock
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge
from support.lives import FAR, Lives
from support.memory import memory

MENU = {"strict": 6, "middle": 15, "open": 40}
TIERS = list(MENU)
PER_PERIOD = {"middle": 5, "open": 12}
NAMES = ["ana", "ben", "cyd", "dan", "eve", "7", "08", "8"]
names = st.sampled_from([*NAMES, 7, 8])  # the number and its text are one person
grants = st.sampled_from([*TIERS, *TIERS, 3, 9, 15, 22])
crashes = st.none() | st.integers(0, 25)


class CrashError(Exception):
    """The process dies here, as far as the ledger can tell."""


def epsilon(grant: str | int) -> str:
    """A tier's name, or nano-ε written as ε."""
    return grant if isinstance(grant, str) else f"0.{grant:09d}"


class Living(RuleBasedStateMachine):
    """One ledger, one model."""

    private = False

    def __init__(self, place: Callable[[Path], str]) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=memory())
        self.key = Path(self.folder.name) / "people.key"
        self.where = place(Path(self.folder.name))
        self.model = Lives(MENU, PER_PERIOD)
        self.states: dict[int, str] = {}
        self.asked = self.month = 0
        self.moved = True  # whether anything but a waiting choice may have changed since the receipts were looked at
        self.real_now = clock.now

    def teardown(self) -> None:
        clock.now = self.real_now
        self.folder.cleanup()

    @initialize()
    def begin(self) -> None:
        self.time_passes(0)
        self.ledger = Ledger.open(self.where, key=self.key)
        menu = PersonBudgets.from_tiers({name: (epsilon(nano), 1) for name, nano in MENU.items()})
        per_period = {name: epsilon(nano) for name, nano in PER_PERIOD.items()}
        self.ledger.register("clinic", people=menu, living=True, period="month", per_period=per_period, private=self.private)
        self.levels = menu.levels.tolist()

    @rule(months=st.sampled_from([1, 1, 7, -1]))
    def time_passes(self, months: int) -> None:
        self.moved = True
        self.month = max(self.month + months, 0)
        self.model.clock = f"{2030 + self.month // 12}-{1 + self.month % 12:02d}"
        clock.now = lambda stamp=f"{self.model.clock}-15T12:00Z": stamp

    @property
    def life(self) -> Any:
        return self.ledger.people("clinic")

    def did(self, work: Callable[[], Any], crash: int | None) -> bool:
        """Do something, with the process dying before statement number `crash`; whether it was done."""
        if crash is None:
            work()
            return True
        engine, left = self.ledger._store.engine, crash

        def count(*_: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise CrashError

        event.listen(engine, "before_cursor_execute", count)
        crashed = False
        try:
            work()
        except CrashError:
            crashed = True
        finally:
            event.remove(engine, "before_cursor_execute", count)
        if crashed:
            self.ledger = Ledger.open(self.where, create=False, key=self.key)
        return not crashed

    @rule(name=names, grant=grants, verb=st.sampled_from(["join", "change"]), crash=crashes)
    def choose(self, name: Any, grant: str | int, verb: str, crash: int | None) -> None:
        who = str(name)
        if self.private and not isinstance(grant, str):
            grant = "strict"
        gone = who in self.model.people and not self.model.people[who].part
        if verb == "change" and (gone or not self.model.known(who)):
            with pytest.raises(InputError):
                self.life.change(name, epsilon(grant))
        elif self.did(lambda: getattr(self.life, verb)(name, epsilon(grant)), crash):
            self.model.choose(who, grant)

    @rule(name=names, crash=crashes)
    def withdraw(self, name: Any, crash: int | None) -> None:
        if not self.model.known(str(name)):
            with pytest.raises(InputError):
                self.life.withdraw(name)
        elif self.did(lambda: self.life.withdraw(name), crash):
            self.model.withdraw(str(name))

    @rule(first=names, second=names)
    def swap(self, first: Any, second: Any) -> None:
        one, two = str(first), str(second)
        if one == two or not (self.model.is_part(one) and self.model.is_part(two)):
            return
        if self.private and not all(self.model.people[n].grant in MENU.values() for n in (one, two)):
            return
        wanted = [self.model.people[n].tier or self.model.people[n].grant for n in (two, one)]
        for name, grant in zip((one, two), wanted, strict=True):
            self.life.change(name, epsilon(grant))
            self.model.choose(name, grant)

    @rule(chosen=st.dictionaries(names, grants, max_size=6), missing=st.sampled_from(["stay", "withdraw"]), crash=crashes)
    def bring(self, chosen: dict[Any, str | int], missing: str, crash: int | None) -> None:
        brought = {str(n): g for n, g in chosen.items() if not self.private or isinstance(g, str)}
        people, wanted = list(brought), [epsilon(g) for g in brought.values()]
        if self.did(lambda: self.life.bring(people, wanted, missing=missing), crash):
            self.model.bring(brought, withdraw_missing=missing == "withdraw")

    @rule(crash=crashes)
    def epoch(self, crash: int | None) -> None:
        self.moved = True
        if self.did(lambda: self.life.epoch(), crash):
            self.model.close_epoch()

    @rule(crash=crashes)
    def bind(self, crash: int | None) -> None:
        self.moved = True
        if self.did(lambda: self.life.bind(), crash):
            self.model.bind()

    @rule()
    def reopen(self) -> None:
        self.ledger = Ledger.open(self.where, create=False, key=self.key)

    @rule(
        shape=st.sampled_from(["step", "own", "all", "some", "over", "unbound", "stale"]),
        size=st.integers(1, 9),
        draw=st.randoms(use_true_random=False),
        crash=crashes,
    )
    def reserve(self, shape: str, size: int, draw: Any, crash: int | None) -> None:
        self.moved = True
        if shape != "unbound" and shape != "all":
            self.life.bind()
            self.model.bind()
        standing = self.life.standing()
        groups, left = len(standing.grants), np.asarray(standing.left)
        self.asked += 1
        if shape == "all":
            self.reserve_for_all(size, crash)
            return
        if groups == 0:
            return
        each = {
            "step": lambda: np.minimum(standing.grants, size),
            "some": lambda: np.array([int(n) if draw.random() < 0.5 else 0 for n in left]),
            "over": lambda: left + (np.arange(groups) == draw.randrange(groups)),
        }.get(shape, lambda: np.array([draw.randint(0, int(n)) for n in left]))()
        if shape == "stale":
            self.life.epoch()
            self.model.close_epoch()
        reserved: list[Any] = []

        def ask() -> None:
            charge, request = Charge.of_people(each), f"release {self.asked}"
            reserved.append(self.ledger.reserve("clinic", charge, request=request, standing=standing))

        try:
            done = self.did(ask, crash)
        except BudgetError:
            assert (each > left).any(), "a charge that everybody grants was refused"
            return
        except LedgerError:
            assert shape == "stale" or (shape == "unbound" and self.model.waiting), "refused as stale, but nothing changed"
            return
        if done:
            assert shape != "stale", "a charge went through that was priced before the epoch"
            assert not any(map(self.model.takes_away, self.model.waiting)), "charged although a lowered grant was waiting"
            assert (each <= left).all(), "a charge went through that somebody does not grant"
            self.charged(reserved[0].id, standing, each)

    def reserve_for_all(self, size: int, crash: int | None) -> None:
        """One ε for everybody; what was lowered binds by itself."""
        reserved: list[Any] = []

        def ask() -> None:
            reserved.append(self.ledger.reserve("clinic", Charge(size), request=f"release {self.asked}"))

        try:
            if not self.did(ask, crash):
                return
        except BudgetError:
            self.model.bind()  # what is refused leaves no trace, so the ledger binds now
            self.life.bind()
            assert any(self.model.left(n) < size for n in self.model.people if self.model.is_part(n))
            return
        self.model.bind()
        everybody = {n: size for n in self.model.people if self.model.is_part(n)}
        part = dict(zip(NAMES, self.life.taking_part(reserved[0].id, NAMES).tolist(), strict=True))
        assert {n for n in part if part[n] >= 0} == set(everybody)
        self.states[reserved[0].id] = "reserved"
        self.model.charge(reserved[0].id, everybody)

    def charged(self, release: int, standing: Any, each: Any) -> None:
        self.states[release] = "reserved"
        group = self.life.taking_part(release, NAMES)
        amounts: dict[str, int] = {}
        for name, place in zip(NAMES, group.tolist(), strict=True):
            if place >= 0:
                assert self.model.is_part(name), "somebody who takes no part was charged"
                theirs = (int(v[place]) for v in (standing.grants, standing.spent, standing.left))
                assert (standing.tiers[place], *theirs) == self.model.key(name), "charged in a cohort that is not theirs"
                amounts[name] = int(each[place])
        charged = np.bincount(group[group >= 0], minlength=len(each))
        assert charged.tolist() == np.where(each > 0, standing.heads, 0).tolist(), "not everybody of a cohort was charged"
        self.model.charge(release, amounts)

    @rule(finish=st.sampled_from(["committed", "failed"]))
    def finish(self, finish: str) -> None:
        for release, state in self.states.items():
            if state == "reserved":
                if finish == "committed":
                    self.ledger.commit(release, {"made": release})
                else:
                    self.ledger.fail(release)
                self.states[release] = finish
                self.moved = True
                return

    @invariant()
    def the_standing_is_the_models(self) -> None:
        standing = self.life.standing()
        said: Counter[Any] = Counter()
        columns = (standing.grants, standing.spent, standing.left, standing.heads)
        for tier, grant, spent, left, heads in zip(standing.tiers, *(c.tolist() for c in columns), strict=True):
            said[(tier, grant, spent, left)] += heads
        assert said == self.model.standing()
        assert standing.epoch == self.model.epoch
        assert self.life.pending().to_dict() == self.model.pending()

    @invariant()
    def every_receipt_is_the_models(self) -> None:
        if not self.moved:
            return
        self.moved = False
        for name in NAMES:
            if not self.model.known(name):
                with pytest.raises(InputError):
                    self.life.receipt(name)
                continue
            receipt = self.life.receipt(name)
            if name not in self.model.people:
                assert (receipt.spent, receipt.left, receipt.lines) == (0, 0, ())
                continue
            person = self.model.people[name]
            lines = [(x.release, x.tier, x.grant, x.epoch, x.charged) for x in receipt.lines]
            assert lines == [(x.release, x.tier, x.grant, x.epoch, x.charged) for x in person.lines]
            assert receipt.spent == person.spent == sum(x.charged for x in receipt.lines)
            assert [x.state for x in receipt.lines] == [self.states[x.release] for x in person.lines]
            assert (receipt.withdrawn, receipt.left) == (not person.part, self.model.left(name))
            assert receipt.grant == (person.grant if person.part else 0)
            if person.part:
                assert receipt.per_period == (None if person.cap == FAR else person.cap)
                assert receipt.spent_in_period == self.model.in_period(name)

    @invariant()
    def it_adds_up(self) -> None:
        self.ledger.verify("clinic")
        history = self.ledger.history("clinic")
        assert {r.id: r.state for r in history} == self.states


class LivingPrivately(Living):
    """The same with a private roster: charges by tier, who cannot pay takes no part, and nothing speaks of heads."""

    private = True

    def reserve_for_all(self, size: int, crash: int | None) -> None:
        """There is no such charge: everybody who has it pays it."""
        self.pay(np.full(len(MENU), size), Charge(size), crash)

    @rule(each=st.lists(st.integers(0, 9), min_size=3, max_size=3), crash=crashes)
    def reserve(self, each: list[int], crash: int | None) -> None:
        self.pay(np.array(each), Charge.of_people(each), crash)

    @rule(size=st.integers(1, 9), crash=crashes)
    def reserve_one(self, size: int, crash: int | None) -> None:
        self.reserve_for_all(size, crash)

    def pay(self, each: Any, charge: Charge, crash: int | None) -> None:
        self.moved = True
        standing, reserved = self.life.standing(), []
        assert standing.tiers == tuple(sorted(MENU, key=MENU.__getitem__))
        self.asked += 1

        def ask() -> None:
            reserved.append(self.ledger.reserve("clinic", charge, request=f"release {self.asked}"))

        if not self.did(ask, crash):
            return
        self.model.bind()
        release = reserved[0].id
        self.states[release] = "reserved"
        group = dict(zip(NAMES, self.life.taking_part(release, NAMES).tolist(), strict=True))
        amounts = {}
        for name in NAMES:
            person = self.model.people.get(name)
            asked = int(each[standing.tiers.index(person.tier)]) if person and person.part and person.tier else 0
            pays = asked if asked and asked <= self.model.left(name) else 0
            assert group[name] == (standing.tiers.index(person.tier) if person and pays else -1)
            if pays:
                amounts[name] = pays
        self.model.charge(release, amounts)

    @invariant()
    def the_standing_is_the_models(self) -> None:
        standing = self.life.standing()
        assert standing.heads.sum() == 0
        assert standing.spent.sum() == 0
        assert self.life.pending().total == 0
        assert self.ledger.balance("clinic").people is None
        assert standing.left.tolist() == standing.grants.tolist() == sorted(MENU.values())


def _live(machine: type[Living], place: Callable[[Path], str], *, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        lambda: machine(place),
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@pytest.mark.parametrize("machine", [Living, LivingPrivately])
def test_a_long_life(machine: type[Living]) -> None:
    _live(machine, lambda folder: str(folder / "clinic.ledger"), examples=3, steps=40)


@pytest.mark.postgres
@pytest.mark.parametrize("machine", [Living, LivingPrivately])
def test_a_long_life_on_postgres(machine: type[Living], new_schema: Callable[[], str]) -> None:
    _live(machine, lambda _: new_schema(), examples=2, steps=30)
