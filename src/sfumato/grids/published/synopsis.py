"""A published grid: noisy class counts per cell, and what can be made of them. Everything here is post-processing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.published.base import Draws, Published, Section
from sfumato.grids.published.classifier import GridClassifier
from sfumato.grids.published.cleaning import Cleaning, class_totals, clean
from sfumato.grids.published.cuts import Cut, ScoreCut, columns_in, cut_from_dict
from sfumato.grids.published.marginals import Marginal, marginal_from_dict
from sfumato.grids.published.sampling import draw_given_class, draw_leaves, possible_cells, rounded_shares, values_of
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.noise import laplace_variance
from sfumato.privacy.source import Generator
from sfumato.privacy.units import NANO
from sfumato.records.attributes import Attribute
from sfumato.tables.domains import Domain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Synopsis(Published):
    """A private synopsis for classification: the result of `PrivPfC`, `DiffGen`, `PPH` and `UniformGrid`.

    Attributes
    ----------
    cuts : tuple of Cut
        How the grid divides its columns; empty if it is one cell.
    noisy : int64 array, classes by cells
        The noisy counts as released, in units of weight.
    rate : int
        Nano-ε per unit of weight.
    attributes : tuple of Attribute
        All predictors, those outside the grid included.
    target : str
        The column to be predicted.
    target_domain : Domain
        Its public domain; the cells are the classes.
    guarantee : Guarantee
        What the release promises.
    mechanism : str
        Who published it.
    random : callable
        Gives a generator for drawing rows.
    unit : float
        Weight of one average record (1 unless people have their own budgets).
    cleaning : "classes", "clip", "norm-sub" or "threshold"
        What is done to negative counts; with "classes" each class keeps its estimated total.
    size : float or None
        The number of records, public or noisy, in units of weight; None if nobody asked for it.
    parameters : mapping
        How it was made; public.
    warnings : tuple of str
        What a reader must know before using the figures.
    others : tuple of Marginal
        Noisy counts of columns outside the grid or in groups there, each by itself.
    class_counts : int64 array or None
        Noisy counts of the classes, where they were asked for by themselves.
    class_rate : int
        Nano-ε per unit of those.
    """

    cuts: tuple[Cut | ScoreCut, ...]
    noisy: NDArray[np.int64] = field(repr=False)
    rate: int
    attributes: tuple[Attribute, ...] = field(repr=False)
    target: str
    target_domain: Domain = field(repr=False)
    guarantee: Guarantee = field(repr=False)
    mechanism: str
    random: Draws = field(repr=False)
    unit: float = 1.0
    cleaning: Cleaning = "clip"
    size: float | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
    others: tuple[Marginal, ...] = field(default=(), repr=False)
    class_counts: NDArray[np.int64] | None = field(default=None, repr=False)
    class_rate: int = 0

    @property
    def class_labels(self) -> tuple[str, ...]:
        """The classes by name."""
        return self.target_domain.labels()

    @property
    def shape(self) -> tuple[int, ...]:
        """Groups per column of the grid."""
        return tuple(c.size for c in self.cuts)

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """Estimated number of records, classes by cells, not negative."""
        inside = self._possible
        noisy = self.noisy[:, inside]
        total: Any = float(noisy.sum()) if self.size is None else self.size
        if self.cleaning == "classes":
            total = self._totals[0]
        found = np.zeros(self.noisy.shape)
        found[:, inside] = clean(noisy, how=self.cleaning, scale=NANO / self.rate, total=total) / self.unit
        return found

    @cached_property
    def class_shares(self) -> dict[str, tuple[float, float]]:
        """The share of each class among all records, and the standard deviation of its noise: not biased by cleaning."""
        totals, sd = self._totals
        whole = max(float(totals.sum()), 1e-9)
        share = totals / whole
        # To first order, from independent noise on the totals.
        blur = sd * np.sqrt((1 - share) ** 2 + (share.size - 1) * share**2) / whole
        return {label: (float(p), float(b)) for label, p, b in zip(self.class_labels, share, blur, strict=True)}

    @cached_property
    def _possible(self) -> NDArray[np.bool_]:
        """Which cells can hold a record: what was counted in the others is noise."""
        possible = possible_cells(self.cuts)
        return np.ones(self.noisy.shape[1], dtype=bool) if possible is None else possible

    @cached_property
    def _totals(self) -> tuple[NDArray[np.float64], float]:
        """Estimated weight of each class, from everything that was counted by class, and its standard deviation."""
        cells = self.noisy[:, self._possible]
        figures = [(cells.sum(axis=1).astype(np.float64), cells.shape[1] * float(laplace_variance(self.rate)))]
        if self.class_counts is not None:
            figures.append((self.class_counts.astype(np.float64), float(laplace_variance(self.class_rate))))
        for other in self.others:
            if other.by_class:
                variance = other.noisy.shape[1] * float(laplace_variance(other.rate))
                figures.append((other.noisy.sum(axis=1).astype(np.float64), variance))
        return class_totals([(t, max(v, 1e-9)) for t, v in figures])

    @property
    def expected_rmse(self) -> float:
        """Standard deviation of the noise on each count, in records."""
        return float(np.sqrt(laplace_variance(self.rate))) / self.unit

    @property
    def others_rmse(self) -> float:
        """Standard deviation of the noise on a count of a column outside the grid, in records."""
        return float(np.sqrt(laplace_variance(self.others[0].rate))) / self.unit if self.others else float("nan")

    @property
    def grid(self) -> str:
        """The grid in words.

        For example ``education_num (4 groups) x marital_status (3 groups)``.
        """
        return " x ".join(f"{c.name} ({c.size} groups)" for c in self.cuts) or "one cell: class counts only"

    # --- use -------------------------------------------------------------------------------------------------------

    def _draw(self, rows: int, outside: str, random: Generator) -> pd.DataFrame:
        import pandas as pd

        weights = self.counts.reshape(-1)
        share = weights / weights.sum() if weights.sum() > 0 else np.full(weights.size, 1.0 / weights.size)
        drawn = np.repeat(np.arange(share.size), rounded_shares(share, rows, random))
        random.shuffle(drawn)
        classes, cells = np.divmod(drawn, self.counts.shape[1])
        shares = {o.attribute: o.shares(self.attributes[o.attribute].levels, self._totals[0]) for o in self.others}
        leaves = draw_leaves(self.cuts, cells, classes, self.attributes, random, shares)
        for j, share in shares.items():
            if j not in leaves:
                leaves[j] = draw_given_class(share, classes, random)
        columns: dict[str, Any] = {}
        for j, attribute in enumerate(self.attributes):
            if j in leaves:
                columns[attribute.name] = values_of(attribute, leaves[j], random)
            elif outside == "public":
                anywhere = random.integers(attribute.domain.size, size=rows)
                columns[attribute.name] = attribute.domain.draw(anywhere, random)
        columns[self.target] = self.target_domain.draw(classes, random)
        return pd.DataFrame(columns)

    def _estimated_rows(self) -> int:
        return round(float(self.counts.sum()))

    def _figures(self) -> Sequence[NDArray[np.int64]]:
        return _figures(self.noisy, self.cuts, self.others, self.class_counts)

    def classifier(self, estimator: Any = None) -> GridClassifier:
        """A classifier trained on the synopsis.

        Parameters
        ----------
        estimator : scikit-learn classifier that takes weights, optional
            By default a decision tree.

        Returns
        -------
        GridClassifier
            Predicts for rows of the original table.
        """
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
        """Plain lists and numbers: the released counts with all that is public about them, and what follows from them."""
        return {
            **super().to_dict(),
            "classes": list(self.class_labels),
            "grid": [cut.to_dict() for cut in self.cuts],
            "noisy": self.noisy.tolist(),
            "unit": self.unit,
            "cleaning": self.cleaning,
            "others": [other.to_dict(self.attributes[other.attribute].name) for other in self.others],
            "class_counts": None if self.class_counts is None else self.class_counts.tolist(),
            "class_rate": self.class_rate,
            "class_shares": {label: list(found) for label, found in self.class_shares.items()},
            "counts": self.counts.tolist(),
            "noise": self.expected_rmse,
            "signal": self.signal(),
            "not_in_grid": self.not_in_grid(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The synopsis that `to_dict` wrote down as `data`.

        Rows are drawn from it by fresh secure bits; where it was an experiment with seeded noise, by a stream that starts
        anew from its figures.
        """
        cuts = tuple(cut_from_dict(cut) for cut in data["grid"])
        noisy = np.array(data["noisy"], dtype=np.int64)
        others = tuple(marginal_from_dict(other) for other in data.get("others", ()))
        stored = data.get("class_counts")
        classes = None if stored is None else np.array(stored, dtype=np.int64)
        fields = cls._fields_of(data, _figures(noisy, cuts, others, classes))
        more = {"others": others, "class_counts": classes, "class_rate": data.get("class_rate", 0)}
        return cls(cuts=cuts, noisy=noisy, unit=data["unit"], cleaning=data["cleaning"], **more, **fields)

    def not_in_grid(self) -> list[str]:
        """Columns that the grid does not divide: of those in `others` the synopsis has counts by themselves."""
        used = columns_in(self.cuts)
        return [a.name for j, a in enumerate(self.attributes) if j not in used]

    def unknown_columns(self) -> list[str]:
        """Columns about which the synopsis says nothing."""
        counted = {self.attributes[other.attribute].name for other in self.others}
        return [name for name in self.not_in_grid() if name not in counted]

    def report_sections(self) -> Iterator[Section]:
        """What the report of a release adds: see `reporting.synopsis_sections`."""
        from sfumato.grids.published.reporting import synopsis_sections

        return synopsis_sections(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the classes of the largest cells on `ax`, or on a new figure; whiskers show the noise on a cell's total."""
        from sfumato.grids.published.plots import plot_synopsis

        return plot_synopsis(self, ax)


def _figures(
    noisy: NDArray[np.int64],
    cuts: Sequence[Cut | ScoreCut],
    others: Sequence[Marginal],
    classes: NDArray[np.int64] | None,
) -> list[NDArray[np.int64]]:
    """Every count that was released, those of a first grid included."""
    first = [cut.noisy for cut in cuts if isinstance(cut, ScoreCut)]
    return [noisy, *first, *(other.noisy for other in others), *([] if classes is None else [classes])]
