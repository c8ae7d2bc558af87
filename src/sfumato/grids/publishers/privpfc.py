"""`PrivPfC`, the estimator: settings in, synopsis out; automatic settings from public facts; one grid or two."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.published.cleaning import Cleaning
from sfumato.grids.published.synopsis import Synopsis
from sfumato.grids.publishers.automatic import automatic
from sfumato.grids.publishers.one_grid import LATTICE, Weights, factor_of
from sfumato.grids.publishers.settings import Settings
from sfumato.grids.publishers.stacking import release_grids
from sfumato.grids.publishers.task import Task
from sfumato.grids.search.scoring import Scorer, score_pool
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.meter import Meter
from sfumato.privacy.units import NANO, Epsilon, Nano, positive_nano
from sfumato.records.reading import read_records
from sfumato.records.records import Records
from sfumato.tables.dataset import Dataset
from sfumato.tables.predicates import Where
from sfumato.tables.schema import Schema

PERSONAL_WARNING = (
    "people count in proportion to what they granted: if budgets go together with the columns, the synopsis leans towards "
    "those who granted more"
)


class PrivPfC:
    """Publish a table for classification under differential privacy.

    Parameters
    ----------
    epsilon : Epsilon, optional
        The budget of the whole release; left out if `budgets` says what everybody granted.
    target : str
        The column to be predicted.
    grids, most, order, widest, split, calibration, cells
        See `Settings`; "auto" (the default) takes them from public facts. ``split="paper"`` is 3 / 37 / 60.
    rows : int, optional
        A public number of records: nothing is then spent on estimating it.
    budgets : PersonBudgets, optional
        What everybody granted; the table must carry the roster.
    cleaning : "clip", "norm-sub" or "threshold"
        What is done to negative counts.
    attributes : names, optional
        Predictors to consider; by default every column but the target.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sfumato.privacy import Seeded
    >>> from sfumato.tables import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 80, bins=8), "sex": Categorical(["F", "M"]), "ill": Categorical(["no", "yes"])})
    >>> age = np.arange(4000) % 80
    >>> table = pd.DataFrame({"age": age, "sex": np.where(age % 3, "F", "M"), "ill": np.where(age < 40, "no", "yes")})
    >>> synopsis = PrivPfC(epsilon=1, target="ill", rows=4000).fit(table, schema=schema, source=Seeded(1)).synopsis
    >>> synopsis.grid.startswith("age"), synopsis.classifier().score(table, table["ill"])
    (True, 1.0)
    >>> synopsis.sample(3).columns.tolist()[-1]
    'ill'
    """

    def __init__(
        self,
        *,
        target: str,
        epsilon: Epsilon | None = None,
        grids: int | str = "auto",
        most: int | str = "auto",
        order: str = "balanced",
        widest: int | str | None = "auto",
        split: tuple[float, float, float] | str = "auto",
        calibration: str = "spread",
        cells: float | str = "auto",
        rows: int | None = None,
        budgets: PersonBudgets | None = None,
        cleaning: Cleaning = "clip",
        attributes: tuple[str, ...] | None = None,
    ) -> None:
        if (epsilon is None) == (budgets is None):
            raise InputError("give epsilon (one budget for all) or budgets (what everybody granted), not both")
        if rows is not None and rows < 1:
            raise InputError(f"a public number of records must be positive, got {rows}")
        self.target = target
        self.epsilon = epsilon
        self.options = {
            "grids": grids,
            "most": most,
            "order": order,
            "widest": widest,
            "split": split,
            "calibration": calibration,
            "cells": cells,
        }
        self.rows = rows
        self.budgets = budgets
        self.cleaning: Cleaning = cleaning
        self.attributes = attributes

    @property
    def nano(self) -> Nano:
        """The budget (of the most generous people) in nano-ε."""
        if self.budgets is not None:
            return Nano(int(self.budgets.levels[-1]))
        assert self.epsilon is not None
        return positive_nano(self.epsilon)

    def settings(self, task: Task, factor: int = 1) -> Settings:
        """The settings in force, from public facts: ε, a public number of records, the taxonomies."""
        rows = self.rows if self.budgets is None else self.budgets.people
        return automatic(
            epsilon=self.nano / NANO / factor,
            rows=rows,
            taxonomies=task.taxonomies,
            classes=task.classes,
            options=self.options,
        )

    def fit(
        self,
        table: Dataset | Any,
        *,
        schema: Schema | None = None,
        meter: Meter | None = None,
        where: Where = None,
        source: Any = None,
    ) -> PrivPfC:
        """Make the release. Without a `meter` one is made whose limit is this release's budget."""
        from sfumato.grids.publishers.opening import open_for_release

        dataset, meter = open_for_release(
            table, schema=schema, meter=meter, source=source, nano=self.nano, budgets=self.budgets
        )
        task = Task.of(dataset.schema, self.target, self.attributes)
        weights = Weights.of(self.budgets)

        @cache
        def records() -> Records:
            roster = None if self.budgets is None else (self.budgets, weights.groups)
            return read_records(dataset, task.attributes, self.target, where=where, roster=roster)

        self.synopsis = self.release(records, task, meter)
        return self

    def release(self, records: Callable[[], Records], task: Task, meter: Meter, *, score: Scorer = score_pool) -> Synopsis:
        """The release from records that are read when first needed; `score` lets experiments keep scores between runs."""
        weights = Weights.of(self.budgets)
        settings = self.settings(task, factor_of(meter))
        cuts, chosen, parameters = release_grids(
            records, task, meter, nano=self.nano, settings=settings, rows=self._public_rows(), weights=weights, score=score
        )
        return Synopsis(
            cuts=cuts,
            noisy=chosen.noisy.reshape(task.classes, -1),
            rate=chosen.rate,
            attributes=task.attributes,
            target=self.target,
            target_domain=task.target_domain,
            guarantee=meter.guarantee(),
            mechanism="privpfc",
            random=meter.post_processing,
            unit=_average_weight(weights),
            cleaning=self.cleaning,
            size=chosen.size,
            parameters={**settings.to_dict(), **parameters, "cleaning": self.cleaning, "public_rows": self.rows},
            warnings=_warnings(self.budgets, weights),
        )

    def _public_rows(self) -> int | None:
        return self.rows if self.budgets is None else self.budgets.people

    @property
    def grid_(self) -> str:
        """The chosen grid in words."""
        return self.synopsis.grid

    def sample(self, n: int | None = None, *, outside: str = "leave out") -> Any:
        """A synthetic table; see `Synopsis.sample`."""
        return self.synopsis.sample(n, outside=outside)

    def classifier(self, estimator: Any = None) -> Any:
        """A classifier trained on the synopsis."""
        return self.synopsis.classifier(estimator)


def _warnings(budgets: PersonBudgets | None, weights: Weights) -> tuple[str, ...]:
    if budgets is None:
        return ()
    silent = int(budgets.counts[weights.groups == 0].sum())
    if not silent:
        return (PERSONAL_WARNING,)
    return (PERSONAL_WARNING, f"{silent} people granted so little beside the most generous that they count for nothing here")


def _average_weight(weights: Weights) -> float:
    if weights.counts is None:
        return 1.0
    people = max(int(weights.counts.sum()), 1)
    return max(float((weights.counts * weights.groups).sum()) / people, 1.0 / LATTICE)


def arrays_of(synopsis: Synopsis, leaves: NDArray[np.integer]) -> NDArray[np.int64]:
    """The codes of rows in the cuts of a synopsis: what a learner sees of them."""
    if not synopsis.cuts:
        return np.zeros((len(leaves), 0), dtype=np.int64)
    return np.stack([cut.codes(leaves) for cut in synopsis.cuts], axis=1)
