"""What the ledger hands out: reservations, releases, and who has what left.

All amounts are whole nano-ε; ``to_dict`` writes them as exact decimal strings, so that JSON keeps every digit. Times are
kept to the minute: finer ones would publish how long a release took, and that may depend on the private table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.ledger.requests import question
from sfumato.privacy.units import Nano, NanoArray, epsilon_text

if TYPE_CHECKING:
    from sfumato.ledger.allowance import Allowance

SHOWN_LEVELS = 12  # a balance with more budget levels than this is summarised in as many ranges


@dataclass(frozen=True)
class Reservation:
    """A charge that is on disk.

    Attributes
    ----------
    id : int
        The ledger's number for it.
    state : str
        ``"reserved"``: the release may now read the private table. ``"committed"``: it was made earlier.
    artefact : dict or None
        What was committed, when the release was made earlier.
    repeated : bool
        Whether an identical request was committed earlier, so that nothing was charged.
    """

    id: int
    state: str
    artefact: dict[str, Any] | None = None
    repeated: bool = False


@dataclass(frozen=True)
class Limit:
    """One cap and what it has carried.

    Attributes
    ----------
    kind : str
        ``"total"``, ``"together"`` (all recipients), ``"attribute"``, ``"recipient"``; ``"allowance"`` and ``"daily"`` of an
        analyst.
    name : str
        Which attribute, recipient or allowance; empty for the other kinds.
    cap : Nano or None
        The most it may carry; ``None`` only records.
    spent : Nano
        What it has carried.
    """

    kind: str
    name: str
    cap: Nano | None
    spent: Nano

    @property
    def left(self) -> Nano | None:
        """What the cap still allows: nothing where an allowance was lowered below what is spent."""
        return None if self.cap is None else Nano(max(0, self.cap - self.spent))

    def to_dict(self) -> dict[str, Any]:
        """Exact decimals as text."""
        return {
            "cap": None if self.cap is None else epsilon_text(self.cap),
            "spent": epsilon_text(self.spent),
            "left": None if self.left is None else epsilon_text(self.left),
        }


@dataclass(frozen=True)
class People:
    """Budgets that differ per person: one entry per cohort, the people who share a level and a history.

    Attributes
    ----------
    levels : int64 array
        What each person of a cohort granted, in nano-ε.
    counts : int64 array
        How many people they are.
    spent : int64 array
        What each of them has spent, in nano-ε.
    names : tuple of str or None
        What the cohorts are called, if they have names.
    private : bool
        Whether the roster is private: the cohorts are then the public menu of budgets, and nobody's head is counted.
    """

    levels: NanoArray
    counts: NDArray[np.int64]
    spent: NanoArray
    names: tuple[str, ...] | None = None
    private: bool = field(default=False, kw_only=True)

    @property
    def left(self) -> NanoArray:
        """What each cohort has left, in nano-ε, aligned with ``levels``."""
        return self.levels - self.spent

    def whose(self, cohort: int) -> str:
        """Whose budget that of a `cohort` is, in a refusal."""
        tier = f"in tier '{self.names[cohort]}'" if self.names else "with that budget"
        return f"{'whoever is' if self.private else f'each of {int(self.counts[cohort]):,} people'} {tier}"

    def summary(self, ranges: int = SHOWN_LEVELS) -> list[dict[str, Any]]:
        """A row per level, or per range of neighbouring levels when there are more than `ranges`.

        >>> n = np.array([100_000_000, 500_000_000])
        >>> People(n, np.array([3, 4]), np.minimum(n, 200_000_000)).summary()[1]["left"]
        ['0.3', '0.3']
        """
        rows = []
        for part in np.array_split(np.arange(len(self.levels)), min(ranges, len(self.levels)) or 1):
            if not len(part):
                continue
            rows.append(
                {
                    "name": self.names[part[0]] if self.names and len(part) == 1 else None,
                    "people": None if self.private else int(self.counts[part].sum()),
                    "levels": len(part),
                    "budget": _range(self.levels[part]),
                    "spent": _range(self.spent[part]),
                    "left": _range(self.left[part]),
                }
            )
        return rows


def _range(values: NanoArray) -> list[str]:
    return [epsilon_text(int(values.min())), epsilon_text(int(values.max()))]


@dataclass(frozen=True)
class Release:
    """One line of the history: who asked for what, what it cost, how it ended.

    Attributes
    ----------
    id : int
        The ledger's number for it.
    name : str or None
        What the release was called.
    state : str
        ``"reserved"``, ``"committed"`` or ``"failed"``. Why one failed is not kept: it may depend on the private table.
    request : str
        What was asked, as canonical JSON; `kind`, `columns` and `where` are read from it.
    fingerprint : str
        The SHA-256 of the request.
    recipient : str or None
        Who sees it; ``None`` is everybody.
    by : str or None
        Who asked, if they said so.
    total : Nano
        What it cost the person who lost most.
    charges : tuple
        What each single cap was charged: its kind, its name, the amount.
    people : str or None
        What people were charged, in words.
    stored : str or None
        What was committed, as JSON, unless it is long; see `artefact`.
    reserved_at, finished_at : str
        Minutes in UTC.
    epoch : int or None
        How many epochs of a roster that changes were closed then; ``None`` where the roster is fixed.
    fetch : callable or None
        Reads what was committed where it is too long for a page of releases.
    """

    id: int
    name: str | None
    state: str
    request: str
    fingerprint: str
    recipient: str | None
    by: str | None
    total: Nano
    charges: tuple[tuple[str, str, Nano], ...]
    people: str | None
    stored: str | None
    reserved_at: str
    finished_at: str | None
    epoch: int | None = None
    fetch: Callable[[], str | None] | None = field(default=None, repr=False, compare=False)

    @property
    def artefact(self) -> dict[str, Any] | None:
        """What `Ledger.commit` was given. Read when asked for: a history of large results is not."""
        stored = self.fetch() if self.stored is None and self.fetch is not None else self.stored
        return None if stored is None else dict(json.loads(stored))

    @property
    def kind(self) -> str | None:
        """The kind of release: count, histogram..."""
        return question(self.request)[0]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that were asked for by name."""
        return question(self.request)[1]

    @property
    def where(self) -> str | None:
        """The condition on rows, as it was asked."""
        return question(self.request)[2]

    def to_dict(self) -> dict[str, Any]:
        """Exact decimals as text; the request as it was asked."""
        kind, columns, where = question(self.request)
        return {
            "id": self.id,
            "name": self.name,
            "kind": kind,
            "columns": list(columns),
            "where": where,
            "recipient": self.recipient,
            "by": self.by,
            "state": self.state,
            "total": epsilon_text(self.total),
            "charges": [{"kind": k, "name": n, "epsilon": epsilon_text(c)} for k, n, c in self.charges],
            "people": self.people,
            "reserved_at": self.reserved_at,
            "finished_at": self.finished_at,
            "epoch": self.epoch,
            "request": self.request,
            "fingerprint": self.fingerprint,
            "artefact": self.artefact,
        }


class Page(tuple[Release, ...]):
    """Some releases of a dataset that follow each other, oldest first; a tuple that also names the pages beside it.

    Attributes
    ----------
    older : int or None
        What to give as ``before`` for the page before this one; ``None`` if there is none.
    newer : int or None
        What to give as ``after`` for the page after this one; ``None`` if this one is the newest.
    """

    older: int | None
    newer: int | None

    def __new__(cls, releases: Iterable[Release] = (), *, older: int | None = None, newer: int | None = None) -> Page:
        """The page of these `releases`, with the numbers of the pages beside it."""
        page = super().__new__(cls, releases)
        page.older, page.newer = older, newer
        return page

    def to_dict(self) -> dict[str, Any]:
        """The releases and the pages beside this one, ready for JSON."""
        return {"releases": [release.to_dict() for release in self], "older": self.older, "newer": self.newer}


@dataclass(frozen=True)
class Balance:
    """Who has what left in one dataset, all of it read at one moment.

    Attributes
    ----------
    dataset : str
        Its name.
    total : Limit
        The sum of all releases.
    together : Limit or None
        What all recipients learn if they collude.
    attributes, recipients : tuple of Limit
        One each.
    people : People or None
        The public roster and what its people have spent; ``None`` for a private one that changes.
    releases : Page
        The newest releases, oldest first; ``releases.older`` says whether there are others.
    allowances : tuple of Allowance
        What each analyst may spend for each purpose.
    """

    dataset: str
    total: Limit
    together: Limit | None
    attributes: tuple[Limit, ...]
    recipients: tuple[Limit, ...]
    people: People | None
    releases: Page
    allowances: tuple[Allowance, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and text, ready for JSON; many levels come as ranges."""
        return {
            "dataset": self.dataset,
            "total": self.total.to_dict(),
            "together": self.together.to_dict() if self.together else None,
            "attributes": {limit.name: limit.to_dict() for limit in self.attributes},
            "recipients": {limit.name: limit.to_dict() for limit in self.recipients},
            "people": self.people.summary() if self.people else None,
            "allowances": [allowance.to_dict() for allowance in self.allowances],
            **self.releases.to_dict(),
        }
