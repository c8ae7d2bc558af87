"""What a custodian released of many people's items: noisy totals per attribute, with an error and a price each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from sfumato.attributes.plots import plot_values
from sfumato.attributes.release import AttributeRelease
from sfumato.privacy.units import epsilon_text


@dataclass(frozen=True, eq=False)
class Profiled(AttributeRelease):
    """Totals of attributes over the rows of a table, and what they promise to each person in it.

    Attributes
    ----------
    counts, policy, guarantee, recipient, again, warnings, shares
        As for `AttributeRelease`; here the guarantee is that of a person with all their rows.
    column : str
        The column whose values are the items.
    method : str
        How the noise was divided among the attributes: "multilevel" or "composition".
    """

    column: str = field(default="", kw_only=True)
    method: str = field(default="multilevel", kw_only=True)

    @property
    def mechanism(self) -> str:  # type: ignore[override]  # of a device's releases there is only one
        """How the noise was divided among the attributes."""
        return self.method

    def rows(self) -> list[dict[str, Any]]:
        """One line per attribute: its total, the interval that holds the exact one, and what it cost."""
        ends = self.interval(0.95)
        return [
            {
                "attribute": name,
                "value": float(value),
                "low": float(low),
                "high": float(high),
                "deviation": float(deviation),
                "charged": epsilon_text(self.guarantee.attributes.get(name, 0)),
            }
            for name, value, (low, high), deviation in zip(
                self.policy.attributes, self.values, ends, self.deviations, strict=True
            )
        ]

    @property
    def parameters(self) -> dict[str, Any]:
        """How it was made; public."""
        made = {"column": self.column, **super().parameters}
        del made["repeated"]  # a release from a ledger is the same one when it comes back
        return made

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists and numbers."""
        return {**super().to_dict(), "kind": "profile", "column": self.column}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The release that `to_dict` wrote down as `data`."""
        return replace(super().from_dict(data), column=data["column"], method=data["mechanism"])

    def plot(self, ax: Any = None) -> Any:
        """Draw the totals with their intervals, on `ax` or on a new figure."""
        return plot_values(self.policy.attributes, self.values, self.interval(0.95), ax=ax)

    def __repr__(self) -> str:
        return f"Profiled({len(self.policy.attributes)} attributes of {self.column!r}, ε {self.guarantee.epsilon})"
