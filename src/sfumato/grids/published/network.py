"""A published Bayesian network and what can be made of it. Everything here is post-processing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.published.base import Draws, Published, Section
from sfumato.grids.published.bits import Bits
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

Parents = tuple[tuple[int, int], ...]  # (column, level); the last column is the target
Link = tuple[int, Parents]


@dataclass(frozen=True, eq=False)
class Network(Published):
    """A published Bayesian network: who depends on whom, and the noisy marginals. The result of `PrivBayes`.

    Attributes
    ----------
    links : tuple of (column, parents)
        In the order in which columns are drawn; parents are (column, level) pairs.
    tables : tuple of int64 arrays
        Per link, noisy counts: values of the column by cells of its parents.
    rate : int
        Nano-ε per unit of count.
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
        The number of records, public or noisy.
    parameters : mapping
        How it was made; public.
    mechanism : str
        Who published it.
    warnings : tuple of str
        What a reader must know before using the figures.
    code : Bits or None
        How columns became bits, where the columns of the network are bits.
    """

    links: tuple[Link, ...]
    tables: tuple[NDArray[np.int64], ...] = field(repr=False)
    rate: int
    attributes: tuple[Attribute, ...] = field(repr=False)
    target: str
    target_domain: Domain = field(repr=False)
    guarantee: Guarantee = field(repr=False)
    random: Draws = field(repr=False)
    size: float
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False)
    mechanism: str = "privbayes"
    warnings: tuple[str, ...] = ()
    code: Bits | None = field(default=None, repr=False)

    @cached_property
    def columns(self) -> tuple[Levels, ...]:
        """The columns of the network, the target last: those of the table, or their bits."""
        if self.code is not None:
            return self.code.columns
        return whole_columns([a.levels for a in self.attributes], self.target, self.target_domain)

    @property
    def expected_rmse(self) -> float:
        """Standard deviation of the noise on each marginal count."""
        return float(np.sqrt(laplace_variance(self.rate)))

    @property
    def measured(self) -> tuple[tuple[tuple[int, Parents], NDArray[np.int64]], ...]:
        """Links with the noisy tables as they were measured; in the binary form the first few share one of them."""
        first = int(self.parameters.get("degree", 0)) if self.parameters.get("score") == "F" else 0
        return tuple(zip(self.links, self.tables, strict=True))[first:]

    def leaves(self, n: int, random: Generator) -> NDArray[np.int64]:
        """The leaves of all columns, the target last, in `n` rows drawn by `random`."""
        out = np.zeros((n, len(self.columns)), dtype=np.int64)
        for (x, parents), table in zip(self.links, self.tables, strict=True):
            given = np.zeros(n, dtype=np.int64)
            for j, level in parents:
                given = given * self.columns[j].sizes[level] + self.columns[j].maps[level][out[:, j]]
            weights = np.maximum(table, 0).astype(np.float64)
            empty = weights.sum(axis=0) == 0
            weights[:, empty] = np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
            upper = np.cumsum(weights, axis=0) / weights.sum(axis=0)
            out[:, x] = np.minimum((random.random(n) > upper[:, given]).sum(axis=0), len(table) - 1)
        return out

    def _draw(self, rows: int, outside: str, random: Generator) -> pd.DataFrame:
        """All columns are in the network, so that none is `outside`."""
        import pandas as pd

        drawn = self.leaves(rows, random)
        if self.code is not None:
            drawn = self.code.decode(drawn)
        columns = {a.name: values_of(a, drawn[:, j], random) for j, a in enumerate(self.attributes)}
        columns[self.target] = self.target_domain.draw(drawn[:, -1], random)
        return pd.DataFrame(columns)

    def _estimated_rows(self) -> int:
        return round(self.size)

    def _figures(self) -> Sequence[NDArray[np.int64]]:
        return self.tables

    def to_frame(self) -> pd.DataFrame:
        """The network: one row per column with its parents."""
        import pandas as pd

        names = [c.name for c in self.columns]
        rows = [
            {"column": names[x], "parents": ", ".join(f"{names[j]} ({self.columns[j].sizes[v]} groups)" for j, v in parents)}
            for x, parents in self.links
        ]
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers: the links and their noisy tables with all that is public about them."""
        return {
            **super().to_dict(),
            "columns": [c.name for c in self.columns],
            "links": [{"column": x, "parents": [list(parent) for parent in parents]} for x, parents in self.links],
            "tables": [table.tolist() for table in self.tables],
            "bits": None if self.code is None else "gray" if self.code.gray else "binary",
            "noise": self.expected_rmse,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The network that `to_dict` wrote down as `data`.

        Rows are drawn from it by fresh secure bits; where it was an experiment with seeded noise, by a stream that starts
        anew from its figures.
        """
        links = tuple((link["column"], tuple((j, level) for j, level in link["parents"])) for link in data["links"])
        tables = tuple(np.array(table, dtype=np.int64) for table in data["tables"])
        made = cls(links=links, tables=tables, **cls._fields_of(data, tables))
        return made if data["bits"] is None else replace(made, code=Bits(made.columns, gray=data["bits"] == "gray"))

    def report_sections(self) -> Iterator[Section]:
        """What the report of a release adds: see `reporting.network_sections`."""
        from sfumato.grids.published.reporting import network_sections

        return network_sections(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the network on `ax`, or on a new figure: columns in the order they joined, arcs from parents to children."""
        from sfumato.grids.published.plots import plot_network

        return plot_network(self, ax)


def whole_columns(taxonomies: Sequence[Levels], target: str, domain: Domain) -> tuple[Levels, ...]:
    """The columns as they are, the target last."""
    return (*taxonomies, Levels.flat(target, list(domain.labels())))
