"""Allowances: what one analyst may spend for one purpose, in all and in one day, whatever is granted and whoever races."""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sqlalchemy import text
from typer.testing import CliRunner

from sfumato.cli import app
from sfumato.errors import BudgetError, InputError, LedgerError
from sfumato.ledger import Ask, Caps, Ledger, clock, foresee
from sfumato.ledger.allowance import name_of
from sfumato.privacy.budgets import PersonBudgets, RecipientBudgets
from sfumato.privacy.charge import Charge
from support.memory import memory

ANN = {"analyst": "ann", "purpose": "care"}
SPENT, REFUSED = 0, 3


@pytest.fixture
def today(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`today("2026-11-16")`: from now on it is noon of that day."""

    def is_(day: str) -> None:
        monkeypatch.setattr(clock, "now", lambda: f"{day}T12:00Z")

    is_("2026-11-16")
    return is_


@pytest.fixture
def ledger(where: str, today: Callable[[str], None]) -> Ledger:
    made = Ledger.open(where)
    made.register("clinic", epsilon=100)
    return made


def _ask(ledger: Ledger, epsilon: str, request: str, **whose: str) -> int:
    return ledger.reserve("clinic", Charge.of(epsilon), request=request, **(whose or ANN)).id


def _left(ledger: Ledger) -> dict[tuple[str, str], tuple[int, int]]:
    return {(a.analyst, a.purpose): (a.left, a.left_today) for a in ledger.allowances("clinic")}


def test_nobody_spends_without_an_allowance_for_that_purpose(ledger: Ledger) -> None:
    ledger.allow("clinic", epsilon="0.5", **ANN)
    for whose in ({"analyst": "bob", "purpose": "care"}, {"analyst": "ann", "purpose": "research"}):
        with pytest.raises(BudgetError, match="has no allowance for purpose"):
            _ask(ledger, "0.1", "other", **whose)
        assert "has no allowance" in str(ledger.would_fit("clinic", Charge.of("0.1"), **whose))
    assert ledger.balance("clinic").total.spent == 0
    _ask(ledger, "0.1", "one")
    ledger.reserve("clinic", Charge.of("7"), request="by nobody in particular")  # not bounded by allowances
    assert _left(ledger) == {("ann", "care"): (400_000_000, 400_000_000)}
    ledger.verify("clinic")


def test_an_analyst_without_a_purpose_is_no_way_round(ledger: Ledger) -> None:
    ledger.allow("clinic", epsilon="0.5", **ANN)
    for half in ({"analyst": "ann"}, {"purpose": "care"}):
        with pytest.raises(InputError, match="both"):
            ledger.reserve("clinic", Charge.of("0.1"), request="half", **half)
        assert "both" in str(ledger.would_fit("clinic", Charge.of("0.1"), **half))
        assert "both" in str(foresee(None, Caps.of("clinic", epsilon=1), [Ask(Charge.of("0.1"), "r", **half)])[0].refusal)


def test_granting_again_resets_nothing_and_less_than_spent_leaves_nothing(ledger: Ledger) -> None:
    ledger.allow("clinic", epsilon="0.5", by="olga", **ANN)
    _ask(ledger, "0.4", "one")
    ledger.allow("clinic", epsilon="0.5", by="olga", **ANN)
    with pytest.raises(BudgetError, match=r"asked ε 0.2, 0.1 of 0.5 left for analyst 'ann' and purpose 'care' in 'clinic'"):
        _ask(ledger, "0.2", "two")
    ledger.allow("clinic", epsilon="0.3", **ANN)
    assert ledger.allowances("clinic")[0].left == 0
    with pytest.raises(BudgetError, match=r"0 of 0.3 left"):
        _ask(ledger, "0.000000001", "three")
    ledger.verify("clinic")
    ledger.allow("clinic", epsilon="0.6", by="otto", **ANN)
    _ask(ledger, "0.2", "four")
    found = ledger.balance("clinic").to_dict()["allowances"]
    assert [(a["cap"], a["spent"], a["left"], a["granted_by"]) for a in found] == [("0.6", "0.6", "0", "otto")]
    ledger.allow("clinic", epsilon=0, **ANN)
    ledger.verify("clinic")


def test_the_daily_rate_is_that_of_the_utc_day(ledger: Ledger, today: Callable[[str], None]) -> None:
    ledger.allow("clinic", epsilon="1", per_day="0.3", **ANN)
    _ask(ledger, "0.3", "one")
    with pytest.raises(BudgetError, match=r"0 of 0.3 left .* on 2026-11-16; .* ask again on the next day \(UTC\)"):
        _ask(ledger, "0.1", "two")
    today("2026-11-17")
    assert _left(ledger)["ann", "care"] == (700_000_000, 300_000_000)
    _ask(ledger, "0.2", "two")
    ledger.allow("clinic", epsilon="1", per_day="0.1", **ANN)  # below what the day has carried
    with pytest.raises(BudgetError, match=r"0 of 0.1 left"):
        _ask(ledger, "0.1", "three")
    ledger.allow("clinic", epsilon="1", **ANN)
    _ask(ledger, "0.5", "three")
    assert _left(ledger)["ann", "care"] == (0, 0)
    ledger.verify("clinic")


def test_what_was_spent_before_there_was_a_rate_counts_for_its_day(ledger: Ledger) -> None:
    ledger.allow("clinic", epsilon="1", **ANN)
    _ask(ledger, "0.25", "one")
    ledger.allow("clinic", epsilon="1", per_day="0.3", **ANN)
    with pytest.raises(BudgetError, match=r"0.05 of 0.3 left"):
        _ask(ledger, "0.1", "two")


def test_what_is_returned_at_no_cost_is_not_charged(ledger: Ledger) -> None:
    ledger.allow("clinic", epsilon="0.1", **ANN)
    ledger.commit(_ask(ledger, "0.1", "one"), {"figure": 1})
    again = ledger.reserve("clinic", Charge.of("0.1"), request="one", **ANN)
    assert (again.repeated, again.artefact) == (True, {"figure": 1})
    assert ledger.allowances("clinic")[0].spent == 100_000_000


def test_an_allowance_pays_what_the_person_who_loses_most_loses(where: str) -> None:
    ledger = Ledger.open(where)
    ledger.register(
        "clinic",
        people=PersonBudgets.from_tiers({"strict": ("0.1", 4), "open": (1, 6)}),
        recipients=RecipientBudgets.of({"ann": 2, "bob": 2}),
    )
    ledger.allow("clinic", epsilon="0.5", **ANN)
    charge = Charge.of_people([100_000_000, 400_000_000])
    made = ledger.reserve("clinic", charge, request="by tier", recipient="ann", **ANN)
    assert ledger.allowances("clinic", "ann")[0].spent == 400_000_000
    assert ledger.allowances("clinic", "bob") == ()
    paid = {(kind, name): nano for kind, name, nano in ledger.entry("clinic", made.id).charges}  # type: ignore[union-attr]
    assert paid[("allowance", name_of("ann", "care"))] == 400_000_000
    assert paid[("recipient", "ann")] == 400_000_000
    assert ("recipient", "bob") not in paid
    ledger.verify("clinic")


def test_names_that_look_alike_are_told_apart(ledger: Ledger) -> None:
    pairs = [("ann", "care"), ("ann care", "x"), ("ann", "care x"), ('ann", "care', "x"), ("2026-11-16 ann", "care")]
    for number, (analyst, purpose) in enumerate(pairs, start=1):
        ledger.allow("clinic", analyst=analyst, purpose=purpose, epsilon=number)
        _ask(ledger, "0.5", f"{number}", analyst=analyst, purpose=purpose)
    assert _left(ledger) == {pair: (number * 10**9 - 5 * 10**8,) * 2 for number, pair in enumerate(pairs, start=1)}
    for odd in ("", " ", "a\nb", "a" * 201, "\x00", "\ud800"):
        with pytest.raises(InputError):
            ledger.allow("clinic", analyst=odd, purpose="care", epsilon=1)
        with pytest.raises(InputError):
            _ask(ledger, "0.1", "odd", analyst="ann", purpose=odd)


def test_what_is_no_amount_is_refused(ledger: Ledger) -> None:
    for epsilon in (-1, "-0.1", "nan", "inf", True, "much", 10**30):
        with pytest.raises(InputError):
            ledger.allow("clinic", epsilon=epsilon, **ANN)
        with pytest.raises(InputError):
            ledger.allow("clinic", epsilon=1, per_day=epsilon, **ANN)
    assert ledger.allowances("clinic") == ()


def test_a_preview_foresees_allowance_and_day(where: str, ledger: Ledger) -> None:
    ledger.allow("clinic", epsilon="1", per_day="0.5", **ANN)
    asks = [Ask(Charge.of("0.3"), f"release {n}", **ANN) for n in range(2)] + [Ask(Charge.of("0.2"), "last", **ANN)]
    first, second, last = foresee(where, Caps.of("clinic", epsilon=100), asks)
    assert (first.refusal, last.refusal) == (None, None)
    assert "0.2 of 0.5 left" in str(second.refusal)
    for ask in asks:
        refusal = ledger.would_fit("clinic", ask.charge, **ANN)
        if refusal is None:
            ledger.reserve("clinic", ask.charge, request=ask.request, **ANN)
            continue
        with pytest.raises(BudgetError) as refused:
            ledger.reserve("clinic", ask.charge, request=ask.request, **ANN)
        assert refusal == str(refused.value)
    assert ledger.allowances("clinic")[0].spent == 500_000_000
    assert "no allowance" in str(foresee(None, Caps.of("new", epsilon=1), asks[:1])[0].refusal)


def test_16_processes_race_for_the_last_of_an_allowance(where: str, race: Callable[..., list[int]]) -> None:
    ledger = Ledger.open(where)
    ledger.register("clinic", epsilon=100)
    ledger.allow("clinic", epsilon="1", per_day="0.5", **ANN)

    def spend(number: int) -> int:
        if number % 8 == 0:
            ledger.allow("clinic", epsilon="1", per_day="0.5", **ANN)
        try:
            _ask(ledger, "0.1", f"release {number}")
        except BudgetError:
            return REFUSED
        return SPENT

    codes = Counter(race(spend, 16))
    # The race may begin before midnight and end after it: then the rate is that of two days, and the cap still holds.
    days = {r.reserved_at[:10] for r in ledger.history("clinic")}
    assert codes[SPENT] <= 5 * len(days)
    assert codes[SPENT] >= 5
    assert codes[SPENT] + codes[REFUSED] == 16
    assert ledger.allowances("clinic")[0].spent == codes[SPENT] * 10**8
    ledger.verify("clinic")


STATEMENTS = [
    "UPDATE ledger_limits SET cap = 9000000000 WHERE kind = 'allowance'",
    "UPDATE ledger_limits SET cap = NULL WHERE kind = 'daily'",
    "UPDATE ledger_limits SET spent = 0 WHERE kind = 'allowance'",
    "UPDATE ledger_limits SET cap = 9000000000 WHERE kind = 'total'",
    "UPDATE ledger_limits SET spent = spent + 9000000000 WHERE kind = 'daily'",
    "UPDATE ledger_limits SET name = 'gone' WHERE kind = 'daily'",
    "DELETE FROM ledger_limits WHERE kind = 'allowance'",
    "INSERT INTO ledger_limits VALUES (1, 'allowance', '[\"bob\", \"care\"]', 9000000000, 0)",
    "INSERT INTO ledger_limits VALUES (1, 'daily', '2026-11-17 [\"ann\", \"care\"]', NULL, 0)",
    "UPDATE ledger_allowances SET cap = 9000000000",
    "DELETE FROM ledger_allowances",
]


def test_no_statement_widens_an_allowance(ledger: Ledger) -> None:
    ledger.allow("clinic", epsilon="0.5", per_day="0.4", **ANN)
    _ask(ledger, "0.3", "one")
    for statement in STATEMENTS:
        with pytest.raises(LedgerError), ledger._store.write() as connection:
            connection.execute(text(statement))
    ledger.verify("clinic")
    assert _left(ledger) == {("ann", "care"): (200_000_000, 100_000_000)}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE ledger_limits SET spent = 1 WHERE kind = 'allowance'",
        "UPDATE ledger_limits SET spent = 1 WHERE kind = 'daily'",
        "UPDATE ledger_limits SET cap = 9000000000 WHERE kind = 'allowance'",
        "UPDATE ledger_limits SET name = '2026-11-15 [\"ann\", \"care\"]' WHERE kind = 'daily'",
        "DELETE FROM ledger_limits WHERE kind = 'daily'",
        "DELETE FROM ledger_charges WHERE kind IN ('allowance', 'daily')",
        "UPDATE ledger_charges SET nano = 1 WHERE kind IN ('allowance', 'daily')",
        "UPDATE ledger_charges SET name = '[\"bob\", \"care\"]' WHERE kind = 'allowance'",
        "DELETE FROM ledger_allowances",
        "UPDATE ledger_releases SET reserved_at = '2026-11-15T12:00Z'",
    ],
)
def test_verify_finds_what_was_changed_from_outside(swift: Path, today: object, change: str) -> None:
    ledger = Ledger.open(swift / "a.ledger")
    ledger.register("clinic", epsilon=100)
    ledger.allow("clinic", epsilon="0.5", per_day="0.4", **ANN)
    _ask(ledger, "0.3", "one")
    with ledger._store.write() as connection:
        for name in connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars().all():
            connection.execute(text(f"DROP TRIGGER {name}"))
        connection.execute(text(change))
    with pytest.raises(LedgerError, match=r"allowance|daily"):
        ledger.verify("clinic")


def test_the_command_line_grants_and_shows(swift: Path) -> None:
    place = str(swift / "clinic.ledger")
    ledger = Ledger.open(place)
    ledger.register("clinic", epsilon=100)

    def say(*words: str) -> str:
        done = CliRunner().invoke(app, [*words, "--ledger", place])
        assert done.exit_code == 0, done.output
        return " ".join(done.output.replace("│", " ").split())

    assert "ann may spend 0.5 of 0.5 for care [x] in clinic, 0.2 of them today" in say(
        "allow", "clinic", "ann", "care [x]", "0.5", "--per-day", "0.2", "--by", "olga"
    )
    _ask(ledger, "0.1", "one", analyst="ann", purpose="care [x]")
    assert "ann for care [x] 0.5 0.1 0.4 (0.1 today)" in say("ledger", "clinic")
    assert json.loads(say("ledger", "clinic", "--json"))["datasets"][0]["allowances"][0]["granted_by"] == "olga"


class Allowances(RuleBasedStateMachine):
    """Runs next to a plain list of who spent what for what on which day."""

    whose = st.sampled_from([(a, p) for a in ("ann", "bob") for p in ("care", "research")])

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=memory())
        self.before, self.day = clock.now, 1
        clock.now = lambda: f"2026-11-{self.day:02}T23:59Z"
        self.ledger = Ledger.open(Path(self.folder.name) / "a.ledger")
        self.ledger.register("clinic", epsilon="0.000000060")
        self.granted: dict[tuple[str, str], tuple[int, int | None]] = {}
        self.spent: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        self.total = self.asked = 0

    @rule(pair=whose, cap=st.integers(0, 30), per_day=st.none() | st.integers(0, 12))
    def grant(self, pair: tuple[str, str], cap: int, per_day: int | None) -> None:
        rate = None if per_day is None else f"{per_day}e-9"
        self.ledger.allow("clinic", analyst=pair[0], purpose=pair[1], epsilon=f"{cap}e-9", per_day=rate)
        self.granted[pair] = (cap, per_day)

    @rule()
    def sleep(self) -> None:
        self.day += 1

    @rule(pair=st.none() | whose, nano=st.integers(0, 9))
    def spend(self, pair: tuple[str, str] | None, nano: int) -> None:
        self.asked += 1
        fits = self.total + nano <= 60
        named = {} if pair is None else {"analyst": pair[0], "purpose": pair[1]}
        if pair is not None:
            cap, per_day = self.granted.get(pair, (-1, None))
            in_all = sum(n for _, n in self.spent[pair])
            today = sum(n for day, n in self.spent[pair] if day == self.day)
            fits &= pair in self.granted and (nano == 0 or in_all + nano <= cap)
            fits &= per_day is None or nano == 0 or today + nano <= per_day
        charge = Charge(nano)
        assert (self.ledger.would_fit("clinic", charge, **named) is None) == fits
        if not fits:
            with pytest.raises(BudgetError):
                self.ledger.reserve("clinic", charge, request=str(self.asked), **named)
            return
        self.ledger.reserve("clinic", charge, request=str(self.asked), **named)
        self.total += nano
        if pair is not None:
            self.spent[pair].append((self.day, nano))

    @invariant()
    def books_agree(self) -> None:
        found = {
            (a.analyst, a.purpose): (a.cap, a.per_day, a.spent, a.spent_today) for a in self.ledger.allowances("clinic")
        }
        assert found == {
            pair: (
                *granted,
                sum(n for _, n in self.spent[pair]),
                sum(n for day, n in self.spent[pair] if day == self.day),
            )
            for pair, granted in self.granted.items()
        }

    def teardown(self) -> None:
        self.ledger.verify("clinic")
        clock.now = self.before
        self.folder.cleanup()


TestAllowances = Allowances.TestCase
TestAllowances.settings = settings(max_examples=8, stateful_step_count=20, deadline=None)
