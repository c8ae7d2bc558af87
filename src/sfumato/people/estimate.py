"""The answer to a personalized count, sum or mean: value, interval, warnings and guarantee in one object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from sfumato.errors import InputError
from sfumato.people.error_law import ErrorLaw, law_from_dict
from sfumato.people.words import amount, subject
from sfumato.privacy import Guarantee
from sfumato.results import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Bracket:
    """An answer with the law of its error, and how far it may be off beside that.

    Attributes
    ----------
    value : float
    law : ErrorLaw
    bias : float
        The largest possible bias under what the bracket assumes.
    """

    value: float
    law: ErrorLaw
    bias: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return {"value": self.value, "law": self.law.to_dict(), "bias": self.bias}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The bracket that `to_dict` wrote down as `data`."""
        return cls(data["value"], law_from_dict(data["law"]), data["bias"])


@dataclass(frozen=True, eq=False)
class Estimate(Result):
    """One number about the people of a roster.

    Attributes
    ----------
    value : float
        The estimate; not clipped, so that it stays unbiased where the mechanism is.
    people : int
        Size of the public roster.
    law : ErrorLaw
        Law of the error if budgets are independent of the values.
    guarantee : Guarantee
        What the release promises.
    mechanism : str
        What made it.
    expected_rmse : float or None
        Root mean squared error as far as public facts decide it.
    parameters : mapping
        How it was made; public.
    warnings : tuple of str
        What a reader must know before using the figure.
    details : mapping
        Other figures that the release shows, such as the test of a partition's parts.
    bias_bound : float
        How far the expected answer may lie from the truth for the worst possible data: a public number.
    bias_in_interval : bool
        Whether the mechanism is built for the worst case, so that its interval always includes the bias.
    kind : "count", "sum" or "mean"
    bounds : (float, float), optional
        Between which the answer lies, whatever the data.
    column : str, optional
        The column of a sum or mean.
    clamped : (float, float), optional
        The public bounds to which that column's values were clamped.
    rounding : float
        How far rounding values to the lattice may have moved the answer, in its own unit. Every interval includes it.
    any_data, if_independent : Bracket, optional
        Where the mechanism has both: the answer that holds for any data, and the one that holds if budgets are independent
        of the values. The first makes the interval.
    """

    value: float
    people: int
    law: ErrorLaw
    guarantee: Guarantee
    mechanism: str
    expected_rmse: float | None
    kind: str = "count"
    bias_bound: float = 0.0
    bias_in_interval: bool = False
    bounds: tuple[float, float] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    column: str | None = None
    clamped: tuple[float, float] | None = None
    rounding: float = 0.0
    any_data: Bracket | None = None
    if_independent: Bracket | None = None

    @property
    def subject(self) -> str:
        """What was asked, in words: "mean of income"."""
        return subject(self.kind, self.column)

    @property
    def frequency(self) -> float:
        """A count as a share of the people."""
        if self.kind != "count":
            raise InputError(f"a {self.kind} is not a frequency; use .value")
        return self.value / self.people

    def seen_as(self, bracket: Bracket) -> Estimate:
        """The same estimate with the value and the law of `bracket`."""
        return replace(
            self, value=bracket.value, law=bracket.law, bias_bound=bracket.bias, any_data=None, if_independent=None
        )

    def interval(
        self, confidence: float = 0.95, *, worst_case: bool = False, independent: bool = False
    ) -> tuple[float, float]:
        """An interval that holds the true answer with a probability of `confidence`, cut to the public bounds.

        Where the estimate carries `any_data`, the interval is made of it and holds for any data; `independent=True` asks for
        the narrower one that holds if budgets are independent of the values.

        By default it holds if budgets are independent of the values (the assumption of every personalized release that
        gains accuracy); with one ε for all it holds for any data. `worst_case=True` adds the largest possible bias and holds
        for any data. The noise, unequal weights and the rounding to the lattice are always in it.
        """
        if self.any_data is not None and self.if_independent is not None:
            if independent:
                return self.seen_as(self.if_independent).interval(confidence)
            return self.seen_as(self.any_data).interval(confidence, worst_case=True)
        half = self.law.halfwidth(confidence) + self.rounding
        if worst_case or (self.bias_in_interval and not independent):
            half += self.bias_bound
        low, high = self.value - half, self.value + half
        if self.bounds is not None:
            low = min(max(low, self.bounds[0]), self.bounds[1])
            high = max(min(high, self.bounds[1]), self.bounds[0])
        return low, high

    def to_dict(self, *, confidence: float = 0.95) -> dict[str, Any]:
        """Plain numbers for the artefact, with intervals at `confidence`."""
        low, high = self.interval(confidence)
        worst = self.interval(confidence, worst_case=True)
        out: dict[str, Any] = {
            **super().to_dict(),
            "kind": self.kind,
            "column": self.column,
            "value": self.value,
            "interval": [low, high],
            "interval_if_independent": list(self.interval(confidence, independent=True)),
            "interval_worst_case": list(worst),
            "confidence": confidence,
            "people": self.people,
            "mechanism": self.mechanism,
            "expected_rmse": self.expected_rmse,
            "bias_bound": self.bias_bound,
            "bias_in_interval": self.bias_in_interval,
            "bounds": None if self.bounds is None else list(self.bounds),
            "clamped": None if self.clamped is None else list(self.clamped),
            "rounding": self.rounding,
            "law": self.law.to_dict(),
            "any_data": None if self.any_data is None else self.any_data.to_dict(),
            "if_independent": None if self.if_independent is None else self.if_independent.to_dict(),
            "parameters": dict(self.parameters),
            "warnings": list(self.warnings),
            "details": dict(self.details),
            "guarantee": self.guarantee.to_dict(),
        }
        if self.kind == "count":
            out["frequency"] = self.frequency
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The estimate that `to_dict` wrote down as `data`."""
        same = (
            "value",
            "people",
            "mechanism",
            "expected_rmse",
            "kind",
            "column",
            "bias_bound",
            "bias_in_interval",
            "rounding",
        )
        fields: dict[str, Any] = {name: data[name] for name in same}
        for name in ("bounds", "clamped"):
            fields[name] = None if data[name] is None else (data[name][0], data[name][1])
        for name in ("any_data", "if_independent"):
            fields[name] = None if data.get(name) is None else Bracket.from_dict(data[name])
        return cls(
            **fields,
            law=law_from_dict(data["law"]),
            guarantee=Guarantee.from_dict(data["guarantee"]),
            parameters=dict(data["parameters"]),
            warnings=tuple(data["warnings"]),
            details=dict(data["details"]),
        )

    def to_frame(self, *, confidence: float = 0.95) -> pd.DataFrame:
        """One row, with the interval at `confidence`: what a table of several answers is made of."""
        import pandas as pd

        low, high = self.interval(confidence)
        row = {
            "kind": self.kind,
            **({} if self.column is None else {"column": self.column}),
            "value": self.value,
            "low": low,
            "high": high,
            "expected_rmse": self.expected_rmse,
            "bias_bound": self.bias_bound,
            "mechanism": self.mechanism,
            "epsilon": float(self.guarantee.epsilon),
        }
        return pd.DataFrame([row])

    def plot(self, ax: Axes | None = None, *, confidence: float = 0.95) -> Axes:
        """Draw it, on `ax` or on a new figure.

        Shown are the estimate with its interval at `confidence` and, lighter, what the worst possible bias would make of it.
        """
        from sfumato.people.plots import plot_estimate

        return plot_estimate(self, ax, confidence=confidence)

    def words(self, number: float) -> str:
        """`number` in the unit of the answer, for sentences: people in whole numbers."""
        return amount(number, self.kind, digits=6)

    def __repr__(self) -> str:
        low, high = self.interval()
        value, start, end = (self.words(x) for x in (self.value, low, high))
        text = f"Estimate({self.subject} {value}, 95% {start} to {end}, {self.mechanism}"
        return text + (", NOT PRIVATE)" if not self.guarantee.private else ")")
