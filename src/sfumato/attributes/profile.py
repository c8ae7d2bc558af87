"""A person's profile: their budgets, their ledger, and the release of a history to a recipient.

Order of a release: the policy is verified in exact integers against the person's own budgets and catalogue; its price is
written to the person's ledger; only then is the history read, noised on the spot and handed over. What may be spent never
depends on the history, so neither does a refusal.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sfumato.attributes.catalogue import Catalogue
from sfumato.attributes.device_ledger import DeviceLedger, Limits
from sfumato.attributes.policy import Policy
from sfumato.attributes.release import MECHANISM, AttributeRelease, release_histogram
from sfumato.attributes.sums import History, ItemSums, held
from sfumato.errors import BudgetError, InputError
from sfumato.offers import Offer
from sfumato.privacy.budgets import AttributeBudgets
from sfumato.privacy.exact import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.source import SECURE, Source
from sfumato.privacy.units import Epsilon, Nano, positive_nano

if TYPE_CHECKING:
    from sfumato.attributes.recipients import Recipients
    from sfumato.attributes.streams import AttributeStream
    from sfumato.attributes.utility import Utility


class Profile:
    """What a person set once; then every release takes one call.

    Parameters
    ----------
    items : Catalogue, mapping of item to its attributes, or None
        The public catalogue. None on a device that has policies only: histories then list each item's attributes, and
        every listed item counts.
    attributes : sequence of str, optional
        Column order when `items` is a mapping.
    budgets : mapping of attribute to ε, or AttributeBudgets
        What each attribute may lose towards one recipient, over all releases to it.
    recipients : Recipients, optional
        What each recipient may learn overall, and all of them together. Without it `release` must be told `epsilon`.
    releases : int
        How many releases to one recipient the budgets must last; each gets an equal share.
    together : mapping of attribute to ε, optional
        What each attribute may lose towards all recipients together.
    policies : Policy or mapping of recipient to Policy, optional
        Allocations made elsewhere; they are verified, and no solver is loaded.
    utility : "mae", "mse", "mael" or Utility
        What allocations made here minimise.
    ledger : DeviceLedger, optional
        Where charges are kept; in memory if left out.
    once : bool
        Count a repeated item once (the whole item is protected) or every time (each occurrence is).
    source : Source
        Where the random bits come from.

    Examples
    --------
    >>> shop = {"novel": ["paper", "fiction"], "map": ["paper", "travel"], "guide": ["paper", "travel"]}
    >>> profile = Profile(shop, budgets={"paper": 0.5, "fiction": 0.1, "travel": 0.3})
    >>> r = profile.release(["novel", "guide"], to="adnet", epsilon=0.4)
    >>> r.guarantee.epsilon <= 0.4, r.guarantee.attributes["fiction"] <= 100_000_000
    (True, True)
    """

    def __init__(
        self,
        items: Catalogue | Mapping[Any, Any] | None,
        attributes: Sequence[str] | None = None,
        *,
        budgets: Mapping[str, Epsilon] | AttributeBudgets,
        recipients: Recipients | None = None,
        releases: int = 1,
        together: Mapping[str, Epsilon] | None = None,
        policies: Policy | Mapping[str, Policy] | None = None,
        utility: str | Utility = "mae",
        ledger: DeviceLedger | None = None,
        once: bool = True,
        source: Source = SECURE,
    ) -> None:
        if releases < 1:
            raise InputError(f"releases must be at least 1, got {releases}")
        if items is None and policies is None:
            raise InputError("give the public catalogue, or policies that were made from it")
        self.catalogue = items if isinstance(items, Catalogue) or items is None else Catalogue.of(items, attributes)
        self.budgets = budgets if isinstance(budgets, AttributeBudgets) else AttributeBudgets.of(budgets)
        self.recipients = recipients
        self.releases = int(releases)
        self.utility = utility
        self.once = once
        self.ledger = ledger if ledger is not None else DeviceLedger()
        self._policies = policies
        self._together = AttributeBudgets.of(together).nano if together else {}
        self._source = source

    # --- before anything is read -------------------------------------------------------------------------------------

    def limits(self, to: str) -> Limits:
        """The caps of the person's ledger towards the recipient `to`, in nano-ε."""
        rule = self.recipients
        overall = Nano(sum(self.budgets.nano.values())) if rule is None else rule.nano(to)
        cap = None if rule is None else rule.budgets.together
        return Limits(overall, self.budgets.nano, cap, self._together)

    def policy(self, *, to: str, epsilon: Epsilon | None = None) -> Policy:
        """The verified policy of a release to the recipient `to`, at `epsilon` overall or at the recipient's share."""
        overall = self._share(to, epsilon)
        shipped = self._policies if isinstance(self._policies, Policy) else (self._policies or {}).get(to)
        if shipped is None:
            if self.catalogue is None:
                raise InputError(f"no policy for recipient {to!r} and no catalogue to make one from")
            return self._allocate(overall)
        if self.catalogue is not None:
            shipped.require_same_columns(self.catalogue.attributes, self.catalogue.unit)
            # Priced with the person's own catalogue: a policy that left heavy items out is caught here.
            shipped = replace(shipped, rows=self.catalogue.maximal)
        shipped.verify(
            shipped.rows, budgets=self._budget_shares(shipped.attributes).array(shipped.attributes), overall=overall
        )
        return shipped

    def preview(self, *, to: str, epsilon: Epsilon | None = None) -> list[Offer]:
        """Price and expected error of every allocation, best first; nothing is spent and no history is read.

        Parameters
        ----------
        to : str
            The recipient.
        epsilon : ε, optional
            Overall budget of the release; the recipient's share by default.

        Returns
        -------
        list of Offer
            Each runs on a history and charges the person's ledger as `release` does; its `plan` is the policy.
        """
        from sfumato.attributes.allocation import allocate, compose
        from sfumato.attributes.bounds import expected_errors

        if self.catalogue is None:
            found = [self.policy(to=to, epsilon=epsilon)]
        else:
            shares, overall = self._budget_shares(self.catalogue.attributes), _decimal(self._share(to, epsilon))
            kinds = dict.fromkeys([self.utility, "mae", "mse", "mael"])
            found = [allocate(self.catalogue, budgets=shares, epsilon=overall, utility=u) for u in kinds]
            found.append(compose(self.catalogue, budgets=shares, epsilon=overall))
        offers = []
        for policy in found:
            errors = expected_errors(policy)
            note = f"{policy.utility}: mean absolute error {errors['mae']:.4g}, {errors['mael']:.3g} above the best noise"
            run = partial(self._offered, policy, to)
            rmse = float(np.sqrt(errors["mse"]))
            offers.append(Offer(MECHANISM, policy.terms, rmse, note, run, plan=policy))
        return sorted(offers, key=lambda offer: offer.expected_rmse or 0.0)

    # --- releases ----------------------------------------------------------------------------------------------------

    def release(
        self,
        history: History,
        *,
        to: str,
        epsilon: Epsilon | None = None,
        exhausted: Literal["refuse", "repeat"] = "refuse",
    ) -> AttributeRelease:
        """Noise the history's attribute sums for one recipient and charge the person's ledger.

        Parameters
        ----------
        history : items, a function that returns them, or an Exact of them
            Read after the charge was written. Items outside the catalogue count nothing.
        to : str
            The recipient.
        epsilon : ε, optional
            Overall budget of this release; the recipient's share by default.
        exhausted : "refuse" or "repeat"
            When a budget is used up: raise `BudgetError`, or hand over the last release to this recipient again, which
            costs nothing because the recipient has it already.

        Returns
        -------
        AttributeRelease
        """
        private = held(history)
        policy = self.policy(to=to, epsilon=epsilon)
        try:
            self.ledger.charge(to, policy.charge, self.limits(to))
        except BudgetError:
            stored = self.ledger.latest(to)
            if exhausted != "repeat" or stored is None:
                raise
            return _recalled(stored)
        return self._paid(policy, to, private, self._meter(policy))

    def _offered(self, policy: Policy, to: str, history: History, meter: Meter) -> AttributeRelease:
        self.ledger.charge(to, policy.charge, self.limits(to))
        return self._paid(policy, to, held(history), meter)

    def _paid(self, policy: Policy, to: str, history: Exact[Iterable[Any]], meter: Meter) -> AttributeRelease:
        result = release_histogram(self._sums(history, policy), policy, meter, recipient=to)
        self.ledger.remember(to, result.to_dict())
        return result

    def stream(self, *, to: str, epsilon: Epsilon | None = None, fanout: int = 16) -> AttributeStream:
        """Open a stream to a recipient: paid once, then items may arrive for ever.

        Parameters
        ----------
        to : str
            The recipient.
        epsilon : ε, optional
            Overall budget of the whole stream; the recipient's share by default.
        fanout : int
            Children per node of the tree of steps.

        Returns
        -------
        AttributeStream
        """
        from sfumato.attributes.streams import AttributeStream

        policy = self.policy(to=to, epsilon=epsilon)
        self.ledger.charge(to, policy.charge, self.limits(to))
        about: dict[str, Any] = {"catalogue": self.catalogue, "recipient": to, "fanout": fanout, "ledger": self.ledger}
        return AttributeStream(policy, self._meter(policy), **about)

    def resume_stream(self, path: str | os.PathLike[str]) -> AttributeStream:
        """Go on with a stream that was kept in a file; nothing is charged, and its noise is what it was.

        Parameters
        ----------
        path : path
            Where `AttributeStream.save` put it.

        Returns
        -------
        AttributeStream

        Raises
        ------
        LedgerError
            If the file is damaged, belongs to another ledger, or is older than what the ledger knows of the stream.
        """
        from sfumato.attributes.stream_file import StreamFile, put_back
        from sfumato.attributes.streams import AttributeStream

        file, public, private = StreamFile.read(path, self.ledger)
        policy, to, fanout = public["policy"], public["recipient"], public["fanout"]
        about: dict[str, Any] = {"catalogue": self.catalogue, "recipient": to, "fanout": fanout, "ledger": self.ledger}
        stream = AttributeStream(policy, self._meter(policy), **about)
        put_back(stream, public, private)
        stream.kept_in(file)
        return stream

    # --- parts -------------------------------------------------------------------------------------------------------

    def _share(self, to: str, epsilon: Epsilon | None) -> Nano:
        if epsilon is not None:
            return positive_nano(epsilon)
        if self.recipients is None:
            raise InputError(f"how much may {to!r} learn? give epsilon, or a Recipients rule to the profile")
        return Nano(max(1, self.recipients.nano(to) // self.releases))

    def _budget_shares(self, attributes: Sequence[str]) -> AttributeBudgets:
        """What one release may use of each attribute's budget."""
        shares = np.maximum(self.budgets.array(attributes) // self.releases, 1).tolist()
        return AttributeBudgets({name: Nano(share) for name, share in zip(attributes, shares, strict=True)})

    def _allocate(self, overall: Nano) -> Policy:
        from sfumato.attributes.allocation import allocate

        assert self.catalogue is not None
        shares = self._budget_shares(self.catalogue.attributes)
        return allocate(self.catalogue, budgets=shares, epsilon=_decimal(overall), utility=self.utility)

    def _meter(self, policy: Policy) -> Meter:
        return Meter.under(policy.terms, source=self._source)

    def _sums(self, history: Exact[Iterable[Any]], policy: Policy) -> ItemSums:
        return policy.sums(history) if self.catalogue is None else self.catalogue.histogram(history, once=self.once)


def _decimal(nano: Nano) -> Epsilon:
    from sfumato.privacy.units import as_epsilon

    return as_epsilon(nano)


def _recalled(stored: dict[str, Any]) -> AttributeRelease:
    again = "a budget is used up: this is the last release again, at no cost; the history may have moved on"
    made = AttributeRelease.from_dict(stored)
    return replace(made, again=True, warnings=(*made.warnings, again))
