"""A published grid: noisy class counts per cell, and what can be made of them. Everything here is post-processing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.published.classifier import GridClassifier
from sfumato.grids.published.cleaning import Cleaning, clean
from sfumato.grids.published.cuts import Cut, ScoreCut
from sfumato.grids.published.sampling import draw_leaves, possible_cells, rounded_shares, values_of
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.noise import laplace_variance
from sfumato.privacy.source import Generator
from sfumato.privacy.units import NANO
from sfumato.records.attributes import Attribute
from sfumato.results import Result
from sfumato.tables.domains import Domain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from sfumato.grids.published.reporting import Section


@dataclass(frozen=True, eq=False)
class Synopsis(Result):
    """A private synopsis for classification.

    Attributes
    ----------
    cuts : tuple of Cut
        How the grid divides its columns; empty if it is one cell.
    noisy : int64 array, classes by cells
        The noisy counts as released, in units of weight.
    rate : int
        Nano-ε per unit of weight.
    unit : float
        Weight of one average record (1 unless people have their own budgets).
    attributes : tuple of Attribute
        All predictors, those outside the grid included.
    """

    cuts: tuple[Cut | ScoreCut, ...]
    noisy: NDArray[np.int64] = field(repr=False)
    rate: int
    attributes: tuple[Attribute, ...] = field(repr=False)
    target: str
    target_domain: Domain = field(repr=False)
    guarantee: Guarantee = field(repr=False)
    mechanism: str
    random: Callable[[], Generator] = field(repr=False)
    unit: float = 1.0
    cleaning: Cleaning = "clip"
    size: float | None = None
    parameters: dict[str, Any] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def class_labels(self) -> tuple[str, ...]:
        return self.target_domain.labels()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(c.size for c in self.cuts)

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """Estimated number of records, classes by cells, not negative."""
        noisy = self.noisy
        possible = possible_cells(self.cuts)
        if possible is not None:
            noisy = np.where(possible, noisy, 0)
        total = float(noisy.sum()) if self.size is None else self.size
        return clean(noisy, how=self.cleaning, scale=NANO / self.rate, total=total) / self.unit

    @property
    def expected_rmse(self) -> float:
        """Standard deviation of the noise on each count, in records."""
        return float(np.sqrt(laplace_variance(self.rate))) / self.unit

    @property
    def grid(self) -> str:
        """The grid in words.

        For example ``education_num (4 groups) x marital_status (3 groups)``.
        """
        return " x ".join(f"{c.name} ({c.size} groups)" for c in self.cuts) or "one cell: class counts only"

    # --- use -------------------------------------------------------------------------------------------------------

    def sample(self, n: int | None = None, *, outside: str = "leave out") -> pd.DataFrame:
        """A synthetic table with the original columns.

        Parameters
        ----------
        n : int, optional
            Rows; by default the estimated number of records.
        outside : "leave out" or "public"
            Columns that the grid does not divide: left out, or drawn from their public domain alone (they then carry no
            information about the data).
        """
        import pandas as pd

        if outside not in ("leave out", "public"):
            raise InputError(f"outside must be 'leave out' or 'public', got {outside!r}")
        if n is not None and n < 0:
            raise InputError(f"cannot draw {n} rows")
        random = self.random()
        weights = self.counts.reshape(-1)
        rows = round(float(weights.sum())) if n is None else int(n)
        share = weights / weights.sum() if weights.sum() > 0 else np.full(weights.size, 1.0 / weights.size)
        drawn = np.repeat(np.arange(share.size), rounded_shares(share, rows, random))
        random.shuffle(drawn)
        classes, cells = np.divmod(drawn, self.counts.shape[1])
        leaves = draw_leaves(self.cuts, cells, classes, self.attributes, random)
        columns: dict[str, Any] = {}
        for j, attribute in enumerate(self.attributes):
            if j in leaves:
                columns[attribute.name] = values_of(attribute, leaves[j], random)
            elif outside == "public":
                anywhere = random.integers(attribute.domain.size, size=rows)
                columns[attribute.name] = attribute.domain.draw(anywhere, random)
        columns[self.target] = self.target_domain.draw(classes, random)
        return pd.DataFrame(columns)

    def classifier(self, estimator: Any = None) -> GridClassifier:
        """A classifier trained on the synopsis; by default a decision tree, or any scikit-learn estimator with weights."""
        return GridClassifier.train(self, estimator)

    def signal(self) -> dict[str, float]:
        """Which attributes carry signal: the share of records that would be misjudged more without each of them.

        Measured on the noisy counts, so small figures are noise. Attributes outside the grid are not listed: the synopsis
        knows nothing about them.
        """
        counts = self.counts.reshape(len(self.counts), *self.shape)
        total = max(float(counts.sum()), 1.0)
        best = float(counts.max(axis=0).sum())
        return {
            cut.name: (best - float(counts.sum(axis=i + 1).max(axis=0).sum())) / total for i, cut in enumerate(self.cuts)
        }

    def weighted_cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Cells as training rows: codes by cut, class, weight."""
        k, cells = self.counts.shape
        codes = np.stack(np.unravel_index(np.arange(cells), self.shape), axis=1) if self.cuts else np.zeros((1, 0), int)
        return np.tile(codes, (k, 1)), np.repeat(np.arange(k), cells), self.counts.reshape(-1)

    # --- the contract of results -----------------------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """One row per cell: the labels of its cuts and the estimated number of records of each class."""
        import pandas as pd

        digits = np.unravel_index(np.arange(self.counts.shape[1]), self.shape) if self.cuts else ()
        columns: dict[str, Any] = {
            cut.name: np.array(cut.labels, dtype=object)[digit] for cut, digit in zip(self.cuts, digits, strict=True)
        }
        for label, row in zip(self.class_labels, self.counts, strict=True):
            columns[f"{self.target} = {label}"] = row
        return pd.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "synopsis",
            "mechanism": self.mechanism,
            "target": self.target,
            "classes": list(self.class_labels),
            "grid": [{"column": c.name, "groups": list(c.labels)} for c in self.cuts],
            "counts": self.counts.tolist(),
            "noise": self.expected_rmse,
            "signal": self.signal(),
            "not_in_grid": self.not_in_grid(),
            "parameters": self.parameters,
            "warnings": list(self.warnings),
            "guarantee": self.guarantee.to_dict(),
        }

    def not_in_grid(self) -> list[str]:
        """Columns about which the synopsis says nothing."""
        used: set[int] = set()
        for cut in self.cuts:
            used.update(c.attribute for c in cut.inner) if isinstance(cut, ScoreCut) else used.add(cut.attribute)
        return [a.name for j, a in enumerate(self.attributes) if j not in used]

    @cached_property
    def synthetic(self) -> pd.DataFrame:
        """One drawn table, kept: the one a release stores and its report speaks of. At most a million rows."""
        from sfumato.grids.published.reporting import MOST_SYNTHETIC

        return self.sample(min(round(float(self.counts.sum())), MOST_SYNTHETIC))

    def extra_tables(self) -> dict[str, pd.DataFrame]:
        """Tables that a release stores beside the counts."""
        return {"synthetic": self.synthetic}

    def report_sections(self) -> Iterator[Section]:
        """What the report of a release adds: see `reporting.synopsis_sections`."""
        from sfumato.grids.published.reporting import synopsis_sections

        return synopsis_sections(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Class balance per cell, with the noise: see `plots.plot_synopsis`."""
        from sfumato.grids.published.plots import plot_synopsis

        return plot_synopsis(self, ax)


def public_parameters(settings: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Settings and public figures of a release, ready for JSON."""
    return {**settings, **{k: v for k, v in more.items() if v is not None}}


def columns_of(cuts: Sequence[Cut | ScoreCut]) -> list[str]:
    """Names of the columns a grid divides."""
    return [c.name for c in cuts]
