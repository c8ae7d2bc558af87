"""What a call in Python may say, and the preview that it gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, TypedDict

from sfumato.offers import Offer
from sfumato.privacy.units import Epsilon
from sfumato.releases.pipeline import Priced

if TYPE_CHECKING:
    import pandas as pd


class Common(TypedDict, total=False):
    """What every release may say: its price, its mechanism, what it assumes, who is to have it, what it is called."""

    epsilon: Epsilon | None
    share: Epsilon | None
    mechanism: str
    parameters: Mapping[str, Any] | None
    recipient: str | None
    name: str | None
    independent: bool | None


class Asked(Common, total=False):
    """What some kind of release may say."""

    where: str | None
    column: str | None
    columns: Sequence[str] | None
    target: str | None
    attributes: Sequence[str] | None
    selectivity: float | None
    steps: int | None
    purpose: str | None
    bin_budgets: Sequence[float] | None
    nonnegative: bool | None
    total: float | None


class Preview(Sequence[Offer]):
    """The offers for a request, best first; prints as a table.

    Parameters
    ----------
    priced : Priced
        The request with its offers.
    findings : tuple of str
        What is odd about the roster, in sentences with head counts.
    """

    def __init__(self, priced: Priced, findings: tuple[str, ...] = ()) -> None:
        self.priced = priced
        self.findings = findings

    @property
    def notes(self) -> tuple[str, ...]:
        """What public facts say beside the prices."""
        return (*self.priced.notes, *self.findings)

    def __len__(self) -> int:
        return len(self.priced.offers)

    def __getitem__(self, index: Any) -> Any:
        return self.priced.offers[index]

    def to_frame(self) -> pd.DataFrame:
        """One row per mechanism."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "mechanism": o.mechanism,
                    "expected_rmse": o.expected_rmse,
                    "epsilon": o.charge.total / 1e9,
                    "chosen": o is self.priced.chosen,
                    "note": o.note,
                }
                for o in self.priced.offers
            ]
        )

    def __repr__(self) -> str:
        return "\n".join([self.to_frame().to_string(index=False), *(f"note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>note: {escape(note)}</p>" for note in self.notes)
        return f"{self.to_frame().to_html(index=False)}{notes}"
