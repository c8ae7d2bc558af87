"""What the publishing rivals share: the same interface as `PrivPfC`, and the last step, noisy counts over given cuts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.published.cuts import Cut, cell_codes
from sfumato.grids.published.synopsis import Synopsis
from sfumato.grids.publishers.one_grid import factor_of
from sfumato.grids.publishers.task import Task
from sfumato.privacy.meter import Meter
from sfumato.privacy.units import Epsilon, Nano, positive_nano
from sfumato.records.reading import read_records
from sfumato.records.records import Records, weighted_bincount
from sfumato.tables.predicates import Where
from sfumato.tables.schema import Schema

MOST_CELLS = 1 << 22


class Publisher(ABC):
    """A mechanism that publishes a table for classification: `fit`, then `synopsis` and `sample`."""

    mechanism: str

    def __init__(self, *, epsilon: Epsilon, target: str, rows: int | None = None, attributes: tuple[str, ...] | None = None):
        self.epsilon = epsilon
        self.nano = positive_nano(epsilon)
        self.target = target
        self.rows = rows
        self.attributes = attributes

    def fit(
        self,
        table: Any,
        *,
        schema: Schema | None = None,
        meter: Meter | None = None,
        where: Where = None,
        source: Any = None,
    ) -> Publisher:
        """Make the release.

        Parameters
        ----------
        table : Dataset, data frame or whatever `sfumato.open` takes
            The private table.
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
        from sfumato.grids.publishers.opening import open_for_release

        dataset, meter = open_for_release(table, schema=schema, meter=meter, source=source, nano=self.nano, budgets=None)
        task = Task.of(dataset.schema, self.target, self.attributes)

        @cache
        def records() -> Records:
            return read_records(dataset, task.attributes, self.target, where=where)

        self.synopsis = self.release(records, task, meter)
        return self

    @abstractmethod
    def release(self, records: Callable[[], Records], task: Task, meter: Meter) -> Any:
        """The release of `task` from `records` that are read when first needed, through `meter`."""

    def sample(self, n: int | None = None, *, outside: str = "leave out") -> Any:
        """A synthetic table of `n` rows (see `Synopsis.sample` for `outside`)."""
        return self.synopsis.sample(n, outside=outside)

    def _size(self, records: Callable[[], Records], meter: Meter, budget: Nano) -> tuple[float, Nano]:
        """The number of records, public or noisy (3% of the budget), and what is left of the budget."""
        if self.rows is not None:
            return float(self.rows), budget
        rate = max(1, budget * 3 // 100)
        noisy = meter.laplace(lambda: np.array([records().total]), rate=rate, label=f"{self.mechanism}: number of records")
        return float(max(2, int(noisy[0]))), Nano(budget - rate)

    def _budget(self, meter: Meter) -> Nano:
        budget = Nano(self.nano // factor_of(meter))
        if budget < 1000:
            raise InputError("the budget is too small for this release; raise epsilon")
        return budget

    def _publish(
        self,
        records: Callable[[], Records],
        task: Task,
        meter: Meter,
        *,
        cuts: Sequence[Cut],
        rate: int,
        size: float,
        parameters: dict[str, Any],
    ) -> Synopsis:
        """Noisy class counts of every cell: a record is in one of them, so the loss is the rate."""
        cells = int(np.prod([c.size for c in cuts], dtype=np.int64)) if cuts else 1

        def exact() -> NDArray[np.int64]:
            found = records()
            code = found.classes.astype(np.int64) * cells + cell_codes(cuts, found.leaves)
            return weighted_bincount(code, found.weights, task.classes * cells)

        noisy = meter.laplace(exact, rate=rate, label=f"{self.mechanism}: counts")
        return Synopsis(
            cuts=tuple(cuts),
            noisy=noisy.reshape(task.classes, cells),
            rate=rate,
            attributes=task.attributes,
            target=self.target,
            target_domain=task.target_domain,
            guarantee=meter.guarantee(),
            mechanism=self.mechanism,
            random=meter.post_processing,
            size=size,
            parameters={**parameters, "public_rows": self.rows},
        )
