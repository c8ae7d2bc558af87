"""Who takes part in a release on a living roster, at which budget, and what each of them is charged.

The ledger knows people by cohort: everybody of a cohort granted the same and has lost the same. For one release a cohort may
use ``min(share of the grant, what is left)``; with one ε for all it takes part if it has that much left. Cohorts of the same
budget are one person group, so the groups of a release have distinct budgets and a row finds its group by its budget alone.
`Part` keeps both sides together: the groups that the mechanism sees, and the cohorts that the ledger charges.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import BudgetError, InputError
from sfumato.offers import Facts, Request
from sfumato.privacy.budgets import PersonBudgets, part_of
from sfumato.privacy.charge import Charge
from sfumato.privacy.units import NanoArray, epsilon_text, positive_nano

if TYPE_CHECKING:
    from sfumato.ledger import Life, Standing
    from sfumato.tables.living import LivingRoster, Lookup

FEW_COHORTS = 200  # that a certificate lists one by one
LESS = " (what is left)"  # after the name of a tier, where a group has less left than was asked


@dataclass(frozen=True, eq=False)
class Part:
    """Who takes part in one release.

    Attributes
    ----------
    standing : Standing
        The cohorts as they stood when the release was priced.
    asked : int64 array
        What the release would use of each cohort, had everybody enough left, in nano-ε.
    usable : int64 array
        What it may use; 0 for a cohort that takes no part.
    levels : int64 array
        The distinct amounts above 0 in `usable`, in order: the budgets of the person groups.
    """

    standing: Standing
    asked: NanoArray
    usable: NanoArray
    levels: NanoArray

    @classmethod
    def of(cls, request: Request, standing: Standing, *, as_granted: bool = False) -> Part:
        """Who takes part in `request` at that `standing`; `as_granted` as if nobody had spent anything."""
        grants = np.asarray(standing.grants, dtype=np.int64)
        left = grants if as_granted else np.minimum(grants, np.asarray(standing.left, dtype=np.int64))
        if request.epsilon is not None:
            asked = np.full(grants.shape, positive_nano(request.epsilon), dtype=np.int64)
            usable = np.where(left >= asked, asked, 0)
        else:
            asked = part_of(grants, request.share or Fraction(1))
            usable = np.maximum(np.minimum(asked, left), 0)
        usable = np.where(np.asarray(standing.heads) > 0, usable, 0)
        return cls(standing, asked, usable, np.unique(usable[usable > 0]))

    @property
    def heads(self) -> NDArray[np.int64]:
        """People per cohort."""
        return np.asarray(self.standing.heads, dtype=np.int64)

    @property
    def group_of(self) -> NDArray[np.int64]:
        """The person group of each cohort, -1 for none."""
        return np.where(self.usable > 0, np.searchsorted(self.levels, self.usable), -1)

    @property
    def people(self) -> int:
        """People who take part."""
        return int(self.heads[self.usable > 0].sum())

    def budgets(self) -> PersonBudgets:
        """The person groups of the release, named by tier."""
        counts = np.bincount(self.group_of[self.usable > 0], self.heads[self.usable > 0], minlength=len(self.levels))
        return PersonBudgets(self.levels, counts.astype(np.int64), names=self._names())

    def granted(self) -> NanoArray:
        """The smallest and the largest grant of each person group: two rows, a column for each."""
        enter = self.usable > 0
        groups, grants = self.group_of[enter], np.asarray(self.standing.grants, dtype=np.int64)[enter]
        ends = np.array([np.full(len(self.levels), np.iinfo(np.int64).max), np.zeros(len(self.levels), dtype=np.int64)])
        np.minimum.at(ends[0], groups, grants)
        np.maximum.at(ends[1], groups, grants)
        return ends

    def charge(self, price: Charge) -> Charge:
        """The `price` as the ledger takes it: one amount for each cohort of the standing, 0 for who takes no part."""
        each = np.zeros(self.usable.shape, dtype=np.int64)
        enter = self.usable > 0
        each[enter] = price.total if price.people is None else price.people[self.group_of[enter]]
        return Charge(price.total, each, price.attributes)

    def after(self, price: Charge) -> Standing:
        """Where people stand once the `price` was paid: for the next release of a plan."""
        each = self.charge(price).people
        assert each is not None
        standing = self.standing
        return replace(standing, spent=standing.spent + each, left=standing.left - each, in_period=standing.in_period + each)

    def lookup(self, taking_part: Any, release_id: int) -> Lookup:
        """From persons to what the release may use of them; `taking_part` is the ledger's, which charged it."""

        def nano(persons: Any) -> NDArray[np.int64]:
            cohorts = np.asarray(taking_part(release_id, persons), dtype=np.int64)
            return np.where(cohorts >= 0, self.usable[np.maximum(cohorts, 0)], 0)

        return nano

    def roster(self, roster: LivingRoster, life: Life, release_id: int) -> LivingRoster:
        """The `roster` of a release that was charged, by which a row of the table finds its budget."""
        return roster.charged(self.lookup(life.taking_part, release_id))

    def notes(self) -> tuple[str, ...]:
        """How many people take part with less than was asked, and how many not at all."""
        less = int(self.heads[(self.usable > 0) & (self.usable < self.asked)].sum())
        none = int(self.heads[self.usable == 0].sum())
        said = []
        if less:
            said.append(f"{less:,} of {self.people:,} people take part with less than was asked: they have less left")
        if none:
            said.append(f"{none:,} people of the roster take no part: they have too little left")
        return tuple(said)

    def record(self, price: Charge) -> dict[str, Any]:
        """For the certificate: the epoch, and who was charged what, by tier and by cohort.

        A person's own line is that of their tier, grant and spending before the release (with caps per period, also in that
        period), which their receipt tells.
        """
        charged = self.charge(price).people
        assert charged is not None
        cohorts = [self._cohort(i, int(charged[i])) for i in np.flatnonzero(self.heads > 0)[: FEW_COHORTS + 1]]
        few = len(cohorts) <= FEW_COHORTS
        return {
            "epoch": self.standing.epoch,
            "people": self.people,
            "charged": self._by_tier(charged),
            "cohorts": cohorts if few else None,
            "cohorts_sha256": self._digest(charged),
        }

    def _cohort(self, place: int, charged: int) -> dict[str, Any]:
        standing = self.standing
        return {
            "tier": _tiers(standing)[place],
            "granted": epsilon_text(int(standing.grants[place])),
            "spent_before": epsilon_text(int(standing.spent[place])),
            **({} if standing.period is None else {"spent_in_period": epsilon_text(int(standing.in_period[place]))}),
            "people": int(self.heads[place]),
            "charged": epsilon_text(charged),
        }

    def _by_tier(self, charged: NanoArray) -> list[dict[str, Any]]:
        tiers = np.array([name or "" for name in _tiers(self.standing)], dtype=object)
        out = []
        for name in sorted(set(tiers.tolist())):
            mine = (tiers == name) & (self.heads > 0)
            if not mine.any():
                continue
            ends = {"smallest": epsilon_text(int(charged[mine].min())), "largest": epsilon_text(int(charged[mine].max()))}
            out.append({"tier": name or None, "people": int(self.heads[mine].sum()), **ends})
        return out

    def _digest(self, charged: NanoArray) -> str:
        """Of grants, spending before, in all and in the period, head counts and charges, cohort by cohort."""
        vectors = (self.standing.grants, self.standing.spent, self.standing.in_period, self.heads, charged)
        return hashlib.sha256(b"".join(np.asarray(v, dtype="<i8").tobytes() for v in vectors)).hexdigest()

    def _names(self) -> tuple[str, ...] | None:
        tiers = _tiers(self.standing)
        if not any(tiers):
            return None
        enter = np.flatnonzero(self.usable > 0)
        short = self.usable < self.asked
        found: dict[int, set[str]] = {}
        for cohort, group in zip(enter.tolist(), self.group_of[enter].tolist(), strict=True):
            name = tiers[cohort] or f"ε {epsilon_text(int(self.standing.grants[cohort]))}"
            found.setdefault(group, set()).add(name + LESS * bool(short[cohort]))
        return tuple(_called(found[group]) for group in range(len(self.levels)))


def _tiers(standing: Standing) -> tuple[str | None, ...]:
    return tuple(standing.tiers)


def _called(names: set[str]) -> str:
    return " and ".join(sorted(names)) if len(names) <= 3 else f"{len(names)} tiers"


def begun(standing: Standing | None) -> Standing:
    """Where people stand, or an error if no epoch was closed yet."""
    if standing is None or standing.epoch < 1:
        raise InputError(
            "nobody takes part yet: no epoch was closed. Bring the people, `sfumato people PLAN import roster.csv`, and "
            "close one, `sfumato people PLAN epoch` (in Python: Table.people.bring(...) and .epoch())"
        )
    return standing


def admitted(request: Request, facts: Facts, standing: Standing | None, *, as_granted: bool = False) -> tuple[Part, Facts]:
    """Who takes part in `request`, and the facts that its price is computed from."""
    standing = begun(standing)
    part = Part.of(request, standing, as_granted=as_granted)
    if not part.people:
        raise BudgetError(
            f"nobody can pay for release {request.name!r}: in epoch {standing.epoch} everybody withdrew or has too "
            "little left. Lower its epsilon or share, or wait until people grant more. Nothing was spent"
        )
    if request.epsilon is not None:
        return part, replace(facts, budgets=None, rows=part.people)
    return part, replace(facts, budgets=part.budgets(), granted=part.granted(), rows=part.people)


def if_all_could_pay(request: Request, standing: Standing) -> Standing:
    """The same people with nothing spent, and as much granted as one ε for all asks: what a release would cost then."""
    least = 0 if request.epsilon is None else positive_nano(request.epsilon)
    grants = np.maximum(np.asarray(standing.grants, dtype=np.int64), least)
    nothing = np.zeros_like(grants)
    return replace(standing, grants=grants, left=grants, spent=nothing, in_period=nothing)


def charged_to(certificate: Mapping[str, Any], **line: Any) -> str | None:
    """What a certificate says that a person was charged, in ε; None where it lists no such cohort, or none at all.

    `line` is the person's: `tier`, `granted`, `spent_before` and, with caps per period, `spent_in_period`.
    """
    found = {
        cohort["charged"]
        for cohort in certificate["living"]["cohorts"] or ()
        if all(cohort[key] == value for key, value in line.items())
    }
    return found.pop() if len(found) == 1 else None
