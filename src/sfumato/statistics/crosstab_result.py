"""A released table: every margin is a sum of the same cells. Everything here is post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sfumato.errors import InputError
from sfumato.histograms.bins import Axis, Bins
from sfumato.people.cells import halfwidth
from sfumato.people.error_law import LaplacePlusNormal, check_confidence
from sfumato.privacy import Guarantee
from sfumato.registry import nearest
from sfumato.results import Result
from sfumato.statistics.margin import Margin
from sfumato.statistics.margin_fit import summed
from sfumato.statistics.margin_plan import Columns, Floats, Precision

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_ONE_BY_ONE = 64  # more equal noises than this are as good as normal
_ALL = "all"


@dataclass(frozen=True, eq=False)
class CrossTable(Result):
    """Counts over several columns with margins that add up.

    Attributes
    ----------
    counts : mapping of columns (by position) to float array
        The largest margins that were asked for, one axis per column: the whole table, unless `margins` said less.
    bins : Bins
        The columns and their cells.
    asked : tuple of columns
        The margins that the noise was planned for.
    guarantee : Guarantee
        What the release promises.
    mechanism : str
    scales : mapping of columns to float
        What was measured: the scale of the noise of one cell of each measured margin, in rows.
    parameters : mapping
        How it was made; public.
    expected_rmse : float or None
        Root of the mean over the margins asked of the squared error of a cell.
    warnings : tuple of str
    centres : mapping, optional
        What intervals are centred on, where that is not `counts`: before negative cells were set right or rounded, and with
        personal budgets what holds for any data.
    people : int
        Size of the public roster, with personal budgets.
    imbalance : float
        What unequal weights add if budgets are independent of the values (see `PersonalHistogram`); 0 where nothing of the
        kind is assumed.
    missing : float
        So many rows may be missing from any set of cells, whatever the data.
    heads : tuple of float
        What the noise in each head count of a private roster adds.
    """

    counts: Mapping[Columns, Floats]
    bins: Bins
    asked: tuple[Columns, ...]
    guarantee: Guarantee
    mechanism: str
    scales: Mapping[Columns, float] = field(repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    expected_rmse: float | None = None
    warnings: tuple[str, ...] = ()
    centres: Mapping[Columns, Floats] | None = field(default=None, repr=False)
    people: int = 0
    imbalance: float = 0.0
    missing: float = 0.0
    heads: tuple[float, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.bins.names

    @property
    def value(self) -> Floats:
        """The cells of the whole table, or of the first of the largest margins."""
        return next(iter(self.counts.values()))

    @property
    def total(self) -> float:
        """The number of rows that all margins add up to."""
        return float(self.value.sum())

    # --- margins ---------------------------------------------------------------------------------------------------

    def margin(self, *columns: str) -> Margin:
        """The counts over some of the `columns`; the others are summed over.

        Every margin is a sum of the same cells, so whatever is computed in two ways agrees.
        """
        place = self._positions(columns)
        return Margin(
            bins=Bins(tuple(self.bins.axes[i] for i in place)) if place else Bins.numbered(1, name="all rows"),
            counts=self._summed(self.counts, place).reshape([self.bins.shape[i] for i in place] or [1]),
            centre=self._summed(self.counts if self.centres is None else self.centres, place),
            error=self.error(*columns),
            reach=lambda confidence: self._reach(place, confidence),
            offset=self.missing / 2,
        )

    def error(self, *columns: str) -> float:
        """Standard deviation of one cell of a margin (of `columns`), as far as public facts decide it."""
        place = self._positions(columns)
        even = self.people / max(1, int(np.prod([self.bins.shape[i] for i in place])))
        return float(np.hypot(self._law(place, even).rmse, self.missing / 2))

    def interval(self, *columns: str, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends for every cell of a margin (of `columns`), each of which holds with about `confidence`."""
        return self.margin(*columns).interval(confidence)

    def _positions(self, columns: tuple[str, ...]) -> Columns:
        for name in columns:
            if name not in self.columns:
                raise InputError(f"no column {name!r} in this table; {nearest(name, self.columns)}")
        if len(set(columns)) < len(columns):
            raise InputError(f"a column is named twice in {', '.join(columns)}")
        place = tuple(self.columns.index(name) for name in columns)
        if not any(set(place) <= set(known) for known in self.counts):
            most = max(len(s) for s in self.counts)
            raise InputError(
                f"the margin {' x '.join(columns)} was not released: only those of up to {most} columns were; ask for "
                f"margins = {len(columns)}"
            )
        return place

    def _summed(self, tables: Mapping[Columns, Floats], place: Columns) -> Floats:
        source = next(s for s in tables if set(place) <= set(s))
        return summed(tables[source], source, place)

    def _law(self, place: Columns, count: float) -> LaplacePlusNormal:
        """Of the error of one cell that holds so many rows."""
        scales, rest = noises(self.bins.shape, tuple(self.scales.items()), tuple(sorted(place)))
        rows = self.guarantee.rows_per_person
        spread, part = 0.0, 1.0
        if self.imbalance > 0:
            mean = float(np.clip(count / self.people, 0.0, rows))
            spread = self.people**2 * max(mean * (rows - mean), 1 / self.people) * self.imbalance
            part = float(np.clip(count / (self.people * rows), 0.0, 1.0))
        return LaplacePlusNormal(scales, float(np.sqrt(rest + spread)), tuple(part * h for h in self.heads))

    def _reach(self, place: Columns, confidence: float) -> float:
        """Half-width of the interval of a cell: of the fullest one, where that matters."""
        check_confidence(confidence)
        centre = self._summed(self.counts if self.centres is None else self.centres, place)
        law = self._law(place, float(np.max(centre, initial=0.0)))
        # Noise in whole numbers lies closer to 0 than Laplace noise rounded to them: half a unit of the largest term.
        unit = 0.0 if self.people else 0.5 * max(law.scales, default=0.0) / min(self.scales.values())
        return _half(law, self.missing / 2, confidence) + unit

    # --- forms -----------------------------------------------------------------------------------------------------

    def table(self, *columns: str) -> pd.DataFrame:
        """A pivot of the margin of `columns` (by default all of them) with its totals; the last column runs across."""
        return self.margin(*(columns or self._largest_names())).table()

    def to_frame(self) -> pd.DataFrame:
        """One row per cell with its 95% interval; "all" stands for a column that is summed over."""
        import pandas as pd

        frames = []
        for place in self.counts:
            frame = self.margin(*(self.columns[i] for i in place)).to_frame()
            for j, name in enumerate(self.columns):
                if j not in place:
                    frame.insert(j, name, _ALL)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def report_sections(self) -> list[tuple[str, Any]]:
        """The margins with their errors, and the pivot where it can be read."""
        import pandas as pd

        rows = [
            {"margin": " x ".join(names), "cells": self.margin(*names).counts.size, "error of a cell": self.error(*names)}
            for names in (tuple(self.columns[i] for i in s) for s in self.asked)
        ]
        found: list[tuple[str, Any]] = []
        first = self.margin(*self._largest_names())
        if len(first.bins.axes) > 1 and len(first.bins.axes[-1].labels) <= 20 and first.counts.size <= 800:
            found.append(("The table, with its totals", first.table().reset_index()))
        return [*found, ("The margins", pd.DataFrame(rows))]

    def _largest_names(self) -> tuple[str, ...]:
        return tuple(self.columns[i] for i in next(iter(self.counts)))

    def with_counts(self, counts: Mapping[Columns, Floats], **parameters: Any) -> CrossTable:
        """The same with other `counts` made from these, and the `parameters` that say so; intervals stay."""
        centres = self.counts if self.centres is None else self.centres
        return replace(self, counts=counts, centres=centres, parameters={**self.parameters, **parameters})

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, from which `from_dict` makes the same table."""
        return {
            **super().to_dict(),
            "kind": "table",
            "mechanism": self.mechanism,
            "parameters": dict(self.parameters),
            "columns": [a.to_dict() for a in self.bins.axes],
            "asked": [list(s) for s in self.asked],
            "counts": _listed(self.counts),
            "centres": None if self.centres is None else _listed(self.centres),
            "scales": [[list(a), scale] for a, scale in self.scales.items()],
            **{name: getattr(self, name) for name in ("people", "imbalance", "missing")},
            "heads": list(self.heads),
            "expected_rmse": self.expected_rmse,
            "warnings": list(self.warnings),
            "guarantee": self.guarantee.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The table that `to_dict` wrote down as `data`."""
        return cls(
            counts=_read(data["counts"]),
            bins=Bins(tuple(Axis.from_dict(a) for a in data["columns"])),
            asked=tuple(tuple(s) for s in data["asked"]),
            guarantee=Guarantee.from_dict(data["guarantee"]),
            mechanism=data["mechanism"],
            scales={tuple(a): scale for a, scale in data["scales"]},
            parameters=dict(data["parameters"]),
            expected_rmse=data["expected_rmse"],
            warnings=tuple(data["warnings"]),
            centres=None if data["centres"] is None else _read(data["centres"]),
            **{name: data[name] for name in ("people", "imbalance", "missing")},
            heads=tuple(data["heads"]),
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw it, on `ax` or a new figure: bars for one column, a map for two, small maps side by side for more."""
        from sfumato.statistics.crosstab_plots import plot_table

        return plot_table(self, ax)


@lru_cache(maxsize=4096)
def noises(
    shape: tuple[int, ...], scales: tuple[tuple[Columns, float], ...], margin: Columns
) -> tuple[tuple[float, ...], float]:
    """The noise in one cell of a margin: scales of the few that matter one by one, and the variance of all others."""
    each = dict(scales)
    precision = Precision(shape, {a: 2 * scale**2 for a, scale in scales})
    found = [(abs(c) * each[a], times) for a, c, times in precision.terms(margin)]
    rest = sum(2 * times * scale**2 for scale, times in found if times > _ONE_BY_ONE)
    return tuple(scale for scale, times in found if times <= _ONE_BY_ONE for _ in range(times)), float(rest)


@lru_cache(maxsize=4096)
def _half(law: LaplacePlusNormal, bias: float, confidence: float) -> float:
    return halfwidth(law, bias, confidence)


def _listed(tables: Mapping[Columns, Floats]) -> list[list[Any]]:
    return [[list(place), table.tolist()] for place, table in tables.items()]


def _read(listed: list[list[Any]]) -> dict[Columns, Floats]:
    return {tuple(place): np.array(table, dtype=np.float64) for place, table in listed}
