"""Published marginals of several columns and the one distribution fitted to them. Everything here is post-processing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.graphical.drawing import dealt
from sfumato.grids.graphical.fitted import Fitted
from sfumato.grids.published.base import Draws, Published, Section
from sfumato.grids.published.network import whole_columns
from sfumato.grids.published.sampling import values_of
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.noise import laplace_variance
from sfumato.privacy.source import Generator
from sfumato.records.attributes import Attribute
from sfumato.records.levels import Levels
from sfumato.tables.domains import Domain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Measured:
    """Noisy counts over some columns, as they were released.

    Attributes
    ----------
    columns : tuple of int
        Which columns, ascending; the target comes after all predictors.
    groups : tuple of int64 arrays
        Per column, the group of each leaf.
    noisy : int64 array
        The counts in units of weight: an axis per column, a place per group.
    rate : int
        Nano-ε per unit.
    """

    columns: tuple[int, ...]
    groups: tuple[Ints, ...]
    noisy: Ints
    rate: int

    @property
    def noise(self) -> float:
        """Standard deviation of the noise on each count, in units of weight."""
        return float(np.sqrt(laplace_variance(self.rate)))

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers; `measured_from_dict` reads them back."""
        groups = [group.tolist() for group in self.groups]
        return {"columns": list(self.columns), "groups": groups, "noisy": self.noisy.tolist(), "rate": self.rate}


def measured_from_dict(data: Mapping[str, Any]) -> Measured:
    """The counts that `to_dict` wrote down.

    >>> made = Measured((0, 1), (np.array([0, 0, 1]), np.array([0, 1])), np.array([[5, -1], [3, 2]]), 10**8)
    >>> again = measured_from_dict(made.to_dict())
    >>> again.noisy.tolist(), again.groups[0].tolist()
    ([[5, -1], [3, 2]], [0, 0, 1])
    """
    groups = tuple(np.array(group, dtype=np.int64) for group in data["groups"])
    return Measured(tuple(data["columns"]), groups, np.array(data["noisy"], dtype=np.int64), data["rate"])


@dataclass(frozen=True, eq=False)
class MarginalsSynopsis(Published):
    """Noisy marginals of one, two or three columns, and one distribution over all columns: the result of `PrivMarginals`.

    Attributes
    ----------
    tables : tuple of Measured
        All counts that were released.
    model : Fitted
        The distribution fitted to them, over groups of values.
    groups : tuple of int64 arrays
        Per column (the target last), the group of each leaf in the model.
    shares : tuple of float64 arrays
        Per column, the estimated shares of its leaves: how a group divides into them.
    rate : int
        Nano-ε per unit of the noisiest counts.
    attributes : tuple of Attribute
        All predictors.
    target : str
        The column to be predicted.
    target_domain : Domain
        Its public domain.
    guarantee : Guarantee
        What the release promises.
    random : callable
        Gives a generator for drawing rows.
    size : float
        The number of records, public or estimated.
    unit : float
        Weight of one average record (1 unless people have their own budgets).
    parameters : mapping
        How it was made; public.
    mechanism : str
        Who published it.
    warnings : tuple of str
        What a reader must know before using the figures.
    """

    tables: tuple[Measured, ...] = field(repr=False)
    model: Fitted = field(repr=False)
    groups: tuple[Ints, ...] = field(repr=False)
    shares: tuple[Floats, ...] = field(repr=False)
    rate: int
    attributes: tuple[Attribute, ...] = field(repr=False)
    target: str
    target_domain: Domain = field(repr=False)
    guarantee: Guarantee = field(repr=False)
    random: Draws = field(repr=False)
    size: float
    unit: float = 1.0
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False)
    mechanism: str = "marginals"
    warnings: tuple[str, ...] = ()

    @cached_property
    def columns(self) -> tuple[Levels, ...]:
        """All columns, the target last."""
        return whole_columns([a.levels for a in self.attributes], self.target, self.target_domain)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, the target last."""
        return tuple(c.name for c in self.columns)

    @property
    def expected_rmse(self) -> float:
        """Standard deviation of the noise on a count of the noisiest marginal, in records."""
        return float(np.sqrt(laplace_variance(self.rate))) / self.unit

    @cached_property
    def inside(self) -> tuple[Floats, ...]:
        """Per column, how the groups of the model divide into leaves: groups by leaves, every row adding up to 1."""
        found = []
        for group, share in zip(self.groups, self.shares, strict=True):
            table = np.zeros((int(group.max()) + 1, group.size))
            table[group, np.arange(group.size)] = np.maximum(share, 0.0) + 1e-12  # a group of nothing is divided evenly
            found.append(table / table.sum(axis=1, keepdims=True))
        return tuple(found)

    def marginal(self, columns: Sequence[str]) -> pd.DataFrame:
        """How many records the model expects with each combination of values of some columns.

        Parameters
        ----------
        columns : sequence of str
            Names of columns, each once.

        Returns
        -------
        DataFrame
            One row per combination: the labels, and `records`.
        """
        import pandas as pd

        wanted = [self._place(name) for name in columns]
        counts = self.counts(wanted)
        digits = np.unravel_index(np.arange(counts.size), counts.shape) if wanted else ()
        found: dict[str, Any] = {
            self.names[j]: np.array(self.columns[j].labels[-1], dtype=object)[digit]
            for j, digit in zip(wanted, digits, strict=True)
        }
        return pd.DataFrame({**found, "records": counts.reshape(-1)})

    def counts(self, columns: Sequence[int]) -> Floats:
        """Expected records by leaves of these columns (by number, the target last)."""
        table = self.model.marginal(columns)
        if self.model.total > 0:
            table = table * (self.size / self.model.total)
        for axis, j in enumerate(columns):
            table = np.moveaxis(np.tensordot(table, self.inside[j], axes=(axis, 0)), -1, axis)
        return np.asarray(table)

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise InputError(f"no column {name!r} was published; there are {', '.join(self.names)}")
        return self.names.index(name)

    def leaves(self, n: int, random: Generator) -> Ints:
        """The leaves of all columns, the target last, in `n` rows drawn by `random`."""
        out = self.model.sample(n, random)
        for j, inside in enumerate(self.inside):
            order = random.permutation(n)
            order = order[np.argsort(out[order, j], kind="stable")]
            out[order, j] = dealt(inside, out[order, j], random)
        return out

    def _draw(self, rows: int, outside: str, random: Generator) -> pd.DataFrame:
        """All columns are in the model, so that none is `outside`."""
        import pandas as pd

        drawn = self.leaves(rows, random)
        columns = {a.name: values_of(a, drawn[:, j], random) for j, a in enumerate(self.attributes)}
        columns[self.target] = self.target_domain.draw(drawn[:, -1], random)
        return pd.DataFrame(columns)

    def _estimated_rows(self) -> int:
        return max(round(self.size), 0)

    def _figures(self) -> Sequence[Ints]:
        return [table.noisy for table in self.tables]

    def to_frame(self) -> pd.DataFrame:
        """One row per released marginal: its columns, how many groups of each were counted, and the noise in records."""
        import pandas as pd

        rows = [
            {
                "columns": " x ".join(self.names[j] for j in t.columns),
                "groups": " x ".join(map(str, t.noisy.shape)),
                "counts": t.noisy.size,
                "noise": t.noise / self.unit,
            }
            for t in self.tables
        ]
        return pd.DataFrame(rows, columns=["columns", "groups", "counts", "noise"])

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers: all released counts, the model, and what is public about them."""
        return {
            **super().to_dict(),
            "columns": list(self.names),
            "tables": [table.to_dict() for table in self.tables],
            "model": self.model.to_dict(),
            "groups": [group.tolist() for group in self.groups],
            "shares": [share.tolist() for share in self.shares],
            "unit": self.unit,
            "noise": self.expected_rmse,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The result that `to_dict` wrote down as `data`.

        Rows are drawn from it by fresh secure bits; where it was an experiment with seeded noise, by a stream that starts
        anew from its figures.
        """
        tables = tuple(measured_from_dict(table) for table in data["tables"])
        return cls(
            tables=tables,
            model=Fitted.from_dict(data["model"]),
            groups=tuple(np.array(group, dtype=np.int64) for group in data["groups"]),
            shares=tuple(np.array(share, dtype=np.float64) for share in data["shares"]),
            unit=data["unit"],
            **cls._fields_of(data, [table.noisy for table in tables]),
        )

    def report_sections(self) -> Iterator[Section]:
        """What the report of a release adds: see `measured_report.marginals_sections`."""
        from sfumato.grids.published.measured_report import marginals_sections

        return marginals_sections(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the columns on a circle, on `ax` or a new figure, with a line for every two that were counted together."""
        from sfumato.grids.published.plots import plot_marginals

        return plot_marginals(self, ax)
