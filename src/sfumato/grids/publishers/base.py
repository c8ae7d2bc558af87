"""What all publishers share: one way to be asked, one `fit`, and the last step, noisy counts over given cuts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.published.cuts import Cut, ScoreCut, cell_codes
from sfumato.grids.published.joint import Joint
from sfumato.grids.published.network import Network
from sfumato.grids.published.synopsis import Synopsis
from sfumato.grids.publishers.one_grid import TOO_SMALL, Weights
from sfumato.grids.publishers.opening import open_for_release, synthesized
from sfumato.grids.publishers.task import Task
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.exact import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.noise import laplace_variance
from sfumato.privacy.units import Epsilon, Nano, positive_nano
from sfumato.records.opened import keeps_ledger
from sfumato.records.reading import read_records
from sfumato.records.records import Records, weighted_bincount
from sfumato.tables.predicates import Where
from sfumato.tables.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

_LEAST = 1000  # nano-ε: with less, shares round to nothing


@dataclass(kw_only=True, eq=False)
class Publisher(ABC):
    """A mechanism that publishes a table for classification: `fit`, then `synopsis` and `sample`.

    A subclass is a dataclass too: its own parameters are further fields.

    Parameters
    ----------
    target : str
        The column to be predicted.
    epsilon : Epsilon, optional
        The budget of the whole release; left out if `budgets` says what everybody granted.
    budgets : PersonBudgets, optional
        What everybody granted, for mechanisms that are `personal`; the table must carry the roster.
    rows : int, optional
        A public number of records; without it part of the budget estimates it, where it is needed.
    attributes : sequence of str, optional
        Predictors to consider; by default every column but the target.

    Attributes
    ----------
    mechanism : str
        The name in plans and in the registry.
    personal : bool
        Whether it can weigh people by their own budgets.
    nano : Nano
        The budget (of the most generous people) in nano-ε.
    synopsis : Synopsis, Network or Joint
        The release, once `fit` has made it.
    """

    mechanism: ClassVar[str]
    personal: ClassVar[bool] = False

    target: str
    epsilon: Epsilon | None = None
    budgets: PersonBudgets | None = None
    rows: int | None = None
    attributes: Sequence[str] | None = None
    synopsis: Synopsis | Network | Joint = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.budgets is None):
            raise InputError("give epsilon (one budget for all) or budgets (what everybody granted), not both")
        if self.budgets is not None and not self.personal:
            raise InputError(f"{self.mechanism} cannot draw on personal budgets; give one epsilon for all, or take privpfc")
        if self.rows is not None and self.rows < 1:
            raise InputError(f"a public number of records must be positive, got {self.rows}")
        self.attributes = None if self.attributes is None else tuple(self.attributes)
        self.nano = self._nano()

    def _nano(self) -> Nano:
        if self.budgets is not None:
            return Nano(int(self.budgets.levels[-1]))
        assert self.epsilon is not None
        return positive_nano(self.epsilon)

    def fit(
        self,
        table: Any,
        *,
        schema: Schema | None = None,
        meter: Meter | None = None,
        where: Where = None,
        source: Any = None,
    ) -> Self:
        """Make the release.

        Parameters
        ----------
        table : Dataset, data frame or whatever `sfumato.open` takes
            The private table. One that `sfumato.open` gave is charged as by its own `synthesize`.
        schema : Schema, optional
            Public domains, where the table does not bring its own.
        meter : Meter, optional
            Pays and draws; by default one whose limit is this release's budget.
        where : condition, optional
            Only these rows.
        source : Source, optional
            Random bits for the Meter made here; secure unless given.

        Returns
        -------
        self
            With the release in `synopsis`.
        """
        if keeps_ledger(table):
            self.synopsis = synthesized(self, table, where, schema=schema, meter=meter, source=source)
            return self
        dataset, meter = open_for_release(
            table, schema=schema, meter=meter, source=source, nano=self.nano, budgets=self.budgets
        )
        task = Task.of(dataset.schema, self.target, self.attributes)
        self.expected(task, meter.terms.factor)
        roster = None if self.budgets is None else (self.budgets, Weights.of(self.budgets).groups)
        records = read_records(dataset, task.attributes, self.target, where=where, roster=roster)
        self.synopsis = self.release(records, task, meter)
        return self

    @abstractmethod
    def release(self, records: Exact[Records], task: Task, meter: Meter) -> Synopsis | Network | Joint:
        """The release of `task` from `records`, through `meter`: whatever it is made of, the Meter told."""

    def expected(self, task: Task, factor: int = 1) -> tuple[float | None, str]:
        """What public facts say beforehand; whatever they rule out is refused here, before anything is charged.

        Parameters
        ----------
        task : Task
            What is to be published.
        factor : int
            Units of loss per unit of rate: a person's rows.

        Returns
        -------
        float or None
            Standard deviation of the noise on a published count, in records; None if it is not known yet.
        str
            What to add to the summary for whoever chooses.
        """
        self._budget(factor)
        return None, ""

    def sample(self, n: int | None = None, *, outside: str = "leave out") -> pd.DataFrame:
        """A synthetic table of `n` rows; `outside` is about columns of which it says nothing: see `Synopsis.sample`."""
        return self.synopsis.sample(n, outside=outside)

    def _budget(self, factor: int) -> Nano:
        """What the steps may cost one record."""
        budget = Nano(self.nano // factor)
        if budget < _LEAST:
            raise InputError(TOO_SMALL)
        return budget

    def _size_share(self, budget: Nano) -> Nano:
        """What the number of records costs: nothing if it is public, else 3% of the budget."""
        return Nano(0 if self.rows is not None else max(1, budget * 3 // 100))

    def _size(self, records: Exact[Records], meter: Meter, budget: Nano) -> tuple[float, Nano]:
        """The number of records, public or noisy, and what is left of the budget."""
        if self.rows is not None:
            return float(self.rows), budget
        rate = self._size_share(budget)
        noisy = meter.laplace(records.map(lambda r: [r.total]), rate=rate, label=f"{self.mechanism}: number of records")
        return float(max(2, int(noisy[0]))), Nano(budget - rate)

    def _publish(
        self,
        records: Exact[Records],
        task: Task,
        meter: Meter,
        *,
        cuts: Sequence[Cut],
        rate: int,
        size: float | None,
        parameters: dict[str, Any],
    ) -> Synopsis:
        """Noisy class counts of every cell: a record is in one of them, so the loss is the rate."""
        cells = int(np.prod([c.size for c in cuts], dtype=np.int64)) if cuts else 1

        def counted(found: Records) -> NDArray[np.int64]:
            code = found.classes.astype(np.int64) * cells + cell_codes(cuts, found.leaves)
            return weighted_bincount(code, found.weights, task.classes * cells)

        noisy = meter.laplace(records.map(counted), rate=rate, label=f"{self.mechanism}: counts")
        return self._synopsis(task, meter, cuts=cuts, noisy=noisy, rate=rate, size=size, parameters=parameters)

    def _synopsis(
        self,
        task: Task,
        meter: Meter,
        *,
        cuts: Sequence[Cut | ScoreCut],
        noisy: NDArray[np.int64],
        rate: int,
        size: float | None,
        parameters: dict[str, Any],
        **more: Any,
    ) -> Synopsis:
        return Synopsis(
            cuts=tuple(cuts),
            noisy=noisy.reshape(task.classes, -1),
            rate=rate,
            attributes=task.attributes,
            target=self.target,
            target_domain=task.target_domain,
            guarantee=meter.guarantee(),
            mechanism=self.mechanism,
            random=meter.post_processing,
            size=size,
            parameters={**parameters, "public_rows": self.rows},
            **more,
        )


def noise_of(rate: int, unit: float = 1.0) -> float:
    """Standard deviation of the noise on a count, in records of weight `unit`."""
    return float(np.sqrt(laplace_variance(rate))) / unit
