"""One figure with its interval: a variance or a proportion. Everything here is post-processing of released numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from sfumato.palette import BLUE, ORANGE, VERMILION, axes
from sfumato.people.headline import Headline
from sfumato.privacy.guarantee import Guarantee
from sfumato.results import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_PLAIN = ("kind", "value", "low", "high", "mechanism", "column", "expected_rmse", "bias_bound", "alarm")


@dataclass(frozen=True, eq=False)
class Figure(Result):
    """A variance or a proportion.

    Attributes
    ----------
    kind : str
        What was asked.
    value : float
        The estimate, within its public bounds.
    low, high : float
        A 95% interval that holds for any data.
    if_independent : (float, float) or None
        Where budgets differ: the interval that holds if what people granted has nothing to do with their values.
    guarantee : Guarantee
        What the release promises.
    mechanism : str
        What made it.
    bounds : (float, float)
        Between which the answer lies, whatever the data.
    column : str or None
        The column of a variance.
    expected_rmse : float or None
        Root mean square error as far as public facts decide it.
    bias_bound : float
        How far the expected answer may lie from the truth for the worst possible data; the interval includes it.
    details : mapping
        Other figures from the same noisy numbers: the standard deviation and its interval, the mean, the number of rows.
    parameters : mapping
        How it was made; public.
    warnings : tuple of str
        What a reader must know before using the figure.
    alarm : str or None
        What must be said before it.
    """

    kind: str
    value: float
    low: float
    high: float
    guarantee: Guarantee
    mechanism: str
    bounds: tuple[float, float]
    if_independent: tuple[float, float] | None = None
    column: str | None = None
    expected_rmse: float | None = None
    bias_bound: float = 0.0
    details: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    alarm: str | None = None

    def interval(self) -> tuple[float, float]:
        """The 95% interval, for any data."""
        return self.low, self.high

    @property
    def standard_deviation(self) -> float:
        """The root of a variance."""
        return float(self.details["standard_deviation"])

    def headline(self) -> Headline:
        """What to say first."""
        second = self.if_independent  # worth saying only if the assumption buys something
        narrower = second is not None and second[1] - second[0] < self.high - self.low
        return Headline(self.value, (self.low, self.high), second if narrower else None, self.alarm, 0.95)

    def to_frame(self) -> pd.DataFrame:
        """One row: the figure, its interval, and what else is known."""
        import pandas as pd

        row = {"kind": self.kind, **({} if self.column is None else {"column": self.column})}
        narrow = self.if_independent
        second = {} if narrow is None else {"low_if_independent": narrow[0], "high_if_independent": narrow[1]}
        figures = {"value": self.value, "low": self.low, "high": self.high, **second, **dict(sorted(self.details.items()))}
        made = {"expected_rmse": self.expected_rmse, "mechanism": self.mechanism, "epsilon": float(self.guarantee.epsilon)}
        return pd.DataFrame([{**row, **figures, **made}])

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            **super().to_dict(),
            **{name: getattr(self, name) for name in _PLAIN},
            "bounds": list(self.bounds),
            "if_independent": None if self.if_independent is None else list(self.if_independent),
            "details": dict(self.details),
            "parameters": dict(self.parameters),
            "warnings": list(self.warnings),
            "guarantee": self.guarantee.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The figure that `to_dict` wrote down as `data`."""
        narrow = data["if_independent"]
        return cls(
            **{name: data[name] for name in _PLAIN},
            if_independent=None if narrow is None else (narrow[0], narrow[1]),
            bounds=(data["bounds"][0], data["bounds"][1]),
            details=dict(data["details"]),
            parameters=dict(data["parameters"]),
            warnings=tuple(data["warnings"]),
            guarantee=Guarantee.from_dict(data["guarantee"]),
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the figure with its interval between its public bounds, on `ax` or on a new figure."""
        ax = axes(ax, (7, 1.8))
        ax.hlines(0, self.low, self.high, color=ORANGE, lw=3, label="95% interval, for any data")
        ax.plot([self.value], [0], "o", color=BLUE, ms=8, label=f"{self.mechanism}, ε = {self.guarantee.epsilon}")
        ax.set_yticks([])
        reach = max(self.high - self.low, 1e-3 * (self.bounds[1] - self.bounds[0]))
        ax.set_xlim(max(self.bounds[0], self.low - reach), min(self.bounds[1], self.high + reach))
        ax.set_xlabel(self.kind if self.column is None else f"{self.kind} of {self.column}")
        ax.legend(frameon=False, fontsize=8)
        if not self.guarantee.private:
            ax.set_title("NOT PRIVATE: experiment", color=VERMILION)
        return ax
