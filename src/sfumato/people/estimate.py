"""The answer to a personalized count, sum or mean: value, interval, warnings and guarantee in one object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from sfumato.errors import InputError
from sfumato.people.error_law import ErrorLaw, law_from_dict
from sfumato.people.headline import P_VALUE, Headline, headline
from sfumato.people.words import amount, subject
from sfumato.privacy import Guarantee
from sfumato.results import Result
from sfumato.tables.notes import AS_NUMBERS, Wording

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
    any_data : Bracket, optional
        The answer that holds for any data.
    if_independent : Bracket, optional
        Where the mechanism has an answer of its own for it: the one that holds if budgets are independent of the values.
        `any_data` then makes the interval; without it `value` and `law` are what holds if they are independent.
    wording : Wording
        How numbers of the column are put into words: its unit, or as dates.
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
    wording: Wording = AS_NUMBERS

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

    @property
    def p_value(self) -> float | None:
        """Of the free test whether budgets and values are independent, where the mechanism has one."""
        found = self.details.get(P_VALUE)
        return None if found is None else float(found)

    def headline(self, confidence: float = 0.95) -> Headline:
        """What to say first: a value, the interval for any data, an alarm; intervals at `confidence`."""
        return headline(self, confidence)

    def seen_as(self, bracket: Bracket) -> Estimate:
        """The same estimate with the value, the law and the bias of `bracket`, all of them in its interval."""
        law: dict[str, Any] = {
            "value": bracket.value,
            "law": bracket.law,
            "bias_bound": bracket.bias,
            "bias_in_interval": True,
        }
        return replace(self, **law, any_data=None, if_independent=None)

    def interval(
        self, confidence: float = 0.95, *, worst_case: bool = False, independent: bool = False
    ) -> tuple[float, float]:
        """An interval that holds the true answer with a probability of `confidence`, cut to the public bounds.

        By default it holds under what the mechanism rests on: for any data with `adaptive`, `robust`, `minimum` or one ε
        for all; if budgets are independent of the values with any other mechanism, which somebody asked for by name or by
        saying `independent`. `worst_case=True` holds for any data whatever the mechanism, and is what is printed first;
        `independent=True` asks for the narrower one. Noise, unequal weights and rounding to the lattice are always in it.
        """
        if independent and self.if_independent is not None:
            return self.seen_as(self.if_independent).interval(confidence)
        if self.any_data is not None and not independent and (worst_case or self.if_independent is not None):
            return self.seen_as(self.any_data).interval(confidence)
        half = self.law.halfwidth(confidence) + self.rounding
        if worst_case or self.bias_in_interval:
            half += self.bias_bound
        low, high = self.value - half, self.value + half
        if self.bounds is not None:
            low = min(max(low, self.bounds[0]), self.bounds[1])
            high = max(min(high, self.bounds[1]), self.bounds[0])
        return low, high

    def to_dict(self, *, confidence: float = 0.95) -> dict[str, Any]:
        """Plain numbers for the artefact, with intervals at `confidence`."""
        worst = self.interval(confidence, worst_case=True)
        out: dict[str, Any] = {
            "headline": self.headline(confidence).to_dict(),
            **super().to_dict(),
            "kind": self.kind,
            "column": self.column,
            "value": self.value,
            "interval": list(worst),
            "interval_if_independent": list(self.interval(confidence, independent=True)),
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
        if self.wording != AS_NUMBERS:
            out["wording"] = self.wording.to_dict()
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
            wording=Wording.from_dict(data.get("wording")),
        )

    def to_frame(self, *, confidence: float = 0.95) -> pd.DataFrame:
        """One row, with both intervals at `confidence`: what a table of several answers is made of."""
        import pandas as pd

        first = self.headline(confidence)
        narrow = first.interval_if_independent or first.interval
        row = {
            "kind": self.kind,
            **({} if self.column is None else {"column": self.column}),
            "value": first.value,
            "low": first.interval[0],
            "high": first.interval[1],
            "low_if_independent": narrow[0],
            "high_if_independent": narrow[1],
            "alarm": first.alarm is not None,
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
        """`number` in the unit of the answer, for sentences: people in whole numbers, dates as dates."""
        if self.wording.start:
            return self.wording.words(number)
        return self.wording.behind(amount(number, self.kind, digits=6))

    def __repr__(self) -> str:
        first, words = self.headline(), self.words
        text = "Estimate(" + ("" if first.alarm is None else "CONSENT AND VALUES SEEM TO GO TOGETHER, ")
        text += f"{self.subject} {words(first.value)}, 95% {' to '.join(map(words, first.interval))}"
        if first.interval_if_independent is not None:
            narrow = "" if first.alarm else f", {' to '.join(map(words, first.interval_if_independent))} if independent"
            text += f" for any data{narrow}"
        text += f", {self.mechanism}"
        return text + (", NOT PRIVATE)" if not self.guarantee.private else ")")
