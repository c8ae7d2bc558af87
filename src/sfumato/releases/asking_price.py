"""How a plan's releases are priced at other prices than their own: for `sfumato preview --error` and `--chart`."""

from __future__ import annotations

from sfumato.errors import InputError
from sfumato.offers import Request
from sfumato.privacy.source import SECURE, Source
from sfumato.releases.curves import Curves, curves
from sfumato.releases.heads import seen_beforehand
from sfumato.releases.pipeline import Priced, default_shares
from sfumato.releases.plan import Plan
from sfumato.releases.plan_facts import facts_of
from sfumato.releases.plan_people import standing_in
from sfumato.releases.wanted import Needed, Pricing, Unit, needed, wanted_error
from sfumato.tables.living import LivingRoster


class PlanPrices:
    """Prices of the releases of a plan, as they are asked and at others. Opens what a preview opens; writes nothing.

    Parameters
    ----------
    plan : Plan
    only : str, optional
        The release to look at; all of them if left out.
    source : Source
    """

    def __init__(self, plan: Plan, *, only: str | None = None, source: Source = SECURE) -> None:
        roster = plan.roster()
        self.facts, counting = facts_of(plan, roster, source)
        standing = standing_in(plan) if isinstance(roster, LivingRoster) else None
        every = default_shares(plan.releases, roster is not None)
        self.requests = tuple(r for r in every if only in (None, r.name))
        if not self.requests:
            known = ", ".join(r.name for r in every)
            raise InputError(f"the plan has no release {only!r}; it has {known}")

        def pricing(request: Request) -> Priced:
            found, _ = seen_beforehand(request, self.facts, counting, standing)
            return found if found is not None else waits(request)

        self.pricing: Pricing = pricing

    def needed(
        self,
        *,
        error: float | None = None,
        relative: float | None = None,
        size: float | None = None,
        confidence: float | None = None,
    ) -> list[Needed | str]:
        """For each release the smallest price with that error, or the sentence that says why there is none."""
        found: list[Needed | str] = []
        for request in self.requests:
            wanted = wanted_error(error, relative, size, request, self.facts.rows)
            try:
                found.append(needed(request, self.pricing, error=wanted, unit=unit_of(request), confidence=confidence))
            except InputError as why:
                found.append(str(why))
        return found

    def curves(self) -> list[Curves]:
        """Error against price for each release."""
        return [curves(request, self.pricing, unit=unit_of(request)) for request in self.requests]


def unit_of(request: Request) -> Unit:
    """What a request is paid in."""
    return "share" if request.epsilon is None and request.share is not None else "epsilon"


def waits(request: Request) -> Priced:
    """Refuse what has no price before the heads of a private roster are counted."""
    raise InputError(
        f"release {request.name!r} draws on everyone's own budget and the roster is private: its errors are known once the "
        "heads are counted; state a public guess as counts, or ask with one `epsilon`"
    )
