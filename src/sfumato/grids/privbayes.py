"""PrivBayes: a noisy Bayesian network over all columns, from which a table is sampled.

Zhang, Cormode, Procopiuc, Srivastava & Xiao, *PrivBayes: private data release via Bayesian networks*, SIGMOD 2014. The
network is grown greedily from the target: each step adds one column with at most `degree` parents among those already
in, chosen for how far the joint distribution is from independence (their score R for general attributes). Parents may
be generalised along their taxonomies. θ-usefulness decides how fine: a marginal has at most ``N ε_count / (2 d θ)``
cells. Then every marginal gets noise.

**Guarantee.** In counts the score is ``½ Σ |n_xπ - n_x n_π / n|``. One more record moves n_xπ by one in one cell and
the product term by at most 3 in L1 norm (write it n p_x p_π and expand), so the score moves by at most 2 either way:
spread 4, plus two units for rounding down to 2**-16. d choices share `select` of the budget. A record is in one cell of
each of the d marginals, each with noise of rate ε_count / d. Steps in sequence add up. (The paper's 3/n + 2/n² holds
for a fixed public n and replacement.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.counting import Records, weighted_bincount
from sfumato.grids.from_schema import Attribute
from sfumato.grids.levels import Levels
from sfumato.grids.quality import SCALE
from sfumato.grids.rivals import Publisher
from sfumato.grids.sampling import values_of, values_of_cells
from sfumato.grids.task import Task
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.losses import choice_rate
from sfumato.privacy.meter import Meter
from sfumato.privacy.noise import laplace_variance
from sfumato.privacy.units import NANO, Epsilon
from sfumato.tables.domains import Domain

if TYPE_CHECKING:
    import pandas as pd

SPREAD = 4.0 + 2.0 / SCALE
Parents = tuple[tuple[int, int], ...]  # (column, level); column d is the target


def dependence(joint: NDArray[np.int64]) -> float:
    """``½ Σ |n_xπ - n_x n_π / n|`` for a table x by π, rounded down to a multiple of 2**-16.

    >>> dependence(np.array([[5, 0], [0, 5]])), dependence(np.array([[4, 4], [4, 4]]))
    (5.0, 0.0)
    """
    n = int(joint.sum())
    if n == 0:
        return 0.0
    if n >= 1 << 30:
        raise InputError("too many records for exact scores")
    gaps = np.abs(n * joint - joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True))
    return float(sum(gaps.reshape(-1).tolist()) * SCALE // (2 * n)) / SCALE


class PrivBayes(Publisher):
    """Publish a Bayesian network of noisy marginals."""

    mechanism = "privbayes"

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        target: str,
        degree: int = 2,
        usefulness: float = 4.0,
        select: float = 0.3,
        rows: int | None = None,
        attributes: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(epsilon=epsilon, target=target, rows=rows, attributes=attributes)
        if degree < 1 or usefulness <= 0 or not 0 < select < 1:
            raise InputError("PrivBayes needs degree >= 1, usefulness > 0 and a share `select` between 0 and 1")
        self.degree, self.usefulness, self.select = degree, usefulness, select

    def release(self, records: Callable[[], Records], task: Task, meter: Meter) -> Network:
        size, budget = self._size(records, meter, self._budget(meter))
        d = len(task.attributes)
        columns = (*task.taxonomies, Levels.flat(self.target, [str(v) for v in task.target_domain.labels()]))
        each_choice = int(budget * self.select) // d
        each_count = (budget - each_choice * d) // (d + 1)
        most = max(4.0, size * (each_count * (d + 1) / NANO) / (2 * (d + 1) * self.usefulness))
        inside: list[int] = [d]
        links: list[tuple[int, Parents]] = [(d, ())]
        while len(links) <= d:
            options = self._options(columns, inside, most)
            chosen = meter.choose(
                partial(_scores, records, columns, options),
                rate=choice_rate(each_choice, SPREAD),
                spread=SPREAD,
                label=f"{self.mechanism}: column {len(links)}",
            )
            links.append(options[chosen])
            inside.append(options[chosen][0])
        tables = [
            meter.laplace(
                partial(_flat_joint, records, columns, x, parents), rate=each_count, label=f"{self.mechanism}: marginal"
            ).reshape(columns[x].leaves, -1)
            for x, parents in links
        ]
        parameters = {"degree": self.degree, "usefulness": self.usefulness, "select": self.select, "public_rows": self.rows}
        return Network(
            tuple(links), tuple(tables), columns, each_count, task.attributes, self.target, task.target_domain,
            meter.guarantee(), meter.post_processing, size, parameters,
        )  # fmt: skip

    def _options(self, columns: tuple[Levels, ...], inside: list[int], most: float) -> list[tuple[int, Parents]]:
        """Every column not yet in, with every set of at most `degree` parents at the finest levels that are still useful."""
        found: list[tuple[int, Parents]] = []
        for x in (j for j in range(len(columns)) if j not in inside):
            for count in range(min(self.degree, len(inside)), -1, -1):
                sets = [_fitted(columns, x, s, most) for s in combinations(inside, count)]
                fitting = [(x, s) for s in sets if s is not None]
                found.extend(fitting)
                if fitting:
                    break
        return found


def _fitted(columns: tuple[Levels, ...], x: int, parents: tuple[int, ...], most: float) -> Parents | None:
    """The parents generalised, largest first, until the marginal has at most `most` cells; None if it cannot be."""
    level = {j: columns[j].height - 1 for j in parents}
    while columns[x].leaves * np.prod([columns[j].sizes[v] for j, v in level.items()], dtype=np.float64) > most:
        coarser = [j for j, v in level.items() if v > 1]
        if not coarser:
            return None if parents else ()
        widest = max(coarser, key=lambda j: columns[j].sizes[level[j]])
        level[widest] -= 1
    return tuple(level.items())


def _joint(records: Records, columns: tuple[Levels, ...], x: int, parents: Parents) -> NDArray[np.int64]:
    def column(j: int, level: int) -> NDArray[Any]:
        values = records.classes if j == len(records.taxonomies) else records.leaves[:, j]
        return np.asarray(columns[j].maps[level][values])

    code, cells = column(x, columns[x].height - 1).astype(np.int64), columns[x].leaves
    for j, level in parents:
        code = code * columns[j].sizes[level] + column(j, level)
        cells *= columns[j].sizes[level]
    return weighted_bincount(code, records.weights, cells).reshape(columns[x].leaves, -1)


def _flat_joint(records: Callable[[], Records], columns: tuple[Levels, ...], x: int, parents: Parents) -> Any:
    return _joint(records(), columns, x, parents).reshape(-1)


def _scores(records: Callable[[], Records], columns: tuple[Levels, ...], options: list[tuple[int, Parents]]) -> list[float]:
    return [dependence(_joint(records(), columns, x, parents)) for x, parents in options]


@dataclass(frozen=True, eq=False)
class Network:
    """A published network: who depends on whom, and the noisy marginals. Sampling is post-processing."""

    links: tuple[tuple[int, Parents], ...]
    tables: tuple[NDArray[np.int64], ...] = field(repr=False)
    columns: tuple[Levels, ...] = field(repr=False)
    rate: int
    attributes: tuple[Attribute, ...] = field(repr=False)
    target: str
    target_domain: Domain = field(repr=False)
    guarantee: Guarantee = field(repr=False)
    random: Callable[[], np.random.Generator] = field(repr=False)
    size: float
    parameters: dict[str, Any] = field(default_factory=dict, repr=False)
    mechanism: str = "privbayes"
    warnings: tuple[str, ...] = ()

    @property
    def expected_rmse(self) -> float:
        """Standard deviation of the noise on each marginal count."""
        return float(np.sqrt(laplace_variance(self.rate)))

    def leaves(self, n: int, random: np.random.Generator) -> NDArray[np.int64]:
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
        columns = {a.name: values_of(a, drawn[:, j], random) for j, a in enumerate(self.attributes)}
        columns[self.target] = values_of_cells(self.target_domain, drawn[:, -1], random)
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

    def plot(self, ax: Any = None) -> Any:
        """The network: see `plots.plot_network`."""
        from sfumato.grids.plots import plot_network

        return plot_network(self, ax)
