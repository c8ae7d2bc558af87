"""Releases on a roster that is private and living: people come, go and change their minds, and nobody is told who they are.

Public are the menu (the tiers with their ε), that an epoch was closed, the list of releases with what each asks of a tier,
and noisy head counts. What a person granted, what was spent on them, and whether they are there at all is their record.

A release asks ``c_g`` of a person of tier g. The ledger charges everybody of the tier who has that much left, for life and
in their period, and nobody else; a row weighs at most ``c_g`` if its person was charged, and nothing if not. No sentence,
price or certificate depends on who was: all of them are computed from the menu and the noisy counts.

Guarantee. Let person p be absent altogether, from the ledger and from the table, and let both worlds have published the same
so far. Then

1. what is public before a release is the same in both: the menu, the epoch's number, the noisy counts, the list of releases.
   So are its price, the mechanism that is chosen, its weights m_h <= c_h for each tier h, and its noise;
2. every other person q is charged the same in both: what q pays depends on c and on q's own tier, grant, period and
   spending, and these only on q's own choices and, by induction, on what q paid before. So q weighs the same;
3. p weighs m_g <= c_g if charged, and nothing otherwise. So the sums of the two worlds differ by p's rows alone, at p's
   weight: as on a public roster the Meter's loss for tier g is at most c_g, which is what p was charged, or 0 as p was.

The head counts are such a release with one head for everybody who was charged: ``n_g`` counts members of the ledger of
tier g who paid ``c_g = ρ ε_g``. Without p, n_g is one less if p paid, and all counts are the same if p did not. Persons of
the table would do for this too; members of the ledger are what a public living roster counts, and however the table spells
somebody, or how often, they are one head.

Summed over releases, whose questions may depend on what was published before (adaptive composition), p loses at most what p
was charged in all, and the ledger charges nobody more than they have left: never more than p's grant, nor in a period more
than its cap. A choice of p's may depend on p's own data, which is part of the same record; one of q's must not depend on p's
data but through what was published. A receipt tells p's own lines and is for p alone.

Counted again, heads are charged again: ρ of each budget for every count. Whoever joins between two counts, withdraws, or has
spent what a release asks makes the noisy counts old: answers that divide by them are then off by that, and no promise of
privacy is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.offers import Facts, Request
from sfumato.privacy.charge import Charge
from sfumato.privacy.units import NanoArray, epsilon_text, positive_nano
from sfumato.releases.living import Part, begun

if TYPE_CHECKING:
    from sfumato.ledger import Life, Standing
    from sfumato.tables.living import LivingRoster


@dataclass(frozen=True, eq=False)
class UnseenPart(Part):
    """Who may take part in a release from a private roster: tiers of the menu, nobody counted.

    Attributes
    ----------
    standing : Standing
        The menu and the epoch.
    asked, usable, levels : int64 array
        What the release may use of a person of each tier who can pay for it, in nano-ε: all three the same.
    """

    @classmethod
    def at(cls, usable: NanoArray, standing: Standing) -> UnseenPart:
        """Tiers of the menu at `standing`, each with what is `usable` of its people."""
        return cls(standing, usable, usable, usable)

    def charge(self, price: Charge) -> Charge:
        """The `price` as the ledger takes it: one amount for each tier of the menu."""
        each = np.full(self.usable.shape, price.total, dtype=np.int64) if price.people is None else price.people
        return Charge(price.total, each, price.attributes)

    def after(self, price: Charge) -> Standing:
        """What a later release sees: the same menu."""
        return self.standing

    def roster(self, roster: LivingRoster, life: Life, release_id: int) -> LivingRoster:
        """The `roster` of a release that was charged: a row finds the tier that its person was charged in."""

        def tier(persons: Any) -> NDArray[np.int64]:
            return np.asarray(life.taking_part(release_id, persons), dtype=np.int64) + 1

        return roster.charged_by_tier(self.usable, tier, lambda: life.heads_charged(release_id))

    def notes(self) -> tuple[str, ...]:
        """Nothing: who has too little left is not told."""
        return ()

    def record(self, price: Charge) -> dict[str, Any]:
        """For the certificate: the epoch, and what was asked of each tier; who could pay it is not told."""
        asked = self.charge(price).people
        assert asked is not None
        tiers = zip(self.standing.tiers, asked.tolist(), strict=True)
        each = [{"tier": name, "people": None, "asked": epsilon_text(nano)} for name, nano in tiers]
        return {"epoch": self.standing.epoch, "people": None, "charged": each, "cohorts": None}


def admitted_unseen(request: Request, facts: Facts, standing: Standing | None) -> tuple[UnseenPart, Facts]:
    """What `request` may use of each tier of a private menu, and the facts that its price is computed from."""
    menu = begun(standing)
    if request.epsilon is not None:
        usable = np.full(menu.grants.shape, positive_nano(request.epsilon), dtype=np.int64)
        return UnseenPart.at(usable, menu), replace(facts, budgets=None, granted=None)
    if facts.budgets is None:
        raise InputError("the roster is private: its heads are counted with noise before this can be priced")
    budgets = facts.budgets.share(request.share or Fraction(1))
    return UnseenPart.at(budgets.levels, menu), replace(facts, budgets=budgets)
