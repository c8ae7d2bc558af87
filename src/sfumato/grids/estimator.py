"""`PrivPfC`, the estimator: settings in, synopsis out; automatic settings from public facts; one grid or two.

Two grids: the first gets part of the budget; its published counts score every row (the class share of its cell, in eleven
buckets: a public function of the row), and the second grid is chosen among grids crossed with that score, for what the first
misses. Both steps are PrivPfC as in `privpfc`, in sequence, so their losses add up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as replaced
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.grids.automatic import FIRST_SHARE, automatic
from sfumato.grids.cleaning import Cleaning
from sfumato.grids.coding import read_records
from sfumato.grids.counting import Records
from sfumato.grids.cuts import ScoreCut, buckets, cell_codes, cuts_of, score_levels
from sfumato.grids.from_schema import Attribute, attributes_of
from sfumato.grids.pool import crossed, enumerate_grids
from sfumato.grids.privpfc import LATTICE, Chosen, Weights, choose_and_count, factor_of
from sfumato.grids.settings import Settings
from sfumato.grids.synopsis import Synopsis
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.meter import Meter
from sfumato.privacy.units import NANO, Epsilon, positive_nano
from sfumato.tables.dataset import Dataset
from sfumato.tables.domains import Domain
from sfumato.tables.predicates import Where
from sfumato.tables.schema import Schema

PERSONAL_WARNING = (
    "people count in proportion to what they granted: if budgets go together with the columns, the synopsis leans towards "
    "those who granted more"
)


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be published: the public part of a release."""

    attributes: tuple[Attribute, ...]
    target: str
    target_domain: Domain

    @classmethod
    def of(cls, schema: Schema, target: str, attributes: tuple[str, ...] | None = None) -> Task:
        domain = schema[target]
        if domain.size < 2:
            raise InputError(f"the target {target!r} needs at least two classes")
        return cls(attributes_of(schema, target=target, attributes=attributes), target, domain)

    @property
    def classes(self) -> int:
        return self.target_domain.size


class PrivPfC:
    """Publish a table for classification under differential privacy.

    Parameters
    ----------
    epsilon : Epsilon, optional
        The budget of the whole release; left out if `budgets` says what everybody granted.
    target : str
        The column to be predicted.
    grids, most, order, widest, split, calibration, cells, crowd
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
        widest: int | None | str = "auto",
        split: tuple[float, float, float] | str = "auto",
        calibration: str = "spread",
        cells: float | str = "auto",
        crowd: int | str = "auto",
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
            "crowd": crowd,
        }
        self.rows = rows
        self.budgets = budgets
        self.cleaning: Cleaning = cleaning
        self.attributes = attributes

    @property
    def nano(self) -> int:
        """The budget (of the most generous people) in nano-ε."""
        if self.budgets is not None:
            return int(self.budgets.levels[-1])
        assert self.epsilon is not None
        return positive_nano(self.epsilon)

    def settings(self, task: Task, factor: int = 1) -> Settings:
        """The settings in force, from public facts: ε, a public number of records, the taxonomies."""
        rows = self.rows if self.budgets is None else self.budgets.people
        return automatic(
            epsilon=self.nano / NANO / factor,
            rows=rows,
            taxonomies=tuple(a.levels for a in task.attributes),
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
        from sfumato.grids.opening import open_for_release

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

    def release(self, records: Callable[[], Records], task: Task, meter: Meter) -> Synopsis:
        """The release from records that are read when first needed."""
        weights = Weights.of(self.budgets)
        settings = self.settings(task, factor_of(meter))
        cuts, chosen, parameters = release_grid(
            records, task, meter, nano=self.nano, settings=settings, rows=self._public_rows(), weights=weights
        )
        return Synopsis(
            cuts=cuts,
            noisy=chosen.noisy.reshape(task.classes, -1),
            rate=chosen.rate,
            attributes=task.attributes,
            target=self.target,
            target_domain=task.target_domain,
            guarantee=meter.guarantee(),
            mechanism="privpfc" if settings.grids == 1 else "privpfc-2",
            random=meter.post_processing,
            unit=_average_weight(weights),
            cleaning=self.cleaning,
            size=chosen.size,
            parameters={**settings.to_dict(), **parameters, "cleaning": self.cleaning, "public_rows": self.rows},
            warnings=(PERSONAL_WARNING,) if self.budgets is not None else (),
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


def _average_weight(weights: Weights) -> float:
    if weights.counts is None:
        return 1.0
    people = max(int(weights.counts.sum()), 1)
    return max(float((weights.counts * weights.groups).sum()) / people, 1.0 / LATTICE)


def release_grid(
    records: Callable[[], Records],
    task: Task,
    meter: Meter,
    *,
    nano: int,
    settings: Settings,
    rows: int | None,
    weights: Weights,
) -> tuple[tuple[Any, ...], Chosen, dict[str, Any]]:
    """Cuts, the chosen grid with its noisy counts, and public figures: for one grid or two."""
    taxonomies = tuple(a.levels for a in task.attributes)
    if settings.grids == 1:
        chosen = choose_and_count(
            records,
            meter,
            nano=nano,
            taxonomies=taxonomies,
            classes=task.classes,
            settings=settings,
            rows=rows,
            weights=weights,
        )
        return (
            cuts_of(chosen.grid, task.attributes),
            chosen,
            {"candidates": chosen.candidates, "most_cells": chosen.most_cells},
        )
    first_nano = int(nano * FIRST_SHARE)
    first = choose_and_count(
        records,
        meter,
        nano=first_nano,
        taxonomies=taxonomies,
        classes=task.classes,
        settings=settings,
        rows=rows,
        weights=weights,
        label="first grid",
    )
    inner = cuts_of(first.grid, task.attributes)
    bucket = buckets(first.noisy, first.rate / NANO)
    scored = (*taxonomies, score_levels())

    @cache
    def with_score() -> Records:
        plain = records()
        score = bucket[cell_codes(inner, plain.leaves)]
        leaves = np.asfortranarray(np.column_stack([plain.leaves, score]))
        return replaced(plain, taxonomies=scored, leaves=leaves)

    narrow = replaced(settings, widest=min(3, settings.widest or 3), most=max(1, settings.most // 4))
    second = choose_and_count(
        with_score,
        meter,
        nano=nano - first_nano,
        taxonomies=scored,
        classes=task.classes,
        settings=settings,
        # The number of records is known from the first step: published, so free.
        rows=rows if rows is not None else max(1, int(first.size)),
        weights=weights,
        pool=lambda limit: crossed(
            enumerate_grids(
                taxonomies, most=narrow.most, cells=max(1, limit // 2), order=settings.order, widest=narrow.widest
            ),
            scored,
            len(taxonomies),
            cells=limit,
        ),
        label="second grid",
    )
    level = dict(second.grid)[len(taxonomies)]
    score = ScoreCut(inner, bucket, first.noisy.reshape(task.classes, -1), level)
    cuts = tuple(c for c in cuts_of(second.grid[:-1], task.attributes)) + (score,)
    figures = {
        "candidates": first.candidates,
        "second_candidates": second.candidates,
        "most_cells": first.most_cells,
        "first_grid": " x ".join(f"{c.name} ({c.size} groups)" for c in inner) or "one cell",
    }
    return cuts, second, figures


def arrays_of(synopsis: Synopsis, leaves: NDArray[np.integer]) -> NDArray[np.int64]:
    """The codes of rows in the cuts of a synopsis: what a learner sees of them."""
    if not synopsis.cuts:
        return np.zeros((len(leaves), 0), dtype=np.int64)
    return np.stack([cut.codes(leaves) for cut in synopsis.cuts], axis=1)
