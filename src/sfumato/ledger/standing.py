"""What a living roster shows: cohorts of people alike, and what they have left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.ledger.records import People
from sfumato.ledger.state import FAR, State
from sfumato.privacy.units import NanoArray, epsilon_text

PERIODS = ("year", "quarter", "month")


@dataclass(frozen=True, eq=False)
class Menu:
    """What people of a living roster may choose from, and how their caps renew: what was registered.

    Attributes
    ----------
    levels : int64 array
        The tiers' budgets in nano-ε.
    names : tuple of str or None
        What the tiers are called.
    period : str or None
        ``"year"``, ``"quarter"`` or ``"month"``: calendar periods in UTC.
    per_period : dict
        Tier -> what one of its people may lose in a period, in nano-ε.
    private : bool
        Whether who chose what is part of a person's record: nothing then speaks of heads.
    """

    levels: NanoArray
    names: tuple[str, ...] | None
    period: str | None = None
    per_period: dict[str, int] = field(default_factory=dict)
    private: bool = False

    def same(self, other: Menu) -> bool:
        """Whether `other` was registered with the same numbers."""
        mine, theirs = ((m.names, m.period, m.per_period, m.private) for m in (self, other))
        return mine == theirs and np.array_equal(self.levels, other.levels)

    def cap(self, tier: int) -> int:
        """What one person of tier number `tier` may lose in a period."""
        return FAR if tier < 0 or self.names is None else self.per_period.get(self.names[tier], FAR)

    def called(self, tier: int) -> str | None:
        """The name of tier number `tier`; ``None`` for an amount of one's own."""
        return None if tier < 0 or self.names is None else self.names[tier]


@dataclass(frozen=True)
class LivePeople(People):
    """The cohorts of a living roster, as the caps of a dataset see them.

    Attributes
    ----------
    levels, counts, spent : int64 arrays
        Grant now, heads, and what each of them has spent.
    names : None
        Cohorts have tiers instead.
    ceilings : int64 array
        What each of them may have spent when this period ends: their grant, or less if the period's cap is nearer.
    tiers : int64 array
        The number of each cohort's tier in the menu, -1 for an amount of one's own.
    menu : Menu
        What people choose from.
    version : int
        Which change of the roster these cohorts are of.
    """

    ceilings: NanoArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    tiers: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    menu: Menu | None = None
    version: int = 0

    @classmethod
    def of(cls, state: State, menu: Menu) -> LivePeople:
        """The cohorts of a `state` whose people chose from a `menu`."""
        one = state.one_each()
        heads = np.bincount(state.cohorts[state.cohorts >= 0], minlength=len(one)).astype(np.int64)
        ceilings = np.minimum(state.grants[one], state.base[one] + state.caps[one])
        return cls(
            levels=state.grants[one],
            counts=heads,
            spent=state.spent[one],
            ceilings=ceilings,
            tiers=state.tiers[one],
            menu=menu,
            version=state.change,
        )

    @property
    def left(self) -> NanoArray:
        """What each cohort has left, for life and in this period."""
        left: NanoArray = np.maximum(self.ceilings - self.spent, 0)
        return left

    def whose(self, cohort: int) -> str:
        """Whose budget that of a `cohort` is, in a refusal."""
        name = None if self.menu is None else self.menu.called(int(self.tiers[cohort]))
        which = "with that budget and history" if name is None else f"in tier '{name}' with that history"
        return f"each of {int(self.counts[cohort]):,} people {which}"

    def summary(self, ranges: int = 12) -> list[dict[str, Any]]:
        """A row per tier, however many cohorts its people are in; those with amounts of their own in ranges."""
        rows = []
        for tier in np.unique(self.tiers[self.tiers >= 0]).tolist():
            name = None if self.menu is None else self.menu.called(tier)
            rows.append(self._row(np.flatnonzero(self.tiers == tier), name))
        own = np.flatnonzero(self.tiers < 0)
        own = own[np.argsort(self.levels[own], kind="stable")]
        rows += [self._row(part, None) for part in np.array_split(own, min(ranges, len(own)) or 1) if len(part)]
        return rows

    def _row(self, part: NDArray[np.int64], name: str | None) -> dict[str, Any]:
        def ends(values: NanoArray) -> list[str]:
            return [epsilon_text(int(values[part].min())), epsilon_text(int(values[part].max()))]

        return {
            "name": name,
            "people": int(self.counts[part].sum()),
            "levels": len(np.unique(self.levels[part])),
            "budget": ends(self.levels),
            "spent": ends(self.spent),
            "left": ends(self.left),
        }


@dataclass(frozen=True, eq=False)
class Standing:
    """Everybody of a living roster who takes part, in cohorts of people alike, in a fixed order.

    Of a private roster it is only the menu: one entry per tier, no heads, nothing spent.

    Attributes
    ----------
    grants : int64 array
        What each person of a cohort grants now, in nano-ε.
    spent : int64 array
        What was spent on each of them so far.
    left : int64 array
        What each of them may still lose, for life and in this period together; never negative.
    heads : int64 array
        How many people they are.
    tiers : tuple of str or None
        The tier of each cohort, ``None`` for an amount of one's own.
    in_period : int64 array
        What was spent on each of them in this period.
    per_period : tuple of int or None
        What each of them may lose in a period; ``None`` where there is no such cap.
    epoch : int
        How many epochs were closed.
    version : int
        Which change of the roster this is; `sfumato.ledger.Ledger.reserve` wants it back with a charge.
    period : str or None
        The period that it is now, such as ``"2026"`` or ``"2026-Q4"``.
    private : bool
        Whether the roster is a private one.
    """

    grants: NanoArray
    spent: NanoArray
    left: NanoArray
    heads: NDArray[np.int64]
    tiers: tuple[str | None, ...]
    in_period: NanoArray
    per_period: tuple[int | None, ...]
    epoch: int
    version: int
    period: str | None = None
    private: bool = False

    @classmethod
    def of(cls, state: State, menu: Menu) -> Standing:
        """The standing of a `state` whose people chose from a `menu`."""
        if menu.private:
            nothing = np.zeros_like(menu.levels)
            tiers = np.arange(len(menu.levels))
            grants, spent, left, heads, in_period = menu.levels, nothing, menu.levels, nothing, nothing
            caps = np.array([menu.cap(tier) for tier in tiers.tolist()], dtype=np.int64)
        else:
            one = state.one_each()
            heads = np.bincount(state.cohorts[state.cohorts >= 0], minlength=len(one)).astype(np.int64)
            grants, spent, left, caps = (v[one] for v in (state.grants, state.spent, state.left, state.caps))
            in_period, tiers = spent - state.base[one], state.tiers[one]
        names = [*(menu.called(tier) for tier in range(len(menu.levels))), None]
        return cls(
            grants=grants,
            spent=spent,
            left=left,
            heads=heads,
            tiers=tuple(names[tier] for tier in tiers.tolist()),
            in_period=in_period,
            per_period=tuple(None if cap == FAR else cap for cap in caps.tolist()),
            epoch=state.epoch,
            version=0 if menu.private else state.change,
            period=state.period if menu.period else None,
            private=menu.private,
        )
