"""A published Bayesian network and what can be made of it. Everything here is post-processing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.published.sampling import values_of
from sfumato.grids.publishers.bits import Bits
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.noise import laplace_variance
from sfumato.privacy.source import Generator
from sfumato.records.attributes import Attribute
from sfumato.records.levels import Levels
from sfumato.results import Result
from sfumato.tables.domains import Domain

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.grids.published.reporting import Section

Parents = tuple[tuple[int, int], ...]  # (column, level); the last column is the target


@dataclass(frozen=True, eq=False)
class Network(Result):
    """A published network: who depends on whom, and the noisy marginals. Sampling is post-processing."""

    links: tuple[tuple[int, Parents], ...]
    tables: tuple[NDArray[np.int64], ...] = field(repr=False)
    columns: tuple[Levels, ...] = field(repr=False)
    rate: int
    attributes: tuple[Attribute, ...] = field(repr=False)
    target: str
    target_domain: Domain = field(repr=False)
    guarantee: Guarantee = field(repr=False)
    random: Callable[[], Generator] = field(repr=False)
    size: float
    parameters: dict[str, Any] = field(default_factory=dict, repr=False)
    mechanism: str = "privbayes"
    warnings: tuple[str, ...] = ()
    code: Bits | None = field(default=None, repr=False)  # where the columns of the network are bits

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
        """Sampled leaves of all columns, the target last."""
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

    def sample(self, n: int | None = None, *, outside: str = "leave out") -> pd.DataFrame:
        """A synthetic table with all columns (`outside` is there for the common interface: nothing is outside)."""
        import pandas as pd

        random = self.random()
        drawn = self.leaves(round(self.size) if n is None else int(n), random)
        if self.code is not None:
            drawn = self.code.decode(drawn)
        columns = {a.name: values_of(a, drawn[:, j], random) for j, a in enumerate(self.attributes)}
        columns[self.target] = self.target_domain.draw(drawn[:, -1], random)
        return pd.DataFrame(columns)

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
        return {
            "kind": "network",
            "mechanism": self.mechanism,
            "target": self.target,
            "links": self.to_frame().to_dict("records"),
            "tables": [t.tolist() for t in self.tables],
            "parameters": self.parameters,
            "guarantee": self.guarantee.to_dict(),
        }

    @cached_property
    def synthetic(self) -> pd.DataFrame:
        """One drawn table, kept: the one a release stores. At most a million rows."""
        from sfumato.grids.published.reporting import MOST_SYNTHETIC

        return self.sample(min(max(round(self.size), 0), MOST_SYNTHETIC))

    def extra_tables(self) -> dict[str, pd.DataFrame]:
        """Tables that a release stores beside the network."""
        return {"synthetic": self.synthetic}

    def report_sections(self) -> Iterator[Section]:
        """What the report of a release adds: see `reporting.network_sections`."""
        from sfumato.grids.published.reporting import network_sections

        return network_sections(self)

    def plot(self, ax: Any = None) -> Any:
        """The network: see `plots.plot_network`."""
        from sfumato.grids.published.plots import plot_network

        return plot_network(self, ax)
