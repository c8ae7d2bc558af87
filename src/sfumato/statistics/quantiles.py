"""Released quantiles: values, intervals, words, tables and pictures. Everything here is post-processing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sfumato.errors import InputError
from sfumato.histograms.bins import Axis, Bins
from sfumato.people.headline import Headline
from sfumato.privacy import Guarantee
from sfumato.results import Result
from sfumato.statistics.ranks import Floats
from sfumato.tables.notes import AS_NUMBERS, Wording

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_SAME = ("kind", "column", "mechanism", "expected_rmse", "confidence", "outside", "heading")


@dataclass(frozen=True, eq=False)
class Quantiles(Result):
    """Quantiles of one column, of everybody or of every group.

    Attributes
    ----------
    kind : "quantile", "median", "min" or "max"
    column : str
        The column.
    quantiles : tuple of float
        The shares of the records below the values, in increasing order.
    values : float array
        The value at each of them, on the last axis; before it the axes of `by`, if there are any.
    low, high : float array
        The ends of an interval for each, which holds for any data.
    guarantee : Guarantee
        What the release promises.
    mechanism : str
        What made it.
    bounds : (float, float)
        The public bounds of the column: no value lies outside, whatever the data.
    by : Bins or None
        The groups: all cells of public columns, whether anybody is in them or not.
    expected_rmse : float or None
        By how many records a value misses its rank, as a root mean square, where values are spread out.
    confidence : float
        Of each interval on its own.
    outside : float or None
        For min and max: at most this share of the records lies beyond the value, at the same confidence.
    parameters : mapping
        How it was made; public.
    warnings : tuple of str
        What a reader must know before using the figures.
    wording : Wording
        How numbers of the column are put into words.
    heading : str
        What a picture calls the column.

    Examples
    --------
    >>> from sfumato.privacy import Meter
    >>> made = Quantiles("median", "age", (0.5,), [41.0], [40.0], [42.0], Meter().guarantee(), "choice", (0.0, 99.0))
    >>> made.value, made.interval()
    (41.0, (40.0, 42.0))
    >>> Quantiles.from_dict(made.to_dict())
    Quantiles(median of age 41, 95% 40 to 42, choice)
    """

    kind: str
    column: str
    quantiles: tuple[float, ...]
    values: Floats
    low: Floats
    high: Floats
    guarantee: Guarantee
    mechanism: str
    bounds: tuple[float, float]
    by: Bins | None = None
    expected_rmse: float | None = None
    confidence: float = 0.95
    outside: float | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    wording: Wording = AS_NUMBERS
    heading: str = ""

    def __post_init__(self) -> None:
        shape = (*(() if self.by is None else self.by.shape), len(self.quantiles))
        for name in ("values", "low", "high"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64).reshape(shape))

    @property
    def value(self) -> Any:
        """The value, if one was asked for; else the array of all."""
        return float(self.values[0]) if self.values.shape == (1,) else self.values

    def interval(self, quantile: float | None = None) -> tuple[float, float]:
        """The interval of the value at a `quantile`; the only one if left out.

        It holds the true quantile with a probability of at least `confidence`, whatever the data (with the mechanism
        `weighted`: if budgets are independent of the values). Of groups, take `low` and `high`.
        """
        if self.by is not None:
            raise InputError("every group has its own interval: take low and high, or to_frame()")
        if quantile is None and len(self.quantiles) > 1:
            raise InputError(f"say which quantile: one of {', '.join(map(str, self.quantiles))}")
        asked = self.quantiles[0] if quantile is None else float(quantile)
        if asked not in self.quantiles:
            raise InputError(f"quantile {asked} was not released; there are {', '.join(map(str, self.quantiles))}")
        place = self.quantiles.index(asked)
        return float(self.low[place]), float(self.high[place])

    def at(self, quantile: float) -> Any:
        """The value at a released `quantile`: a number, or an array with one for each group."""
        if float(quantile) not in self.quantiles:
            raise InputError(f"quantile {quantile} was not released; there are {', '.join(map(str, self.quantiles))}")
        found = self.values[..., self.quantiles.index(float(quantile))]
        return float(found) if self.by is None else found

    def headline(self, confidence: float = 0.95) -> Headline:
        """The one value with its interval, at the `confidence` that it was made for."""
        if confidence != self.confidence:
            raise InputError(f"the intervals of quantiles were chosen at {self.confidence:.0%}; others need another release")
        return Headline(self.value, self.interval(), None, None, self.confidence)

    # --- words -------------------------------------------------------------------------------------------------------

    @property
    def subject(self) -> str:
        """What was asked, in words."""
        return f"{self.kind} of {self.column}"

    def words(self, number: float) -> str:
        """`number` in the unit of the column, or as a date."""
        return self.wording.words(number)

    @property
    def told(self) -> str | None:
        """What is known of the records beyond a minimum or maximum."""
        if self.outside is None:
            return None
        side = "below" if self.kind == "min" else "above"
        return f"at most {100 * self.outside:.3g}% of the records lie {side} it, with {self.confidence:.0%} confidence"

    def report_sections(self) -> Iterator[tuple[str, Any]]:
        """What a report says beside the figures."""
        yield (
            "How to read it",
            "A value at quantile q has a share q of the records below it. Each interval holds the true quantile with at "
            f"least {self.confidence:.0%} confidence. The expected error is in records of rank: how many too many or "
            "too few lie below the value, where values are spread out; where many records share one it is usually less.",
        )
        if self.told:
            yield "What lies beyond", f"{self.told[0].upper()}{self.told[1:]}."

    def __repr__(self) -> str:
        private = "" if self.guarantee.private else ", NOT PRIVATE"
        if self.values.shape == (1,):
            ends = f"{self.confidence:.0%} {self.words(float(self.low[0]))} to {self.words(float(self.high[0]))}"
            return f"Quantiles({self.subject} {self.words(self.value)}, {ends}, {self.mechanism}{private})"
        groups = "" if self.by is None else f" in {self.by.size} groups"
        return f"Quantiles({self.subject} at {len(self.quantiles)} shares{groups}, {self.mechanism}{private})"

    # --- as data -----------------------------------------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """One row per quantile, and per group."""
        import pandas as pd

        groups = 1 if self.by is None else self.by.size
        labels: dict[str, Any] = {}
        if self.by is not None:
            codes = np.unravel_index(np.repeat(np.arange(groups), len(self.quantiles)), self.by.shape)
            labels = {a.name: [a.labels[c] for c in code] for a, code in zip(self.by.axes, codes, strict=True)}
        figures = {
            "quantile": np.tile(self.quantiles, groups),
            "value": self.values.reshape(-1),
            "low": self.low.reshape(-1),
            "high": self.high.reshape(-1),
        }
        if self.wording.start:  # dates
            figures["in_words"] = [self.words(v) for v in figures["value"].tolist()]  # type: ignore[assignment]
        return pd.DataFrame({**labels, **figures})

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return {
            **super().to_dict(),
            **{name: getattr(self, name) for name in _SAME},
            "quantiles": list(self.quantiles),
            "values": self.values.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "bounds": list(self.bounds),
            "by": None if self.by is None else [a.to_dict() for a in self.by.axes],
            "parameters": dict(self.parameters),
            "warnings": list(self.warnings),
            "wording": self.wording.to_dict(),
            "guarantee": self.guarantee.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The quantiles that `to_dict` wrote down as `data`."""
        return cls(
            **{name: data[name] for name in (*_SAME, "values", "low", "high")},
            quantiles=tuple(data["quantiles"]),
            bounds=(data["bounds"][0], data["bounds"][1]),
            by=None if data["by"] is None else Bins(tuple(Axis.from_dict(a) for a in data["by"])),
            parameters=dict(data["parameters"]),
            warnings=tuple(data["warnings"]),
            wording=Wording.from_dict(data["wording"]),
            guarantee=Guarantee.from_dict(data["guarantee"]),
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw it, on `ax` or on a new figure.

        The shares against the values, each with its interval; of groups, a line for each with its values and intervals.
        """
        from sfumato.statistics.quantile_plots import plot_quantiles

        return plot_quantiles(self, ax)
