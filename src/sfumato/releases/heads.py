"""The first step of every release from a private roster: noisy head counts, made once, kept in the ledger, used ever after.

Until they are there, nothing is known of a private roster but its menu. Prices of what draws on everyone's own budget need
head counts, so a preview then shows the price of counting, or works from a public guess and says so.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from sfumato.errors import InputError
from sfumato.ledger import Ledger, Standing, recall
from sfumato.offers import Facts, Offer, Request
from sfumato.people.head_counts import NAME, HeadCounts, head_noise, plan_head_counts
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.source import Source
from sfumato.releases.pipeline import HEAD_COUNTS, Priced, price, request_text
from sfumato.results import Result, load_result

if TYPE_CHECKING:
    from sfumato.releases.keeping import Kept
    from sfumato.tables import Dataset, Roster, Schema

NEEDED: Final = (
    "the roster is private: noisy head counts are released first, once, and prices and expected errors of what draws on "
    "everyone's own budget need them. State a public guess as counts to see some now"
)
GUESSED: Final = (
    "the roster is private: prices and expected errors below rest on the stated counts, a public guess; a release counts "
    "heads with noise first and uses those"
)


def of_heads(schema: Schema, roster: Roster) -> Priced:
    """Counting the heads of a private roster, priced: from the menu alone."""
    offer: Offer = plan_head_counts(roster.menu(), roster.head_share, schema.terms)
    reading = offer.reading(lambda dataset: dataset.heads())
    request = Request(NAME, HEAD_COUNTS, parameters={"head_share": str(roster.head_share)})
    return Priced(request, Facts(schema, roster=roster), (reading,), reading, (NEEDED,))


def known_heads(counting: Priced, ledger: Ledger | str | Path | None, dataset: str, source: Source) -> HeadCounts | None:
    """The head counts that a ledger has of a dataset, where there are any; it is only looked at."""
    asked = request_text(counting, dataset_name=dataset, source=source)
    if isinstance(ledger, Ledger):
        found = ledger.find(dataset, asked)
        artefact = None if found is None else found.artefact
    else:
        artefact = None if ledger is None else recall(ledger, dataset, asked)
    made = None if artefact is None or "result" not in artefact else load_result(artefact["result"])
    return made if isinstance(made, HeadCounts) else None


def seen_beforehand(
    request: Request, facts: Facts, counting: Priced | None, standing: Standing | None = None
) -> tuple[Priced | None, tuple[str, ...]]:
    """A request priced, and what is to be said of a guess; None where it has to wait for the `counting` of heads."""
    if counting is None or request.epsilon is not None:
        return price(request, facts, standing), ()
    if facts.budgets is not None:
        return price(request, facts), (GUESSED,)
    assert counting.facts.roster is not None
    try_out(request, facts.schema, counting.facts.roster)
    return None, ()


def try_out(request: Request, schema: Schema, roster: Roster) -> None:
    """Price a request as if people were in every tier: what is wrong with it is said before heads are counted."""
    menu = roster.menu()
    some = PersonBudgets(menu.levels, np.full_like(menu.counts, 1000), menu.names)
    price(request, private_facts(schema, replace(roster, people=some), None, None))


def private_facts(schema: Schema, roster: Roster, rows: int | None, heads: HeadCounts | None) -> Facts:
    """What is public of a private roster: its menu, and noisy (or guessed) head counts at what the counting leaves."""
    left = 1 - roster.head_share
    rest = replace(roster, people=None).share(left)
    found = heads.budgets if heads is not None else guess(schema, roster)
    if found is None:
        return Facts(schema, roster=rest, rows=rows)
    return Facts(schema, found.share(left), rest, rows, granted=found)


def guess(schema: Schema, roster: Roster) -> PersonBudgets | None:
    """The stated counts of a private roster as if they had been counted."""
    if roster.people is None:
        return None
    noise = head_noise(roster.people.levels, roster.head_share, schema.terms.neighbours)
    counts = roster.people.counts.clip(min=1)
    return PersonBudgets(roster.people.levels, counts, roster.people.names, noise)


class WithHeads:
    """What a table with a private roster can do beside the others: count its heads."""

    dataset: Dataset
    name: str
    _kept: Kept
    _ledger: Ledger | None
    _source: Source

    if TYPE_CHECKING:

        def _made(self, priced: Priced) -> Result: ...

    def head_counts(self) -> HeadCounts:
        """Noisy head counts of a private roster: its first release, made once and at no cost ever after.

        What draws on everyone's own budget makes them by itself, for the part of every budget that the roster's
        `head_share` says. Everything after them is computed from these counts.

        Returns
        -------
        HeadCounts
        """
        roster = self.dataset.budgets
        if roster is None or not roster.private:
            raise InputError("this table has no private roster: head counts of a public one are Table.budgets")
        known = self._known_heads(roster)
        return cast("HeadCounts", self._made(of_heads(self.dataset.schema, roster))) if known is None else known

    def _counting(self, roster: Roster | None) -> Priced | None:
        """The counting of heads that has still to be made, priced."""
        unknown = roster is not None and roster.private and self._known_heads(roster) is None
        return of_heads(self.dataset.schema, roster) if roster is not None and unknown else None

    def _known_heads(self, roster: Roster) -> HeadCounts | None:
        """The head counts that the ledger has; one on a server is asked once it was opened."""
        place = self._ledger or (self._kept.ledger if self._kept.in_file else None)
        return known_heads(of_heads(self.dataset.schema, roster), place, self.name, self._source)
