"""Head counts of a private roster, released first: everything after them uses these noisy counts and never the true ones.

The menu of budgets (the tiers, with their ε) is public. Whether a person granted one, and which, is part of their record.
The number of people in tier g gets discrete Laplace noise, a head at weight ``w_g = ρ ε_g`` nano-ε and noise of one unit:

    N_g = (w_g n_g + Lap(1e9)) / w_g,      rounded, and at least 1

Guarantee. Let a person of tier g be absent altogether, or only their budget entry be missing, so that their rows count
nowhere. In both cases n_g falls by one and no other count moves, whatever rows they own: the vector moves by w_g in one
place, and they lose w_g <= ρ ε_g. Every later step is computed from N and the menu: caps, weights, parts, denominators,
prices, previews, reports and messages are post-processing of it, the same for both tables given the same N. A release
of share s uses weights of at most s (1-ρ) ε_g for tier g, so the absence of the person, who weighs nothing where they have
no budget entry, moves its sums by no more than under a public roster, and costs at most s (1-ρ) ε_g. Shares add up to
at most one, so the losses add up to at most ρ ε_g + (1-ρ) ε_g = ε_g: the choice of budget is in it. Each step may depend
on the published results of those before (adaptive composition), and the ledger refuses what would pass ε_g.

Change of tier. Let the person choose h instead of g. From the table with g to the one without the person they lose at most
ε_g, from there to the one with h at most ε_h: together at most ε_g + ε_h. Against *replacement* every weight is halved
(`Terms`), so it is at most (ε_g + ε_h)/2, no more than the larger.

Error. ``N_g - n_g`` is Laplace noise of scale 1/(ρ ε_g) people, rounded: where a later answer multiplies by a head count,
this enters its error (`linear`). At ρ = .05 and ε = .005 the scale is 4,000 people; at ε = .5 it is 40.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import BudgetError
from sfumato.offers import Offer
from sfumato.privacy import NANO, Charge, Exact, Guarantee, Meter, PersonBudgets
from sfumato.privacy.terms import Terms
from sfumato.privacy.units import epsilon_text
from sfumato.results import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NAME = "head counts"
NOTE = "people per tier of a private roster, with noise; everything after it uses these counts"


@dataclass(frozen=True, eq=False)
class HeadCounts(Result):
    """Noisy head counts of a private roster.

    Attributes
    ----------
    counts : int64 array
        People per tier, at least 1 each.
    levels : int64 array
        What a person of each tier granted in all, in nano-ε.
    names : tuple of str
        The tiers.
    share : Fraction
        The part of every budget that the counts cost.
    guarantee : Guarantee
        What the release promises.
    mechanism : str
    parameters : mapping
    warnings : tuple of str
    """

    counts: NDArray[np.int64]
    levels: NDArray[np.int64]
    names: tuple[str, ...]
    share: Fraction
    guarantee: Guarantee
    mechanism: str = "laplace"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def scales(self) -> NDArray[np.float64]:
        """Scale of the noise in each count, in people."""
        return head_noise(self.levels, self.share, self.guarantee.neighbours)

    @property
    def expected_rmse(self) -> float:
        """Of the number of all people."""
        return float(np.sqrt(2 * np.square(self.scales).sum()))

    @property
    def budgets(self) -> PersonBudgets:
        """Everybody's whole grant, with these counts and their noise."""
        return PersonBudgets(self.levels, self.counts, self.names, self.scales)

    def interval(self, confidence: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For each tier, between which numbers the true one lies with a probability of `confidence`."""
        half = -np.log1p(-confidence) * self.scales + 0.5
        return np.maximum(self.counts - half, 0.0), self.counts + half

    def to_frame(self) -> pd.DataFrame:
        """One row per tier, with a 95% interval."""
        import pandas as pd

        low, high = self.interval()
        granted = [epsilon_text(int(level)) for level in self.levels]
        return pd.DataFrame({"tier": self.names, "granted": granted, "people": self.counts, "low": low, "high": high})

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return {
            **super().to_dict(),
            "counts": self.counts.tolist(),
            "levels": self.levels.tolist(),
            "names": list(self.names),
            "share": str(self.share),
            "mechanism": self.mechanism,
            "parameters": dict(self.parameters),
            "warnings": list(self.warnings),
            "guarantee": self.guarantee.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The head counts that `to_dict` wrote down as `data`."""
        return cls(
            counts=np.array(data["counts"], dtype=np.int64),
            levels=np.array(data["levels"], dtype=np.int64),
            names=tuple(data["names"]),
            share=Fraction(data["share"]),
            guarantee=Guarantee.from_dict(data["guarantee"]),
            mechanism=data["mechanism"],
            parameters=dict(data["parameters"]),
            warnings=tuple(data["warnings"]),
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the counts with their intervals, on `ax` or on a new figure."""
        import matplotlib.pyplot as plt

        shown = ax if ax is not None else plt.subplots()[1]
        low, high = self.interval()
        shown.bar(self.names, self.counts, yerr=[self.counts - low, high - self.counts], capsize=4)
        shown.set_ylabel("people")
        return shown

    def __repr__(self) -> str:
        each = ", ".join(f"{name} {n:,}" for name, n in zip(self.names, self.counts.tolist(), strict=True))
        return f"HeadCounts({each}{'' if self.guarantee.private else ', NOT PRIVATE'})"


def head_weights(levels: NDArray[np.int64], share: Fraction, neighbours: str = "absence") -> NDArray[np.int64]:
    """What a head weighs, in nano-ε: `share` of its level, half of that against replacement; rounded down.

    >>> head_weights(np.array([5_000_000, 10**9]), Fraction(1, 20)).tolist()
    [250000, 50000000]
    """
    part = share / 2 if neighbours == "replacement" else share
    return np.array([level * part.numerator // part.denominator for level in levels.tolist()], dtype=np.int64)


def head_noise(levels: NDArray[np.int64], share: Fraction, neighbours: str = "absence") -> NDArray[np.float64]:
    """Scale of the noise in each head count, in people."""
    return np.asarray(NANO / head_weights(levels, share, neighbours))


def plan_head_counts(menu: PersonBudgets, share: Fraction, terms: Terms) -> Offer:
    """The one way to count heads, priced.

    Parameters
    ----------
    menu : PersonBudgets
        The public menu: levels and names, sorted by level. Its counts are not looked at.
    share : Fraction
        The part ρ of every budget that it costs.
    terms : Terms
        Whom a release of the table protects.

    Returns
    -------
    Offer
        Runs on an `Exact` with the number of people in each tier, one head for each person.

    Examples
    --------
    >>> menu = PersonBudgets.from_tiers({"strict": (0.1, 0), "open": (1, 0)})
    >>> offer = plan_head_counts(menu, Fraction(1, 20), Terms())
    >>> offer.charge.people.tolist()
    [5000000, 50000000]
    >>> made = offer.run(Exact(np.array([30, 40])), Meter.under(offer.terms))
    >>> made.names, bool((made.counts >= 1).all())
    (('strict', 'open'), True)
    """
    empty = PersonBudgets(menu.levels, np.zeros_like(menu.counts), menu.names)
    weights = head_weights(menu.levels, share, terms.neighbours)
    if int(weights.min()) < 1:
        raise BudgetError(
            f"a share of {float(share):g} of the smallest budget cannot pay for counting heads; raise head_share"
        )
    held = replace(terms.per_head(), roster="private", granted=None, attributes=())
    price = Charge.of_people(weights * held.factor)
    names = menu.names or tuple(menu.name(group) for group in range(menu.groups))

    def run(heads: Exact[NDArray[np.int64]], meter: Meter) -> HeadCounts:
        noisy = meter.laplace(
            heads.map(lambda found: found.astype(object) * weights),
            rate=np.ones(menu.groups, dtype=np.int64),
            weights=weights,
            label=NAME,
        )
        counts = np.maximum(np.rint(noisy / weights), 1).astype(np.int64)
        about = {"head_share": str(share)}
        return HeadCounts(counts, np.asarray(menu.levels), names, share, meter.guarantee(), parameters=about)

    rmse = float(np.sqrt(2 * np.square(head_noise(menu.levels, share, terms.neighbours)).sum()))
    return Offer("laplace", held.up_to(price, budgets=empty), rmse, NOTE, run)
