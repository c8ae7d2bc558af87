"""What a release will promise at most, told from its price before anything is read.

The certificate's guarantee is computed by the Meter from the noise that was drawn, and the Meter stops a release that would
pass its price. So whoever is asked to approve may be told the promise at the full price: what is kept is never weaker.
"""

from __future__ import annotations

import numpy as np

from sfumato.privacy.composition import ROSTER_IS_PUBLIC
from sfumato.privacy.group_losses import GroupLosses
from sfumato.privacy.guarantee import ROSTER_IS_PRIVATE, Guarantee
from sfumato.privacy.units import Nano
from sfumato.releases.pipeline import Priced


def promised(priced: Priced) -> Guarantee:
    """The guarantee of a release that spends its whole price.

    Parameters
    ----------
    priced : Priced
        A release of a preview.

    Returns
    -------
    Guarantee
        Without steps: nothing was done yet.
    """
    terms, charge = priced.chosen.terms, priced.chosen.charge
    groups: GroupLosses | None = None
    assumed: tuple[str, ...] = ()
    if terms.budgets is not None:
        paid = np.full(terms.budgets.levels.shape, charge.total) if charge.people is None else charge.people
        groups = GroupLosses.of(terms.budgets, granted=terms.granted).using(np.minimum(paid, terms.budgets.levels))
        assumed = (ROSTER_IS_PRIVATE if terms.roster == "private" else ROSTER_IS_PUBLIC,)
    return Guarantee(
        nano=charge.total,
        neighbours=terms.neighbours,
        groups=groups,
        attributes={name: Nano(int(nano)) for name, nano in charge.attributes.items()},
        rows_per_person=terms.rows_per_person,
        person=None if terms.heads else terms.person,
        assumptions=assumed,
    )
