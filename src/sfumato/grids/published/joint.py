"""A published general table: noisy marginals, the distribution fitted to them, and what can be made of both.

Everything here is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.graphical import Fitted
from sfumato.grids.published.base import Draws, Published, Section
from sfumato.grids.published.marginals import unfolded, widths
from sfumato.grids.published.network import whole_columns
from sfumato.grids.published.sampling import draw_given_class, values_of
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.noise import laplace_variance
from sfumato.privacy.source import Generator
from sfumato.records.attributes import Attribute
from sfumato.records.levels import Levels
from sfumato.tables.domains import Domain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from sfumato.grids.published.joint_classifier import JointClassifier

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Measured:
    """One table of counts as it was released.

    Attributes
    ----------
    columns : tuple of int
        Which columns; the last of all is the target.
    groups : tuple of int64 arrays
        Per column, the group of each leaf.
    noisy : int64 array
        The counts, in units of weight.
    rate : int
        Nano-ε per unit.
    """

    columns: tuple[int, ...]
    groups: tuple[Ints, ...]
    noisy: Ints
    rate: int

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on each count, in units of weight."""
        return float(np.sqrt(laplace_variance(self.rate)))

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers; `from_dict` reads them back."""
        groups = [g.tolist() for g in self.groups]
        return {"columns": list(self.columns), "groups": groups, "noisy": self.noisy.tolist(), "rate": self.rate}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Measured:
        """The table that `to_dict` wrote down as `data`.

        >>> Measured.from_dict(Measured((0,), (np.array([0, 1]),), np.array([5, -1]), 10).to_dict()).noisy.tolist()
        [5, -1]
        """
        groups = tuple(np.array(g, dtype=np.int64) for g in data["groups"])
        return cls(tuple(data["columns"]), groups, np.array(data["noisy"], dtype=np.int64), data["rate"])


@dataclass(frozen=True, eq=False)
class Joint(Published):
    """A published general table: noisy marginals and one distribution over all columns. The result of `PrivMarginals`.

    Attributes
    ----------
    ones : tuple of Measured
        The counts of every column by itself, at its leaves; the target's come last.
    tables : tuple of Measured
        The counts of pairs and triples of columns, in the order in which they were measured.
    groups : tuple of int64 arrays
        Per column, the group of each leaf; the fitted distribution is over these groups.
    fitted : Fitted
        The distribution, in units of weight.
    rate : int
        Nano-ε per unit of count, of the noisiest pair (of the noisiest column if there is no pair).
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
        The weight of all records, public or noisy.
    unit : float
        The weight of an average record; 1 where all have one ε.
    parameters : mapping
        How it was made; public.
    mechanism : str
        Who published it.
    warnings : tuple of str
        What a reader must know before using the figures.
    """

    ones: tuple[Measured, ...] = field(repr=False)
    tables: tuple[Measured, ...] = field(repr=False)
    groups: tuple[Ints, ...] = field(repr=False)
    fitted: Fitted = field(repr=False)
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
    def expected_rmse(self) -> float:
        """Standard deviation of the noise on a count of the noisiest pair, in records."""
        return float(np.sqrt(laplace_variance(self.rate))) / self.unit

    @cached_property
    def shares(self) -> tuple[NDArray[np.float64], ...]:
        """Per column, how the leaves share each group: groups by leaves, by the column's own counts."""
        found = []
        for one, levels, group in zip(self.ones, self.columns, self.groups, strict=True):
            own = leaf_shares(one, levels, self.size) + 1e-9
            table = np.zeros((int(group.max()) + 1, group.size))
            table[group, np.arange(group.size)] = own
            found.append(table / table.sum(axis=1, keepdims=True))
        return tuple(found)

    def marginal(self, columns: Sequence[str]) -> pd.DataFrame:
        """How many records the distribution expects with each combination of values of some columns.

        Parameters
        ----------
        columns : sequence of str
            Names of columns, each once; the target is one of them.

        Returns
        -------
        DataFrame
            One row per combination: the labels, and `records`.
        """
        import pandas as pd

        names = [c.name for c in self.columns]
        unknown = [name for name in columns if name not in names]
        if unknown:
            raise InputError(f"no column {unknown[0]!r} was published; there are {', '.join(names)}")
        wanted = [names.index(name) for name in columns]
        counts = self.fitted.marginal(wanted) / self.unit
        for axis, j in enumerate(wanted):
            counts = np.moveaxis(np.tensordot(counts, self.shares[j], axes=(axis, 0)), -1, axis)
        digits = np.unravel_index(np.arange(counts.size), counts.shape) if wanted else ()
        found: dict[str, Any] = {
            names[j]: np.array(self.columns[j].labels[-1], dtype=object)[digit]
            for j, digit in zip(wanted, digits, strict=True)
        }
        return pd.DataFrame({**found, "records": counts.reshape(-1)})

    def leaves(self, n: int, random: Generator) -> NDArray[np.int64]:
        """The leaves of all columns, the target last, in `n` rows drawn by `random`."""
        drawn = self.fitted.sample(n, random)
        return np.stack([draw_given_class(s, drawn[:, j], random) for j, s in enumerate(self.shares)], axis=1)

    def _draw(self, rows: int, outside: str, random: Generator) -> pd.DataFrame:
        """All columns are measured, so that none is `outside`."""
        import pandas as pd

        drawn = self.leaves(rows, random)
        columns = {a.name: values_of(a, drawn[:, j], random) for j, a in enumerate(self.attributes)}
        columns[self.target] = self.target_domain.draw(drawn[:, -1], random)
        return pd.DataFrame(columns)

    def _estimated_rows(self) -> int:
        return round(self.size / self.unit)

    def _figures(self) -> Sequence[Ints]:
        return [m.noisy for m in (*self.ones, *self.tables)]

    def classifier(self, estimator: Any = None) -> JointClassifier:
        """A classifier of the target, trained on drawn rows.

        Parameters
        ----------
        estimator : scikit-learn classifier, optional
            Logistic regression by default.

        Returns
        -------
        JointClassifier
        """
        from sfumato.grids.published.joint_classifier import JointClassifier

        return JointClassifier.train(self, estimator)

    def to_frame(self) -> pd.DataFrame:
        """What was measured: one row per table with its columns, the groups of each, and the noise in records."""
        import pandas as pd

        rows = [
            {
                "columns": ", ".join(self.columns[j].name for j in m.columns),
                "groups": " x ".join(map(str, m.noisy.shape)),
                "cells": m.noisy.size,
                "noise": m.sigma / self.unit,
            }
            for m in (*self.ones, *self.tables)
        ]
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers: noisy tables and the fit, with all that is public about them."""
        return {
            **super().to_dict(),
            "columns": [c.name for c in self.columns],
            "ones": [m.to_dict() for m in self.ones],
            "tables": [m.to_dict() for m in self.tables],
            "groups": [g.tolist() for g in self.groups],
            "fitted": self.fitted.to_dict(),
            "unit": self.unit,
            "noise": self.expected_rmse,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The table that `to_dict` wrote down as `data`.

        Rows are drawn from it by fresh secure bits; where it was an experiment with seeded noise, by a stream that starts
        anew from its figures.
        """
        ones, tables = (tuple(Measured.from_dict(m) for m in data[name]) for name in ("ones", "tables"))
        return cls(
            ones=ones,
            tables=tables,
            groups=tuple(np.array(g, dtype=np.int64) for g in data["groups"]),
            fitted=Fitted.from_dict(data["fitted"]),
            unit=data["unit"],
            **cls._fields_of(data, [m.noisy for m in (*ones, *tables)]),
        )

    def report_sections(self) -> Iterator[Section]:
        """What the report of a release adds: see `joint_report`."""
        from sfumato.grids.published.joint_report import joint_sections

        return joint_sections(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the columns in a circle on `ax`, or on a new figure, with the pairs and triples that were measured."""
        from sfumato.grids.published.joint_report import plot_joint

        return plot_joint(self, ax)


def leaf_shares(one: Measured, levels: Levels, total: float) -> NDArray[np.float64]:
    """Shares of a column's leaves from its noisy counts, drawn towards public widths where noise is all there is."""
    return unfolded(one.noisy, widths(levels), levels, total=max(total, 1.0), variance=one.sigma**2)
