"""What groups of people granted, what this release could use of it, and what it used: the rows of a certificate.

A roster may have a million groups. Neighbouring groups are then merged into rows that show ranges, from the smallest to the
largest of the group's own numbers, and say how many groups they stand for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.units import NanoArray, epsilon_text, nano_of

FEW = 8  # groups that a sentence lists one by one

Range = tuple[NanoArray, NanoArray]  # per row, the smallest and the largest


@dataclass(frozen=True, eq=False)
class GroupLosses:
    """One row per person group, or per few neighbouring ones; all amounts are ranges in nano-ε.

    Attributes
    ----------
    granted : pair of int64 arrays
        What people granted altogether.
    share : pair of int64 arrays
        What of it this release could use.
    used : pair of int64 arrays
        What it used.
    people, groups : int64 arrays
        Number of people, and of groups, in each row.
    names : tuple
        A group's name (consent tier), or None.

    Examples
    --------
    >>> tiers = PersonBudgets.from_tiers({"strict": (0.01, 540), "open": (1, 90)})
    >>> rows = GroupLosses.of(tiers, granted=[2 * 10**7, 2 * 10**9]).using([10**7, 7 * 10**8])
    >>> rows.to_list()[1]
    {'group': 'open', 'people': 90, 'groups': 1, 'granted': '2', 'share': '1', 'used': '0.7'}
    >>> rows.merged(1).to_list()
    [{'people': 630, 'groups': 2, 'granted': '0.02..2', 'share': '0.01..1', 'used': '0.01..0.7'}]
    """

    granted: Range
    share: Range
    used: Range
    people: NDArray[np.int64]
    groups: NDArray[np.int64]
    names: tuple[str | None, ...]

    @classmethod
    def of(cls, share: PersonBudgets, *, granted: ArrayLike | None = None) -> GroupLosses:
        """One row per group of a roster of `share`s, nothing used; without `granted` the roster holds the whole grants.

        Where the people of a group granted different amounts, `granted` has two rows: the smallest and the largest.
        """
        whole = share.levels if granted is None else np.array(granted, dtype=np.int64)
        low, high = whole if whole.ndim == 2 and len(whole) == 2 else (whole, whole)
        if low.shape != share.levels.shape:
            raise InputError(f"{low.size} grants for {share.groups} person groups: give one for each")
        if (low < share.levels).any():
            raise InputError("a release cannot use more of a budget than was granted: give the grants its shares came from")
        nothing, one = np.zeros_like(low), np.ones_like(low)
        names = share.names or (None,) * share.groups
        return cls((low, high), (share.levels, share.levels), (nothing, nothing), share.counts, one, names)

    def using(self, nano: ArrayLike) -> GroupLosses:
        """The same rows with what was used of each, in `nano`-ε."""
        used = np.array(nano, dtype=np.int64)
        used.setflags(write=False)
        return replace(self, used=(used, used))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.people.size)

    def merged(self, most: int) -> GroupLosses:
        """At most `most` rows, each of neighbouring ones."""
        if self.rows <= most:
            return self
        edges = np.unique(np.linspace(0, self.rows, most + 1).astype(np.intp))
        first = edges[:-1]

        def join(pair: Range) -> Range:
            return np.minimum.reduceat(pair[0], first), np.maximum.reduceat(pair[1], first)

        alone = np.diff(edges) == 1
        return GroupLosses(
            granted=join(self.granted),
            share=join(self.share),
            used=join(self.used),
            people=np.add.reduceat(self.people, first),
            groups=np.add.reduceat(self.groups, first),
            names=tuple(self.names[i] if one else None for i, one in zip(first.tolist(), alone.tolist(), strict=True)),
        )

    def sentence(self) -> str:
        """What groups of people lose, in words; few groups are listed, of many the range is told."""
        low, high = self.used
        if int(self.groups.sum()) > FEW:
            of = f" of {int(self.people.sum()):,} people" if self.people.any() else ""  # a menu has no heads
            return (
                f"Nobody{of} loses more than they granted; losses lie between "
                f"{epsilon_text(int(low.min()))} and {epsilon_text(int(high.max()))}."
            )
        whole = all(map(np.array_equal, self.share, self.granted))
        parts = []
        for i, name in enumerate(self.names):
            granted, share, used = (_text(pair, i) for pair in (self.granted, self.share, self.used))
            called = f"ε {granted}" if name is None else name
            parts.append(f"{called}: {used} of {share}" + ("" if whole else f" of {granted}"))
        read = "used of granted ε" if whole else "ε used, of the share for this release, of the grant"
        return f"Nobody loses more than they granted ({read}): {', '.join(parts)}."

    def to_list(self) -> list[dict[str, Any]]:
        """For the certificate: one mapping per row; a range is written ``from..to``."""
        out: list[dict[str, Any]] = []
        for i, name in enumerate(self.names):
            row = {} if name is None else {"group": name}
            counts = {"people": int(self.people[i]), "groups": int(self.groups[i])}
            amounts = {"granted": _text(self.granted, i), "share": _text(self.share, i), "used": _text(self.used, i)}
            out.append(row | counts | amounts)
        return out

    @classmethod
    def from_list(cls, rows: Sequence[Mapping[str, Any]]) -> GroupLosses:
        """The inverse of `to_list`, from its `rows`."""
        if not rows:
            raise InputError("a stored guarantee over person groups has at least one row")
        return cls(
            granted=_range([row["granted"] for row in rows]),
            share=_range([row["share"] for row in rows]),
            used=_range([row["used"] for row in rows]),
            people=np.array([row["people"] for row in rows], dtype=np.int64),
            groups=np.array([row["groups"] for row in rows], dtype=np.int64),
            names=tuple(row.get("group") for row in rows),
        )


def _text(pair: Range, row: int) -> str:
    low, high = (epsilon_text(int(end[row])) for end in pair)
    return low if low == high else f"{low}..{high}"


def _range(texts: Sequence[str]) -> Range:
    ends = [text.split("..") for text in texts]
    low, high = ([nano_of(end[i]) for end in ends] for i in (0, -1))
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)
