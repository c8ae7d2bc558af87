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
from sfumato.releases.living import begun
from sfumato.releases.living_private import UnseenPart
from sfumato.releases.pipeline import HEAD_COUNTS, Priced, price, request_text
from sfumato.results import Result, load_result
from sfumato.tables.living import LivingRoster

if TYPE_CHECKING:
    from sfumato.releases.keeping import Kept
    from sfumato.tables import Dataset, Roster, Schema

NEEDED: Final = (
    "the roster is private: noisy head counts are released first, once, and prices and expected errors of what draws on "
    "everyone's own budget need them. State a public guess as counts to see some now"
)
NEEDED_LIVING: Final = (
    "the roster is private: noisy head counts are released first and used until they are made again, and prices and "
    "expected errors of what draws on everyone's own budget need them"
)
GUESSED: Final = (
    "the roster is private: prices and expected errors below rest on the stated counts, a public guess; a release counts "
    "heads with noise first and uses those"
)


def of_heads(schema: Schema, roster: Roster, number: int = 1) -> Priced:
    """Counting the heads of a private roster, priced: from the menu alone. `number` says for which time."""
    offer: Offer = plan_head_counts(roster.menu(), roster.head_share, schema.terms)
    reading = offer.reading(lambda dataset: dataset.heads())
    again = {"count": number} if number > 1 else {}
    request = Request(NAME, HEAD_COUNTS, parameters={"head_share": str(roster.head_share), **again})
    note = NEEDED_LIVING if isinstance(roster, LivingRoster) else NEEDED
    return Priced(request, Facts(schema, roster=roster), (reading,), reading, (note,))


def charged_to_people(counting: Priced, standing: Standing | None) -> Priced:
    """The counting of heads where people change: charged to those of the epoch, which must be there."""
    if not isinstance(counting.facts.roster, LivingRoster):
        return counting
    asked = counting.chosen.charge.people
    assert asked is not None
    return replace(counting, part=UnseenPart.at(asked, begun(standing)))


def newest_heads(
    schema: Schema, roster: Roster, ledger: Ledger | str | Path | None, dataset: str, source: Source
) -> tuple[HeadCounts | None, int]:
    """The last head counts that a ledger has of a dataset, and how often they were made; it is only looked at."""
    newest, times = None, 0
    while (found := known_heads(of_heads(schema, roster, times + 1), ledger, dataset, source)) is not None:
        newest, times = found, times + 1
        if not isinstance(roster, LivingRoster):
            break
    return newest, times


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
    try_out(request, facts.schema, counting.facts.roster, standing)
    return None, ()


def try_out(request: Request, schema: Schema, roster: Roster, standing: Standing | None = None) -> None:
    """Price a request as if people were in every tier: what is wrong with it is said before heads are counted."""
    menu = roster.menu()
    some = PersonBudgets(menu.levels, np.full_like(menu.counts, 1000), menu.names)
    price(request, private_facts(schema, replace(roster, people=some), None, None), standing)


def private_facts(schema: Schema, roster: Roster, rows: int | None, heads: HeadCounts | None) -> Facts:
    """What is public of a private roster: its menu, and noisy (or guessed) head counts at what the counting leaves."""
    left = 1 - roster.head_share
    rest = replace(roster, people=None)
    if not isinstance(roster, LivingRoster):  # of which the ledger says who may be used for how much
        rest = rest.share(left)
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
        def _standing(self, *, binding: bool = False) -> Standing | None: ...

    def head_counts(self, *, again: bool = False) -> HeadCounts:
        """Noisy head counts of a private roster: its first release, made once and at no cost ever after.

        What draws on everyone's own budget makes them by itself, for the part of every budget that the roster's
        `head_share` says. Everything after them is computed from these counts.

        Parameters
        ----------
        again : bool
            Count anew, where people come and go: it costs the same part of every budget again, and later releases use the
            new counts.

        Returns
        -------
        HeadCounts
        """
        roster = self.dataset.budgets
        if roster is None or not roster.private:
            raise InputError("this table has no private roster: head counts of a public one are Table.budgets")
        if again and not isinstance(roster, LivingRoster):
            raise InputError("the people of this table do not change: their heads are counted once")
        known, times = self._counted_heads(roster)
        if known is not None and not again:
            return known
        counting = of_heads(self.dataset.schema, roster, times + 1)
        return cast("HeadCounts", self._made(charged_to_people(counting, self._standing(binding=True))))

    def _counting(self, roster: Roster | None, standing: Standing | None) -> Priced | None:
        """The counting of heads that has still to be made, priced."""
        if roster is None or not roster.private or self._known_heads(roster) is not None:
            return None
        return charged_to_people(of_heads(self.dataset.schema, roster), standing)

    def _known_heads(self, roster: Roster) -> HeadCounts | None:
        return self._counted_heads(roster)[0]

    def _counted_heads(self, roster: Roster) -> tuple[HeadCounts | None, int]:
        """The head counts that the ledger has, and how often they were made; a ledger on a server is asked once opened."""
        place = self._ledger or (self._kept.ledger if self._kept.in_file else None)
        return newest_heads(self.dataset.schema, roster, place, self.name, self._source)
