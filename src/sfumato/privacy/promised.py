"""What a release will promise at most, told from its terms before anything is read.

The certificate's guarantee is computed by the Meter from the noise that was drawn, and the Meter stops a release that would
pass its limit. So whoever is asked to approve may be told the promise at the full price: what is kept is never weaker.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.errors import InputError
from sfumato.privacy.composition import ROSTER_IS_PUBLIC
from sfumato.privacy.group_losses import GroupLosses
from sfumato.privacy.guarantee import ROSTER_IS_PRIVATE, Guarantee
from sfumato.privacy.terms import Terms
from sfumato.privacy.units import Nano


def promised(terms: Terms) -> Guarantee:
    """The guarantee of a release that spends its whole limit.

    Parameters
    ----------
    terms : Terms
        What the release is held to, with its limit.

    Returns
    -------
    Guarantee
        Without steps: nothing was done yet.

    Examples
    --------
    >>> from sfumato.privacy.charge import Charge
    >>> promised(Terms().up_to(Charge.of("0.1"))).sentence()[:54]
    'Whoever sees this release can hardly tell whether any '
    """
    limit = terms.limit
    if limit is None:
        raise InputError("a promise is told from a price: these terms have none (terms.up_to)")
    groups: GroupLosses | None = None
    assumed: tuple[str, ...] = ()
    if terms.budgets is not None:
        paid = np.full(terms.budgets.levels.shape, limit.total) if limit.people is None else limit.people
        groups = GroupLosses.of(terms.budgets, granted=terms.granted).using(np.minimum(paid, terms.budgets.levels))
        assumed = (ROSTER_IS_PRIVATE if terms.roster == "private" else ROSTER_IS_PUBLIC,)
    return Guarantee(
        nano=limit.total,
        neighbours=terms.neighbours,
        groups=groups,
        attributes={name: Nano(int(nano)) for name, nano in limit.attributes.items()},
        rows_per_person=terms.rows_per_person,
        person=None if terms.heads else terms.person,
        assumptions=assumed,
    )


def promised_together(each: Sequence[Terms]) -> Guarantee | None:
    """The guarantee of releases that all spend their limit, of the same people: losses in sequence add up.

    Parameters
    ----------
    each : sequence of Terms
        What each release is held to.

    Returns
    -------
    Guarantee or None
        None where they do not compare with the same neighbour, so that no one sentence says what they promise.
    """
    kinds = {(terms.neighbours, terms.rows_per_person, terms.person, terms.heads) for terms in each}
    if len(kinds) != 1:
        return None
    ((neighbours, rows, person, heads),) = kinds
    total = sum(int(terms.limit.total) for terms in each if terms.limit is not None)
    return Guarantee(Nano(total), neighbours=neighbours, rows_per_person=rows, person=None if heads else person)
