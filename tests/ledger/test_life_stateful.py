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

from sfumato.errors import BudgetError, SfumatoError
from sfumato.ledger import Ledger
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge
from support.lives import Lives

MENU = {"strict": 6, "middle": 15, "open": 40}
PER_PERIOD = {"middle": 5, "open": 12}
NAMES: tuple[Any, ...] = ("ana", "ben", "cyd", "dan", "eve", 1, 2, "3")
names = st.sampled_from(NAMES)
grants = st.sampled_from(["strict", "middle", "open", 0, 3, 9, 15, 22])
crashes = st.none() | st.none() | st.integers(0, 25)


class CrashError(Exception):
    """The process dies here, as far as the ledger can tell."""


def epsilon(grant: str | int) -> str:
    """A tier's name, or nano-ε written as ε."""
    return grant if isinstance(grant, str) else f"0.{grant:09d}"


class Living(RuleBasedStateMachine):
    """One ledger, one model."""

    def __init__(self, place: Callable[[], str], clock: Any) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.key = Path(self.folder.name) / "people.key"
        self.where = place()
        self.clock = clock
        self.model = Lives(MENU, PER_PERIOD)
        self.states: dict[int, str] = {}
        self.asked = 0

    def teardown(self) -> None:
        self.folder.cleanup()

    @initialize()
    def begin(self) -> None:
        self.month = 0
        self.tell_time()
        self.ledger = Ledger.open(self.where, key=self.key)
        menu = PersonBudgets.from_tiers({name: (epsilon(nano), 1) for name, nano in MENU.items()})
        per_period = {name: epsilon(nano) for name, nano in PER_PERIOD.items()}
        self.ledger.register("clinic", people=menu, living=True, period="month", per_period=per_period)

    def tell_time(self) -> None:
        stamp = f"{2030 + self.month // 12}-{1 + self.month % 12:02d}"
        self.clock(f"{stamp}-15T12:00Z")
        self.model.enter(stamp)

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
        try:
            work()
            return True
        except CrashError:
            self.ledger = Ledger.open(self.where, create=False, key=self.key)
            return False
        finally:
            event.remove(engine, "before_cursor_execute", count)

    @rule(name=names, grant=grants, crash=crashes)
    def choose(self, name: Any, grant: str | int, crash: int | None) -> None:
        person = self.model.people.get(name)
        verb = self.life.change if person is not None and person.part else self.life.join
        if self.did(lambda: verb(name, epsilon(grant)), crash):
            self.model.choose(name, grant)

    @rule(name=names, crash=crashes)
    def withdraw(self, name: Any, crash: int | None) -> None:
        if not self.model.known(name) and name not in self.model.waiting:
            with pytest.raises(SfumatoError):
                self.life.withdraw(name)
            return
        if self.did(lambda: self.life.withdraw(name), crash):
            self.model.withdraw(name)

    @rule(first=names, second=names)
    def swap(self, first: Any, second: Any) -> None:
        there = self.model.people
        if first == second or not all(n in there and there[n].part for n in (first, second)):
            return
        one, two = ((p.tier or p.grant) for p in (there[first], there[second]))
        for name, grant in ((first, two), (second, one)):
            self.life.change(name, epsilon(grant))
            self.model.choose(name, grant)

    @rule(chosen=st.dictionaries(names, grants, max_size=6), missing=st.sampled_from(["stay", "withdraw"]), crash=crashes)
    def bring(self, chosen: dict[Any, str | int], missing: str, crash: int | None) -> None:
        tiers = {n: g for n, g in chosen.items() if isinstance(g, str)}
        if self.did(lambda: self.life.bring(list(tiers), list(tiers.values()), missing=missing), crash):
            for name, grant in tiers.items():
                self.model.choose(name, grant)
            if missing == "withdraw":
                for name, person in self.model.people.items():
                    if person.part and name not in tiers:
                        self.model.withdraw(name)

    @rule(crash=crashes)
    def epoch(self, crash: int | None) -> None:
        if self.did(lambda: self.life.epoch(), crash):
            self.model.close_epoch()

    @rule(crash=crashes)
    def bind(self, crash: int | None) -> None:
        if self.did(lambda: self.life.bind(), crash):
            self.model.bind()

    @rule(months=st.sampled_from([1, 1, 7, -1]))
    def time_passes(self, months: int) -> None:
        self.month = max(self.month + months, 0)
        self.tell_time()

    @rule()
    def reopen(self) -> None:
        self.ledger = Ledger.open(self.where, create=False, key=self.key)

    @rule(
        shape=st.sampled_from(["step", "own", "all", "some", "over"]),
        size=st.integers(1, 9),
        draw=st.randoms(use_true_random=False),
        crash=crashes,
    )
    def reserve(self, shape: str, size: int, draw: Any, crash: int | None) -> None:
        self.life.bind()
        self.model.bind()
        standing = self.life.standing()
        groups, left = len(standing.grants), np.asarray(standing.left)
        if groups == 0:
            return
        if shape == "step":
            each = np.minimum(standing.grants, size)
        elif shape == "own":
            each = np.array([draw.randint(0, int(n)) for n in left])
        elif shape == "some":
            each = np.array([int(n) if draw.random() < 0.5 else 0 for n in left])
        elif shape == "over":
            each = np.array(left)
            each[draw.randrange(groups)] += 1
        else:
            each = np.full(groups, size)
        charge = Charge(size) if shape == "all" else Charge.of_people(each)
        reserved = []
        self.asked += 1
        ask = f"release {self.asked}"
        try:
            done = self.did(lambda: reserved.append(self.ledger.reserve("clinic", charge, request=ask)), crash)
        except BudgetError:
            assert (each > left).any(), "a charge that everybody grants was refused"
            return
        if not done:
            return
        assert (each <= left).all(), "a charge went through that somebody does not grant"
        self._charged(reserved[0].id, standing, each)

    def _charged(self, release: int, standing: Any, each: Any) -> None:
        self.states[release] = "reserved"
        group = self.life.taking_part(release, list(NAMES))
        keys = list(zip(standing.tiers, standing.grants, standing.spent, standing.left, strict=True))
        amounts: dict[Any, int] = {}
        for name, place in zip(NAMES, group.tolist(), strict=True):
            person = self.model.people.get(name)
            if person is None or not person.part:
                assert place == -1, "somebody who takes no part was charged"
            elif place == -1:
                assert self.model.left(name) == 0 or 0 in each
                amounts[name] = 0
            else:
                tier, *numbers = keys[place]
                assert (tier, *map(int, numbers)) == self.model.key(name), "charged in a cohort that is not theirs"
                amounts[name] = int(each[place])
        self.model.charge(release, {n: nano for n, nano in amounts.items() if nano})

    @rule(finish=st.sampled_from(["commit", "fail"]))
    def finish(self, finish: str) -> None:
        for release, state in self.states.items():
            if state == "reserved":
                if finish == "commit":
                    self.ledger.commit(release, {"made": release})
                else:
                    self.ledger.fail(release)
                self.states[release] = finish
                return

    @invariant()
    def the_standing_is_the_models(self) -> None:
        standing = self.life.standing()
        said: Counter[Any] = Counter()
        for tier, grant, spent, left, heads in zip(
            standing.tiers, standing.grants, standing.spent, standing.left, standing.heads, strict=True
        ):
            said[(tier, int(grant), int(spent), int(left))] += int(heads)
        assert said == self.model.standing()
        assert standing.epoch == self.model.epoch

    @invariant()
    def every_receipt_is_the_models(self) -> None:
        for name, person in self.model.people.items():
            receipt = self.life.receipt(name)
            lines = [(line.release, line.granted, line.epoch, line.charged) for line in receipt.lines if line.charged]
            assert lines == [(line.release, line.granted, line.epoch, line.charged) for line in person.lines]
            assert receipt.spent == person.spent == sum(line.charged for line in receipt.lines)
            assert receipt.withdrawn == person.gone

    @invariant()
    def it_adds_up(self) -> None:
        self.ledger.verify("clinic")


def _live(place: Callable[[], str], clock: Any, *, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        lambda: Living(place, clock),
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
