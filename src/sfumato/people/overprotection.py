"""Over-protection: whose budget exceeds what the chosen release uses, and what the unused budget costs in error.

"Unused" is not waste in the affine release: above the cap, using more would make the answer worse. The report says both how
much is left and what the error would be if everybody were protected like the strictest person (Minimum), or if everybody
had granted as much as the release uses at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import InputError
from sfumato.offers import Offer
from sfumato.people.answers import plan_offer
from sfumato.people.pairs import PairPlan
from sfumato.privacy import NANO, PersonBudgets, as_epsilon

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Overprotection:
    """What a release leaves unused.

    Attributes
    ----------
    mechanism : str
        Of the chosen release.
    people, overprotected : int
        People in the roster, and those who granted more than the release uses.
    unused_share : float
        Unused part of all that was granted.
    expected_rmse : float
        Of the chosen release.
    minimum_rmse : float
        If everybody were protected like the strictest person.
    generous_rmse : float
        If everybody granted what the release uses of the most generous: the price of the strict people's wishes.
    rows : tuple of dict
        Granted, used and unused ε per group of people.
    """

    mechanism: str
    people: int
    overprotected: int
    unused_share: float
    expected_rmse: float
    minimum_rmse: float
    generous_rmse: float
    rows: tuple[dict[str, Any], ...]

    def sentence(self) -> str:
        """The report in words."""
        return (
            f"{self.overprotected:,} of {self.people:,} people granted more than {self.mechanism} uses "
            f"({self.unused_share:.0%} of all budget stays unused). Expected error {self.expected_rmse:,.4g}; protecting "
            f"everybody like the strictest would make it {self.minimum_rmse:,.4g}; had everybody granted what is used of "
            f"the most generous, it would be {self.generous_rmse:,.4g}."
        )

    def to_frame(self) -> pd.DataFrame:
        """Granted, used and unused ε per group of people (at most 20 rows)."""
        import pandas as pd

        return pd.DataFrame(list(self.rows))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, with the sentence."""
        plain = {k: getattr(self, k) for k in self.__dataclass_fields__ if k != "rows"}
        return plain | {"rows": list(self.rows), "sentence": self.sentence()}


def overprotection(offer: Offer) -> Overprotection:
    """Whose budget exceeds what an offer would use: public facts only.

    Parameters
    ----------
    offer : Offer
        One of a preview over people with different budgets.

    Returns
    -------
    Overprotection

    Examples
    --------
    >>> from sfumato.people.answers import preview_count
    >>> budgets = PersonBudgets.from_tiers({"strict": (0.01, 5400), "standard": (0.2, 3700), "open": (1.0, 900)})
    >>> report = overprotection(preview_count(budgets, independent=True)[0])
    >>> report.overprotected, round(report.unused_share, 2)
    (4600, 0.54)
    """
    question = offer.plan.question
    used = offer.charge.people
    if used is None:
        raise InputError("this offer does not say what each person group loses")
    budgets = question.budgets
    granted = float(np.dot(budgets.counts, budgets.levels.astype(np.float64)))
    unused = float(np.dot(budgets.counts, (budgets.levels - used).astype(np.float64)))
    equal = PersonBudgets(np.array([offer.charge.total]), np.array([budgets.people]))
    return Overprotection(
        mechanism=offer.mechanism,
        people=budgets.people,
        overprotected=int(budgets.counts[budgets.levels > used].sum()),
        unused_share=unused / granted,
        expected_rmse=float(offer.expected_rmse or 0.0),
        minimum_rmse=_by_minimum(offer, budgets),
        generous_rmse=_by_minimum(offer, equal),
        rows=tuple(_rows(budgets, used)),
    )


def _by_minimum(offer: Offer, budgets: PersonBudgets) -> float:
    """Expected error of the same answer with everybody at the smallest of the budgets."""
    if isinstance(offer.plan, PairPlan):
        return offer.plan.remade("minimum", budgets).expected_rmse
    return float(plan_offer(offer.plan.question.among(budgets), "minimum").expected_rmse or 0.0)


def _rows(budgets: PersonBudgets, used: np.ndarray[Any, np.dtype[np.int64]]) -> list[dict[str, Any]]:
    edges = np.unique(np.linspace(0, budgets.groups, min(20, budgets.groups) + 1).astype(int))
    rows = []
    for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        counts = budgets.counts[a:b]
        rows.append(
            {
                "granted_from": str(as_epsilon(int(budgets.levels[a]))),
                "granted_to": str(as_epsilon(int(budgets.levels[b - 1]))),
                "people": int(counts.sum()),
                "mean_used": float(np.dot(counts, used[a:b])) / max(1, int(counts.sum())) / NANO,
                "overprotected": int(counts[budgets.levels[a:b] > used[a:b]].sum()),
            }
        )
    return rows
