"""A released histogram: counts, ranges with intervals, the distribution, pictures. Everything here is post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.histograms.bins import Axis, Bins
from sfumato.histograms.budgets import Floats, Ints
from sfumato.histograms.estimation.estimate import HistogramEstimate
from sfumato.histograms.estimation.measurements import Measurement, best_bounds, noise_quantile
from sfumato.privacy import Guarantee, as_epsilon
from sfumato.results import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class RangeAnswer:
    """The estimated number of records in some bins, with an interval that rests on the noise alone.

    Attributes
    ----------
    value : float
        The estimate.
    measurements : tuple of Measurement
        The noisy sums behind the interval.
    mask : bool array
        Which bins, flat.
    tree : bool
        Whether the measurements are the levels of a tree.
    """

    value: float
    measurements: tuple[Measurement, ...] = field(repr=False)
    mask: NDArray[np.bool_] = field(repr=False)
    tree: bool = field(default=False, repr=False)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Covers the true number with a probability of at least about `confidence`, whatever the data.

        The interval is made from unbiased noisy sums, not from the improved estimate, which may lie off its middle.
        """
        if not 0 < confidence < 1:
            raise InputError(f"confidence must lie between 0 and 1, got {confidence!r}")
        return best_bounds(self.measurements, self.mask, confidence, tree=self.tree)


@dataclass(frozen=True, eq=False)
class Histogram(Result):
    """A private histogram.

    Attributes
    ----------
    counts : float array
        Estimated counts in the shape of the bins.
    bins : Bins
        The public domain.
    guarantee : Guarantee
        What the release promises.
    mechanism : str
        What made it.
    noise : float array
        Per bin, the standard deviation that is left by the noise (for empirical Bayes: of the posterior), flat.
    bin_losses : int64 array
        Per bin, what a person loses by their rows in it, in nano-ε: compared with these rows absent, or with any others in
        their place, as the guarantee says.
    measurements : tuple of Measurement
        The noisy sums behind the intervals.
    parameters : mapping
        How it was made; public.
    expected_rmse : float or None
        Root mean squared error of a count, as far as public facts decide it.
    warnings : tuple of str
        What a reader must know before using the figures.
    tree : bool
        Whether the measurements are the levels of a tree.
    """

    counts: Floats
    bins: Bins
    guarantee: Guarantee
    mechanism: str
    noise: Floats = field(repr=False)
    bin_losses: Ints = field(repr=False)
    measurements: tuple[Measurement, ...] = field(repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    expected_rmse: float | None = None
    warnings: tuple[str, ...] = ()
    tree: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", np.asarray(self.counts, dtype=np.float64).reshape(self.bins.shape))

    @classmethod
    def of(cls, estimate: HistogramEstimate, *, bins: Bins, guarantee: Guarantee, bin_losses: Ints) -> Histogram:
        """Attach the domain (`bins`) and the promise (`guarantee`) to what a mechanism handed back (`estimate`).

        `bin_losses` is what a person loses by their rows in each bin (see `budgets.lost_by_bin`).
        """
        return cls(
            counts=estimate.counts,
            bins=bins,
            guarantee=guarantee,
            mechanism=estimate.mechanism,
            noise=estimate.noise,
            bin_losses=bin_losses,
            measurements=estimate.measurements,
            parameters=dict(estimate.parameters),
            expected_rmse=estimate.expected_rmse,
            warnings=(*estimate.warnings, *_each_bin(bin_losses, guarantee)),
            tree=estimate.tree,
        )

    @property
    def value(self) -> Floats:
        """The counts, under the name that every result has for its figures."""
        return self.counts

    @property
    def flat(self) -> Floats:
        """The counts row by row."""
        return self.counts.reshape(-1)

    # --- answers ---------------------------------------------------------------------------------------------------

    def range(self, low: Any = None, high: Any = None) -> RangeAnswer:
        """The records from `low` up to, not including, `high`: values on a numeric column, else bin positions."""
        if len(self.bins.axes) != 1:
            raise InputError(f"this histogram has {len(self.bins.axes)} columns; use box(column=(low, high), ...)")
        return self.box(**{self.bins.axes[0].name: (low, high)})

    def box(self, **bounds: tuple[Any, Any]) -> RangeAnswer:
        """The records inside a box, with `bounds` by column: ``box(age=(18, 65), sex=(0, 1))``."""
        return self.select(self.bins.box(**bounds))

    def select(self, mask: NDArray[np.bool_]) -> RangeAnswer:
        """The records in the bins of a `mask`, chosen without looking at private data."""
        flat = np.asarray(mask, dtype=bool).reshape(-1)
        if flat.size != self.bins.size:
            raise InputError(f"a selection of {flat.size} bins for a histogram of {self.bins.size}")
        return RangeAnswer(float(self.flat[flat].sum()), self.measurements, flat, self.tree)

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends for every bin on its own, each of which holds with a probability of about `confidence`."""
        single = [m for m in self.measurements if m.totals.size == self.bins.size]
        if single:  # every bin was measured alone: no need to ask one by one
            best = max(single, key=lambda m: float(m.rates.mean()))
            levels, kind = np.unique(best.rates, return_inverse=True)
            reach = np.array([noise_quantile(r, confidence) for r in levels[:, None]])[kind]
            centre = best.totals[best.labels].astype(np.float64)
            ends = np.maximum(centre - reach[best.labels], 0.0), np.maximum(centre + reach[best.labels], 0.0)
        else:
            place = np.arange(self.bins.size)
            each = [best_bounds(self.measurements, place == i, confidence, tree=self.tree) for i in place.tolist()]
            ends = np.array(each)[:, 0], np.array(each)[:, 1]
        return ends[0].reshape(self.bins.shape), ends[1].reshape(self.bins.shape)

    @property
    def alarm(self) -> str | None:
        """What must be said before the figures; see `PersonalHistogram.alarm`."""
        return None

    def shown_interval(self) -> tuple[Floats, Floats, str]:
        """What a picture draws around the counts, flat: two ends and what they are."""
        return self.flat - 2 * self.noise, self.flat + 2 * self.noise, "±2 sd of noise"

    def distribution(self) -> Floats:
        """The shape: negative counts become 0, the rest is divided by its sum; uniform if nothing is left."""
        kept = np.maximum(self.counts, 0.0)
        total = kept.sum()
        return kept / total if total > 0 else np.full(self.bins.shape, 1.0 / self.bins.size)

    def consistent(self, *, nonnegative: bool = True, total: float | None = None) -> Histogram:
        """The nearest histogram without negative counts (`nonnegative`) and, if asked, with a public or released `total`."""
        counts = self.flat
        if total is not None and (not np.isfinite(total) or total < 0):
            raise InputError(f"a total must be a finite number, not negative; got {total!r}")
        if total is None:
            counts = np.maximum(counts, 0.0) if nonnegative else counts
        elif nonnegative:
            counts = _project(counts, float(total))
        else:
            counts = counts + (total - counts.sum()) / counts.size
        asked = {"nonnegative": nonnegative, **({} if total is None else {"total": float(total)})}
        return replace(self, counts=counts, parameters={**self.parameters, **asked})

    # --- forms -----------------------------------------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """One row per bin: its labels, the count, its share, the noise left and what a person loses by their rows in it."""
        import pandas as pd

        columns: dict[str, Any] = {}
        index = np.indices(self.bins.shape).reshape(len(self.bins.shape), -1)
        for axis, where in zip(self.bins.axes, index, strict=True):
            columns[axis.name] = np.asarray(axis.labels, dtype=object)[where]
        columns["count"] = self.flat
        columns["share"] = self.distribution().reshape(-1)
        columns["noise"] = self.noise
        columns["epsilon"] = [float(as_epsilon(int(v))) for v in self.bin_losses]
        return pd.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers: the counts, and all that intervals and ranges are made from."""
        return {
            **super().to_dict(),
            "kind": "histogram",
            "mechanism": self.mechanism,
            "parameters": dict(self.parameters),
            "columns": [a.to_dict() for a in self.bins.axes],
            "counts": self.counts.tolist(),
            "noise": self.noise.tolist(),
            "bin_losses": self.bin_losses.tolist(),
            "measurements": [m.to_dict() for m in self.measurements],
            "tree": self.tree,
            "expected_rmse": self.expected_rmse,
            "warnings": list(self.warnings),
            "guarantee": self.guarantee.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The histogram that `to_dict` wrote down as `data`."""
        return cls(**cls._fields_of(data))

    @classmethod
    def _fields_of(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "counts": np.array(data["counts"], dtype=np.float64),
            "bins": Bins(tuple(Axis.from_dict(a) for a in data["columns"])),
            "guarantee": Guarantee.from_dict(data["guarantee"]),
            "mechanism": data["mechanism"],
            "noise": np.array(data["noise"], dtype=np.float64),
            "bin_losses": np.array(data["bin_losses"], dtype=np.int64),
            "measurements": tuple(Measurement.from_dict(m) for m in data["measurements"]),
            "parameters": dict(data["parameters"]),
            "expected_rmse": data["expected_rmse"],
            "warnings": tuple(data["warnings"]),
            "tree": data["tree"],
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw it, on `ax` or on a new figure.

        One column: counts with the band of ±2 standard deviations of the noise that is left. Two: a labelled map.
        """
        from sfumato.histograms.plots import plot_histogram

        return plot_histogram(self, ax)


def _each_bin(losses: Ints, guarantee: Guarantee) -> tuple[str, ...]:
    """What the ε beside a bin means, where bins differ."""
    if int(losses.min()) == int(losses.max()):
        return ()
    rows = "their record" if guarantee.rows_per_person == 1 else f"their rows (up to {guarantee.rows_per_person})"
    told = f"the ε beside a bin is what a person loses by {rows} in it"
    if guarantee.neighbours == "replacement":
        return (f"bins lose differently: {told}, compared with any others in their place",)
    return (
        f"bins lose differently: {told}, compared with the data without; compared with the same in another bin they lose "
        "what stands beside both",
    )


def _project(counts: Floats, total: float) -> Floats:
    """The nearest point with sum `total` and no negative part: subtract one number, cut at 0.

    >>> _project(np.array([3.0, -1.0, 2.0]), 4.0).tolist()
    [2.5, 0.0, 1.5]
    """
    high = np.sort(counts)[::-1]
    excess = (np.cumsum(high) - total) / np.arange(1, counts.size + 1)
    cut = excess[np.flatnonzero(high > excess)[-1]] if total > 0 else high[0]
    return np.asarray(np.maximum(counts - cut, 0.0))
