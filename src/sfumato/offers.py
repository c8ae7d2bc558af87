"""The one notion of a priced way to answer: what is asked, what is public, what each mechanism would cost and do.

A `Request` says what is asked. `Facts` are all that may be known before the price is paid. A family turns the two into
`Offer`s, best first: mechanism, price, expected error, and how to run it once the ledger has taken the charge. `choose`
takes one of them. Nothing here is private, and nothing here reads a table.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sfumato.errors import InputError
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.charge import Charge
from sfumato.privacy.meter import Meter
from sfumato.privacy.terms import Neighbours, Terms
from sfumato.privacy.units import Epsilon, NanoArray, positive_nano

if TYPE_CHECKING:
    from sfumato.tables import Roster, Schema

__all__ = ["AUTO", "GAPS", "Errors", "Facts", "Offer", "Request", "choose"]

AUTO = "auto"
"""The selector: the best offer by preview. Not a mechanism."""

GAPS = (0.01, 0.05, 0.20)
"""Gaps between the stricter people and the rest, as shares of the range, at which a preview states every error."""


@dataclass(frozen=True)
class Request:
    """One release as it was asked for.

    Attributes
    ----------
    name : str
        What the release is called.
    kind : str
        The question: count, sum, mean, histogram, synthesize.
    mechanism : str
        A mechanism's name, or "auto" for the best offer.
    epsilon : Epsilon, optional
        One ε for everybody.
    share : Fraction, optional
        The part of everyone's own budget that this release may use.
    recipient : str, optional
        Who is to have it.
    where : str, optional
        The condition.
    parameters : mapping
        The keys of its kind and of its mechanism.
    independent : bool
        Whether whoever asks states that what people granted has nothing to do with their values.
    """

    name: str
    kind: str
    mechanism: str = AUTO
    epsilon: Epsilon | None = None
    share: Fraction | None = None
    recipient: str | None = None
    where: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    independent: bool = False

    def canonical(self) -> dict[str, Any]:
        """What makes two requests the same: everything but the name, and nothing about where the data lies."""
        stated = {"independent": True} if self.independent else {}  # absent otherwise: older requests keep their names
        return stated | {
            "kind": self.kind,
            "mechanism": self.mechanism,
            "epsilon": None if self.epsilon is None else positive_nano(self.epsilon),
            "share": None if self.share is None else str(self.share),
            "where": self.where,
            "parameters": dict(self.parameters),
        }

    def need_epsilon(self) -> Epsilon:
        """The request's ε, or an error that says how to give it."""
        if self.epsilon is None:
            raise InputError(
                f"release {self.name!r} needs `epsilon`: without a roster of personal budgets one ε holds for all"
            )
        return self.epsilon


@dataclass(frozen=True)
class Facts:
    """Public facts: all a preview may know.

    Attributes
    ----------
    schema : Schema
    budgets : PersonBudgets or None
        Everyone's budget *for this release*; None when one ε holds for all.
    roster : Roster or None
        Where the table's rows find those budgets; with one ε for all it only says who takes part.
    rows : int or None
        A public head count.
    granted : PersonBudgets, int64 array or None
        What everybody granted in all, of which `budgets` is this release's share; two rows, the smallest and the largest
        grant of each group, where they differ within one.
    """

    schema: Schema
    budgets: PersonBudgets | None = None
    roster: Roster | None = None
    rows: int | None = None
    granted: PersonBudgets | NanoArray | None = None

    @cached_property
    def terms(self) -> Terms:
        """Whom a release protects, at how many rows each, and what each group of people may lose by it; yet without a price.

        Every offer is priced under these terms and carries them to the ledger and the Meter.
        """
        given = self.granted.levels if isinstance(self.granted, PersonBudgets) else self.granted
        granted = None if self.budgets is None or given is None else np.asarray(given)
        kind: Literal["public", "private"] = "private" if self.roster is not None and self.roster.private else "public"
        return replace(self.schema.terms, budgets=self.budgets, granted=granted, roster=kind)

    def check_where(self, where: str | None) -> None:
        """Refuse a `where` that cannot be read: a typo is found in the preview, not after the table was opened."""
        self.schema.condition(where)

    def nobody(self, where: str | None) -> bool:
        """Whether the schema alone says that no row can satisfy the condition `where`."""
        return where is not None and self.schema.is_empty(where)


# --- what is offered -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Errors:
    """The error of an answer by how far budgets and values go together, in its own unit (root mean squares).

    The roster is cut in two at some budget, and the mean of the stricter people differs by a gap (a share of the range of
    one person's value) from the mean of the rest. Where it is cut is what hurts the mechanism most. `sfumato.people.gaps`
    computes it.

    Attributes
    ----------
    independent : float
        If what people granted has nothing to do with their values.
    at : tuple of float
        At each gap of `GAPS`: 1, 5 and 20 percentage points.
    worst : float
        The largest over all data, whatever the pattern.
    assumes : bool
        Whether the mechanism rests on independence: its figure is the first one, and wrong otherwise.
    """

    independent: float
    at: tuple[float, ...]
    worst: float
    assumes: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers by name."""
        gaps = {gap_name(gap): error for gap, error in zip(GAPS, self.at, strict=True)}
        return {"independent": self.independent, **gaps, "worst": self.worst, "assumes_independence": self.assumes}


def gap_name(gap: float) -> str:
    """A gap as a key of JSON or a column.

    >>> [gap_name(gap) for gap in GAPS]
    ['gap_1_point', 'gap_5_points', 'gap_20_points']
    """
    points = round(100 * gap)
    return f"gap_{points}_point" + ("" if points == 1 else "s")


@dataclass(frozen=True, eq=False)
class Offer:
    """One way to answer: what it costs, how well it will do, and how to run it.

    Attributes
    ----------
    mechanism : str
    terms : Terms
        What it is held to: whom it protects, against which neighbour, and at which price.
    expected_rmse : float or None
        Root mean square error as far as public facts decide it.
    note : str
        One sentence for whoever chooses.
    run : callable
        ``run(data, meter)``: read, add noise through the Meter, estimate. `data` is a `Dataset` for an offer made from a
        request, and what the family reads (an array, a `Reader`) for one made directly.
    bias_bound : float
        Largest possible bias for any data.
    plan : object
        How it will be done, fixed from public facts; for pictures and experiments.
    errors : Errors or None
        Where budgets differ per person: the error by how far budgets and values go together.
    """

    mechanism: str
    terms: Terms
    expected_rmse: float | None
    note: str
    run: Callable[[Any, Meter], Any] = field(repr=False)
    bias_bound: float = 0.0
    plan: Any = field(default=None, repr=False)
    errors: Errors | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.terms.limit is None:
            raise InputError(f"the offer of {self.mechanism!r} has no price: its terms need a limit (terms.up_to)")

    @property
    def charge(self) -> Charge:
        """What the ledger must reserve before `run`, and what the Meter of the release may not pass."""
        assert self.terms.limit is not None
        return self.terms.limit

    @property
    def budgets(self) -> PersonBudgets | None:
        """The person groups whose losses are kept apart."""
        return self.terms.budgets

    @property
    def neighbours(self) -> Neighbours:
        """What its promise compares with."""
        return self.terms.neighbours

    def reading(self, read: Callable[[Any], Any], **changes: Any) -> Offer:
        """The same offer, but for `changes`, over other data: `read` makes of them what this offer's `run` expects."""
        run = self.run
        return replace(self, run=lambda data, meter: run(read(data), meter), **changes)


def choose(offers: Sequence[Offer], mechanism: str = AUTO, *, place: str = "the request") -> Offer:
    """Take one of the offers.

    Parameters
    ----------
    offers : sequence of Offer
        Best first.
    mechanism : str
        The name of one; "auto" takes the first, the best by preview.
    place : str
        What to call the request in a message.

    Returns
    -------
    Offer
    """
    if mechanism == AUTO:
        return offers[0]
    for offer in offers:
        if offer.mechanism == mechanism:
            return offer
    names = [o.mechanism for o in offers]
    close = difflib.get_close_matches(mechanism, names, n=1)
    hint = f"did you mean {close[0]!r}? Applicable" if close else "applicable"
    listed = ", ".join(names)
    raise InputError(f"{place} asks for mechanism {mechanism!r}; {hint} here: {AUTO} (the best by preview), {listed}")
