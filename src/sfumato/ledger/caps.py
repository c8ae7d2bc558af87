"""The rule of the ledger: what a charge asks of every cap, and whether each of them can pay.

Nothing here knows a database. `reserve` reads the caps under the dataset's lock and applies the rule before it writes;
a preview applies the same rule to the same caps and writes nothing. So what a preview foresees is what happens.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sfumato.errors import BudgetError, InputError
from sfumato.ledger.allowance import ALLOWANCE, OWN, both_or_none, name_of, whose
from sfumato.ledger.records import Limit, People
from sfumato.ledger.requests import readable
from sfumato.ledger.standing import PERIODS, Menu
from sfumato.privacy.budgets import AttributeBudgets, PersonBudgets, RecipientBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.units import Epsilon, Nano, NanoArray, epsilon_text, positive_nano

MAX_BIGINT = 2**63 - 1  # what a column without a cap can still count to
_NEW_PERIOD = "open a new ledger period"
_Refused = tuple[int, int, str, str]


@dataclass(frozen=True, eq=False)
class Price:
    """A charge that fits, spelt out: what each single cap and each person group pays, in nano-ε."""

    total: Nano
    limits: tuple[tuple[Limit, Nano], ...]
    people: NanoArray | None


@dataclass(frozen=True, eq=False)
class Caps:
    """Everything that bounds the releases of one dataset, with what each bound has carried so far.

    Attributes
    ----------
    dataset : str
        Its name in the ledger.
    limits : tuple of Limit
        The single caps: on the total, on attributes, on recipients, on recipients together, and on an analyst's purpose.
    people : People or None
        The public roster and what its people have spent.
    menu : Menu or None
        What people choose from, where the roster changes.

    Examples
    --------
    >>> caps = Caps.of("clinic", epsilon=1)
    >>> caps.refusal(Charge.of("0.9")) is None
    True
    >>> caps.after(Charge.of("0.9")).refusal(Charge.of("0.4"))
    "asked ε 0.4, 0.1 of 1 left for 'clinic'; lower its epsilon or share, or open a new ledger period. Nothing was spent"
    """

    dataset: str
    limits: tuple[Limit, ...]
    people: People | None = None
    menu: Menu | None = None

    def __post_init__(self) -> None:
        # A fixed order: which of two equally tight caps a refusal names must not depend on a database's collation.
        object.__setattr__(self, "limits", tuple(sorted(self.limits, key=lambda limit: (limit.kind, limit.name))))

    @classmethod
    def of(
        cls,
        dataset: str,
        *,
        epsilon: Epsilon | None = None,
        people: PersonBudgets | None = None,
        attributes: AttributeBudgets | None = None,
        recipients: RecipientBudgets | None = None,
        living: bool = False,
        period: str | None = None,
        per_period: Mapping[str, Epsilon] | None = None,
        private: bool = False,
    ) -> Caps:
        """The caps of a dataset before its first release.

        Parameters
        ----------
        dataset : str
            Its name in the ledger.
        epsilon, people, attributes, recipients, living, period, per_period, private : optional
            What `Ledger.register` would be given.
        """
        readable(dataset, "a dataset")
        nothing = Nano(0)
        limits = [Limit("total", "", None if epsilon is None else positive_nano(epsilon), nothing)]
        if attributes is not None:
            limits += [Limit("attribute", name, Nano(int(nano)), nothing) for name, nano in attributes.nano.items()]
        if recipients is not None:
            limits += [Limit("recipient", name, Nano(int(nano)), nothing) for name, nano in recipients.nano.items()]
            if recipients.together is not None:
                limits.append(Limit("together", "", Nano(int(recipients.together)), nothing))
        if living:
            return cls(dataset, tuple(limits), None, _menu(people, period, per_period or {}, private))
        if period is not None or per_period:
            raise InputError("period and per_period are for a roster that changes: say living=True")
        group = None
        if people is not None:
            heads = np.zeros_like(people.counts) if private else people.counts
            group = People(people.levels, heads, np.zeros_like(people.levels), people.names, private=private)
        return cls(dataset, tuple(limits), group)

    def differing(self, other: Caps) -> list[str]:
        """Which kinds of cap are granted otherwise in `other`; what was spent does not matter."""
        mine, theirs = ({(c.kind, c.name, c.cap) for c in caps.limits if c.kind not in OWN} for caps in (self, other))
        different = sorted({kind for kind, _, _ in mine ^ theirs})
        if self.menu is None or other.menu is None:
            same = self.menu is other.menu and _same_grants(self.people, other.people)
        else:
            same = self.menu.same(other.menu)
        return different if same else [*different, "people"]

    def check(
        self, charge: Charge, recipient: str | None = None, *, analyst: str | None = None, purpose: str | None = None
    ) -> Price:
        """What a charge asks of every cap, if all of them can pay.

        A charge that names no person groups costs everybody its total. One that names no attribute may concern all of
        them, and a release to nobody in particular is seen by every recipient: both then pay the total. So does the
        allowance of an analyst, who must have one for that purpose.

        Parameters
        ----------
        charge : Charge
            What the release will cost at most.
        recipient : str, optional
            Who will see it; ``None`` is everybody.
        analyst, purpose : str, optional
            Who asks and what for: both or neither. Without them no allowance is charged.

        Raises
        ------
        BudgetError
            A cap would be passed; the message names the tightest one.
        InputError
            The charge is not one for these caps.
        """
        total = _whole(charge.total, "the total")
        attributes = {name: _whole(nano, f"attribute {name!r}") for name, nano in charge.attributes.items()}
        self._known("attribute", set(attributes))
        self._known("recipient", set() if recipient is None else {recipient})
        own = self._own(analyst, purpose)
        asks = []
        for limit in self.limits:
            nano = total
            if limit.kind in OWN:
                nano = total if (limit.kind, limit.name) in own else Nano(0)
            elif limit.kind == "attribute" and attributes:
                nano = attributes.get(limit.name, Nano(0))
            elif limit.kind == "recipient" and recipient not in (None, limit.name):
                nano = Nano(0)
            asks.append((limit, nano))
        price = Price(total, tuple(asks), self._people_pay(total, charge.people))
        refused = list(self._short(price))
        if refused:
            raise BudgetError(_sentence(refused))
        return price

    def refusal(
        self, charge: Charge, recipient: str | None = None, *, analyst: str | None = None, purpose: str | None = None
    ) -> str | None:
        """The sentence with which `check` refuses a `charge` to a `recipient` (by an `analyst`, for a `purpose`); ``None``
        when it fits.
        """
        try:
            self.check(charge, recipient, analyst=analyst, purpose=purpose)
        except (BudgetError, InputError) as refused:
            return str(refused)
        return None

    def after(
        self, charge: Charge, recipient: str | None = None, *, analyst: str | None = None, purpose: str | None = None
    ) -> Caps:
        """The caps once a `charge` to a `recipient` (by an `analyst`, for a `purpose`) was paid; raises as `check` does when
        it does not fit.
        """
        price = self.check(charge, recipient, analyst=analyst, purpose=purpose)
        limits = tuple(replace(limit, spent=Nano(limit.spent + nano)) for limit, nano in price.limits)
        if self.people is None or price.people is None:
            return replace(self, limits=limits)
        return replace(self, limits=limits, people=replace(self.people, spent=self.people.spent + price.people))

    def _known(self, kind: str, named: set[str]) -> None:
        known = {limit.name for limit in self.limits if limit.kind == kind}
        if known and named - known:
            strange = min(named - known)
            raise InputError(
                f"{kind} {strange!r} has no budget in '{self.dataset}'; it has {', '.join(sorted(known))}. "
                f"Name one of those, or give {strange!r} a budget in a new ledger period"
            )

    def _own(self, analyst: str | None, purpose: str | None) -> set[tuple[str, str]]:
        """The caps of this analyst for this purpose, which pay; nobody spends without an allowance."""
        both_or_none(analyst, purpose)
        if analyst is None or purpose is None:
            return set()
        name = name_of(analyst, purpose)
        own = {(c.kind, c.name) for c in self.limits if c.kind in OWN and whose(c.kind, c.name)[:2] == (analyst, purpose)}
        if (ALLOWANCE, name) not in own:
            raise BudgetError(
                f"analyst '{analyst}' has no allowance for purpose '{purpose}' in '{self.dataset}'; ask an officer to grant "
                "one. Nothing was spent"
            )
        return own

    def _people_pay(self, total: Nano, charge: NanoArray | None) -> NanoArray | None:
        if self.people is None and (self.menu is None or not self.menu.private):
            return None
        levels = self.people.levels if self.people is not None else self.menu.levels  # type: ignore[union-attr]
        if charge is None:
            return np.full(len(levels), total, dtype=np.int64)
        if charge.shape != levels.shape:
            raise InputError(
                f"the charge is for {charge.size} person groups but the ledger's roster has {levels.size}; "
                "compute it from the roster that was registered"
            )
        return charge

    def _short(self, price: Price) -> Iterator[_Refused]:
        """The caps that cannot pay: what was asked, what is left, whose it is, and what to do beside asking for less."""
        for limit, nano in price.limits:
            cap = MAX_BIGINT if limit.cap is None else limit.cap
            left = max(0, cap - limit.spent)  # an allowance may be lowered below what is spent
            if nano > left:
                held_by, otherwise = self._held_by(limit)
                yield nano, left, f"of {epsilon_text(cap)} left for {held_by}", otherwise
        if self.people is not None and price.people is not None:
            worst = _worst_group(self.people, price.people)
            if worst is not None:
                left = int(self.people.left[worst])
                budget = epsilon_text(int(self.people.levels[worst]))
                held_by = f"of {budget} left for {self.people.whose(worst)} in '{self.dataset}'"
                yield int(price.people[worst]), left, held_by, _NEW_PERIOD

    def _held_by(self, limit: Limit) -> tuple[str, str]:
        if limit.kind in OWN:
            analyst, purpose, day = whose(limit.kind, limit.name)
            held_by = f"analyst '{analyst}' and purpose '{purpose}' in '{self.dataset}'"
            if day is None:
                return held_by, "ask for a larger allowance"
            return f"{held_by} on {day}", "ask again on the next day (UTC)"
        named = {"total": f"'{self.dataset}'", "together": f"all recipients of '{self.dataset}' together"}
        return named.get(limit.kind, f"{limit.kind} '{limit.name}' of '{self.dataset}'"), _NEW_PERIOD


def _whole(nano: object, what: str) -> Nano:
    # int() would cut Charge(0.9) down to nothing, and True is no amount.
    if not isinstance(nano, bool):
        try:
            return Nano(operator.index(nano))  # type: ignore[arg-type]
        except TypeError:
            pass
    raise InputError(f"a charge is a whole number of nano-ε but {what} is {nano!r}; Charge.of(...) takes an ε such as 0.9")


def _worst_group(people: People, asked: NanoArray) -> int | None:
    left = people.left
    short = np.flatnonzero(asked > left)
    return int(short[np.argmin(left[short] / asked[short])]) if short.size else None


def _sentence(refused: Sequence[_Refused]) -> str:
    # The tightest cap is the one that would let the smallest share of its charge through.
    asked, left, held_by, otherwise = min(refused, key=lambda r: Fraction(r[1], r[0]))
    others = len(refused) - 1
    more = f" ({others} more cap{'s' * (others > 1)} would be passed)" if others else ""
    return (
        f"asked ε {epsilon_text(asked)}, {epsilon_text(left)} {held_by}{more}; "
        f"lower its epsilon or share, or {otherwise}. Nothing was spent"
    )


def _menu(people: PersonBudgets | None, period: str | None, per_period: Mapping[str, Epsilon], private: bool) -> Menu:
    if people is None:
        raise InputError("a roster that changes needs a menu: people=PersonBudgets.from_tiers({'open': (1, 0), ...})")
    if period is not None and period not in PERIODS:
        raise InputError(f"a period is one of {', '.join(PERIODS)}, got {period!r}")
    if per_period and period is None:
        raise InputError("per_period says how much a period allows: say also which period, for example period='year'")
    strange = set(per_period) - set(people.names or ())
    if strange:
        known = ", ".join(people.names or ()) or "no names"
        raise InputError(f"per_period names {min(strange)!r}, which is no tier; the menu has {known}")
    caps = {name: int(positive_nano(epsilon, f"per_period of {name!r}")) for name, epsilon in sorted(per_period.items())}
    return Menu(people.levels, people.names, period, caps, private)


def _same_grants(mine: People | None, theirs: People | None) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    return (
        np.array_equal(mine.levels, theirs.levels)
        and np.array_equal(mine.counts, theirs.counts)
        and (mine.names, mine.private) == (theirs.names, theirs.private)
    )
