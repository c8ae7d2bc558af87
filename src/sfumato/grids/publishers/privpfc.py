"""`PrivPfC`, the estimator: settings in, synopsis out; automatic settings from public facts; one grid or two.

Su, Cao, Li & Lyu, *PrivPfC: differentially private data publication for classification*, VLDB Journal 2018. The steps and
why they keep their budget are in `one_grid` and `stacking`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from sfumato.errors import InputError
from sfumato.grids.published.classifier import GridClassifier
from sfumato.grids.published.cleaning import Cleaning
from sfumato.grids.published.synopsis import Synopsis
from sfumato.grids.publishers.automatic import automatic
from sfumato.grids.publishers.base import Publisher, noise_of
from sfumato.grids.publishers.one_grid import Weights
from sfumato.grids.publishers.others import count_others, others_rates
from sfumato.grids.publishers.settings import Calibration, Settings
from sfumato.grids.publishers.stacking import counts_rate, release_grids
from sfumato.grids.publishers.task import Task
from sfumato.grids.search.pool import Order
from sfumato.grids.search.scoring import Scorer, score_pool
from sfumato.privacy.budgets import PersonBudgets
from sfumato.privacy.exact import Exact
from sfumato.privacy.meter import Meter
from sfumato.privacy.units import NANO, Nano
from sfumato.records.records import Records
from sfumato.registry import Mechanism, Parameter

OTHERS = 0.1  # of the budget: what classification loses by it is within the noise of the bench (`bench grids --part whole`)
MOST_OTHERS = 0.9
PERSONAL_WARNING = (
    "people count in proportion to what they granted: if budgets go together with the columns, the synopsis leans towards "
    "those who granted more"
)


@dataclass(kw_only=True, eq=False)
class PrivPfC(Publisher):
    """Publish a table for classification under differential privacy.

    Parameters
    ----------
    target : str
        The column to be predicted.
    epsilon : Epsilon, optional
        The budget of the whole release; left out if `budgets` says what everybody granted.
    grids : 1, 2 or "auto"
        How many grids; "auto" lets noisy class counts decide where a second one may pay.
    most : int or "auto"
        Θ, the largest number of candidate grids.
    order : "balanced" or "paper"
        Which candidates are taken when there are too many; see `Settings`.
    widest : int, "all" or "auto"
        The largest number of columns in a candidate grid.
    split : three shares, "paper" or "auto"
        Shares of ε for the number of records, the choice and the counts; "paper" is 3 / 37 / 60.
    calibration : "spread" or "published"
        How the choice is priced: by the spread of the changes, or as published.
    cells : float or "auto"
        A candidate has at most ``cells * N * ε`` cells, ε that of the counts.
    rows : int, optional
        A public number of records: nothing is then spent on estimating it.
    budgets : PersonBudgets, optional
        What everybody granted; the table must carry the roster.
    cleaning : "classes", "clip", "norm-sub" or "threshold"
        What is done to negative counts; "classes" keeps every class at its estimated total, "clip" is the paper's.
    others : float
        Share of the budget for the target itself and for the columns outside the grid, each counted by itself; 0 for none.
    attributes : names, optional
        Predictors to consider; by default every column but the target.

    Attributes
    ----------
    synopsis : Synopsis
        The release, once `fit` has made it.

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

    mechanism = "privpfc"
    personal = True

    grids: int | str = "auto"
    most: int | str = "auto"
    order: str = "balanced"
    widest: int | str | None = "auto"
    split: Sequence[float] | str = "auto"
    calibration: str = "spread"
    cells: float | str = "auto"
    cleaning: Cleaning = "classes"
    others: float = OTHERS
    synopsis: Synopsis = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cleaning not in get_args(Cleaning):
            raise InputError(f"cleaning must be 'classes', 'clip', 'norm-sub' or 'threshold', got {self.cleaning!r}")
        if not 0 <= self.others <= MOST_OTHERS:
            raise InputError(f"others is a share of the budget from 0 to {MOST_OTHERS}, got {self.others!r}")
        self.widest = "all" if self.widest is None else self.widest

    def settings(self, task: Task, factor: int = 1) -> Settings:
        """The settings in force for `task`, from public facts: ε over `factor`, a public number of records, taxonomies."""
        names = ("grids", "most", "order", "widest", "split", "calibration", "cells")
        return automatic(
            epsilon=self.nano / NANO / factor,
            rows=self._public_rows(),
            taxonomies=task.taxonomies,
            classes=task.classes,
            options={name: getattr(self, name) for name in names},
        )

    def expected(self, task: Task, factor: int = 1) -> tuple[float | None, str]:
        settings, weights = self.settings(task, factor), Weights.of(self.budgets)
        known = self._public_rows() is not None
        others = self._for_others()
        if others:
            for known_classes in (False, True):
                others_rates(others, len(task.attributes), known=known_classes, factor=factor, weights=weights)
        rate = counts_rate(settings, Nano(self.nano - others), factor=factor, public_size=known, weights=weights)
        note = f"; up to {settings.most:,} candidates for {self.target}"
        if settings.grids != 1:
            note += ", then a second grid for what the first misses"
        if settings.grids == "auto":
            note += ", if class counts (2% of the budget) say that there is enough to find"
        return noise_of(rate, weights.average), note

    def release(
        self,
        records: Exact[Records],
        task: Task,
        meter: Meter,
        *,
        score: Scorer = score_pool,
        weights: Weights | None = None,
    ) -> Synopsis:
        """The release of `task` from `records`, through `meter`.

        `score` lets experiments keep scores between runs; `weights` are those of the records, where they are not what the
        budgets say.
        """
        weights = weights or Weights.of(self.budgets)
        settings, others = self.settings(task, meter.terms.factor), self._for_others()
        for_grids = Nano(self.nano - others)
        cuts, chosen, figures = release_grids(
            records, task, meter, nano=for_grids, settings=settings, rows=self._public_rows(), weights=weights, score=score
        )
        more = count_others(
            records,
            task,
            meter,
            nano=others,
            cuts=cuts,
            known=chosen.class_counts,
            size=chosen.size,
            weights=weights,
        )
        return self._synopsis(
            task,
            meter,
            cuts=cuts,
            noisy=chosen.noisy,
            rate=chosen.rate,
            size=chosen.size,
            parameters={**settings.to_dict(), **figures, "cleaning": self.cleaning, "others": self.others},
            unit=weights.average,
            cleaning=self.cleaning,
            warnings=_warnings(self.budgets, weights),
            **more,
        )

    def _for_others(self) -> Nano:
        """What the target and the columns outside the grid may cost."""
        return Nano(int(self.nano * self.others))

    def _public_rows(self) -> int | None:
        return self.rows if self.budgets is None else self.budgets.people

    @property
    def grid_(self) -> str:
        """The chosen grid in words."""
        return self.synopsis.grid

    def classifier(self, estimator: Any = None) -> GridClassifier:
        """A classifier trained on the synopsis; see `Synopsis.classifier` for `estimator`."""
        return self.synopsis.classifier(estimator)


def _warnings(budgets: PersonBudgets | None, weights: Weights) -> tuple[str, ...]:
    if budgets is None:
        return ()
    silent = int(budgets.counts[weights.groups == 0].sum())
    if not silent:
        return (PERSONAL_WARNING,)
    return (PERSONAL_WARNING, f"{silent} people granted so little beside the most generous that they count for nothing here")


MECHANISM = Mechanism(
    "privpfc",
    ("synthesize",),
    PrivPfC,
    "one or two grids chosen for classification, noisy class counts per cell",
    parameters=(
        Parameter("grids", "any", "how many grids: 1, 2 or 'auto' (noisy class counts decide)", "auto"),
        Parameter("most", "any", "Θ, candidate grids at most: a whole number or 'auto'", "auto"),
        Parameter(
            "order", "text", "which candidates are taken when there are too many", "balanced", choices=get_args(Order)
        ),
        Parameter("widest", "any", "columns in a candidate at most: a whole number, 'all' or 'auto'", "auto"),
        Parameter("split", "any", "shares of ε for size, choice and counts: three numbers, 'paper' or 'auto'", "auto"),
        Parameter(
            "calibration",
            "text",
            "how the choice is priced: by the spread of the changes, or as published",
            "spread",
            choices=get_args(Calibration),
        ),
        Parameter("cells", "any", "cells of a candidate at most, as a share of N times ε: a number or 'auto'", "auto"),
        Parameter("cleaning", "text", "what is done to negative counts", "classes", choices=get_args(Cleaning)),
        Parameter(
            "others", "number", "share of ε for the target and the columns outside the grid", OTHERS, low=0, high=MOST_OTHERS
        ),
    ),
    rank={"classification": 1, "general": 3},
    paper="Su, Cao, Li & Lyu 2018",
)
