"""How calls come together, what they rest on and what they promise: a Meter without its noisy calls.

Blocks nest as the program does. What is in a block is joined by the block's rule (`account`); what the guarantee rests on
is written down as it happens; `guarantee` says what all calls so far promise together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Literal, NoReturn, Protocol, Self, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InputError, PrivacyError
from sfumato.privacy import noise
from sfumato.privacy.account import Account
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.calls import Call
from sfumato.privacy.charge import Charge
from sfumato.privacy.exact import Exact
from sfumato.privacy.group_losses import GroupLosses
from sfumato.privacy.guarantee import ROSTER_IS_PRIVATE, Guarantee
from sfumato.privacy.loss import FAR, Loss, Parties
from sfumato.privacy.source import SECURE, Generator, Source
from sfumato.privacy.terms import Neighbours, Terms

T = TypeVar("T")
Branch = Callable[[], AbstractContextManager[None]]

ONE_METER = "a Meter cannot be copied or stored: two copies would spend one limit twice; keep its guarantee() instead"
ROSTER_IS_PUBLIC = "the roster of who granted which budget is public and does not depend on the data"


class Sample(Protocol):
    """What `Composition.sampled` yields: exact counts per group in, the sampled counts out (an `Exact` for an `Exact`)."""

    @overload
    def __call__(self, counts: Exact[ArrayLike], /) -> Exact[NDArray[np.int64]]: ...
    @overload
    def __call__(self, counts: ArrayLike, /) -> NDArray[np.int64]: ...


class Composition:
    """Blocks, assumptions and the guarantee; parameters as for `Meter`."""

    def __init__(
        self,
        *,
        limit: Charge | None = None,
        budgets: PersonBudgets | None = None,
        granted: ArrayLike | None = None,
        attributes: Sequence[str] = (),
        rows_per_person: int = 1,
        neighbours: Neighbours = "absence",
        roster: Literal["public", "private"] = "public",
        source: Source = SECURE,
    ) -> None:
        self.terms = Terms(
            rows_per_person=rows_per_person,
            neighbours=neighbours,
            limit=limit,
            budgets=budgets,
            granted=None if granted is None else np.asarray(granted, dtype=np.int64),
            attributes=tuple(attributes),
            roster=roster,
        )
        self.budgets = budgets
        self.attributes = self.terms.attributes
        self.rows_per_person = self.terms.rows_per_person
        self.neighbours: Neighbours = self.terms.neighbours
        self._parties = Parties(budgets, self.attributes)
        self._account = Account(self._parties, _limits(self._parties, limit))
        self._groups = None if budgets is None else GroupLosses.of(budgets, granted=granted)
        self._source = source
        # A test may want to see and to replay what reaches the noise (`sfumato.testing`). Secure noise shows nobody.
        self._answered_by = None if source.private else getattr(source, "answer", None)
        self._assumptions: list[str] = []
        if budgets is not None:
            self._assumptions.append(ROSTER_IS_PRIVATE if roster == "private" else ROSTER_IS_PUBLIC)
        self._not_private: list[str] = [] if source.private else ["noise from a seed"]

    @classmethod
    def under(cls, terms: Terms, *, source: Source = SECURE) -> Self:
        """A Meter that holds a release to its `terms`, with noise from `source`."""
        meter = cls(
            limit=terms.limit,
            budgets=terms.budgets,
            granted=terms.granted,
            attributes=terms.attributes,
            rows_per_person=terms.rows_per_person,
            neighbours=terms.neighbours,
            roster=terms.roster,
            source=source,
        )
        meter.terms = replace(meter.terms, person=terms.person, heads=terms.heads)
        return meter

    def __copy__(self) -> NoReturn:
        raise PrivacyError(ONE_METER)

    def __deepcopy__(self, _memo: Any) -> NoReturn:
        raise PrivacyError(ONE_METER)

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        raise PrivacyError(ONE_METER)

    # --- blocks ----------------------------------------------------------------------------------------------------

    @contextmanager
    def parallel(self, why: str) -> Iterator[Branch]:
        """Branches over *disjoint people*: their losses take the maximum, per person group.

        >>> from sfumato.privacy import Meter
        >>> meter = Meter()
        >>> with meter.parallel("each person lives in one region") as branch:
        ...     for region in range(3):
        ...         with branch():
        ...             _ = meter.laplace([5], rate=10**8)
        >>> meter.guarantee().epsilon
        Decimal('0.1')
        """
        self._account.require_branch()
        block = self._account.open("parallel")

        @contextmanager
        def branch() -> Iterator[None]:
            if not self._account.innermost(block):
                raise InputError("open the branches of a parallel block one after the other, directly inside it")
            self._account.open("sequence")
            try:
                yield
            finally:
                self._account.close()

        self.assume(f"disjoint groups: {why}")
        try:
            yield branch
        finally:
            self._account.close()

    @contextmanager
    def sampled(self, thresholds: ArrayLike) -> Iterator[Sample]:
        """Calls inside see a random sample: a record of group g is kept with probability ``thresholds[g] / 2**63``.

        Yields the function that samples exact counts; their last axis is the person groups. A noisy call inside is refused
        until it was used, so that the sample and its price do not drift apart; every value inside must be made from what it
        returns, and an `Exact` that was not is refused.
        """
        if self.neighbours != "absence":
            raise PrivacyError("sampling is priced against absence only; ask for neighbours='absence'")
        self._account.require_branch()
        limits = np.broadcast_to(noise.check_thresholds(thresholds), (self._parties.groups,))
        block = self._account.open("sampled", np.minimum(limits / 2.0**63 * (1 + 2.0**-50), 1.0))

        def drawn(counts: ArrayLike) -> NDArray[np.int64]:
            if np.shape(counts)[-1:] != limits.shape:  # broadcast, a group would be sampled as another
                raise InputError(f"a sample is drawn from counts whose last axis is the {limits.size} person groups")
            call = Call("sample", counts, {"thresholds": limits})
            return self._answer(call, lambda: noise.binomial(counts, limits, source=self._source))

        def sample(counts: Any, /) -> Any:
            if not self._account.inside(block):
                raise InputError("the sampled block is closed: draw its sample inside")
            block.drawn = True
            return counts.map(drawn).drawn_from(block.number) if isinstance(counts, Exact) else drawn(counts)

        try:
            yield cast(Sample, sample)
        finally:
            self._account.close()

    # --- free randomness -------------------------------------------------------------------------------------------

    def post_processing(self) -> Generator:
        """Randomness for what is done *after* the noise (sampling a table from a synopsis). Free, and never noise."""
        return self._source.generator()

    @overload
    def deal(self, records: Exact[int], parts: int) -> Exact[NDArray[np.int64]]: ...
    @overload
    def deal(self, records: int, parts: int) -> NDArray[np.int64]: ...
    def deal(self, records: int | Exact[int], parts: int) -> NDArray[np.int64] | Exact[NDArray[np.int64]]:
        """A part for every record, independent and secret: who is where decides whom a branch speaks of. Free."""

        def dealt(count: int) -> NDArray[np.int64]:
            call = Call("deal", count, {"parts": parts})
            return self._answer(call, lambda: (self._source.words(count) % np.uint64(parts)).astype(np.int64))

        return records.map(dealt) if isinstance(records, Exact) else dealt(records)

    def _open_for_noise(self, value: Any) -> Any:
        """What is to meet its noise: opened if it is private, called if it is a function, or itself."""
        if not isinstance(value, Exact):
            return value() if callable(value) else value
        if value.rows_per_person > self.rows_per_person:
            raise PrivacyError(
                f"one person may own {value.rows_per_person} rows of this table, but the Meter prices "
                f"{self.rows_per_person}; make it under the terms of the table's schema: Meter.under(schema.terms)"
            )
        self._account.require_made_of_samples(value.samples)
        return value._opened_by_the_meter(tell=not self._source.private)

    def _answer(self, call: Call, draw: Callable[[], T]) -> T:
        """The one place where an exact value meets its noise."""
        if call.noisy:
            self._account.require_samples()
        if self._answered_by is None:
            return draw()
        answer: T = self._answered_by(call, draw)
        return answer

    # --- what is promised ------------------------------------------------------------------------------------------

    @property
    def private(self) -> bool:
        """Whether what goes through this Meter may be published as private."""
        return not self._not_private

    def assume(self, assumption: str) -> None:
        """Record what the guarantee rests on."""
        if assumption not in self._assumptions:
            self._assumptions.append(assumption)

    def unsound(self, reason: str) -> None:
        """Announce a step that is not as private as it claims: refused for a real release, marked in an experiment."""
        if self._source.private:
            raise PrivacyError(f"refused: {reason}; such a mechanism runs in experiments with seeded noise only")
        if reason not in self._not_private:
            self._not_private.append(reason)

    def spent(self) -> Charge:
        """The price so far."""
        return Charge.of_loss(self._account.total(), self._parties)

    def guarantee(self) -> Guarantee:
        """What the calls so far promise together."""
        if self._account.nested:
            raise InputError("the guarantee is known when every parallel or sampled block is closed")
        spent = self.spent()
        return Guarantee(
            nano=spent.total,
            neighbours=self.neighbours,
            groups=None if self._groups is None or spent.people is None else self._groups.using(spent.people),
            attributes=spent.attributes,
            rows_per_person=self.rows_per_person,
            person=None if self.terms.heads else self.terms.person,
            assumptions=tuple(self._assumptions),
            steps=tuple(self._account.steps),
            not_private=tuple(self._not_private),
        )


def _limits(parties: Parties, limit: Charge | None) -> Loss:
    """What each party may lose: what the release may cost, and what people grant."""
    most = Loss(np.full(parties.size, FAR, dtype=np.int64)) if limit is None else limit.limits(parties)
    if parties.budgets is not None:
        np.minimum(most.nano[: parties.groups], parties.budgets.levels, out=most.nano[: parties.groups])
    return most
